/* chat.h - conversations as text: the format of a model, and whole conversations in it.
 *
 * A model's folder says how conversations with it are written by a template in Jinja, a small
 * language. espalier runs no templates: it recognises those of the formats it knows and writes
 * what they would write, byte for byte (tests/unit/chat.c compares with the Hugging Face
 * library). A template that is not recognised has no format, and neither has a base model,
 * which has no template: its text stays raw.
 *
 * What a template writes becomes special tokens where it names them. What people write never
 * does: struct esp_chat_text says which bytes are theirs.
 */
#ifndef ESP_CHAT_H
#define ESP_CHAT_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/model/spans.h"

enum { ESP_CHAT_TEMPLATE_LIMIT = 1 << 20 /* bytes */ };

struct esp_chat_format;

/* How conversations with a model are written. Zeros: no format, no template. */
struct esp_chat {
    const struct esp_chat_format *format; /* NULL: none */
    bool has_template;                    /* the model has one, known or not */
    unsigned variant;                     /* of the format: see chat_format.h */
    char bos[64], eos[64];                /* texts of these tokens; "": none */
    char *system; /* the template's own system text, where the user gives none; or NULL */
};

/* Text in a chat format. */
struct esp_chat_text {
    char *bytes; /* (length) and a NUL */
    size_t length, capacity;
    struct esp_spans said; /* the parts of it that are not the template's: tag 0 */
    bool failed;           /* there was no memory, or the text is too long */
};

enum esp_chat_role { ESP_CHAT_SYSTEM, ESP_CHAT_USER, ESP_CHAT_ASSISTANT };

struct esp_chat_message {
    enum esp_chat_role role;
    const char *text;
    size_t length;
};

/* Reads a model's template, of `length` bytes. Texts of tokens may be NULL. Returns 0 or
 * ESP_E_MEMORY; a template that is not known is no failure. Free it either way. */
int esp_chat_read(struct esp_chat *chat, const char *text, size_t length, const char *bos,
                  const char *eos);
/* Reads the template of a model's folder: chat_template.jinja, or chat_template of
 * tokenizer_config.json. None of the two is no failure. */
int esp_chat_open(struct esp_chat *chat, const char *folder, char *err, size_t errlen);
void esp_chat_free(struct esp_chat *chat);

/* Makes `chosen` what `choice` (enum esp_chat_choice) means for a model with `own`. The strings
 * stay those of `own`; do not free `chosen`. Its format is NULL if conversations are raw. */
void esp_chat_choose(struct esp_chat *chosen, const struct esp_chat *own, int choice);

/* Writes a whole conversation as apply_chat_template() of the Hugging Face library does with
 * add_generation_prompt: an optional system message first, then messages of the user and the
 * assistant by turns. Returns 0 or ESP_E_MEMORY. */
int esp_chat_render(struct esp_chat_text *out, const struct esp_chat *chat,
                    const struct esp_chat_message *messages, int count);

/* Adds what stands before the first turn, with `system` (NULL: none is given); the user's part
 * of a turn and the cue for the model; and the end of an answer. The first turn needs `system`,
 * too. */
void esp_chat_begin(struct esp_chat_text *out, const struct esp_chat *chat, const char *system);
void esp_chat_turn(struct esp_chat_text *out, const struct esp_chat *chat, bool first,
                   const char *system, const char *text, size_t length);
void esp_chat_close(struct esp_chat_text *out, const struct esp_chat *chat);
void esp_chat_text_free(struct esp_chat_text *text);

#endif
