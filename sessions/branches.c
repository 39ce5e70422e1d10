/* branches.c - changes, lists and compacts the tree of texts; see branches.h. */
#include "sessions/branches.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/status.h"
#include "sessions/grow.h"

static const struct esp_text_place nowhere = {-1, 0};

void esp_branches_open(struct esp_branches *b)
{
    *b = (struct esp_branches){.at = nowhere};
}

void esp_branches_free(struct esp_branches *b)
{
    for (int i = 0; i < b->count; i++)
        free(b->branch[i].tokens);
    free(b->branch);
    free(b->undo.step);
    free(b->redo.step);
    esp_branches_open(b);
}

/* ------------------------------------------------------------------ places */

struct esp_text_place esp_branches_end(const struct esp_branches *b, int branch)
{
    if (branch < 0)
        return nowhere;
    return (struct esp_text_place){branch, b->branch[branch].fork + b->branch[branch].count};
}

struct esp_text_place esp_branches_before(const struct esp_branches *b,
                                          struct esp_text_place place, int length)
{
    place.length = length < place.length ? length : place.length;
    while (place.branch >= 0 && place.length <= b->branch[place.branch].fork)
        place.branch = b->branch[place.branch].parent;
    return place;
}

struct esp_written *esp_branches_token(const struct esp_branches *b,
                                       struct esp_text_place place, int index)
{
    const struct esp_branch *owner =
        &b->branch[esp_branches_before(b, place, index + 1).branch];
    return &owner->tokens[index - owner->fork];
}

void esp_branches_text(const struct esp_branches *b, struct esp_text_place place, int from,
                       struct esp_written *to)
{
    while (place.branch >= 0 && place.length > from) {
        const struct esp_branch *owner = &b->branch[place.branch];
        const int first = owner->fork > from ? owner->fork : from;
        memcpy(to + (first - from), owner->tokens + (first - owner->fork),
               (size_t)(place.length - first) * sizeof *to);
        place = esp_branches_before(b, place, first);
    }
}

/* ------------------------------------------------------------------ writing */

/* If a branch continues the current text with `token`, returns the place after this token.
 * Otherwise returns a place with branch -1. */
static struct esp_text_place follow(const struct esp_branches *b, int32_t token)
{
    const struct esp_text_place at = b->at;
    if (at.branch >= 0) {
        const struct esp_branch *own = &b->branch[at.branch];
        if (at.length - own->fork < own->count &&
            own->tokens[at.length - own->fork].token == token)
            return (struct esp_text_place){at.branch, at.length + 1};
        if (at.length > own->furthest)
            return nowhere;
    }
    for (int i = b->count - 1; i >= 0; i--)
        if (b->branch[i].parent == at.branch && b->branch[i].fork == at.length &&
            b->branch[i].tokens[0].token == token)
            return (struct esp_text_place){i, at.length + 1};
    return nowhere;
}

void esp_branches_link(struct esp_branches *b, int branch)
{
    const struct esp_branch *own = &b->branch[branch];
    if (own->parent >= 0 && b->branch[own->parent].furthest < own->fork)
        b->branch[own->parent].furthest = own->fork;
}

/* Starts a branch without tokens at the end of the current text. Returns the number of the new
 * branch, or ESP_E_MEMORY. */
static int begin(struct esp_branches *b, const char *drafter)
{
    if (esp_grow(&b->branch, b->count, &b->capacity, sizeof *b->branch) < 0)
        return ESP_E_MEMORY;
    b->branch[b->count] = (struct esp_branch){
        .parent = b->at.branch, .fork = b->at.length, .created = time(NULL)};
    snprintf(b->branch[b->count].drafter, sizeof b->branch[b->count].drafter, "%.*s",
             (int)strcspn(drafter, ":"), drafter);
    return b->count;
}

static int extend(struct esp_branch *branch, const struct esp_written *token)
{
    if (esp_grow(&branch->tokens, branch->count, &branch->capacity, sizeof *branch->tokens) < 0)
        return ESP_E_MEMORY;
    branch->tokens[branch->count++] = *token;
    return ESP_OK;
}

int esp_branches_append(struct esp_branches *b, const struct esp_written *token, bool anew,
                        const char *drafter, struct esp_written **stored)
{
    const struct esp_text_place next = follow(b, token->token);
    int owner = next.branch >= 0 ? next.branch : b->at.branch, status = ESP_OK;
    if (next.branch < 0) {
        const bool at_end = owner >= 0 && b->at.length == esp_branches_end(b, owner).length;
        if (!at_end && (owner = begin(b, drafter)) < 0)
            return owner;
        status = extend(&b->branch[owner], token);
        if (status == ESP_OK && owner == b->count) {
            b->count++;
            esp_branches_link(b, owner);
        }
    } else if (anew) {
        b->branch[owner].tokens[b->at.length - b->branch[owner].fork] = *token;
    }
    if (status < 0)
        return status;
    /* A deleted branch is shown again when the current text contains all its tokens. */
    if (b->at.length + 1 == esp_branches_end(b, owner).length)
        b->branch[owner].deleted = false;
    *stored = &b->branch[owner].tokens[b->at.length - b->branch[owner].fork];
    b->at = (struct esp_text_place){owner, b->at.length + 1};
    return ESP_OK;
}

bool esp_branches_fit(const struct esp_branches *b, const struct esp_branch *branch)
{
    if (branch->parent < 0)
        return branch->fork == 0;
    const struct esp_branch *parent = &b->branch[branch->parent];
    return branch->fork > parent->fork && branch->fork <= parent->fork + parent->count;
}

void esp_branches_cut(struct esp_branches *b, int length)
{
    b->at = esp_branches_before(b, b->at, length);
}

void esp_branches_forget_iterations(struct esp_branches *b)
{
    for (int i = 0; i < b->count; i++)
        for (int j = 0; j < b->branch[i].count; j++)
            if (b->branch[i].tokens[j].iteration >= 0)
                b->branch[i].tokens[j].iteration = ESP_BY_FORGOTTEN;
}

/* ------------------------------------------------------------------ the list */

/* Returns the nearest ancestor that is not deleted, or -1. */
static int shown_parent(const struct esp_branches *b, int branch)
{
    do
        branch = b->branch[branch].parent;
    while (branch >= 0 && b->branch[branch].deleted);
    return branch;
}

int esp_branches_list(const struct esp_branches *b, int *order, int *depth)
{
    int *next = malloc(((size_t)b->count + 1) * 2 * sizeof *next), count = 0;
    int *first = next ? next + b->count + 1 : NULL;
    if (!next)
        return 0;
    /* first[p + 1] is the first child of branch p. next[i] is the next sibling of branch i. -1
     * means that there is none. */
    for (int i = 0; i <= b->count; i++)
        first[i] = -1;
    for (int i = b->count - 1; i >= 0; i--)
        if (!b->branch[i].deleted) {
            const int parent = shown_parent(b, i) + 1;
            next[i] = first[parent];
            first[parent] = i;
        }
    int at = first[0], level = 0;
    while (at >= 0) {
        order[count] = at;
        depth[count++] = level;
        if (first[at + 1] >= 0) {
            at = first[at + 1];
            level++;
            continue;
        }
        while (at >= 0 && next[at] < 0) {
            at = shown_parent(b, at);
            level--;
        }
        at = at >= 0 ? next[at] : -1;
    }
    free(next);
    return count;
}

int esp_branches_compact(struct esp_branches *b)
{
    bool *needed = calloc((size_t)b->count + 1, sizeof *needed);
    int *number = malloc(((size_t)b->count + 1) * sizeof *number), kept = 0, before = b->count;
    if (!needed || !number)
        before = 0;
    /* Children have higher numbers than their parents, so this loop visits children first. */
    for (int i = before - 1; i >= 0; i--) {
        needed[i] = needed[i] || !b->branch[i].deleted || b->at.branch == i;
        if (needed[i] && b->branch[i].parent >= 0)
            needed[b->branch[i].parent] = true;
    }
    for (int i = 0; i < before; i++) {
        number[i] = kept;
        if (!needed[i]) {
            free(b->branch[i].tokens);
            continue;
        }
        struct esp_branch own = b->branch[i];
        own.parent = own.parent >= 0 ? number[own.parent] : -1;
        own.furthest = 0;
        b->branch[kept++] = own;
    }
    if (before > 0) {
        b->at.branch = b->at.branch >= 0 ? number[b->at.branch] : -1;
        b->count = kept;
        b->undo.count = b->redo.count = 0;
        for (int i = 0; i < kept; i++)
            esp_branches_link(b, i);
    }
    free(needed);
    free(number);
    return before - (before > 0 ? kept : 0);
}

/* ------------------------------------------------------------------ undo */

static int push(struct esp_steps_back *steps, struct esp_step_back step)
{
    if (esp_grow(&steps->step, steps->count, &steps->capacity, sizeof *steps->step) < 0)
        return ESP_E_MEMORY;
    steps->step[steps->count++] = step;
    return ESP_OK;
}

static bool is_same(struct esp_text_place a, struct esp_text_place b)
{
    return a.branch == b.branch && a.length == b.length;
}

/* Removes the latest steps of the undo or redo list that would not change the current text. */
static void drop_idle(const struct esp_branches *b, struct esp_steps_back *steps)
{
    while (steps->count > 0 && steps->step[steps->count - 1].deleted < 0 &&
           is_same(steps->step[steps->count - 1].place, b->at))
        steps->count--;
}

int esp_branches_keep(struct esp_branches *b)
{
    drop_idle(b, &b->undo);
    b->redo.count = 0;
    return push(&b->undo, (struct esp_step_back){b->at, -1});
}

int esp_branches_delete(struct esp_branches *b, int branch)
{
    drop_idle(b, &b->undo);
    int status = push(&b->undo, (struct esp_step_back){b->at, branch});
    if (status == ESP_OK)
        b->branch[branch].deleted = true;
    b->redo.count = 0;
    return status;
}

const struct esp_step_back *esp_branches_back(struct esp_branches *b, bool redo)
{
    struct esp_steps_back *steps = redo ? &b->redo : &b->undo;
    drop_idle(b, steps);
    return steps->count > 0 ? &steps->step[steps->count - 1] : NULL;
}

int esp_branches_went_back(struct esp_branches *b, bool redo)
{
    struct esp_steps_back *from = redo ? &b->redo : &b->undo, *to = redo ? &b->undo : &b->redo;
    if (from->count == 0)
        return ESP_OK;
    const struct esp_step_back step = from->step[--from->count];
    if (step.deleted >= 0)
        b->branch[step.deleted].deleted = redo;
    return push(to, (struct esp_step_back){b->at, step.deleted});
}
