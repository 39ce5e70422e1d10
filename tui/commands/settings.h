/* settings.h - the settings that `:set` and the configuration file change.
 *
 * A setting is an entry in the table of settings.c. The table is used for `:set`, for commands
 * named like settings (":temp 0.8"), the configuration file, completion, help and the manual.
 * `:set` and the configuration file can also set parameters of the drafter, which the engine
 * lists.
 */
#ifndef ESP_SETTINGS_H
#define ESP_SETTINGS_H

#include "tui/commands/control.h"

enum esp_setting_kind {
    ESP_SETTING_INTERFACE, /* concerns the screen; takes effect immediately */
    ESP_SETTING_PROMPT,    /* concerns prompts in a live session; takes effect immediately */
    ESP_SETTING_REPLAY,    /* concerns the playback of a recording; takes effect immediately */
    ESP_SETTING_MODELS,    /* concerns the models; a change loads them again */
    ESP_SETTING_SESSION,   /* the engine thread sets it, and reports errors */
};

struct esp_setting {
    const char *key, *values, *summary; /* values: "on|off", or words like NUMBER */
    enum esp_setting_kind kind;
    /* Sets the value. Returns 0, or a negative status with a message. If this function is NULL,
     * the value is stored in `field`. If there is no field either, the setting is the engine
     * option or session setting that `key` names. */
    int (*set)(struct esp_control *control, const char *value, char *err, size_t errlen);
    /* Writes the value in the form that `set` reads. If this function is NULL, the value of the
     * field, engine option or session setting is written. */
    void (*get)(const struct esp_control *control, char *value, size_t size);
    size_t text; /* if `get` is NULL: offset in struct esp_control of a string that is the
                    value; 0: there is no such string */
    /* Adds completions of a word. choices->before has the part of the value before the word. If
     * this function is NULL, the lower-case words of `values` are offered. */
    void (*complete)(struct esp_choices *choices);
    /* If `set` and `get` are NULL, this is the field of struct esp_control that has the value.
     * Offset 0 means that there is no field. `changed`, if not NULL, is called after a
     * change. */
    struct esp_value_info field;
    void (*changed)(struct esp_control *control);
};

/* Returns setting `index` of the table, or NULL past its end. The table has at most
 * ESP_MOST_SETTINGS entries. */
const struct esp_setting *esp_setting(int index);
enum esp_place esp_setting_place(const struct esp_setting *setting);
/* Returns the index of the setting with this name, or -1. */
int esp_setting_find(const char *key, size_t length);
void esp_setting_get(const struct esp_control *control, int index, char *value, size_t size);

/* Changes a setting or a parameter of the drafter. For a setting in a file, `origin` is "FILE,
 * line N: " and is put before error messages. If `origin` is NULL, the user has typed the
 * setting, and the reply has the new value. Returns 0 or a negative status. If the engine
 * thread still has to check the value, 0 does not mean that the value is valid. */
int esp_setting_change(struct esp_control *control, const char *key, const char *value,
                       const char *origin, char *err, size_t errlen);
/* Changes a setting that the user has typed. The reply has the new value or the error. If
 * `value` is "", changes nothing, and the reply has the current value. */
int esp_setting_type(struct esp_control *control, const char *key, const char *value);

/* Completes a word of "KEY" or "KEY=VALUE". */
void esp_setting_complete(const struct esp_control *control, struct esp_choices *choices);
/* Completes a word of the value of a setting. choices->before has the part of the value before
 * the word. */
void esp_setting_complete_value(const struct esp_control *control, const char *key,
                                struct esp_choices *choices);

#endif
