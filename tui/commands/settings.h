/* settings.h - the settings: for `:set` and the configuration file.
 *
 * A setting is one entry of the table in settings.c. The table feeds `:set`, commands named
 * like settings (":temp 0.8"), the configuration file, completion, help and the manual.
 * Parameters of the drafter can be set in the same places; the engine lists them.
 */
#ifndef ESP_SETTINGS_H
#define ESP_SETTINGS_H

#include "tui/commands/control.h"

enum esp_setting_kind {
    ESP_SETTING_INTERFACE, /* the screen; takes effect immediately */
    ESP_SETTING_PROMPT,    /* likewise, for prompts of a live session */
    ESP_SETTING_REPLAY,    /* likewise, for the playback of a recording */
    ESP_SETTING_MODELS,    /* the models to load; a change later loads them again */
    ESP_SETTING_SESSION,   /* set by the engine thread, which also reports errors */
};

struct esp_setting {
    const char *key, *values, *summary; /* values: "on|off", or words like NUMBER */
    enum esp_setting_kind kind;
    /* Returns 0 or a negative status with a message. NULL: sets the field, the option of the
     * engine with this name, or the session's value `key`. */
    int (*set)(struct esp_control *control, const char *value, char *err, size_t errlen);
    /* Writes the value in the form in which it is set. NULL: the field's, the engine option's or
     * the session's value. */
    void (*get)(const struct esp_control *control, char *value, size_t size);
    size_t text; /* where get is NULL: offset in struct esp_control of the value; 0: none */
    /* Adds completions; choices->before: the value up to the word. NULL: the lower-case words of
     * `values`. */
    void (*complete)(struct esp_choices *choices);
    /* Where set and get are NULL: the field of struct esp_control that it is, and what to do
     * when it has changed, or NULL. Offset 0: it is none. */
    struct esp_value_info field;
    void (*changed)(struct esp_control *control);
};

/* Entry `index`; NULL past the end. At most ESP_MOST_SETTINGS. */
const struct esp_setting *esp_setting(int index);
enum esp_place esp_setting_place(const struct esp_setting *setting);
/* The index of the setting with this name, -1: none. */
int esp_setting_find(const char *key, size_t length);
void esp_setting_get(const struct esp_control *control, int index, char *value, size_t size);

/* Changes a setting or a parameter of the drafter. `origin`: "FILE, line N: " for a file, the
 * prefix of an error; NULL: the user typed it and is told the new value. Returns 0 (also if the
 * engine thread still has to check it) or a negative status. */
int esp_setting_change(struct esp_control *control, const char *key, const char *value,
                       const char *origin, char *err, size_t errlen);
/* The same for a typed line: the reply holds the error or the new value. Without a value, the
 * reply holds the current one. */
int esp_setting_type(struct esp_control *control, const char *key, const char *value);

/* Completes "KEY" and "KEY=VALUE"; or a value, whose beginning choices->before may hold. */
void esp_setting_complete(const struct esp_control *control, struct esp_choices *choices);
void esp_setting_complete_value(const struct esp_control *control, const char *key,
                                struct esp_choices *choices);

#endif
