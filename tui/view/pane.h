/* pane.h - the interface of a pane: a table of functions.
 *
 * A pane is one file in panes/ that exports a `const struct esp_pane_ops`, and one line in
 * panes.def. It draws from the state, the selection that all panes share (struct esp_look) and
 * its own scroll position (struct esp_pane_view). Drawing changes none of them.
 */
#ifndef ESP_PANE_H
#define ESP_PANE_H

#include "viz/canvas.h"
#include "viz/heat.h"
#include "tui/view/keys.h"
#include "tui/view/layout.h"
#include "tui/model/state.h"

struct esp_pane_view {
    int scroll;  /* scroll position in rows; each pane defines the origin */
    long anchor; /* text pane: byte at the top; compare pane: its place; -1: follow the end */
};

/* The selection that all panes share. */
struct esp_look {
    int iteration; /* index of the held iteration; -1 means follow the newest */
    int node;      /* the node at the tree's cursor, while an iteration is held */
    int token;     /* the token at the text's cursor; -1 if there is no cursor */
    bool of_token; /* the node pane shows this token, not a node of the tree */
    int likely;    /* the alternative to this token at the node pane's cursor, from 0 */
    int branch;    /* the branch at the branches pane's cursor; -1 means the current one */
    int heat;      /* enum esp_heat: how the text's tokens are coloured */
    bool collapsed[ESP_MAX_NODES + 1]; /* nodes of the held tree whose children are hidden */
    bool explains;    /* the tree pane explains its node, because the node pane is hidden */
    bool grows_right; /* trees grow to the right; otherwise they are indented rows */
    char search[96];  /* the text to search for; "" if none */
    long match;       /* byte of the last match in the text; -1 if none yet */
    const char *const *help; /* lines of the help pane, NULL at the end */
};

/* Holds an iteration and moves the cursor to its most informative node (viz/explain.h). With
 * index -1, follows the newest iteration again. */
void esp_look_hold(struct esp_look *look, const struct esp_state *state, int index);
/* Holds the iteration before or after the shown one. After the newest one, follows the newest
 * iteration again. */
void esp_look_step(struct esp_look *look, const struct esp_state *state, int step);

/* Moves the text's cursor to a token, and holds the iteration that wrote it. */
void esp_look_token(struct esp_look *look, const struct esp_state *state, int token);
/* Returns the token at the text's cursor if the node pane shows it, else -1. */
int esp_looked_token(const struct esp_look *look, const struct esp_state *state);

/* Scrolls by rows, by pages of `page` rows (at least 1), or to an end. view->scroll stays
 * between 0 and `most`. Returns false if the action does not scroll. */
bool esp_pane_scroll(struct esp_pane_view *view, int action, int page, int most);

/* One match of a search. */
struct esp_search_result {
    int index, count; /* this is match `index` (from 1) of `count`; count 0: no match */
    bool round;       /* the search wrapped around */
};

/* The data with which a pane draws itself and handles actions. */
struct esp_shown {
    const struct esp_state *state;
    struct esp_look *look;
    struct esp_pane_view *view;
    const struct esp_iteration *it; /* the selected iteration, or NULL */
    int stages;                     /* number of its finished stages */
    int width, height;              /* inside the frame */
    bool wheel;                     /* the action comes from the mouse wheel */
};

/* Where a branch begins: after a text of the tree of branches and some more tokens. */
struct esp_branch_point {
    struct esp_text_place place;
    int32_t tokens[ESP_MAX_NODES]; /* (count) */
    int count;
    bool written; /* the text exists already: show it, and generate nothing */
};

struct esp_pane_ops {
    const char *name, *summary;
    /* Writes the title for the top line of the frame. If NULL, the title is the name. */
    void (*title)(const struct esp_shown *shown, char *title, size_t size);
    /* Draws into the canvas's view, which is the area inside the frame. Changes neither
     * `look` nor `view`. */
    void (*draw)(struct esp_canvas *canvas, const struct esp_shown *shown);
    /* Handles an action. Returns false if the pane does not use it. May be NULL. */
    bool (*request)(const struct esp_shown *shown, int action);
    /* Handles a click inside the frame. Returns false if there is nothing at that cell. May be
     * NULL. */
    bool (*click)(const struct esp_shown *shown, int x, int y);
    /* Sets *point to where a branch from this pane would begin. Returns false if there is no
     * such place. May be NULL. */
    bool (*point)(const struct esp_shown *shown, struct esp_branch_point *point);
    /* Goes to the next (step 1) or previous (-1) match of look->search. May be NULL. */
    struct esp_search_result (*find)(const struct esp_shown *shown, int step);
};

#define X(name) extern const struct esp_pane_ops esp_pane_##name;
#include "tui/view/panes.def"

extern const struct esp_pane_ops *const esp_panes[ESP_PANES];

/* The index of the pane with this name, or -1. */
int esp_pane_find(const char *name);

#endif
