/* Tests dynatree above temperature 0, where it draws children without replacement. Its trees
 * must have the joint distribution that follows from its rules.
 *
 * The reference enumerates every outcome of every draw. It uses whole distributions of the toy
 * model, but not the project's tree or draft code. If a decision to draw depended on the token,
 * or if a drawn node could be cut, some trees would occur too often.
 */
#include <math.h>
#include <string.h>

#include "tests/check.h"
#include "tests/drafting.h"

enum { RUNS = 20000, CELLS = 20000, DRAWS = 12 };

struct plan {
    const char *spec;
    int vocabulary, d_max, b_min, b_mid, b_max, n;
    double d0, tauh, taul, rhostop, rhodeep, tau;
};

struct draw {
    int parent, token, depth; /* `parent`: number of the parent's draw, or 0 for the root */
    double p;                 /* the probability of the path */
};

/* A tree while it is drawn. It has the draws 1..count, the layer whose nodes get children, and
 * the current round of draws. */
struct growing {
    struct draw draw[DRAWS + 1];
    int count;
    int layer[DRAWS + 1], layer_count;
    int parent[DRAWS + 1], parent_count, at; /* this round's parents; index of the next one */
    int next[DRAWS + 1], next_count;         /* the next layer */
    int round, room;
};

static struct {
    const struct drafting *d;
    const struct plan *plan;
    int count;
    unsigned long long code[CELLS];
    double p[CELLS];
} cells;

static unsigned long long code_with(unsigned long long code, int parent, int token)
{
    return (code * 13 + (unsigned)parent) * 5 + (unsigned)token;
}

static void q_of(const struct growing *g, int u, double *q)
{
    int32_t path[DRAWS];
    int depth = g->draw[u].depth;
    for (int v = u; v > 0; v = g->draw[v].parent)
        path[g->draw[v].depth - 1] = g->draw[v].token;
    drafting_q_after(cells.d, path, depth, q);
}

static int breadth_of(const struct growing *g, int u)
{
    const struct plan *r = cells.plan;
    double q[8], c = 0;
    q_of(g, u, q);
    for (int x = 0; x < r->vocabulary; x++)
        c = fmax(c, q[x]);
    return c >= r->tauh ? r->b_min : c < r->taul ? r->b_max : r->b_mid;
}

static bool expandable(const struct growing *g, int u)
{
    const struct plan *r = cells.plan;
    const struct draw *v = &g->draw[u];
    return v->p >= r->tau && v->depth < r->d_max && v->p >= r->rhostop &&
           (v->depth < (int)r->d0 || v->p >= r->rhodeep);
}

/* Lists the nodes of the next round. Returns false if the tree is finished. */
static bool next_round(struct growing *g)
{
    for (;;) {
        g->parent_count = g->at = 0;
        for (int i = 0; i < g->layer_count; i++)
            if (g->round == 0 || g->round < breadth_of(g, g->layer[i]))
                g->parent[g->parent_count++] = g->layer[i];
        g->round++;
        if (g->parent_count > 0 && g->room > 0)
            break;
        if (g->room == 0)
            return false;
        g->layer_count = 0;
        for (int i = 0; i < g->next_count; i++)
            if (expandable(g, g->next[i]))
                g->layer[g->layer_count++] = g->next[i];
        g->next_count = g->round = 0;
        if (g->layer_count == 0)
            return false;
    }
    /* removes the least likely parent, or the last of several equally likely parents */
    while (g->parent_count > g->room) {
        int least = 0;
        for (int i = 1; i < g->parent_count; i++)
            if (g->draw[g->parent[i]].p <= g->draw[g->parent[least]].p)
                least = i;
        memmove(g->parent + least, g->parent + least + 1,
                (size_t)(--g->parent_count - least) * sizeof *g->parent);
    }
    g->room -= g->parent_count;
    return true;
}

static void follow(const struct growing *before, double p)
{
    struct growing g = *before;
    if (g.at == g.parent_count && !next_round(&g)) {
        unsigned long long code = 1;
        for (int i = 1; i <= g.count; i++)
            code = code_with(code, g.draw[i].parent, g.draw[i].token);
        CHECK(cells.count < CELLS);
        cells.code[cells.count] = code;
        cells.p[cells.count++] = p;
        return;
    }
    const int parent = g.parent[g.at++];
    double q[8], left = 1;
    bool used[8] = {false};
    q_of(&g, parent, q);
    for (int i = 1; i <= g.count; i++)
        if (g.draw[i].parent == parent) {
            used[g.draw[i].token] = true;
            left -= q[g.draw[i].token];
        }
    for (int x = 0; x < cells.plan->vocabulary; x++) {
        struct growing with = g;
        if (used[x])
            continue;
        with.next[with.next_count++] = ++with.count;
        with.draw[with.count] =
            (struct draw){parent, x, g.draw[parent].depth + 1, g.draw[parent].p * q[x]};
        follow(&with, p * q[x] / left);
    }
}

static void check_plan(const struct plan *plan, unsigned seed, bool waits)
{
    static int seen[CELLS];
    struct drafting d;
    struct growing root = {.draw = {{.p = 1}}, .layer_count = 1, .room = plan->n};
    drafting_open(&d, &(struct drafting_setup){.drafter = plan->spec,
                                               .vocabulary = plan->vocabulary,
                                               .toy_seed = seed,
                                               .temperature = 1,
                                               .sharpness = 1.5,
                                               .waits = waits});
    memset(seen, 0, sizeof seen);
    cells.count = 0;
    for (int run = 0; run < RUNS; run++) {
        drafting_restart(&d, (unsigned long long)run);
        CHECK(drafting_step(&d));
        if (run == 0) {
            cells.d = &d;
            cells.plan = plan;
            follow(&root, 1);
        }
        unsigned long long code = 1;
        for (int u = 1; u < d.tree->count; u++) {
            CHECK(d.tree->nodes[u].verdict != ESP_CUT, "a drawn node was cut");
            code = code_with(code, d.tree->nodes[u].parent, d.tree->nodes[u].token);
        }
        int cell = 0;
        while (cell < cells.count && cells.code[cell] != code)
            cell++;
        CHECK(cell < cells.count, "%s, seed %u: an impossible tree", plan->spec, seed);
        seen[cell]++;
    }
    CHECK(cells.count > 6, "only %d trees", cells.count);
    CHECK(drafting_chi_square(seen, cells.p, cells.count, RUNS), "%s, seed %u: of %d trees",
          plan->spec, seed, cells.count);
    drafting_close(&d);
}

TEST(drawn_trees_have_the_distribution_of_the_rules)
{
    static const struct plan plans[] = {
        {"dynatree:D0=1,Dmax=3,tauh=0.7,taul=0.5,rhostop=0.1,rhodeep=0.3,tau=0.05", 3, 3, 1, 2,
         3, 256, 1, 0.7, 0.5, 0.1, 0.3, 0.05},
        {"dynatree:D0=2,Dmax=3,tauh=0.6,taul=0.5,rhostop=0.2,rhodeep=0.4,tau=0.3,prune=stop", 3,
         3, 1, 2, 3, 256, 2, 0.6, 0.5, 0.2, 0.4, 0.3},
        {"dynatree:D0=2,Dmax=3,Bmin=2,tauh=0.6,taul=0.5,rhostop=0.05,rhodeep=0.4,tau=0,N=4", 3,
         3, 2, 2, 3, 4, 2, 0.6, 0.5, 0.05, 0.4, 0},
        {"dynatree:D0=2,Dmax=3,Bmid=2,tauh=0.5,taul=0.45,rhostop=0.3,rhodeep=0.4,tau=0,N=5", 4,
         3, 1, 2, 3, 5, 2, 0.5, 0.45, 0.3, 0.4, 0},
    };
    for (int i = 0; i < (check_quick() ? 2 : 4); i++)
        for (unsigned seed = 1; seed <= (check_quick() ? 1 : 3); seed++)
            check_plan(&plans[i], 20 + seed, seed % 2);
}

/* A node should get more children than there are tokens with a probability above 0. */
TEST(only_possible_tokens_are_drawn)
{
    struct drafting d;
    drafting_open(&d, &(struct drafting_setup){.drafter = "dynatree:Bmin=3,Bmid=3,Bmax=3",
                                               .vocabulary = 6,
                                               .top_k = 2,
                                               .temperature = 1});
    for (int i = 0; i < 20; i++) {
        CHECK(drafting_step(&d));
        for (int u = 0; u < d.tree->count; u++)
            CHECK(esp_tree_draws(&d.session->tree, u, NULL, 0) <= 2);
    }
    drafting_close(&d);
}
