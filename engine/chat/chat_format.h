/* chat_format.h - a chat format: how one family of models writes conversations.
 *
 * A format is one table in a file format_NAME.c and one line in espalier_chat.h. Its signs
 * recognise the templates (Jinja texts) that it stands for by what they write, and find the
 * differences between them. Its pieces are the parts of a conversation, as the template would
 * write them.
 *
 * A conversation is written as: begin, then for every turn user, cue, answer, close. While a
 * model generates, the answer is its own, so that every turn adds text and changes none.
 */
#ifndef ESP_CHAT_FORMAT_H
#define ESP_CHAT_FORMAT_H

#include "engine/chat/chat.h"

/* Places in a conversation. A piece may stand at several. */
enum {
    ESP_AT_BEGIN = 1,  /* before the first turn */
    ESP_AT_USER = 2,   /* the user's part of a turn */
    ESP_AT_CUE = 4,    /* what the model continues: the beginning of its answer */
    ESP_AT_ANSWER = 8, /* an earlier answer, from after the user's part up to the end token */
    ESP_AT_CLOSE = 16, /* after an answer */
};

/* What a piece holds. A piece with the system text is left out if there is none. It is given
 * to the pieces at the beginning, and to those of the user in the turn that carries it. */
enum esp_chat_content {
    ESP_PUT_NOTHING,
    ESP_PUT_BOS, /* the texts of these tokens; of the end: the first of `ends` if unknown */
    ESP_PUT_EOS,
    ESP_PUT_DAY, /* today: "2024-07-26", "26 Jul 2024" */
    ESP_PUT_DAY_IN_WORDS,
    ESP_SAY_TEXT, /* of the user or of the answer; without white space at its ends */
    ESP_SAY_STRIPPED_TEXT,
    ESP_SAY_SYSTEM,
    ESP_SAY_STRIPPED_SYSTEM,
};

/* Variants of a template, as bits. Each format has more of its own. */
enum {
    ESP_CHAT_KNOWN = 1,           /* the template is of this format */
    ESP_CHAT_SYSTEM_IS_LAST = 2,  /* the last turn of a whole conversation carries the system
                                     text, instead of the first */
    ESP_CHAT_OMITS_EMPTY = 4,     /* an empty system text is none */
    ESP_CHAT_DROPS_REASONING = 8, /* of earlier answers: up to the last </think> */
    ESP_CHAT_DROPS_LINES = 16,    /* line breaks before earlier answers */
    ESP_CHAT_OWN = 32,            /* the first bit for a format */
};

/* A template has this variant if `part` is somewhere in it, `also`, and not `lacks` (NULL: no
 * such condition). The text is that of esp_chat_read(). */
struct esp_chat_sign {
    unsigned variant;
    const char *part, *also, *lacks;
};

/* A piece is written if the variant has all bits of `needs` and none of `lacks`. */
struct esp_chat_piece {
    unsigned at; /* places; 0 ends the list */
    unsigned needs, lacks;
    const char *before; /* text of the template; NULL: none */
    enum esp_chat_content content;
    const char *after;
};

struct esp_chat_format {
    const char *name, *summary;
    /* Markers of the format. In the text of a user they are never read as tokens. Ends with
     * NULL. */
    const char *marks[9];
    /* Tokens that end an answer, if the tokenizer has them. Ends with NULL. */
    const char *ends[4];
    struct esp_chat_sign signs[10]; /* ends with zeros */
    unsigned usual;                 /* the variant without a template */
    /* The template's own system text is what stands between these two; NULL: it has none. */
    const char *system_after, *system_before;
    struct esp_chat_piece pieces[18]; /* in order; ends with zeros */
};

/* In the order of espalier_chat.h; ends with NULL. */
extern const struct esp_chat_format *const esp_chat_formats[];

/* Writes the pieces of a place. `system` is NULL where there is none. */
void esp_chat_write(struct esp_chat_text *out, const struct esp_chat *chat, unsigned at,
                    const char *system, const char *text, size_t length);
/* Adds text of the user or the model. */
void esp_chat_say(struct esp_chat_text *out, const char *text, size_t length);
/* Today: "26 Jul 2024", or "2024-07-26". */
void esp_chat_date(char *text, size_t size, bool in_words);

#endif
