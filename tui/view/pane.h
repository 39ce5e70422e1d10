/* pane.h - what a pane is: a few functions in a table.
 *
 * A pane is one file in panes/ that exports a `const struct esp_pane_ops` and one line in
 * panes.def. Drawing is a function of the state, of what all panes look at together (struct
 * esp_look) and of what the user did to this pane (struct esp_pane_view); it changes none of
 * them.
 */
#ifndef ESP_PANE_H
#define ESP_PANE_H

#include "viz/canvas.h"
#include "tui/view/keys.h"
#include "tui/view/layout.h"
#include "tui/model/state.h"

struct esp_pane_view {
    bool focused;
    int scroll;  /* rows; what they count from is the pane's business */
    long anchor; /* text: byte at the top of the pane, or -1 to follow the end */
};

/* What several panes look at together. */
struct esp_look {
    int iteration; /* its index, held while others come; -1: always the newest */
    int node;      /* where the cursor of the tree is, while an iteration is held */
    bool collapsed[ESP_MAX_NODES + 1]; /* nodes of the held tree whose children are hidden */
    bool explains; /* no pane shows the node at the cursor: the tree says a sentence about it */
    bool grows_right;        /* trees grow to the right; otherwise they are indented rows */
    char search[96];         /* the text to find; "": none */
    long match;              /* byte of the text where it was found last; -1: not yet */
    const char *const *help; /* lines of the help pane, NULL at the end */
};

/* Holds an iteration (its cursor goes to the telling node), or with -1 follows the newest
 * again. */
void esp_look_hold(struct esp_look *look, const struct esp_state *state, int index);
/* Holds the iteration before or after the one that is shown; after the newest, follows again.
 */
void esp_look_step(struct esp_look *look, const struct esp_state *state, int step);

/* Which of the places where a text occurs was found. */
struct esp_search_result {
    int index, count; /* from 1; count 0: it occurs nowhere */
    bool round;       /* the search went on at the other end */
};

struct esp_pane_ops {
    const char *name, *summary;
    /* Writes the title in the upper line of the frame. NULL: the pane's name. */
    void (*title)(const struct esp_state *state, const struct esp_look *look, char *title,
                  size_t size);
    /* Fills the view of the canvas, which is the inside of the pane. */
    void (*draw)(struct esp_canvas *canvas, const struct esp_state *state,
                 const struct esp_look *look, const struct esp_pane_view *view);
    /* Obeys an action, given the size of the inside; false if it has no meaning here. May be
     * NULL. */
    bool (*request)(struct esp_pane_view *view, struct esp_look *look,
                    const struct esp_state *state, int action, int width, int height);
    /* A click on a cell of the inside; false if nothing is there. May be NULL. */
    bool (*click)(struct esp_pane_view *view, struct esp_look *look,
                  const struct esp_state *state, struct esp_rect inside, int x, int y);
    /* Goes to the next place (step 1; -1: to the one before) where look->search occurs. May be
     * NULL. */
    struct esp_search_result (*find)(struct esp_pane_view *view, struct esp_look *look,
                                     const struct esp_state *state, int step, int width,
                                     int height);
};

#define X(name) extern const struct esp_pane_ops esp_pane_##name;
#include "tui/view/panes.def"
#undef X

extern const struct esp_pane_ops *const esp_panes[ESP_PANES];

/* The pane of this name, or -1. */
int esp_pane_find(const char *name);

#endif
