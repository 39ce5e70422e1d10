/* retrieval.c - see retrieval.h. */
#include "engine/drafters/retrieval.h"

#include <math.h>

#include "engine/recycled.h"

static const double KEPT = 0.97; /* the counts are multiplied by this per tested position */
static const double WEIGHT = 2;  /* the prior weighs as much as guesses with this sum of q */
static const double MOST = 0.98; /* maximum probability of a guess */
static const double PRIOR_EXPECTED = 0.9;

static int class_of(int match)
{
    int class = 0;
    for (int most = 1; most < match && class < ESP_MATCH_LENGTHS - 1; most *= 2)
        class ++;
    return class;
}

static double prior_of(const struct esp_retrieval *r, int class)
{
    return class == ESP_MATCH_EXPECTED || class == ESP_MATCH_FOLLOWING ? PRIOR_EXPECTED
           : class > ESP_MATCH_EXPECTED                                ? 1
                                                                       : r->prior;
}

/* Returns the probability that a guess is correct if its parent is correct. */
static double rate_of(const struct esp_retrieval *r, const struct esp_guess *guess)
{
    const int class = guess->class;
    const double right = r->right[class] + prior_of(r, class) * WEIGHT;
    return fmin((double)guess->q * (right / (r->promised[class] + WEIGHT)), MOST);
}

/* ------------------------------------------------------------------ gathering guesses */

/* Returns the index of the guess with this token below a parent. Parent -1 means the root.
 * Returns -1 if there is no such guess.
 */
static int find_child(const struct esp_retrieval *r, int parent, int32_t token)
{
    int i = parent + 1;
    while (i < r->count && (r->guesses[i].parent != parent || r->guesses[i].token != token))
        i++;
    return i < r->count ? i : -1;
}

/* Adds a guess. Its parent, token, q, class and source must be set, and there must be room.
 * Returns its index. */
static int add(struct esp_retrieval *r, struct esp_guess guess)
{
    const struct esp_guess *above = guess.parent < 0 ? NULL : &r->guesses[guess.parent];
    const double rate = rate_of(r, &guess);
    guess.depth = above ? above->depth + 1 : 1;
    guess.d = (above ? above->d : 1) * (double)guess.q;
    r->value[r->count] = (above ? r->value[guess.parent] : 1) * rate;
    r->guesses[r->count] = guess;
    return r->count++;
}

/* Adds the tokens of the expected text, beginning with index `from`, as a chain. `q` and
 * `class` belong to the first token; `next` is the class of the other tokens. */
static void add_expected(struct esp_retrieval *r, const struct esp_expected *e,
                         const struct esp_guess_plan *plan, int from, float q, int class,
                         int next)
{
    struct esp_guess guess = {.parent = -1,
                              .q = q,
                              .state = -1,
                              .class = (uint8_t) class,
                              .source = ESP_SOURCE_EXPECTED};
    for (int i = 0; i < plan->depth && r->count < plan->nodes && from + i < e->count; i++) {
        guess.token = e->tokens[from + i];
        const int same = find_child(r, guess.parent, guess.token);
        guess.parent = same >= 0 ? same : add(r, guess);
        guess.q = 1;
        guess.class = (uint8_t)next;
    }
}

/* Adds tokens of the expected text. They begin at the pointer or, after a difference, at the
 * positions where the answer probably continues. */
static void find_expected(struct esp_retrieval *r, const struct esp_draft *d,
                          const struct esp_guess_plan *plan)
{
    const struct esp_expected *e = d->context ? d->context->expected : NULL;
    struct esp_follow_guess guesses[ESP_FOLLOW_PLACES];
    if (!e || e->count == 0 || plan->factor <= 0)
        return;
    esp_follow_read(&r->follow, e, d->text, d->text_length);
    const int at = esp_follow_place(&r->follow, e);
    if (at >= 0)
        add_expected(r, e, plan, at, 1, ESP_MATCH_EXPECTED, ESP_MATCH_EXPECTED);
    const int count = esp_follow_guess(&r->follow, e, d->text, guesses);
    for (int i = 0; i < count; i++)
        add_expected(r, e, plan, guesses[i].place, guesses[i].q, ESP_MATCH_CONTINUED + i,
                     ESP_MATCH_FOLLOWING);
}

/* Adds the tokens that followed the same tokens earlier in the text. Guesses that already exist
 * do not change. */
static void find_copied(struct esp_retrieval *r, const struct esp_guess_plan *plan)
{
    struct esp_guess own[ESP_GUESSES];
    int32_t place[ESP_GUESSES];
    const int count = esp_suffix_guess(&r->suffix, plan, own, &r->match);
    for (int i = 0; i < count; i++) {
        struct esp_guess guess = own[i];
        const int parent = guess.parent < 0 ? -1 : place[guess.parent];
        place[i] = guess.parent >= 0 && parent < 0 ? -1 : find_child(r, parent, guess.token);
        if (place[i] >= 0 || r->count == ESP_GUESSES || (guess.parent >= 0 && parent < 0))
            continue;
        guess.parent = parent;
        guess.class = (uint8_t)class_of(r->match);
        guess.source =
            esp_suffix_back(&r->suffix, &own[i]) > 0 ? ESP_SOURCE_COPIED : ESP_SOURCE_EXPECTED;
        place[i] = add(r, guess);
    }
}

/* A token that can be added below a guess or the root: the likeliest recycled token that is not
 * yet a child of that guess or root. */
struct offer {
    int rank;
    int32_t token;
    double rate, value; /* value 0: there is no such token */
};

/* Finds the next offer below a guess (-1 means the root). The search starts at index
 * offer->rank of the recycled tokens for this guess. */
static void make_offer(const struct esp_retrieval *r, const struct esp_draft *d,
                       const struct esp_guess_plan *plan, int parent, struct offer *offer)
{
    const struct esp_recycled *m = d->context->recycled;
    const struct esp_guess *above = parent < 0 ? NULL : &r->guesses[parent];
    const int32_t token = above ? above->token : d->text[d->text_length - 1];
    const struct esp_recycled_row *row = esp_recycled_of(m, token);
    offer->value = 0;
    if (!row || (above ? above->depth : 0) >= plan->depth)
        return;
    while (offer->rank < ESP_RECYCLED_WIDTH && row->token[offer->rank] >= 0 &&
           find_child(r, parent, row->token[offer->rank]) >= 0)
        offer->rank++;
    if (offer->rank == ESP_RECYCLED_WIDTH || row->token[offer->rank] < 0)
        return;
    offer->token = row->token[offer->rank];
    offer->rate = esp_recycled_rate(m, row, offer->rank);
    offer->value = (above ? r->value[parent] : 1) * offer->rate;
}

/* Adds recycled tokens, the likeliest first, below the root and below all guesses. */
static void find_recycled(struct esp_retrieval *r, const struct esp_draft *d,
                          const struct esp_guess_plan *plan)
{
    struct offer offers[ESP_GUESSES + 1]; /* [0]: below the root; [i + 1]: below guess i */
    const int most =
        r->count + plan->nodes < ESP_GUESSES ? r->count + plan->nodes : ESP_GUESSES;
    for (int i = 0; i <= r->count; i++) {
        offers[i].rank = 0;
        make_offer(r, d, plan, i - 1, &offers[i]);
    }
    while (r->count < most) {
        int best = 0;
        for (int i = 1; i <= r->count; i++)
            if (offers[i].value > offers[best].value)
                best = i;
        struct offer *offer = &offers[best];
        if (offer->value <= 0 || offer->value < plan->least)
            break;
        const int added = add(r, (struct esp_guess){.parent = best - 1,
                                                    .token = offer->token,
                                                    .q = (float)offer->rate,
                                                    .state = -1,
                                                    .class = ESP_MATCH_RECYCLED,
                                                    .source = ESP_SOURCE_RECYCLED});
        offers[added + 1].rank = 0;
        make_offer(r, d, plan, added, &offers[added + 1]);
        offer->rank++;
        make_offer(r, d, plan, best - 1, offer);
    }
}

/* Sorts the guesses in order of falling probability, with parents before their children, and
 * keeps the first `most`. */
static void sort(struct esp_retrieval *r, int most)
{
    struct esp_guess sorted[ESP_GUESSES];
    double value[ESP_GUESSES];
    int at[ESP_GUESSES], place[ESP_GUESSES];
    for (int i = 0; i < r->count; i++) {
        int to = i;
        for (; to > 0 && r->value[at[to - 1]] < r->value[i]; to--)
            at[to] = at[to - 1];
        at[to] = i;
    }
    for (int i = 0; i < r->count; i++)
        place[at[i]] = i;
    for (int i = 0; i < r->count; i++) {
        const int parent = r->guesses[at[i]].parent;
        sorted[i] = r->guesses[at[i]];
        sorted[i].parent = parent < 0 ? -1 : place[parent];
        value[i] = r->value[at[i]];
    }
    r->count = r->count < most ? r->count : most;
    for (int i = 0; i < r->count; i++) {
        r->guesses[i] = sorted[i];
        r->value[i] = value[i];
    }
}

/* Puts the expected text into the automaton, unless the automaton already has it. */
static int seed(struct esp_retrieval *r, const struct esp_draft *d)
{
    const struct esp_expected *e = d->context ? d->context->expected : NULL;
    if (!e || r->seeded == e->serial)
        return ESP_OK;
    r->seeded = e->serial;
    return esp_suffix_seed(&r->suffix, e->tokens, e->count);
}

int esp_retrieval_find(struct esp_retrieval *r, const struct esp_draft *d,
                       struct esp_guess_plan *plan, bool recycle)
{
    plan->nodes = plan->nodes < d->tree->room ? plan->nodes : d->tree->room;
    plan->depth = plan->depth < d->max_depth ? plan->depth : d->max_depth;
    r->count = r->match = 0;
    int status = seed(r, d);
    if (status == ESP_OK)
        status = esp_suffix_read(&r->suffix, d->text, d->text_length);
    if (status < 0)
        return status;
    find_expected(r, d, plan);
    const int expected = r->count;
    find_copied(r, plan);
    const int copied = r->count - expected;
    if (recycle && d->context && d->context->recycled)
        find_recycled(r, d, plan);
    /* Guesses of a single source are sorted already, except after a difference. */
    if ((expected > 0) + (copied > 0) + (r->count > expected + copied) > 1 || r->follow.lost)
        sort(r, plan->nodes);
    r->class = r->count > 0 ? r->guesses[0].class : 0;
    return status;
}

/* ------------------------------------------------------------------ the tree */

int32_t esp_retrieval_parent(const struct esp_retrieval *r, int i)
{
    return r->guesses[i].parent < 0 ? 0 : r->node[r->guesses[i].parent];
}

void esp_retrieval_tell(const struct esp_retrieval *r, int i, struct esp_node *node)
{
    const struct esp_guess *g = &r->guesses[i];
    node->source = g->source;
    if (g->source == ESP_SOURCE_COPIED)
        node->copied = esp_suffix_back(&r->suffix, g);
}

struct esp_node *esp_retrieval_add(struct esp_retrieval *r, struct esp_draft *d, int i)
{
    const struct esp_guess *g = &r->guesses[i];
    struct esp_node *nodes = d->tree->tree.nodes;
    const int32_t parent = esp_retrieval_parent(r, i);
    r->node[i] = esp_tree_add(d->tree, parent, g->token, g->q);
    if (r->node[i] < 0)
        return NULL;
    nodes[parent].reason = ESP_REASON_NONE;
    esp_retrieval_tell(r, i, &nodes[r->node[i]]);
    return &nodes[r->node[i]];
}

/* ------------------------------------------------------------------ learning */

/* Learns from the children of guess `at` (-1 means the root). `token` is the committed token
 * after this guess. Returns the child that has this token, -1 if no child has it, or -2 if
 * there are no children. */
static int learn_place(struct esp_retrieval *r, int at, int32_t token)
{
    double promised[ESP_MATCH_CLASSES] = {0};
    int next = -1, children = 0;
    for (int i = at + 1; i < r->count; i++) {
        const struct esp_guess *g = &r->guesses[i];
        if (g->parent != at)
            continue;
        children++;
        promised[g->class] += (double)g->q;
        if (g->token == token)
            next = i;
    }
    for (int class = 0; class < ESP_MATCH_CLASSES; class ++) {
        if (promised[class] <= 0)
            continue;
        const bool right = next >= 0 && r->guesses[next].class == class;
        r->right[class] = KEPT * r->right[class] + right;
        r->promised[class] = KEPT * r->promised[class] + promised[class];
    }
    return children > 0 ? next : -2;
}

int esp_retrieval_learn(struct esp_retrieval *r, const int32_t *committed, int count)
{
    int at = -1, depth = 0;
    while (r->count > 0 && depth < count && (at = learn_place(r, at, committed[depth])) >= 0)
        depth++;
    return depth;
}

void esp_retrieval_close(struct esp_retrieval *r)
{
    esp_suffix_close(&r->suffix);
    r->count = 0;
    r->seeded = 0;
}
