/* chat.h - writes conversations as text, in the format that a model expects.
 *
 * A model's folder has a chat template, a program in the small language Jinja that writes
 * conversations as text. espalier runs no templates. It recognises the templates of the formats
 * that it knows, and writes the same text as they would, byte for byte (tests/unit/chat.c
 * compares with the Hugging Face library). If a chat template is not recognised, or there is
 * none (a base model), text stays raw.
 *
 * In text from the chat template, the names of special tokens become these tokens. In text that
 * people wrote, such names stay plain text. struct esp_chat_text says which bytes people wrote.
 */
#ifndef ESP_CHAT_H
#define ESP_CHAT_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/model/spans.h"

enum { ESP_CHAT_TEMPLATE_LIMIT = 1 << 20 /* bytes */ };

struct esp_chat_format;

/* Describes how conversations with a model are written. A zero-initialised struct means that
 * there is no format and no chat template. */
struct esp_chat {
    const struct esp_chat_format *format; /* NULL if none */
    bool has_template;                    /* the model has a chat template, known or not */
    unsigned variant;                     /* variant of the format: see chat_format.h */
    char bos[64], eos[64];                /* texts of these tokens; "" if none */
    char *system; /* the chat template's own system prompt, used if the user gives none; or
                     NULL */
};

/* Holds text in a chat format. A zero-initialised struct is valid and empty. */
struct esp_chat_text {
    char *bytes; /* (length) and a NUL */
    size_t length, capacity;
    struct esp_spans said; /* the parts that people or the model wrote; tag 0 */
    bool failed;           /* memory ran out, or the text is too long */
};

/* Reads a model's chat template, `length` bytes of text. `bos` and `eos` are the texts of
 * these tokens, or NULL. Returns 0 or ESP_E_MEMORY; an unknown chat template is not a failure.
 * Free *chat in both cases. */
int esp_chat_read(struct esp_chat *chat, const char *text, size_t length, const char *bos,
                  const char *eos);
/* Reads the chat template of a model's folder: chat_template.jinja, or chat_template in
 * tokenizer_config.json. It is not a failure if the folder has neither. */
int esp_chat_open(struct esp_chat *chat, const char *folder, char *err, size_t errlen);
void esp_chat_free(struct esp_chat *chat);

/* Sets *chosen to the chat format that `choice` (enum esp_chat_choice) selects for a model with
 * the chat template `own`. The strings still belong to `own`; do not free `chosen`. The member
 * `format` is NULL if conversations are raw text. */
void esp_chat_choose(struct esp_chat *chosen, const struct esp_chat *own, int choice);

/* esp_chat_begin() adds what comes before the first turn, with the system prompt `system` (NULL
 * if the user gave none). esp_chat_turn() adds the user's part of a turn and the cue after
 * which the model writes; the first turn needs `system`, too. esp_chat_close() adds what comes
 * after an answer. */
void esp_chat_begin(struct esp_chat_text *out, const struct esp_chat *chat, const char *system);
void esp_chat_turn(struct esp_chat_text *out, const struct esp_chat *chat, bool first,
                   const char *system, const char *text, size_t length);
void esp_chat_close(struct esp_chat_text *out, const struct esp_chat *chat);
void esp_chat_text_free(struct esp_chat_text *text);

#endif
