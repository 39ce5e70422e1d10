/* walk.c - defines the functions that verifiers share. They compute probabilities of drafted
 * tokens and residuals, walk down the tree, and draw the bonus token; see verifier.h.
 *
 * The target's rows of all nodes with children are turned into probabilities in one call. A
 * leaf's row is turned into probabilities only if the bonus token is drawn from it. p and q are
 * computed with the same sampling settings.
 *
 * Why the walk is exact: the token that `solve` returns has the distribution p of its node,
 * given all tokens above the node. This holds whether the token is one of the children or not
 * (delayed-tree-expansion, sec. 3.2). Therefore the walk may stop at a token that is not a
 * child, or at a node without children.
 *
 * If a node has no q, its children were not drawn but found without the draft model
 * (retrieval.h). Verifiers do not test them: they treat the node as a leaf, and draw the token
 * after it from p. If that token happens to be one of the children, the walk continues at this
 * child, and the next token is drawn from p again.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/status.h"
#include "engine/verifiers/verifier.h"

static const double NOTHING = 1e-30; /* a smaller residual sum is only rounding error */

int esp_verify_open(struct esp_verify *v, struct esp_tree_builder *tree, char *err,
                    size_t errlen)
{
    const size_t record = (size_t)tree->record;
    memset(v, 0, sizeof *v);
    struct esp_arrays *a = &v->arrays;
    v->tree = tree;
    v->path = esp_arrays_add(a, (size_t)tree->capacity + 1, sizeof *v->path);
    v->p_of = esp_arrays_add(a, record, sizeof *v->p_of);
    v->q_of = esp_arrays_add(a, record, sizeof *v->q_of);
    v->which = esp_arrays_add(a, record, sizeof *v->which);
    v->token = esp_arrays_add(a, record, sizeof *v->token);
    v->number = esp_arrays_add(a, 2 * record, sizeof *v->number);
    v->weight = esp_arrays_add(a, record, sizeof *v->weight);
    v->residual = esp_arrays_add(a, record, sizeof *v->residual);
    v->next = esp_arrays_add(a, record, sizeof *v->next);
    if (!a->failed)
        return ESP_OK;
    esp_verify_close(v);
    return esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory to verify trees of %d nodes",
                    tree->capacity);
}

void esp_verify_close(struct esp_verify *v)
{
    esp_arrays_free(&v->arrays);
    memset(v, 0, sizeof *v);
}

/* ------------------------------------------------------------------ probabilities */

/* Looks up the probability of a node's token, for every node with row_of[parent] >= 0 (its
 * parent has a row). Writes the probabilities to `numbers`, in ascending order of nodes. */
static int look_up(struct esp_verify *v, struct esp_rows *rows, const int32_t *row_of,
                   double *numbers, enum esp_delivery when)
{
    const struct esp_tree *tree = &v->tree->tree;
    int n = 0;
    for (int u = 1; u < tree->count; u++) {
        int row = row_of[tree->nodes[u].parent];
        if (row < 0)
            continue;
        v->which[n] = row;
        v->token[n++] = tree->nodes[u].token;
    }
    return n ? v->ops->gather(rows, v->which, v->token, n, numbers, when) : ESP_OK;
}

/* Sets `of[u]` to the number that look_up() wrote for node u, or to NaN if it wrote none. */
static void spread(const struct esp_verify *v, const int32_t *row_of, const double *numbers,
                   double *of)
{
    const struct esp_tree *tree = &v->tree->tree;
    for (int u = 1; u < tree->count; u++)
        of[u] = row_of[tree->nodes[u].parent] < 0 ? NAN : *numbers++;
}

/* Returns whether any node was drawn from a row of q. */
static bool has_q(const struct esp_verify *v)
{
    const struct esp_tree *tree = &v->tree->tree;
    int u = 1;
    while (u < tree->count && v->q_row[tree->nodes[u].parent] < 0)
        u++;
    return u < tree->count;
}

int esp_verify_probabilities(struct esp_verify *v, const struct esp_sampling *sampling,
                             bool with_q)
{
    struct esp_tree *tree = &v->tree->tree;
    double *p = v->number, *q = v->number + v->tree->record;
    int rows = 0;
    for (int i = 0; i < tree->verified; i++)
        if (v->tree->first_child[tree->order[i]] >= 0)
            v->which[rows++] = i;
    int status = rows ? v->ops->softmax(v->p, v->which, rows, sampling) : ESP_OK;
    if (status == ESP_OK) /* if q is looked up next, only that call waits for the device */
        status = look_up(v, v->p, v->tree->row, p, with_q && has_q(v) ? ESP_LATER : ESP_NOW);
    if (status == ESP_OK && with_q)
        status = look_up(v, v->q, v->q_row, q, ESP_NOW);
    if (status < 0)
        return status;
    spread(v, v->tree->row, p, v->p_of);
    if (with_q)
        spread(v, v->q_row, q, v->q_of);
    for (int u = 1; u < tree->count; u++)
        tree->nodes[u].p = (float)v->p_of[u];
    return ESP_OK;
}

int esp_verify_keep_scores(struct esp_verify *v, int node)
{
    if (!v->scores || v->scores->known[node])
        return ESP_OK;
    return esp_scores_keep(v->scores, node, v->p, v->tree->row[node], ESP_LATER);
}

/* ------------------------------------------------------------------ tests of children */

void esp_verify_record(struct esp_verify *v, int node, double acceptance, double u,
                       bool accepted)
{
    struct esp_node *record = &v->tree->tree.nodes[node];
    record->acceptance = (float)acceptance;
    record->u = (float)u;
    if (accepted && record->u >= record->acceptance) /* rounding to float can make u as large as
                                                        the acceptance */
        record->u = nextafterf(record->acceptance, 0);
    record->verdict = accepted ? ESP_ACCEPTED : ESP_REJECTED;
}

/* Records that child `node`, which has probability `value`, was drawn. */
static void record_draw(struct esp_verify *v, int node, double value, double u)
{
    struct esp_node *record = &v->tree->tree.nodes[node];
    record->acceptance = (float)value;
    record->u = (float)u;
    record->verdict = ESP_ACCEPTED;
    record->drawn = true;
}

bool esp_verify_accept(struct esp_verify *v, int node, double acceptance)
{
    double u;
    bool accepted = esp_chance_accept(&v->chance, acceptance, &u);
    esp_verify_record(v, node, acceptance, u, accepted);
    return accepted;
}

/* ------------------------------------------------------------------ residuals */

double esp_residual_of(const struct esp_verify *v, const struct esp_residual *r, int node)
{
    double left = r->a * v->p_of[node] - (r->b > 0 ? r->b * v->q_of[node] : 0);
    return left > 0 ? left : 0;
}

/* With P = max(0, a p - b q): (w P - q)+ = max(0, w a p - (w b + 1) q), because the right side
 * is 0 wherever P is 0. */
int esp_residual_refuse(struct esp_verify *v, int node, double w, struct esp_residual *r,
                        double *sum)
{
    const struct esp_combination f = {.a = w * r->a, .b = -(w * r->b + 1)};
    double total = 0;
    int status =
        v->ops->combine(v->p, v->tree->row[node], v->q, v->q_row[node], &f, NULL, 0, &total);
    if (status == ESP_OK && total > NOTHING)
        *r = (struct esp_residual){f.a / total, -f.b / total};
    if (sum)
        *sum = total;
    return status;
}

/* Writes the residual into the row of p. */
static int write_residual(struct esp_verify *v, int node, const struct esp_residual *r)
{
    const struct esp_combination f = {.a = r->a, .b = -r->b};
    int row = v->tree->row[node];
    if (!(r->b > 0))
        return ESP_OK;
    return v->ops->combine(v->p, row, v->q, v->q_row[node], &f, v->p, row, NULL);
}

/* Looks up p and q of the children of `node` in rows p_row and q_row. */
static int look_up_children(struct esp_verify *v, int node, int p_row, int q_row)
{
    const struct esp_tree_builder *b = v->tree;
    double *p = v->number, *q = v->number + b->record;
    int n = 0;
    for (int c = b->first_child[node]; c >= 0; c = b->next_sibling[c]) {
        v->which[n] = p_row;
        v->token[n++] = b->tree.nodes[c].token;
    }
    int status = v->ops->gather(v->p, v->which, v->token, n, p, ESP_LATER);
    for (int i = 0; i < n; i++)
        v->which[i] = q_row;
    if (status == ESP_OK)
        status = v->ops->gather(v->q, v->which, v->token, n, q, ESP_NOW);
    for (int c = b->first_child[node]; c >= 0 && status == ESP_OK; c = b->next_sibling[c]) {
        v->p_of[c] = *p++;
        v->q_of[c] = *q++;
    }
    return status;
}

int esp_residual_remove(struct esp_verify *v, int node, int child, struct esp_residual *r)
{
    const int p_row = v->tree->row[node], q_row = v->q_row[node];
    int status = esp_verify_keep_end(v, node);
    if (v->scores)
        v->scores->changed[node] = true;
    if (status == ESP_OK)
        status = write_residual(v, node, r);
    *r = esp_whole;
    if (status == ESP_OK)
        status = v->ops->remove(v->q, q_row, v->tree->tree.nodes[child].token, NULL);
    return status < 0 ? status : look_up_children(v, node, p_row, q_row);
}

int esp_verify_keep_end(struct esp_verify *v, int node)
{
    const struct esp_combination all = {.a = 1};
    const int row = v->tree->row[node];
    if (!v->end || v->end_node == node)
        return ESP_OK;
    v->end_node = node;
    if (v->scores)
        v->scores->end_exact = !v->scores->changed[node];
    return v->ops->combine(v->p, row, v->p, row, &all, v->end, 0, NULL);
}

static int draw(struct esp_verify *v, int node, const struct esp_residual *r, int32_t *token,
                double *value, double *u)
{
    int32_t row = v->tree->row[node];
    const bool leaf = v->tree->first_child[node] < 0;
    int status = leaf ? v->ops->softmax(v->p, &row, 1, &v->sampling) : (int)ESP_OK;
    if (status == ESP_OK)
        status = esp_verify_keep_end(v, node);
    if (status == ESP_OK && !leaf)
        status = write_residual(v, node, r);
    if (status == ESP_OK)
        status = esp_chance_draw(&v->chance, v->ops, v->p, row, token, value, u);
    v->bonus_u = (float)*u;
    return status;
}

static void reject_untested(struct esp_verify *v, int node)
{
    for (int c = v->tree->first_child[node]; c >= 0; c = v->tree->next_sibling[c])
        if (v->tree->tree.nodes[c].verdict == ESP_UNVISITED)
            v->tree->tree.nodes[c].verdict = ESP_REJECTED;
}

/* Draws the token after `node` from the residual, which is written into the row of p. Untested
 * children with other tokens are marked as rejected. */
static int draw_residual(struct esp_verify *v, int node, const struct esp_residual *r,
                         int32_t *token)
{
    double value = 0, u = NAN;
    int status = draw(v, node, r, token, &value, &u);
    if (status < 0)
        return status;
    int child = esp_tree_find(v->tree, node, *token);
    if (child >= 0)
        record_draw(v, child, value, u);
    reject_untested(v, node);
    return ESP_OK;
}

/* ------------------------------------------------------------------ the walk */

/* Fills in *site for a node. site->count is 0 if no child is to be tested. */
static void look_at(const struct esp_verify *v, const struct esp_verifier_ops *ops, int node,
                    int32_t *draws, struct esp_site *site)
{
    *site = (struct esp_site){node, v->tree->row[node], v->q_row[node], draws, 0};
    if (site->q_row < 0 && !ops->without_q)
        return;
    site->count = esp_tree_draws(v->tree, node, draws, ESP_MAX_TESTED);
    if (site->count > ESP_MAX_TESTED)
        site->count = ESP_MAX_TESTED;
}

static int walk(struct esp_verify *v, const struct esp_verifier_ops *ops)
{
    int32_t draws[ESP_MAX_TESTED];
    struct esp_site site;
    for (int node = 0;; v->path[v->path_length++] = node) {
        struct esp_residual left = esp_whole;
        look_at(v, ops, node, draws, &site);
        int child = site.count ? esp_verify_keep_scores(v, node) : 0;
        if (site.count && child == ESP_OK)
            child = ops->solve(v, &site, &left);
        if (child == 0) {
            int status = draw_residual(v, node, &left, &v->bonus);
            child = site.count ? esp_tree_find(v->tree, node, v->bonus) : -1;
            if (status < 0 || child < 0)
                return status;
        }
        if (child < 0)
            return child;
        node = child;
    }
}

int esp_verify_end(struct esp_verify *v, int node, const struct esp_residual *r)
{
    struct esp_node *nodes = v->tree->tree.nodes;
    int length = nodes[node].depth;
    double value = 0, u = NAN;
    int status = draw(v, node, r, &v->bonus, &value, &u);
    if (status < 0)
        return status;
    reject_untested(v, node);
    v->path_length = length;
    for (; length > 0; node = nodes[node].parent) {
        v->path[--length] = node;
        nodes[node].verdict = ESP_ACCEPTED;
    }
    return ESP_OK;
}

/* While the bonus token is a child that was not drawn, accepts that child and draws the next
 * bonus token. */
static int follow(struct esp_verify *v)
{
    int node = v->path_length > 0 ? v->path[v->path_length - 1] : 0, status = ESP_OK;
    while (status == ESP_OK && v->q_row[node] < 0) {
        node = esp_tree_find(v->tree, node, v->bonus);
        if (node < 0)
            return ESP_OK;
        record_draw(v, node, v->p_of[node], (double)v->bonus_u);
        v->path[v->path_length++] = node;
        status = draw_residual(v, node, &esp_whole, &v->bonus);
    }
    return status;
}

/* Stores the scores of all nodes, because a verifier that decides on whole paths may change any
 * row. */
static int keep_all_scores(struct esp_verify *v)
{
    const struct esp_tree *tree = &v->tree->tree;
    int status = ESP_OK;
    for (int i = 0; i < tree->verified && status == ESP_OK; i++)
        if (v->tree->first_child[tree->order[i]] >= 0)
            status = esp_verify_keep_scores(v, tree->order[i]);
    return status;
}

/* If a token does not come from the draft model, but the draft model's q after its parent is
 * known, the verifier tests the token with that q. The nodes of such tokens then show that
 * q. */
static void show_tested_q(const struct esp_verify *v)
{
    struct esp_tree *tree = &v->tree->tree;
    for (int u = 1; u < tree->count; u++)
        if (tree->nodes[u].source != ESP_SOURCE_DRAFT && isfinite(v->q_of[u]))
            tree->nodes[u].q = (float)v->q_of[u];
}

int esp_verify_run(struct esp_verify *v, const struct esp_verifier_ops *ops)
{
    v->path_length = 0;
    v->bonus = -1;
    v->bonus_u = NAN;
    v->explained_seconds = 0;
    v->end_node = -1;
    int status = ESP_OK;
    if (v->scores)
        esp_scores_begin(v->scores);
    if (!ops->greedy) {
        status = esp_verify_probabilities(v, &v->sampling, v->q != NULL);
        if (status == ESP_OK && ops->select)
            status = keep_all_scores(v);
        if (status == ESP_OK && v->q && !ops->without_q)
            show_tested_q(v);
        if (status == ESP_OK && (v->explain || v->measure))
            status = esp_verify_explain(v, ops);
    }
    if (status == ESP_OK)
        status = ops->solve ? walk(v, ops) : ops->select(v);
    if (status == ESP_OK && !ops->greedy)
        status = follow(v);
    if (status < 0) {
        v->path_length = 0;
        v->bonus = -1;
    }
    return status;
}
