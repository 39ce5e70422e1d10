/* tree_view.h - draws a draft tree as indented rows.
 *
 *     · " and"
 *     ├─ " the"      .81  ✓
 *     │  ├─ " old"   .44  ✗  target: " young"
 *     │  ├─ " young"      +  from the target
 *     │  └┄ " dog"   .03  cut: path too unlikely
 *     └─ … 3 more (1 cut)
 *
 * Building the rows chooses the nodes to show. If not all nodes fit, the accepted path comes
 * first, then rejected nodes, then the other nodes by cumulative draft probability. A fold row
 * under a node says how many nodes below it are not shown. Drawing puts the rows on a canvas.
 * Rows and drawing depend on the iteration alone.
 */
#ifndef ESP_TREE_VIEW_H
#define ESP_TREE_VIEW_H

#include "viz/canvas.h"
#include "engine/espalier.h"

enum esp_tree_row_kind { ESP_ROW_NODE, ESP_ROW_BONUS, ESP_ROW_FOLD };

struct esp_tree_row {
    int kind;
    int node;       /* the node; for a fold row or the bonus token, the parent node */
    int parent_row; /* -1 for the root */
    int depth;
    bool last;       /* no sibling row follows */
    int hidden, cut; /* for a fold row: number of hidden nodes, and how many of these are cut */
};

struct esp_tree_rows {
    struct esp_tree_row *row; /* (count) parents before children */
    int count;
    int path_end; /* row of the last accepted node; of the root if none was accepted */
};

/* Says which part of a tree to show. */
struct esp_tree_choice {
    int stages;    /* how many stages of the iteration have ended; ESP_STAGES: all */
    int most;      /* maximum number of rows; the accepted path may need more. 0: no limit */
    int new_depth; /* nodes at this depth are new and come first; 0 if none */
    const bool *collapsed; /* (tree.count) nodes whose children are hidden; NULL if none */
};

/* Builds the rows. Returns 0 or ESP_E_MEMORY; esp_tree_rows_free() frees the rows. */
int esp_tree_rows_build(struct esp_tree_rows *rows, const struct esp_iteration *it,
                        const struct esp_tree_choice *choice);
void esp_tree_rows_free(struct esp_tree_rows *rows);

struct esp_tree_look {
    struct esp_tokens tokens;
    int stages, new_depth; /* as in struct esp_tree_choice; new nodes are marked */
    int first;             /* row at the top of the view */
    int cursor;            /* row at the cursor, or -1 */
    bool numbered;         /* nodes show their position in the flattened order */
    const char *search;    /* tokens that contain this text are marked; NULL or "": none */
};

/* Fills the view of the canvas. */
void esp_tree_rows_draw(struct esp_canvas *canvas, const struct esp_tree_rows *rows,
                        const struct esp_iteration *it, const struct esp_tree_look *look);

/* Returns the bytes of a token; *length is 0 if they are unknown. */
const char *esp_token_bytes_of(const struct esp_tokens *tokens, int32_t token, size_t *length);
/* Draws a token in quotes, at most `room` columns wide; returns the column after it. */
int esp_draw_token(struct esp_canvas *canvas, int x, int y, int room, int style,
                   const struct esp_tokens *tokens, int32_t token);
int esp_token_width(const struct esp_tokens *tokens, int32_t token, bool ascii);

/* Returns the style of a node. It depends on the node's verdict. */
int esp_node_style(const struct esp_iteration *it, int node);
/* Returns whether this token contains the searched text. */
bool esp_tree_matches(const struct esp_tree_look *look, int32_t token);

/* Returns whether the target's own token was drawn at random. This is the case above
 * temperature 0. */
bool esp_is_sampled(const struct esp_iteration *it);

/* Returns the source of a node's token (enum esp_source). Old recordings lack the source.
 * For them, it is derived from the node's `copied` or from the root's `reason`. */
int esp_source_of(const struct esp_iteration *it, int node);
/* Returns whether a node's token does not come from the draft model. Such a node has no draft
 * probability. */
bool esp_is_copied(const struct esp_iteration *it, int node);
/* Writes "copied from the text, 24 tokens back"; returns `text`. */
const char *esp_copied_text(char text[64], const struct esp_iteration *it, int node);
/* Counts the nodes of the tree for each source. */
void esp_count_sources(const struct esp_iteration *it, int count[ESP_SOURCES]);
/* esp_draft_probability() returns the draft probability of a node given its parent.
 * esp_path_probability() returns the draft probability of the whole path to the node. The
 * result is NaN if the node, or a node on the path, was copied. */
double esp_draft_probability(const struct esp_iteration *it, int node);
double esp_path_probability(const struct esp_iteration *it, int node);

/* Returns the token that the target chose after `node`; -1 if `node` is neither the root nor
 * accepted. */
int32_t esp_target_choice(const struct esp_iteration *it, int node);

#endif
