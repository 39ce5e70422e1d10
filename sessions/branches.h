/* branches.h - the texts of a session as a tree, so that nothing that was written is lost.
 *
 * A branch shares the tokens before its fork with its parent, and owns its tokens from the
 * fork on. No two branches continue a common text with the same token: if a text is written
 * again, the branch that has it is followed. The present text ends at a place of the tree;
 * shortening it only moves this place. So every earlier text is still there, and undo is a
 * list of places.
 *
 * These functions change only this tree; the session has the present text (esp_session_fork).
 */
#ifndef ESP_BRANCHES_H
#define ESP_BRANCHES_H

#include <stdbool.h>
#include <time.h>

#include "sessions/written.h"

/* The end of a text: the first `length` tokens of branch `branch`. The empty text is {-1, 0};
 * else the branch owns the last token. */
struct esp_text_place {
    int branch, length;
};

struct esp_branch {
    int parent;                 /* -1: none */
    int fork;                   /* tokens shared with the parent */
    struct esp_written *tokens; /* (count) the branch's own tokens */
    int count, capacity;
    int furthest;     /* the highest fork of its children; 0: it has none */
    char name[48];    /* given by the user; "": none */
    char drafter[32]; /* the drafter when the branch began */
    time_t created;   /* 0: unknown */
    bool marked;      /* marked by the user, as a bookmark */
    bool deleted;     /* not shown; other branches may share its tokens */
};

/* What undo goes back to: a text, and perhaps a branch that was deleted. */
struct esp_step_back {
    struct esp_text_place place;
    int deleted; /* -1: none */
};

struct esp_steps_back {
    struct esp_step_back *step; /* (count) */
    int count, capacity;
};

/* An empty tree is zero-initialised, except at = {-1, 0}. */
struct esp_branches {
    struct esp_branch *branch; /* (count) in the order of their beginning */
    int count, capacity;
    struct esp_text_place at; /* the present text */
    struct esp_steps_back undo, redo;
};

void esp_branches_open(struct esp_branches *branches);
void esp_branches_free(struct esp_branches *branches);

/* Adds a token, written with `drafter`, to the present text. If a branch has this text
 * already, that branch is followed; with `anew`, what is known of its token is replaced.
 * *stored becomes the token in the tree, valid until the next call. Returns 0 or
 * ESP_E_MEMORY. */
int esp_branches_append(struct esp_branches *branches, const struct esp_written *token,
                        bool anew, const char *drafter, struct esp_written **stored);
/* For readers of files: records in the parent of a branch where the branch leaves it. */
void esp_branches_link(struct esp_branches *branches, int branch);
/* Shortens the present text to its first `length` tokens. */
void esp_branches_cut(struct esp_branches *branches, int length);
/* The place of the first `length` tokens of a text. */
struct esp_text_place esp_branches_before(const struct esp_branches *branches,
                                          struct esp_text_place place, int length);
/* The whole text of a branch. */
struct esp_text_place esp_branches_end(const struct esp_branches *branches, int branch);
/* Copies the tokens [from, place.length) of a text to `to`. */
void esp_branches_text(const struct esp_branches *branches, struct esp_text_place place,
                       int from, struct esp_written *to);
/* A token of a text, 0 <= index < place.length. */
struct esp_written *esp_branches_token(const struct esp_branches *branches,
                                       struct esp_text_place place, int index);
/* The branches that are not deleted, parents first, as a tree: order, depth (count). Returns
 * their number. */
int esp_branches_list(const struct esp_branches *branches, int *order, int *depth);
/* Forgets which iterations wrote the tokens: their indices begin again at 0. */
void esp_branches_forget_iterations(struct esp_branches *branches);

/* Drops deleted branches whose tokens no other branch shares, and undo. The remaining branches
 * are numbered anew. Returns how many were dropped. */
int esp_branches_compact(struct esp_branches *branches);

/* ------------------------------------------------------------------ undo */

/* Call this before a change of the text: undo then goes back to the text as it is now. Returns
 * 0 or ESP_E_MEMORY. */
int esp_branches_keep(struct esp_branches *branches);
/* Deletes a branch; the present text must not end in it. Undo brings it back. */
int esp_branches_delete(struct esp_branches *branches, int branch);
/* What undo (or redo) would go to. NULL: nothing. Its place may be the present one, if only a
 * branch was deleted. */
const struct esp_step_back *esp_branches_back(struct esp_branches *branches, bool redo);
/* Takes this step from its list; the present text goes to the other list. Call it before the
 * text changes. Brings back (redo: deletes again) a deleted branch. */
int esp_branches_went_back(struct esp_branches *branches, bool redo);

#endif
