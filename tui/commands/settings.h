/* settings.h - the settings that `:set` and the configuration file change.
 *
 * A setting is one entry of the table in settings.c. The table is used for `:set`, commands
 * named like settings (":temp 0.8"), the configuration file, completion, help and the manual.
 * Parameters of the drafter can be set in the same places; the engine lists them.
 */
#ifndef ESP_SETTINGS_H
#define ESP_SETTINGS_H

#include "tui/commands/control.h"

enum esp_setting_kind {
    ESP_SETTING_INTERFACE, /* concerns the screen; takes effect immediately */
    ESP_SETTING_PROMPT,    /* concerns prompts in a live session; takes effect immediately */
    ESP_SETTING_REPLAY,    /* concerns the playback of a recording; takes effect immediately */
    ESP_SETTING_MODELS,    /* concerns the models; changing it later loads them again */
    ESP_SETTING_SESSION,   /* the engine thread sets it and reports errors */
};

struct esp_setting {
    const char *key, *values, *summary; /* values: "on|off", or words like NUMBER */
    enum esp_setting_kind kind;
    /* Sets the value. Returns 0 or a negative status with a message. If NULL, `field` is set
     * or, without a field, the engine option or session setting named `key`. */
    int (*set)(struct esp_control *control, const char *value, char *err, size_t errlen);
    /* Writes the value in the form in which it is set. If NULL, the value of the field, engine
     * option or session setting is written. */
    void (*get)(const struct esp_control *control, char *value, size_t size);
    size_t text; /* if get is NULL: offset of the value's text in struct esp_control, or 0 */
    /* Adds completions. choices->before has the value up to the word. If NULL, the lower-case
     * words of `values` are offered. */
    void (*complete)(struct esp_choices *choices);
    /* If set and get are NULL: the field of struct esp_control that has the value (offset 0
     * means no field), and a function, or NULL, that is called when the field has changed. */
    struct esp_value_info field;
    void (*changed)(struct esp_control *control);
};

/* Entry `index`; NULL past the end. At most ESP_MOST_SETTINGS. */
const struct esp_setting *esp_setting(int index);
enum esp_place esp_setting_place(const struct esp_setting *setting);
/* The index of the setting with this name, or -1. */
int esp_setting_find(const char *key, size_t length);
void esp_setting_get(const struct esp_control *control, int index, char *value, size_t size);

/* Changes a setting or a parameter of the drafter. For a setting in a file, `origin` is the
 * prefix of an error message, "FILE, line N: ". If `origin` is NULL, the user typed the
 * setting, and the reply has the new value. Returns 0 (also if the engine thread still has to
 * check the value) or a negative status. */
int esp_setting_change(struct esp_control *control, const char *key, const char *value,
                       const char *origin, char *err, size_t errlen);
/* Changes a setting that the user typed. The reply has the new value or the error. Without a
 * value, the reply has the current one. */
int esp_setting_type(struct esp_control *control, const char *key, const char *value);

/* Completes "KEY" and "KEY=VALUE". */
void esp_setting_complete(const struct esp_control *control, struct esp_choices *choices);
/* Completes the value of a setting. choices->before has the value up to the word. */
void esp_setting_complete_value(const struct esp_control *control, const char *key,
                                struct esp_choices *choices);

#endif
