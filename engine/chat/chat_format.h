/* chat_format.h - a chat format: how one family of models writes conversations.
 *
 * A format is one table in a file format_NAME.c and one line in espalier_chat.h. The `signs` of
 * a format are strings that occur in its Jinja chat templates. They identify these templates
 * and distinguish their variants. The `pieces` of a format are the parts of a conversation, in
 * the form in which the chat template would write them.
 *
 * A conversation consists of `begin` and then, for every turn, `user`, `cue`, `answer` and
 * `close`. While a model generates, `answer` is the text that it generates. Every turn
 * therefore only adds text and changes nothing before it.
 */
#ifndef ESP_CHAT_FORMAT_H
#define ESP_CHAT_FORMAT_H

#include "engine/chat/chat.h"

/* Places in a conversation. The same piece can be written at several places. */
enum {
    ESP_AT_BEGIN = 1,  /* before the first turn */
    ESP_AT_USER = 2,   /* the user's part of a turn */
    ESP_AT_CUE = 4,    /* the text that the model continues: the beginning of its answer */
    ESP_AT_ANSWER = 8, /* an earlier answer with its beginning, without its end token */
    ESP_AT_CLOSE = 16, /* after an answer */
};

/* The contents of a piece. A piece with the system prompt is left out if there is no system
 * prompt. Pieces at the beginning of a conversation always get the system prompt. Pieces of a
 * user's part get it only in one turn, the first or the last. "Stripped" means that white space
 * at both ends is removed. */
enum esp_chat_content {
    ESP_PUT_NOTHING,
    ESP_PUT_BOS,          /* the text of the begin-of-text token */
    ESP_PUT_EOS,          /* the text of the end token; if it is unknown, ends[0] */
    ESP_PUT_DAY,          /* today's date, as "2024-07-26" */
    ESP_PUT_DAY_IN_WORDS, /* today's date, as "26 Jul 2024" */
    ESP_SAY_TEXT,         /* the user's message, or the answer */
    ESP_SAY_STRIPPED_TEXT,
    ESP_SAY_SYSTEM, /* the system prompt */
    ESP_SAY_STRIPPED_SYSTEM,
};

/* Variants of a chat template, as bits. Each format defines further bits, from ESP_CHAT_OWN
 * on. */
enum {
    ESP_CHAT_KNOWN = 1,           /* the chat template has this format */
    ESP_CHAT_SYSTEM_IS_LAST = 2,  /* the system prompt is in the last turn of a whole
                                     conversation, not in the first */
    ESP_CHAT_OMITS_EMPTY = 4,     /* an empty system prompt is left out */
    ESP_CHAT_DROPS_REASONING = 8, /* earlier answers begin after their last </think> */
    ESP_CHAT_DROPS_LINES = 16,    /* line breaks at the start of earlier answers are removed */
    ESP_CHAT_OWN = 32,
};

/* A chat template has this variant if its text contains `part` and `also`, but not `lacks`
 * (NULL means no such condition). Before the search, "\n" in the template's literals becomes a
 * line break, and all quotes become single quotes. */
struct esp_chat_sign {
    unsigned variant;
    const char *part, *also, *lacks;
};

/* A piece is written if the variant has all bits of `needs` and none of `lacks`. */
struct esp_chat_piece {
    unsigned at; /* the places ESP_AT_... of the piece; 0 ends the list */
    unsigned needs, lacks;
    const char *before; /* text of the chat template before the content; NULL if none */
    enum esp_chat_content content;
    const char *after;
};

struct esp_chat_format {
    const char *name, *summary;
    /* The texts of this format's control tokens. Such a text in a message does not become
     * that token. NULL ends the list. */
    const char *marks[9];
    /* Tokens that end an answer, if the tokenizer has them. NULL ends the list. */
    const char *ends[4];
    struct esp_chat_sign signs[10]; /* an entry of zeros ends the list */
    unsigned usual;                 /* the variant for a model without a chat template of this
                                     * format */
    /* The chat template's default system prompt is the text between these two texts; NULL
     * means that there is none. */
    const char *system_after, *system_before;
    struct esp_chat_piece pieces[18]; /* in order; an entry of zeros ends the list */
};

/* The formats in the order of espalier_chat.h. NULL ends the list. */
extern const struct esp_chat_format *const esp_chat_formats[];

/* Writes the pieces that belong at place `at`. `system` is the system prompt, or NULL. */
void esp_chat_write(struct esp_chat_text *out, const struct esp_chat *chat, unsigned at,
                    const char *system, const char *text, size_t length);
/* Adds text that the user or the model wrote. */
void esp_chat_say(struct esp_chat_text *out, const char *text, size_t length);
/* Writes today's date, as "26 Jul 2024" or "2024-07-26". */
void esp_chat_date(char *text, size_t size, bool in_words);

#endif
