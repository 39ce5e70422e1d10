/* branches.h - stores the texts of a session as a tree, so that no earlier text is lost.
 *
 * A branch shares the tokens before its fork with its parent, and owns all tokens after the
 * fork. Two branches never continue the same text with the same token. If a text is written a
 * second time, the tokens of the existing branch are used. The current text ends at a place in
 * the tree. Shortening the text only moves this place, so no earlier text is lost. The undo
 * list contains earlier places.
 *
 * The functions below change only this tree. The esp_session has its own copy of the current
 * text, and the caller must change this copy, too (esp_session_fork).
 */
#ifndef ESP_BRANCHES_H
#define ESP_BRANCHES_H

#include <stdbool.h>
#include <time.h>

#include "sessions/written.h"

/* Names a text: the first `length` tokens of branch `branch`, including the tokens that the
 * branch shares with its parent. The branch itself owns the last of these tokens. The empty
 * text is {-1, 0}. */
struct esp_text_place {
    int branch, length;
};

struct esp_branch {
    int parent;                 /* number of the parent branch, or -1 if there is none */
    int fork;                   /* number of tokens shared with the parent */
    struct esp_written *tokens; /* (count) the branch's own tokens */
    int count, capacity;
    int furthest;     /* the largest `fork` of its children, or 0 if it has no children */
    char name[48];    /* given by the user, or "" */
    char drafter[32]; /* name of the drafter that was used when the branch began */
    time_t created;   /* 0 means unknown */
    bool marked;      /* the user has set a bookmark on the branch */
    bool deleted;     /* the branch is not shown, but other branches can share its tokens */
};

/* Describes a step of undo or redo: the text to go to, and the branch to restore or delete. */
struct esp_step_back {
    struct esp_text_place place;
    int deleted; /* branch that undo restores and redo deletes again, or -1 */
};

struct esp_steps_back {
    struct esp_step_back *step; /* (count) */
    int count, capacity;
};

/* Stores the tree of all texts of a session. For an empty tree, set `at` to {-1, 0} and all
 * other members to 0. */
struct esp_branches {
    struct esp_branch *branch; /* (count) the branches, in the order in which they began */
    int count, capacity;
    struct esp_text_place at; /* the current text */
    struct esp_steps_back undo, redo;
};

void esp_branches_open(struct esp_branches *branches);
void esp_branches_free(struct esp_branches *branches);

/* Appends a token to the current text. If a branch already continues the text with this token,
 * the branch's token is used. In this case, if `anew` is true, the kind, iteration and score of
 * the branch's token are replaced. If there is no such branch, the token is stored, in a new
 * branch if needed. `drafter` is stored with a new branch. Sets *stored to the token in the
 * tree, valid until the next call. Returns 0 or ESP_E_MEMORY. */
int esp_branches_append(struct esp_branches *branches, const struct esp_written *token,
                        bool anew, const char *drafter, struct esp_written **stored);
/* Returns whether a branch begins after a token that its parent owns. A branch without a parent
 * must begin at 0. */
bool esp_branches_fit(const struct esp_branches *branches, const struct esp_branch *branch);
/* Updates `furthest` in the parent of a branch. Call this for a branch read from a file. */
void esp_branches_link(struct esp_branches *branches, int branch);
/* Shortens the current text to its first `length` tokens. */
void esp_branches_cut(struct esp_branches *branches, int length);
/* Returns the place where the first `length` tokens of a text end. */
struct esp_text_place esp_branches_before(const struct esp_branches *branches,
                                          struct esp_text_place place, int length);
/* Returns the place where the whole text of a branch ends. */
struct esp_text_place esp_branches_end(const struct esp_branches *branches, int branch);
/* Copies the tokens [from, place.length) of a text to `to`. */
void esp_branches_text(const struct esp_branches *branches, struct esp_text_place place,
                       int from, struct esp_written *to);
/* Returns token `index` of a text, 0 <= index < place.length. */
struct esp_written *esp_branches_token(const struct esp_branches *branches,
                                       struct esp_text_place place, int index);
/* Lists the branches that are not deleted as a tree, depth first. Writes their numbers to
 * `order` and their depths to `depth`, which have room for all branches. Returns the number of
 * listed branches. */
int esp_branches_list(const struct esp_branches *branches, int *order, int *depth);
/* Forgets which iterations wrote the tokens. Call this before iterations are numbered from 0
 * again. */
void esp_branches_forget_iterations(struct esp_branches *branches);

/* Frees all deleted branches, except those that other branches or the current text need. Clears
 * undo and redo, and renumbers the remaining branches. Returns the number of freed branches. */
int esp_branches_compact(struct esp_branches *branches);

/* ------------------------------------------------------------------ undo */

/* Call this before the text changes, so that undo can go back to the current text. Returns 0
 * or ESP_E_MEMORY. */
int esp_branches_keep(struct esp_branches *branches);
/* Deletes a branch. The current text must not end in this branch. Undo restores the branch.
 * Returns 0 or ESP_E_MEMORY. */
int esp_branches_delete(struct esp_branches *branches, int branch);
/* Returns the next step of undo, or of redo if `redo` is true. Returns NULL if there is none.
 * If the step only restores or deletes a branch, its text can be equal to the current text. */
const struct esp_step_back *esp_branches_back(struct esp_branches *branches, bool redo);
/* Call this before you go to the text of the step that esp_branches_back() returned. Undo
 * restores the branch of the step and adds a step for the current text to the redo list. Redo
 * deletes the branch and adds a step for the current text to the undo list. Returns 0 or
 * ESP_E_MEMORY. */
int esp_branches_went_back(struct esp_branches *branches, bool redo);

#endif
