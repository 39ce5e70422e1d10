/* chat_format.h - a chat format: how one family of models writes conversations.
 *
 * A format is one file format_NAME.c and one line in espalier_chat.h. It recognises the
 * templates (Jinja texts) that it stands for by what they write, reads the differences between
 * them from the template, and writes the parts of a conversation as the template would.
 *
 * A conversation is written as: begin, then for every turn user, cue, answer, close. While a
 * model generates, the answer is its own, so that every turn adds text and changes none.
 */
#ifndef ESP_CHAT_FORMAT_H
#define ESP_CHAT_FORMAT_H

#include <stdio.h>
#include <string.h>

#include "engine/chat/chat.h"

struct esp_chat_format {
    const char *name, *summary;
    /* Markers of the format. In the text of a user they are never read as tokens. Ends with
     * NULL. */
    const char *const *marks;
    /* Tokens that end an answer, if the tokenizer has them. Ends with NULL. */
    const char *const *ends;
    /* Is this one of its templates? The text is that of esp_chat_read(). */
    bool (*recognise)(const char *text);
    /* Reads variants from a template: sets chat->variant and chat->system. NULL: there are
     * none. */
    void (*read)(struct esp_chat *chat, const char *text);
    /* What stands before the first turn. `system` is NULL where there is none. */
    void (*begin)(struct esp_chat_text *out, const struct esp_chat *chat, const char *system);
    /* The user's part of a turn. `system` is not NULL in the turn that carries the system text,
     * if this format has no place of its own for it. */
    void (*user)(struct esp_chat_text *out, const struct esp_chat *chat, const char *text,
                 size_t length, const char *system);
    /* What the model continues: the beginning of its answer. */
    void (*cue)(struct esp_chat_text *out, const struct esp_chat *chat);
    /* An earlier answer, from behind the user's part up to the end token. NULL: the cue and the
     * text. */
    void (*answer)(struct esp_chat_text *out, const struct esp_chat *chat, const char *text,
                   size_t length);
    /* What stands behind an answer. */
    void (*close)(struct esp_chat_text *out, const struct esp_chat *chat);
    /* Does the last turn of a whole conversation carry the system text, instead of the first?
     */
    bool (*system_is_last)(const struct esp_chat *chat);
};

/* In the order of espalier_chat.h; ends with NULL. */
extern const struct esp_chat_format *const esp_chat_formats[];

/* Add text of the template; and text of the system, the user or the model. */
void esp_chat_put(struct esp_chat_text *out, const char *text);
void esp_chat_say(struct esp_chat_text *out, const char *text, size_t length);

/* Is `part` somewhere in the template? */
bool esp_chat_has(const char *text, const char *part);
/* Copies what stands between `before` and `after` in the template, if that is a piece of one
 * literal: without quotes and braces. NULL: there is none. The caller frees it. */
char *esp_chat_between(const char *text, const char *before, const char *after);

/* Takes white space off both ends, as Python's str.strip() does. */
void esp_chat_strip(const char **text, size_t *length);
/* Moves to what follows the last `mark`, if there is one: past a model's reasoning. */
void esp_chat_skip(const char **text, size_t *length, const char *mark);
/* Today: "26 Jul 2024", or "2024-07-26". */
void esp_chat_date(char *text, size_t size, bool in_words);

#endif
