/* espalier_settings.h - defines the table of a session's settings, except its drafter and
 * verifier.
 *
 * A setting is one line of the table. libespalier, the flags of the program, `:set`, the
 * configuration file, recordings, comparisons and the manual all read the table. To add a
 * setting, add its line here and use its value where it takes effect.
 *
 * The values are plain data: assigning the struct copies it, and both copies point to the same
 * strings. A zero-initialised struct is valid: where 0 is not a valid value of a setting, 0
 * stands for the default.
 */
#ifndef ESPALIER_SETTINGS_H
#define ESPALIER_SETTINGS_H

#include "engine/espalier_chat.h"
#include "engine/espalier_value.h"

#ifdef __cplusplus
extern "C" {
#endif

/* X(kind, field, name, minimum, maximum, default, values, help); the columns are explained at
 * struct esp_value_info. */
#define ESP_SESSION_SETTINGS(X)                                                                \
    X(real, temperature, "temp", 0, 100, 0, "NUMBER",                                          \
      "temperature; 0: always the likeliest token")                                            \
    X(real, draft_temp, "draft_temp", 0.01, 100, 0, "auto|off|NUMBER",                         \
      "temperature of the draft; auto: learned; off: the temperature of the text")             \
    X(share, top_p, "top_p", 0, 1, 1, "NUMBER",                                                \
      "sample from the likeliest tokens whose probabilities add up to this")                   \
    X(whole, top_k, "top_k", 0, INT32_MAX, 0, "NUMBER",                                        \
      "sample from this many of the likeliest tokens; 0: from all")                            \
    X(seed, seed, "seed", 0, 0x1p64, 0, "NUMBER",                                              \
      "seed of all random numbers; if not given: a random seed for a text, 0 for a "           \
      "measurement")                                                                           \
    X(choice, order, "order", 0, 2, 0, "bfs|dfs|hpd",                                          \
      "order of the tree's rows in the target's pass")                                         \
    X(flag, baseline, "baseline", 0, 1, 0, "on|off",                                           \
      "measure plain decoding from time to time, for comparison")                              \
    X(flag, ignore_eos, "ignore_eos", 0, 1, 0, "on|off",                                       \
      "continue after the end of the text or turn, to measure a fixed length")                 \
    X(choice, chat, "chat", 0, ESP_CHAT_CHOICES - 1, 0, ESP_CHAT_NAMES,                        \
      "format of conversations: the model's own format, none (raw text), or a format by name") \
    X(whole, window, "window", 1, 1 << 20, 0, "off|on|NUMBER",                                 \
      "a token attends only to the sinks and to this many of the last tokens, so the text "    \
      "can be endless, but the output changes; on: 1020")                                      \
    X(whole, sinks, "sinks", 1, 1 << 20, 0, "auto|none|NUMBER",                                \
      "with a window, number of sinks (tokens at the start of the text to which every token "  \
      "attends); auto: 4")                                                                     \
    X(choice, recycle, "recycle", 0, 2, 0, "keep|session|off",                                 \
      "draft tokens that the target found likely before; keep: also in later runs; "           \
      "session: only in this session; off: never")                                             \
    X(text, expect, "expect", 0, 0, 0, "off|FILE",                                             \
      "a text that the answer will resemble, such as the file to be changed; its tokens "      \
      "are drafted first")                                                                     \
    X(text, system, "system", 0, 0, 0, "auto|TEXT",                                            \
      "system prompt of conversations (may be empty); auto: the system prompt in the chat "    \
      "template")

struct esp_session_values {
#define X(kind, field, name, minimum, maximum, value, values, help) ESP_VALUE_##kind field;
    ESP_SESSION_SETTINGS(X)
#undef X
};

/* Indices of the table's lines. */
enum esp_session_value {
#define X(kind, field, name, minimum, maximum, value, values, help) ESP_VALUE_OF_##field,
    ESP_SESSION_SETTINGS(X)
#undef X
        ESP_VALUES /* number of settings */
};

/* Values of draft_temp that are not temperatures. */
enum { ESP_DRAFT_AUTO = 0, ESP_DRAFT_OFF = -1 };
/* Values of window and sinks that are not token counts. */
enum { ESP_WINDOW_OFF = 0, ESP_WINDOW_ON = -1, ESP_SINKS_AUTO = 0, ESP_SINKS_NONE = -1 };

/* Copies line `index` of the table to *info. Returns false past its end. */
bool esp_value_info(int index, struct esp_value_info *info);
/* Returns the index of the setting with this name, or -1. */
int esp_value_find(const char *name);

/* The first function reads value `index` from text. The second function writes the value as
 * text. See esp_value_read(). */
int esp_value_parse(struct esp_session_values *values, int index, const char *called,
                    const char *text, char *err, size_t errlen);
void esp_value_print(const struct esp_session_values *values, int index, char *text,
                     size_t size);
/* Sets all texts to auto (NULL). Call this for a copy of the values that is still used when the
 * owner of the texts no longer exists. */
void esp_values_forget_texts(struct esp_session_values *values);
/* Replaces zeros that stand for defaults with the defaults. Returns 0, or ESP_E_ARGUMENT if a
 * value is out of range. */
int esp_values_check(struct esp_session_values *values, char *err, size_t errlen);

#ifdef __cplusplus
}
#endif
#endif
