/* Tests verifiers on whole trees with a vocabulary of three. For each method of drawing trees,
 * the tests enumerate every draft tree and every outcome of the verifier on it. The
 * distribution of the first three output tokens must equal the target's to 1e-9. (Shorter
 * outputs are completed with tokens of the target.) On a single path, some verifiers must give
 * the same outputs. On several paths, some verifiers must accept more tokens on average than
 * others. A tree must give as many tokens as its branching probabilities predict. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/check.h"
#include "tests/enumerate.h"
#include "viz/formula.h"

enum { V = 3, DEPTH = 3, CONTEXTS = 1 + V + V * V + V * V * V, SEQUENCES = V * V * V };
static const double EXACT = 1e-9;
static const double SINGLE = 1e-5; /* for recorded values, which have single precision */

/* The target's distributions p and the draft's distributions q: one random distribution after
 * each context of at most DEPTH tokens. */
struct model {
    double p[CONTEXTS][V], q[CONTEXTS][V];
};

static struct rig rig;
static struct model model;

static int context(const int32_t *tokens, int count)
{
    int index = 0;
    for (int i = 0; i < count; i++)
        index = index * V + tokens[i] + 1;
    return index;
}

static void distribution(void *user, bool draft, const int32_t *tokens, int count,
                         double *values)
{
    const struct model *m = user;
    memcpy(values, (draft ? m->q : m->p)[context(tokens, count)], V * sizeof *values);
}

static void make_model(unsigned long long seed)
{
    for (int c = 0; c < CONTEXTS; c++) {
        double p_sum = 0, q_sum = 0;
        for (int x = 0; x < V; x++) {
            double u = check_uniform(&seed), w = check_uniform(&seed);
            p_sum += model.p[c][x] = u * u + 0.01;
            q_sum += model.q[c][x] = w * w + 0.01;
        }
        for (int x = 0; x < V; x++) {
            model.p[c][x] /= p_sum;
            model.q[c][x] /= q_sum;
        }
    }
}

/* ------------------------------------------------------------- distributions of the output */

struct law {
    double sequence[SEQUENCES]; /* probability of each sequence of three tokens */
    double length;              /* mean number of accepted nodes */
    double outcome[256];        /* probability of each output; context() gives the index */
};

/* Completes an output of `count` tokens with the target's tokens, in all possible ways. Adds
 * the probabilities of the resulting sequences, times `weight`, to `sequence`. */
static void complete(int32_t *tokens, int count, double weight, double *sequence)
{
    if (count >= DEPTH) {
        sequence[(tokens[0] * V + tokens[1]) * V + tokens[2]] += weight;
        return;
    }
    const double *p = model.p[context(tokens, count)];
    for (int x = 0; x < V; x++) {
        tokens[count] = x;
        complete(tokens, count + 1, weight * p[x], sequence);
    }
}

/* Adds all outcomes of the verifier for the current tree to *law. The mean number of output
 * tokens must equal the number that the tree's branching probabilities predict
 * (delayed-tree-expansion, eq. 3). */
static void add_outcomes(const struct esp_verifier_ops *rule, double weight, struct law *law)
{
    const struct esp_iteration it = {.tree = rig.tree.tree};
    double tokens = 0, formula = NAN;
    rig.verify.explain = rule->branching != NULL;
    enumerate_start(&rig.all);
    do {
        int32_t output[8];
        rig_run(&rig, rule);
        int count = rig_output(&rig, output), index = context(output, count);
        double part = weight * rig.all.probability;
        CHECK(index < (int)(sizeof law->outcome / sizeof *law->outcome));
        if (rig.verify.explain)
            formula = esp_formula_tokens(&it);
        rig.verify.explain = false; /* the formula is needed only once for each tree */
        tokens += rig.all.probability * count;
        law->outcome[index] += part;
        law->length += part * rig.verify.path_length;
        complete(output, count, part, law->sequence);
    } while (enumerate_next(&rig.all));
    CHECK(!rule->branching || fabs(formula - tokens) < SINGLE,
          "%s: its formula predicts %.9f tokens for a tree that gives %.9f", rule->name,
          formula, tokens);
}

static double target(int index)
{
    int32_t t[3] = {index / 9, index / 3 % 3, index % 3};
    return model.p[0][t[0]] * model.p[context(t, 1)][t[1]] * model.p[context(t, 2)][t[2]];
}

static void check_law(const struct esp_verifier_ops *rule, const struct law *law,
                      const char *what)
{
    for (int i = 0; i < SEQUENCES; i++)
        CHECK(fabs(law->sequence[i] - target(i)) < EXACT,
              "%s on %s: sequence %d has probability %.12f, not %.12f", rule->name, what, i,
              law->sequence[i], target(i));
}

/* ------------------------------------------------------------------ undoing draws */

struct mark {
    int node, count, draws, room, last_draw, last_child;
};

static struct mark mark(int node)
{
    const struct esp_tree_builder *b = &rig.tree;
    return (struct mark){node,    b->tree.count,      b->draws,
                         b->room, b->last_draw[node], b->last_child[node]};
}

/* Undoes the draw of `child`, which was the only draw since the mark. */
static void take_back(const struct mark *m, int child)
{
    struct esp_tree_builder *b = &rig.tree;
    if (child == m->count) {
        b->last_child[m->node] = m->last_child;
        *(m->last_child < 0 ? &b->first_child[m->node] : &b->next_sibling[m->last_child]) = -1;
    } else {
        b->tree.nodes[child].copies--;
    }
    b->last_draw[m->node] = m->last_draw;
    *(m->last_draw < 0 ? &b->first_draw[m->node] : &b->next_draw[m->last_draw]) = -1;
    b->tree.count = m->count;
    b->draws = m->draws;
    b->room = m->room;
}

/* Returns the draft's distribution after a node. */
static const double *draft_after(int node)
{
    int32_t tokens[DEPTH];
    return model.q[context(tokens, rig_path(&rig, node, tokens))];
}

/* ------------------------------------------------------------------ independent paths */

/* The shape of a tree: a stem of `trunk` tokens, followed by `paths` independent paths of
 * `length` tokens (delayed-tree-expansion, def. 5.2; without a stem, sec. 3.2). */
struct shape {
    int paths, trunk, length;
};

static void draw_paths(const struct esp_verifier_ops *rule, const struct shape *shape, int path,
                       int depth, int branch, int node, double weight, struct law *law)
{
    bool in_trunk = depth < shape->trunk;
    if (depth == shape->trunk) /* every path starts at this node */
        branch = node;
    if (depth == shape->trunk + shape->length) {
        if (path + 1 < shape->paths)
            draw_paths(rule, shape, path + 1, shape->trunk, branch, branch, weight, law);
        else
            add_outcomes(rule, weight, law);
        return;
    }
    const double *q = draft_after(node);
    for (int x = 0; x < V; x++) {
        struct mark before = mark(node);
        int child = esp_tree_draw(&rig.tree, node, x, q[x]);
        draw_paths(rule, shape, in_trunk ? 0 : path, depth + 1, branch, child, weight * q[x],
                   law);
        take_back(&before, child);
    }
}

static struct law law_of_paths(const struct esp_verifier_ops *rule, int paths, int trunk,
                               int length)
{
    const struct shape shape = {paths, trunk, length};
    struct law law = {{0}, 0, {0}};
    rig_reset(&rig);
    draw_paths(rule, &shape, 0, 0, 0, 0, 1, &law);
    return law;
}

static bool takes_paths(const struct esp_verifier_ops *rule, int paths)
{
    return (rule->lossless & ESP_DRAW_IID) && !rule->greedy &&
           (paths == 1 || !rule->single_path);
}

static void open_rig(unsigned draws, unsigned long long seed)
{
    make_model(seed);
    rig_open(&rig, V, 24, draws);
    rig.distribution = distribution;
    rig.user = &model;
}

TEST(independent_paths_keep_the_target)
{
    static const struct shape shapes[] = {{1, 0, 1}, {1, 0, 2}, {1, 0, 3}, {2, 0, 1},
                                          {3, 0, 1}, {2, 0, 2}, {2, 1, 1}, {2, 1, 2},
                                          {3, 1, 1}, {2, 2, 1}};
    for (unsigned long long seed = 1; seed <= 3; seed++) {
        open_rig(ESP_DRAW_IID, seed);
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
            for (int r = 0; esp_verifiers[r]; r++) {
                const struct shape s = shapes[i];
                char what[64];
                if (!takes_paths(esp_verifiers[r], s.paths))
                    continue;
                snprintf(what, sizeof what, "%d paths of %d after %d", s.paths, s.length,
                         s.trunk);
                struct law law = law_of_paths(esp_verifiers[r], s.paths, s.trunk, s.length);
                check_law(esp_verifiers[r], &law, what);
            }
        rig_close(&rig);
    }
}

/* ---------------------------------------------------------------- draws without replacement */

/* Returns how many children a node gets. This number can depend on the node and its rank among
 * its siblings, but it must not depend on the children that are drawn. */
static int breadth(int depth, int rank, int32_t token, int variant)
{
    static const int by_rank[3][3] = {{3, 2, 1}, {2, 1, 0}, {1, 2, 0}};
    if (depth >= 2)
        return 0;
    return depth == 0 ? 1 + variant % 3 : (by_rank[rank][variant / 3] + (token == 1)) % 4;
}

/* Draws the remaining children of node `node`, and then the children of all nodes that were
 * created after it, in all possible ways. */
static void draw_swor(const struct esp_verifier_ops *rule, int variant, int node, int drawn,
                      double taken, double weight, struct law *law)
{
    struct esp_tree_builder *b = &rig.tree;
    if (node == b->tree.count) {
        add_outcomes(rule, weight, law);
        return;
    }
    const struct esp_node at = b->tree.nodes[node];
    if (drawn == breadth(at.depth, at.rank, at.token, variant)) {
        draw_swor(rule, variant, node + 1, 0, 0, weight, law);
        return;
    }
    const double *q = draft_after(node);
    for (int x = 0; x < V; x++) {
        if (esp_tree_find(b, node, x) >= 0)
            continue;
        struct mark before = mark(node);
        int child = esp_tree_add(b, node, x, q[x]);
        draw_swor(rule, variant, node, drawn + 1, taken + q[x], weight * q[x] / (1 - taken),
                  law);
        take_back(&before, child);
    }
}

TEST(draws_without_replacement_keep_the_target)
{
    for (int variant = 0; variant < 9; variant++) {
        open_rig(ESP_DRAW_SWOR, (unsigned long long)variant + 20);
        for (int r = 0; esp_verifiers[r]; r++) {
            if (!(esp_verifiers[r]->lossless & ESP_DRAW_SWOR) || esp_verifiers[r]->greedy)
                continue;
            struct law law = {{0}, 0, {0}};
            rig_reset(&rig);
            draw_swor(esp_verifiers[r], variant, 0, 0, 0, 1, &law);
            check_law(esp_verifiers[r], &law, "draws without replacement");
        }
        rig_close(&rig);
    }
}

/* ------------------------------------------------------------- children that were not drawn */

static struct {
    struct mark before;
    int child;
} fixed[16];
static int fixed_count;

static int add_fixed(int parent, int32_t token)
{
    CHECK(fixed_count < (int)(sizeof fixed / sizeof *fixed));
    fixed[fixed_count].before = mark(parent);
    return fixed[fixed_count++].child = esp_tree_add(&rig.tree, parent, token, 0.5);
}

static void take_fixed_back(void)
{
    for (; fixed_count > 0; fixed_count--)
        take_back(&fixed[fixed_count - 1].before, fixed[fixed_count - 1].child);
}

/* Adds two children below `node`. The second of them gets one child. */
static void add_fixed_tree(int node)
{
    add_fixed(node, 1);
    add_fixed(add_fixed(node, 2), 0);
}

/* Draws `left` children of the root in all possible ways, and adds a fixed tree below each. */
static void draw_children(const struct esp_verifier_ops *rule, unsigned draws, int left,
                          double taken, double weight, struct law *law)
{
    struct esp_tree_builder *b = &rig.tree;
    const double *q = draft_after(0);
    if (left == 0) {
        const int drawn = b->tree.count;
        for (int u = 1; u < drawn; u++)
            add_fixed_tree(u);
        add_outcomes(rule, weight, law);
        take_fixed_back();
        return;
    }
    for (int x = 0; x < V; x++) {
        if (draws == ESP_DRAW_SWOR && esp_tree_find(b, 0, x) >= 0)
            continue;
        struct mark before = mark(0);
        int child = esp_tree_draw(b, 0, x, q[x]);
        draw_children(rule, draws, left - 1, draws == ESP_DRAW_SWOR ? taken + q[x] : 0,
                      weight * q[x] / (1 - taken), law);
        take_back(&before, child);
    }
}

/* The tree has nodes that were not drawn from the draft, as if they were retrieved from an
 * earlier text. They are either at the root, or below each child that was drawn. */
TEST(children_that_were_not_drawn_keep_the_target)
{
    static const unsigned draws[] = {ESP_DRAW_IID, ESP_DRAW_SWOR};
    for (int i = 0; i < 2; i++) {
        open_rig(draws[i], (unsigned long long)i + 40);
        for (int r = 0; esp_verifiers[r]; r++) {
            const struct esp_verifier_ops *rule = esp_verifiers[r];
            if (!(rule->lossless & draws[i]) || rule->greedy)
                continue;
            for (int drawn = 0; drawn < 3; drawn++) {
                struct law law = {{0}, 0, {0}};
                rig.drawn = drawn > 0;
                rig_reset(&rig);
                if (drawn > 0) {
                    draw_children(rule, draws[i], rule->single_path ? 1 : drawn, 0, 1, &law);
                } else {
                    add_fixed_tree(0);
                    add_outcomes(rule, 1, &law);
                    take_fixed_back();
                }
                check_law(rule, &law, "children that were not drawn");
                CHECK(law.length > 0.2, "%s: a path of %.3f", rule->name, law.length);
            }
        }
        rig_close(&rig);
    }
}

/* ----------------------------------------------------------------- comparisons of verifiers */

static const struct esp_verifier_ops *rule(const char *name)
{
    const struct esp_verifier_ops *found = esp_verifier_find(name);
    CHECK(found, "there is no verifier %s", name);
    return found;
}

static void check_same(const char *a, const char *b, int length)
{
    struct law one = law_of_paths(rule(a), 1, 0, length);
    struct law other = law_of_paths(rule(b), 1, 0, length);
    for (size_t i = 0; i < sizeof one.outcome / sizeof *one.outcome; i++)
        CHECK(fabs(one.outcome[i] - other.outcome[i]) < EXACT,
              "%s and %s differ on a path of %d: %.12f, %.12f", a, b, length, one.outcome[i],
              other.outcome[i]);
}

TEST(on_one_path_verifiers_form_three_groups)
{
    for (unsigned long long seed = 40; seed < 44; seed++) {
        open_rig(ESP_DRAW_IID, seed);
        for (int length = 1; length <= DEPTH; length++) {
            check_same("traversal", "bv", length);
            check_same("naivetree", "naive", length);
            check_same("spectr", "naive", length);
            check_same("specinfer", "naive", length);
            check_same("khisti", "naive", length);
        }
        rig_close(&rig);
    }
}

static void check_longer(const char *better, const char *other, int paths, int trunk,
                         int length)
{
    double a = law_of_paths(rule(better), paths, trunk, length).length;
    double b = law_of_paths(rule(other), paths, trunk, length).length;
    CHECK(a > b - EXACT,
          "%d paths of %d tokens after a stem of %d: %s accepts %.9f tokens, %s %.9f", paths,
          length, trunk, better, a, other, b);
}

TEST(better_verifiers_accept_longer_paths)
{
    for (unsigned long long seed = 60; seed < 70; seed++) {
        open_rig(ESP_DRAW_IID, seed);
        for (int length = 1; length <= DEPTH; length++) {
            check_longer("naive", "nss", 1, 0, length);
            check_longer("bv", "naive", 1, 0, length);
        }
        for (int paths = 2; paths <= 3; paths++)
            check_longer("traversal", "specinfer", paths, 0, 1);
        check_longer("traversal", "specinfer", 2, 0, 2);
        check_longer("traversal", "specinfer", 2, 1, 2);
        check_longer("traversal", "specinfer", 2, 2, 1);
        rig_close(&rig);
    }
}
