/* pane.h - the interface of a pane: a table of functions.
 *
 * A pane consists of a file in panes/ that exports a `const struct esp_pane_ops`, and of a line
 * in panes.def. What it draws depends on the state, on the selection that all panes share
 * (struct esp_look) and on its own scroll position (struct esp_pane_view). Drawing changes none
 * of them.
 */
#ifndef ESP_PANE_H
#define ESP_PANE_H

#include "viz/canvas.h"
#include "viz/heat.h"
#include "tui/view/keys.h"
#include "tui/view/layout.h"
#include "tui/model/state.h"

struct esp_pane_view {
    int scroll;  /* scroll position in rows; each pane defines row 0 */
    long anchor; /* text pane: first byte shown; compare pane: place shown; -1: the end */
};

/* What the user has selected. All panes share it. */
struct esp_look {
    int iteration; /* index of the held iteration; -1: follow the newest one */
    int node;      /* the node at the tree's cursor, while an iteration is held */
    int token;     /* the token at the text's cursor; -1 if there is no cursor */
    bool of_token; /* the node pane shows this token, not a node of the tree */
    int likely;    /* the node pane's cursor: index of an alternative to this token */
    int branch;    /* the branch at the branches pane's cursor; -1: the current one */
    int heat;      /* enum esp_heat, which says how tokens of the text are coloured */
    bool collapsed[ESP_MAX_NODES + 1]; /* nodes whose children the tree pane hides */
    bool explains;    /* the tree pane explains its node, because the node pane is hidden */
    bool grows_right; /* trees grow to the right; otherwise they are indented rows */
    char search[96];  /* the text to search for; "" if none */
    long match;       /* byte at which the latest match begins; -1: none yet */
    const char *const *help; /* lines of the help pane, NULL at the end */
};

/* Holds an iteration, which means that the panes keep showing it while new iterations run.
 * Moves the cursor to its most informative node (viz/explain.h). If `index` is -1, the panes
 * follow the newest iteration again. */
void esp_look_hold(struct esp_look *look, const struct esp_state *state, int index);
/* Holds the iteration before the shown one (step -1) or after it (step 1). If there is no later
 * iteration, the panes follow the newest one again. */
void esp_look_step(struct esp_look *look, const struct esp_state *state, int step);

/* Moves the text's cursor to a token, and holds the iteration that generated it. */
void esp_look_token(struct esp_look *look, const struct esp_state *state, int token);
/* Returns the token at the text's cursor if the node pane shows that token, or else -1. */
int esp_looked_token(const struct esp_look *look, const struct esp_state *state);

/* Scrolls by a row, by a page of `page` rows (at least 1), or to the start or the end.
 * view->scroll stays between 0 and `most`. Returns false if the action does not scroll. */
bool esp_pane_scroll(struct esp_pane_view *view, int action, int page, int most);

/* Describes the match that a search has found. */
struct esp_search_result {
    int index, count; /* index of the match, counted from 1; number of matches, 0 if none */
    bool round;       /* the search wrapped around */
};

/* The data that a pane needs to draw itself and to handle actions. */
struct esp_shown {
    const struct esp_state *state;
    struct esp_look *look;
    struct esp_pane_view *view;
    const struct esp_iteration *it; /* the selected iteration, or NULL */
    int stages;                     /* number of the iteration's finished stages */
    int width, height;              /* size of the area inside the frame */
    bool wheel;                     /* the action comes from the mouse wheel */
};

/* Says where a new branch begins: after the text that ends at `place` and the `tokens` that
 * follow this text. */
struct esp_branch_point {
    struct esp_text_place place;
    int32_t tokens[ESP_MAX_NODES]; /* (count) */
    int count;
    bool written; /* the text already exists; show it, and generate nothing */
};

struct esp_pane_ops {
    const char *name, *summary;
    /* Writes the title for the top line of the frame. If this function is NULL, the title is
     * the name of the pane. */
    void (*title)(const struct esp_shown *shown, char *title, size_t size);
    /* Draws the pane into the view of the canvas, which is the area inside the frame. Must not
     * change the shared selection or the scroll position. */
    void (*draw)(struct esp_canvas *canvas, const struct esp_shown *shown);
    /* Handles an action. Returns false if the pane does not use the action. Can be NULL. */
    bool (*request)(const struct esp_shown *shown, int action);
    /* Handles a click inside the frame. Returns false if there is nothing to select at that
     * cell. Can be NULL. */
    bool (*click)(const struct esp_shown *shown, int x, int y);
    /* Sets *point to where a branch would begin if it is begun from this pane. Returns false if
     * there is no such place. Can be NULL. */
    bool (*point)(const struct esp_shown *shown, struct esp_branch_point *point);
    /* Goes to the next (step 1) or previous (-1) match of look->search. Can be NULL. */
    struct esp_search_result (*find)(const struct esp_shown *shown, int step);
};

#define X(name) extern const struct esp_pane_ops esp_pane_##name;
#include "tui/view/panes.def"

extern const struct esp_pane_ops *const esp_panes[ESP_PANES];

/* Returns the index of the pane with this name, or -1. */
int esp_pane_find(const char *name);

#endif
