/* bv.c - block verification: accepts a prefix of one path (Sun et al. 2024).
 *
 * Along the path x_1..x_L, let w_0 = 1 and w_i = min(1, w_(i-1) p(x_i) / q(x_i)). Length L is
 * accepted with probability h_L = w_L. Length i < L is accepted with probability h_i = S / (S +
 * 1 - w_i), where S is the sum of (w_i p - q)+ after x_i. tau is the largest length that is
 * accepted. Lengths are tested from L down, so tau is the first accepted length. The next token
 * comes from p if tau = L, and from norm((w_tau p - q)+) otherwise. If a node has several
 * children, the path follows the first child.
 */
#include "engine/verifiers/verifier.h"

/* Follows the first draws from the root, sets the weights of the path, and returns its last
 * node. The path ends at a node without q. */
static int last_of_path(struct esp_verify *v)
{
    int32_t first;
    int node = 0;
    v->weight[0] = 1;
    while (v->q_row[node] >= 0 && esp_tree_draws(v->tree, node, &first, 1) > 0) {
        v->weight[first] = esp_keep(v->weight[node] * v->p_of[first], v->q_of[first]);
        node = first;
    }
    return node;
}

static int select_path(struct esp_verify *v)
{
    struct esp_residual left = esp_whole;
    int last = last_of_path(v), node = last, status = ESP_OK;
    while (node != 0) {
        double keep = v->weight[node], sum;
        if (node != last) {
            left = esp_whole;
            status = esp_residual_refuse(v, node, v->weight[node], &left, &sum);
            keep = sum > 0 ? sum / (sum + (1 - v->weight[node])) : 0;
        }
        if (status < 0)
            return status;
        if (esp_verify_accept(v, node, keep))
            return esp_verify_end(v, node, &left);
        node = v->tree->tree.nodes[node].parent;
    }
    left = esp_whole;
    if (last != 0)
        status = esp_residual_refuse(v, 0, 1, &left, NULL);
    return status < 0 ? status : esp_verify_end(v, 0, &left);
}

const struct esp_verifier_ops esp_verifier_bv = {
    .name = "bv",
    .summary = "block verification: decides for a whole path which prefix of it is accepted",
    .source = "Sun et al. 2024; delayed-tree-expansion, sec. 3.1",
    .lossless = ESP_DRAW_IID,
    .single_path = true,
    .formula = "S/(S + 1 - w)",
    .where = "w = min(1, w' p/q) = min(1, $v x $p/$q) = $w, w' of its parent, S the sum "
             "of (w p - q)+ after it; at the path's last token: w",
    .select = select_path,
};
