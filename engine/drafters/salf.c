/* salf.c - expands the likeliest nodes first and stops when further gains are low (salf-talf,
 * alg. 2).
 *
 * Each round adds the B likeliest candidates to the tree and expands them in one pass. Their
 * children become candidates, and the N best candidates are kept. Drafting stops when the
 * probabilities of the nodes just added have a sum below th. This sum falls with every round
 * (theorem 1), so no later round would gain more. The last B nodes are verified but not
 * expanded.
 */
#include "engine/drafters/drafter.h"

enum { N, B, TH };

static const struct esp_param params[] = {
    [N] = {"N", ESP_INT, 1, ESP_MAX_NODES, 60, .help = "maximum number of nodes"},
    [B] = {"B", ESP_INT, 1, ESP_MAX_TOP, 10, .help = "nodes expanded per pass, at most N"},
    [TH] = {"th", ESP_REAL, 0, 1, 0.6,
            .help = "stop when the next B nodes together are less likely than this"},
    {0},
};

static int draft(struct esp_draft *d)
{
    return esp_draft_best(d, (int)esp_param(d->params, N), (int)esp_param(d->params, B),
                          esp_param(d->params, TH));
}

const struct esp_drafter_ops esp_drafter_salf = {
    .name = "salf",
    .summary = "the likeliest nodes, until further drafting gains little",
    .source = "salf-talf, alg. 2",
    .differs =
        "N is the number of candidates (app. D), so the root is not counted. Drafting also "
        "stops if no node is left to expand; otherwise it would never end with th=0. Only "
        "the 64 likeliest children of a node are considered, which matters only for N above "
        "64. " ESP_DIFFERS_TEMPERED,
    .draws = ESP_DRAW_TOPK,
    .params = params,
    .draft = draft,
};
