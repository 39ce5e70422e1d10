/* settings.h - everything that `:set` and the configuration file can change.
 *
 * A setting is one entry of the table in settings.c, which feeds `:set`, the commands named
 * like settings (":temp 0.8"), the configuration file, completion, help and the manual.
 * Parameters of the drafter, which are the engine's to list, can be set in the same places.
 */
#ifndef ESP_SETTINGS_H
#define ESP_SETTINGS_H

#include "tui/commands/control.h"

enum esp_setting_kind {
    ESP_SETTING_INTERFACE, /* takes effect at once */
    ESP_SETTING_PROMPT,    /* likewise, but says how a live session writes */
    ESP_SETTING_REPLAY,    /* likewise, but says how a recording plays */
    ESP_SETTING_MODELS,    /* before anything is loaded: what is loaded; later, loads anew */
    ESP_SETTING_SESSION,   /* the engine's thread sets it, and says what is wrong with it */
};

struct esp_setting {
    const char *key, *values, *summary; /* values: "on|off", or words like NUMBER */
    enum esp_setting_kind kind;
    /* Returns 0 or a negative status with a sentence. NULL: the option of the engine with this
     * name, or the session does it. */
    int (*set)(struct esp_control *control, const char *value, char *err, size_t errlen);
    /* Writes the value as it could be set. NULL: that of the engine's options or of the session
     * with this name. */
    void (*get)(const struct esp_control *control, char *value, size_t size);
    /* Adds what the word after `before` can be. NULL: the lower-case words of `values`. */
    void (*complete)(const char *before, const char *word, struct esp_choices *choices);
};

/* Entry `index`; NULL past the end. At most ESP_MOST_SETTINGS. */
const struct esp_setting *esp_setting(int index);
enum esp_place esp_setting_place(const struct esp_setting *setting);
/* The index of the setting with this name, -1: none. */
int esp_setting_find(const char *key, size_t length);
void esp_setting_get(const struct esp_control *control, int index, char *value, size_t size);

/* Changes a setting, or a parameter of the drafter. `origin` is "FILE, line N: " where a file
 * says so, and stands before what is wrong; NULL: the user does, and is told what it is now.
 * Returns 0 (also where the engine's thread has yet to look at it) or a negative status. */
int esp_setting_change(struct esp_control *control, const char *key, const char *value,
                       const char *origin, char *err, size_t errlen);
/* The same for the user: the reply says what is wrong or what it is now. No value: what it is.
 */
int esp_setting_type(struct esp_control *control, const char *key, const char *value);

/* Completes "KEY" and "KEY=VALUE"; and the value of a setting, of which `before` may hold the
 * beginning. */
void esp_setting_complete(const struct esp_control *control, const char *before,
                          const char *word, struct esp_choices *choices);
void esp_setting_complete_value(const struct esp_control *control, const char *key,
                                const char *before, const char *word,
                                struct esp_choices *choices);

#endif
