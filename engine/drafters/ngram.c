/* ngram.c - drafts tokens that followed the same tokens earlier in the text (prompt lookup).
 *
 * The text is searched for its last n tokens, with n from parameter `n` down to 1, until there
 * is a match. The next K tokens after a match are a guess. Several matches make a tree: guesses
 * with a common beginning share nodes, and q of a token is the fraction of its parent's matches
 * that continue with this token (a single guess has q = 1). The tree has at most N nodes. Nodes
 * that more matches share are preferred, then nodes nearer to the root, then nodes of the
 * latest match.
 *
 * If fewer than K tokens follow a match, the guess continues with its own first tokens, so
 * repetitive text is continued for all K tokens. The tree depends only on the text: nothing is
 * sampled.
 */
#include "engine/drafters/drafter.h"

#include <string.h>

enum { LONGEST, K, N };

/* Only the last LOOK_BACK tokens of the text are searched, because a text can be endless. */
enum { MATCHES = 256, LOOK_BACK = 1 << 16 };

static const struct esp_param params[] = {
    [LONGEST] = {"n", ESP_INT, 1, 16, 3, .help = "maximum length of a match, in tokens"},
    [K] = {"K", ESP_INT, 1, 64, 10, .help = "tokens copied per match"},
    [N] = {"N", ESP_INT, 1, ESP_MAX_NODES, 32, .help = "maximum number of nodes"},
    {0},
};

/* Describes a candidate node: the matches that agree on all tokens down to this node. */
struct group {
    int first, count; /* index of the first match in state.match, and number of matches */
    int32_t parent;
    int depth; /* depth of the parent */
    float q;
};

struct state {
    int match[MATCHES];          /* position of the last matching token, latest match first */
    struct group group[MATCHES]; /* groups are disjoint, so there are at most MATCHES groups */
    int groups;
};

static int find_matches(struct state *s, const int32_t *text, int length, int n)
{
    const int32_t *tail = text + length - n;
    int count = 0, least = length - LOOK_BACK > n - 1 ? length - LOOK_BACK : n - 1;
    for (int i = length - 2; i >= least && count < MATCHES; i--)
        if (memcmp(text + i - n + 1, tail, (size_t)n * sizeof *text) == 0)
            s->match[count++] = i;
    return count;
}

/* Returns the position in the text from which a match copies the token at this depth. The first
 * copied token has depth 0. */
static int source(const struct esp_draft *d, int match, int depth)
{
    int at = match + 1 + depth;
    while (at >= d->text_length)
        at -= d->text_length - (match + 1);
    return at;
}

static int32_t guess(const struct esp_draft *d, int match, int depth)
{
    return d->text[source(d, match, depth)];
}

/* Splits matches into groups by their next token, below `parent`. */
static void split(const struct esp_draft *d, struct state *s, int first, int count,
                  int32_t parent)
{
    int depth = d->tree->tree.nodes[parent].depth, end = first + count;
    for (int at = first, from; (from = at) < end;) {
        int32_t token = guess(d, s->match[from], depth);
        for (int i = from; i < end; i++) {
            int match = s->match[i];
            if (guess(d, match, depth) != token)
                continue;
            memmove(s->match + at + 1, s->match + at, (size_t)(i - at) * sizeof match);
            s->match[at++] = match;
        }
        s->group[s->groups++] =
            (struct group){from, at - from, parent, depth, (float)(at - from) / (float)count};
    }
}

/* Removes the group with the most matches from the list and returns it. If several groups have
 * the same number, takes the first of them. */
static struct group take(struct state *s)
{
    int best = 0;
    for (int i = 1; i < s->groups; i++)
        if (s->group[i].count > s->group[best].count)
            best = i;
    struct group group = s->group[best];
    memmove(s->group + best, s->group + best + 1, (size_t)(--s->groups - best) * sizeof group);
    return group;
}

static int draft(struct esp_draft *d)
{
    struct state *s = d->state;
    int depth = (int)esp_param(d->params, K), budget = (int)esp_param(d->params, N), count = 0;
    depth = depth < d->max_depth ? depth : d->max_depth;
    for (int n = (int)esp_param(d->params, LONGEST); n > 0 && count == 0; n--)
        count = n < d->text_length ? find_matches(s, d->text, d->text_length, n) : 0;
    budget = budget < d->tree->room ? budget : d->tree->room;
    s->groups = 0;
    if (count > 0)
        split(d, s, 0, count, 0);
    for (; budget > 0 && s->groups > 0; budget--) {
        struct group g = take(s);
        int32_t token = guess(d, s->match[g.first], g.depth);
        int node = esp_tree_add(d->tree, g.parent, token, g.q);
        d->tree->tree.nodes[node].copied =
            d->text_length + g.depth - source(d, s->match[g.first], g.depth);
        d->tree->tree.nodes[node].source = ESP_SOURCE_COPIED;
        if (g.depth + 1 < depth)
            split(d, s, g.first, g.count, node);
        else
            d->tree->tree.nodes[node].reason = ESP_REASON_DEPTH;
    }
    for (int i = 0; i < s->groups; i++) {
        const struct group *g = &s->group[i];
        d->tree->tree.nodes[g->parent].reason = ESP_REASON_BUDGET;
        const int from = source(d, s->match[g->first], g->depth);
        const int cut =
            esp_tree_add_cut(d->tree, g->parent, d->text[from], g->q, ESP_REASON_BUDGET);
        if (cut < 0)
            continue;
        d->tree->tree.nodes[cut].copied = d->text_length + g->depth - from;
        d->tree->tree.nodes[cut].source = ESP_SOURCE_COPIED;
    }
    return ESP_OK;
}

const struct esp_drafter_ops esp_drafter_ngram = {
    .name = "ngram",
    .summary = "tokens that followed the same words earlier in the text; needs no draft model",
    .source = "prompt lookup decoding",
    .differs = "several matches make a tree. Prompt lookup uses only the first match",
    .draws = ESP_DRAW_TOPK,
    .without_model = true,
    .params = params,
    .state_size = sizeof(struct state),
    .draft = draft,
};
