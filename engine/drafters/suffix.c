/* suffix.c - drafts tokens that followed the same tokens earlier in the text, as a tree of the
 * likeliest continuations (SuffixDecoding, Oliaro et al., arXiv 2411.04975).
 *
 * Drafter `ngram` searches the text for its last few tokens. This drafter finds the longest
 * match and all shorter matches (suffix_automaton.h), with the frequency of each continuation.
 * The match length limits the tree: at most `factor` nodes per matching token. q is the
 * relative frequency. The tree is a function of the text: nothing is sampled.
 */
#include "engine/drafters/retrieval.h"

enum { N, K, FACTOR, LEAST };

static const struct esp_param params[] = {
    [N] = {"N", ESP_INT, 1, ESP_GUESSES, 32, .help = "maximum number of nodes"},
    [K] = {"K", ESP_INT, 1, 64, 24, .help = "depth of the tree"},
    [FACTOR] = {"factor", ESP_REAL, 0.25, 64, 1,
                .help = "maximum number of nodes for each token of the match"},
    [LEAST] = {"least", ESP_REAL, 0, 1, 0.1, .help = "minimum frequency of a guess"},
    {0},
};

static int draft(struct esp_draft *d)
{
    struct esp_retrieval *r = d->state;
    struct esp_guess_plan plan = {
        .nodes = (int)esp_param(d->params, N),
        .depth = (int)esp_param(d->params, K),
        .factor = esp_param(d->params, FACTOR),
        .least = esp_param(d->params, LEAST),
    };
    /* This value matters only if the user gave an expected text, because the guesses of both
     * sources are then sorted together. */
    r->prior = 0.5;
    int status = esp_retrieval_find(r, d, &plan, false);
    const double most = plan.factor * r->match;
    const bool full = r->count >= plan.nodes || r->count >= (int)most;
    for (int i = 0; i < r->count; i++)
        esp_retrieval_add(r, d, i)->reason = r->guesses[i].depth >= plan.depth
                                                 ? ESP_REASON_DEPTH
                                             : full ? ESP_REASON_BUDGET
                                                    : ESP_REASON_THRESHOLD;
    return status;
}

static void finish(void *memory)
{
    esp_retrieval_close(memory);
}

const struct esp_drafter_ops esp_drafter_suffix = {
    .name = "suffix",
    .summary = "likeliest continuations of all matches in the text; needs no draft model",
    .source = "SuffixDecoding, Oliaro et al. 2024",
    .differs =
        "it searches only this text, with a suffix automaton, while the source also has a "
        "suffix tree of other outputs. If a path reaches the end of the text, it continues "
        "with a shorter match. Guesses with a frequency below `least` are left out",
    .draws = ESP_DRAW_TOPK,
    .without_model = true,
    .asks = ESP_ASK_EXPECTED,
    .params = params,
    .state_size = sizeof(struct esp_retrieval),
    .close = finish,
    .draft = draft,
};
