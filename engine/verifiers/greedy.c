/* greedy.c - for temperature 0: accepts the longest path that consists of the target's
 * likeliest tokens.
 *
 * Starting at the root, the verifier follows the child that is the target's argmax after the
 * node, until there is no such child. The argmax after the last accepted node is the bonus
 * token (dynatree, sec. 3.5). With any tree the output equals the output of plain decoding,
 * token for token.
 */
#include "engine/verifiers/verifier.h"

static int select_path(struct esp_verify *v)
{
    struct esp_tree *tree = &v->tree->tree;
    const struct esp_sampling plain = {.temperature = 1, .top_p = 1};
    int32_t *argmax = v->next;
    for (int i = 0; i < tree->verified; i++)
        v->which[i] = i;
    /* The probabilities for the display are requested next, so that the host waits only once
     * for both results. */
    int status = v->ops->argmax(v->p, v->which, tree->verified, argmax,
                                tree->count > 1 ? ESP_LATER : ESP_NOW);
    if (status == ESP_OK)
        status = esp_verify_probabilities(v, &plain, false);
    if (status < 0)
        return status;
    v->path_length = 0;
    int node = 0;
    for (;;) {
        int32_t wanted = argmax[v->tree->row[node]];
        int next = esp_tree_find(v->tree, node, wanted);
        for (int c = v->tree->first_child[node]; c >= 0; c = v->tree->next_sibling[c]) {
            if (tree->nodes[c].verdict == ESP_CUT)
                continue;
            tree->nodes[c].verdict = c == next ? ESP_ACCEPTED : ESP_REJECTED;
            tree->nodes[c].acceptance = c == next;
        }
        v->bonus = wanted;
        if (next < 0)
            break;
        v->path[v->path_length++] = next;
        node = next;
    }
    return ESP_OK;
}

const struct esp_verifier_ops esp_verifier_greedy = {
    .name = "greedy",
    .summary = "the longest path that equals the target's likeliest tokens",
    .source = "all papers at temperature 0; dynatree, sec. 3.5",
    .lossless = ESP_DRAW_TOPK | ESP_DRAW_IID | ESP_DRAW_SWOR,
    .greedy = true,
    .without_q = true,
    .formula = "p is the largest",
    .select = select_path,
};
