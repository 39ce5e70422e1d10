/* keys.h - keys, what they do, and the one table that says so.
 *
 * The table feeds the key handling, the footer, the help and the manual. Panes never see keys:
 * a key becomes an action, and those that concern a pane are handed to it as a request.
 */
#ifndef ESP_KEYS_H
#define ESP_KEYS_H

#include <stdbool.h>

/* A key is a Unicode character (controls too), one of these, or either with ESP_KEY_META. */
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

/* Where a binding holds. */
enum {
    ESP_WHEN_ALWAYS,
    ESP_WHEN_PANE,  /* a pane has the focus */
    ESP_WHEN_EMPTY, /* the input line is empty, or a pane has the focus */
    ESP_WHEN_STEP,  /* likewise, and only in step mode */
    ESP_WHEN_BUSY,  /* always; but the footer shows it only while a text is being written */
};

/* X(action, key, when, in the footer or "", in the help) */
#define ESP_BINDINGS(X)                                                                        \
    X(HELP, "F1", ALWAYS, "help", "show this help; again or Esc: leave it")                    \
    X(DRAFTER, "F2", ALWAYS, "drafter", "choose how trees are drafted (:drafter)")             \
    X(VERIFIER, "F3", ALWAYS, "verifier", "choose how trees are verified (:verifier)")         \
    X(STACK, "F4", ALWAYS, "", "tree beside the text or below it")                             \
    X(STEP_MODE, "F5", ALWAYS, "step mode",                                                    \
      "step mode: stop after every stage; again: run on")                                      \
    X(STEP, "Space", STEP, "step", "in step mode: run one stage (input line empty)")           \
    X(FULL_SPEED, "F6", BUSY, "speed", "full speed, or back to the pace that can be watched")  \
    X(NEXT_PANE, "Tab", EMPTY, "pane", "focus the next pane, at last the input line again")    \
    X(PREVIOUS_PANE, "S-Tab", ALWAYS, "", "focus the previous pane")                           \
    X(ZOOM, "F8", ALWAYS, "zoom", "the focused pane on the whole screen, or not")              \
    X(LEAVE_PANE, "Esc", PANE, "back", "follow the newest tree again; back to the input line") \
    X(QUIT, "F10", ALWAYS, "", "leave")                                                        \
    X(PAGE_UP, "PgUp", ALWAYS, "", "scroll the focused pane (else the text) back")             \
    X(PAGE_DOWN, "PgDn", ALWAYS, "", "scroll it forward")                                      \
    X(UP, "Up", PANE, "", "move in the focused pane; in the tree from node to node")           \
    X(DOWN, "Down", PANE, "", "")                                                              \
    X(UP, "k", PANE, "", "")                                                                   \
    X(DOWN, "j", PANE, "", "")                                                                 \
    X(LEFT, "Left", PANE, "", "look at the iteration before or after")                         \
    X(RIGHT, "Right", PANE, "", "")                                                            \
    X(LEFT, "h", PANE, "", "")                                                                 \
    X(RIGHT, "l", PANE, "", "")                                                                \
    X(TOGGLE, "Enter", PANE, "", "fold or unfold what is below a node of the tree")            \
    X(FIRST, "Home", PANE, "", "to the start of the focused pane")                             \
    X(LAST, "End", PANE, "", "to its end")                                                     \
    X(QUIT, "q", PANE, "", "leave (when a pane has the focus)")                                \
    X(HELP, "?", EMPTY, "", "help (when the input line is empty)")                             \
    X(NONE, ":", EMPTY, "command", "begin a command (when the input line is empty)")           \
    X(INTERRUPT, "C-c", BUSY, "stop", "stop the generation; twice: leave")                     \
    X(EOF, "C-d", EMPTY, "", "leave (when the input line is empty)")                           \
    X(SUSPEND, "C-z", ALWAYS, "", "suspend; fg in the shell comes back")                       \
    X(REDRAW, "C-l", ALWAYS, "", "draw the screen anew")

/* Each action once; NONE leaves the key to the input line. */
#define ESP_ACTIONS(X)                                                                         \
    X(HELP) X(DRAFTER) X(VERIFIER) X(STACK) X(STEP_MODE) X(STEP) X(FULL_SPEED)                 \
    X(NEXT_PANE) X(PREVIOUS_PANE) X(ZOOM)                                                     \
    X(LEAVE_PANE) X(QUIT) X(PAGE_UP) X(PAGE_DOWN) X(UP) X(DOWN) X(LEFT) X(RIGHT) X(TOGGLE)     \
    X(FIRST) X(LAST) X(INTERRUPT) X(EOF) X(SUSPEND) X(REDRAW)

enum esp_action {
    ESP_ACTION_NONE,
#define X(name) ESP_ACTION_##name,
    ESP_ACTIONS(X)
#undef X
};

struct esp_binding {
    int action, when;
    const char *key, *label, *help;
};

extern const struct esp_binding esp_bindings[]; /* ends with key = NULL */

/* What decides which bindings hold. */
struct esp_when {
    bool pane;  /* a pane has the focus */
    bool empty; /* the input line is empty */
    bool step;  /* step mode is on */
};

int esp_key_action(int key, struct esp_when when);

/* "F2", "Tab", "C-c", "M-f", "a" to a key and back. -1 if there is no such key. */
int esp_key_parse(const char *name);
const char *esp_key_name(int key, char name[16]);

#endif
