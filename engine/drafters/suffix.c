/* suffix.c - what followed the same tokens before, as a tree of the likeliest continuations
 * (SuffixDecoding, Oliaro et al., arXiv 2411.04975); no draft model.
 *
 * While `ngram` searches the last few tokens, this drafter finds the longest match and all
 * shorter ones (suffix_automaton.h), with the frequency of each continuation. The match length
 * limits the tree: at most `factor` nodes per matching token. q is the relative frequency. The
 * tree is a function of the text: nothing is sampled.
 */
#include "engine/drafters/drafter.h"

#include "engine/drafters/suffix_automaton.h"

enum { N, K, FACTOR, LEAST };

static const struct esp_param params[] = {
    [N] = {"N", ESP_INT, 1, ESP_GUESSES, 32, .help = "maximum number of nodes"},
    [K] = {"K", ESP_INT, 1, 64, 24, .help = "depth of the tree"},
    [FACTOR] = {"factor", ESP_REAL, 0.25, 64, 1, .help = "maximum nodes per matching token"},
    [LEAST] = {"least", ESP_REAL, 0, 1, 0.1, .help = "minimum frequency of a guess"},
    {0},
};

struct state {
    struct esp_suffix suffix;
    struct esp_guess guesses[ESP_GUESSES];
    int32_t node[ESP_GUESSES];
};

static int draft(struct esp_draft *d)
{
    struct state *s = d->state;
    struct esp_guess_plan plan = {
        .nodes = (int)esp_param(d->params, N),
        .depth = (int)esp_param(d->params, K),
        .factor = esp_param(d->params, FACTOR),
        .least = esp_param(d->params, LEAST),
    };
    int match, status = esp_suffix_read(&s->suffix, d->text, d->text_length);
    if (status < 0)
        return status;
    plan.nodes = plan.nodes < d->tree->room ? plan.nodes : d->tree->room;
    plan.depth = plan.depth < d->max_depth ? plan.depth : d->max_depth;
    const int count = esp_suffix_guess(&s->suffix, &plan, s->guesses, &match);
    const double most = plan.factor * match;
    const bool full = count >= plan.nodes || count >= (int)most;
    for (int i = 0; i < count; i++) {
        const struct esp_guess *g = &s->guesses[i];
        const int32_t parent = g->parent < 0 ? 0 : s->node[g->parent];
        s->node[i] = esp_tree_add(d->tree, parent, g->token, g->q);
        struct esp_node *node = &d->tree->tree.nodes[s->node[i]];
        node->copied = esp_suffix_back(&s->suffix, g);
        d->tree->tree.nodes[parent].reason = ESP_REASON_NONE;
        node->reason = g->depth >= plan.depth ? ESP_REASON_DEPTH
                       : full                 ? ESP_REASON_BUDGET
                                              : ESP_REASON_THRESHOLD;
    }
    return ESP_OK;
}

static void finish(void *memory)
{
    esp_suffix_close(&((struct state *)memory)->suffix);
}

const struct esp_drafter_ops esp_drafter_suffix = {
    .name = "suffix",
    .summary = "likeliest continuations of all matches in the text; needs no draft model",
    .source = "SuffixDecoding, Oliaro et al. 2024",
    .differs = "a suffix automaton of this text only, not a suffix tree of other outputs as "
               "well; a path that reaches the end of the text continues with a shorter match; "
               "guesses below `least` are left out",
    .draws = ESP_DRAW_TOPK,
    .params = params,
    .state_size = sizeof(struct state),
    .close = finish,
    .draft = draft,
};
