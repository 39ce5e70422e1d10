/* keys.h - keys and their bindings. keys.def is the only table of them.
 *
 * The table is used to handle keys, and for the footer, the help and the manual. A pane never
 * gets keys. Each key is turned into an action, which is passed to the pane's function
 * `request`.
 */
#ifndef ESP_KEYS_H
#define ESP_KEYS_H

#include <stdbool.h>

/* A key is a Unicode character, which can be a control character, or one of these constants.
 * Both can be combined with ESP_KEY_META. */
enum {
    ESP_KEY_FIRST = 0x110000,
    ESP_KEY_UP = ESP_KEY_FIRST,
    ESP_KEY_DOWN,
    ESP_KEY_LEFT,
    ESP_KEY_RIGHT,
    ESP_KEY_HOME,
    ESP_KEY_END,
    ESP_KEY_PAGE_UP,
    ESP_KEY_PAGE_DOWN,
    ESP_KEY_INSERT,
    ESP_KEY_DELETE,
    ESP_KEY_BACKTAB,
    ESP_KEY_F0,
    ESP_KEY_LAST = ESP_KEY_F0 + 12,
    ESP_KEY_META = 0x1000000,
    ESP_KEY_ENTER = '\r',
    ESP_KEY_TAB = '\t',
    ESP_KEY_ESCAPE = 27,
};

/* Says when a binding is valid. */
enum {
    ESP_WHEN_ALWAYS,
    ESP_WHEN_PANE,   /* a pane has the focus */
    ESP_WHEN_EMPTY,  /* the input line is empty, or a pane has the focus */
    ESP_WHEN_STEP,   /* like EMPTY, but only in step mode */
    ESP_WHEN_LIVE,   /* in a live session, not in a replay */
    ESP_WHEN_BRANCH, /* like PANE, but only in a live session */
    ESP_WHEN_REPLAY, /* like EMPTY, but in a replay, where keys of panes are valid, too */
    ESP_WHEN_BUSY,   /* always, but the footer shows it only during generation */
};

enum esp_action {
    ESP_ACTION_NONE,
#define ACTION(name, key, when, label, help) ESP_ACTION_##name,
#define KEY(name, key, when)
#define COMMAND(line, key, when, label, help)
#define INPUT(key, when, label, help)
#include "tui/view/keys.def"
    ESP_ACTIONS
};

/* Writes the name that ":bind" uses for an action ("full-speed"). Returns `text`. */
const char *esp_action_name(int action, char text[32]);
/* Returns the action with this name, or -1. */
int esp_action_find(const char *name);

struct esp_binding {
    int action,
        when; /* for action NONE, `command` runs; if it is NULL, the input line gets the key */
    const char *key, *label, *help;
    const char *command; /* or NULL */
};

extern const struct esp_binding esp_bindings[]; /* in the last entry, `key` is NULL */

/* The state of the interface that decides which bindings are valid now. */
struct esp_key_when {
    bool pane;   /* a pane has the focus */
    bool empty;  /* the input line is empty */
    bool step;   /* step mode is on */
    bool replay; /* a recording is replayed */
};

/* The key bindings that the user has made with ":bind". */
struct esp_own_keys {
    struct esp_binding *binding; /* (count) */
    int count;
};

/* Returns the user's binding of a key in `own`, which can be NULL. Without one, returns the
 * binding of the table. If there is none either, returns NULL, and the input line gets the
 * key. */
const struct esp_binding *esp_key_binding(int key, struct esp_key_when when,
                                          const struct esp_own_keys *own);
/* Returns the user's binding of a key, or NULL. */
const struct esp_binding *esp_own_key(const struct esp_own_keys *own, int key);

/* Returns the key with this name ("F2", "Tab", "C-c", "M-f", "a"), or -1 if there is none. */
int esp_key_parse(const char *name);
/* Writes the name of a key. Returns `name`. */
const char *esp_key_name(int key, char name[16]);

#endif
