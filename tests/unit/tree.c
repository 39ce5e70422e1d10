/* Tests how trees are grown, cut and flattened. 10,000 random trees must have the
 * properties that tree.h promises. */
#include <math.h>
#include <string.h>

#include "tests/check.h"
#include "engine/tree.h"

static unsigned long long state = 42;

static int below(int n)
{
    return (int)(check_uniform(&state) * n);
}

/* Returns whether node `a` is node `i` or an ancestor of node `i`. */
static bool is_ancestor(const struct esp_tree *tree, int a, int i)
{
    while (i >= 0 && i != a)
        i = tree->nodes[i].parent;
    return i == a;
}

static void grow_random(struct esp_tree_builder *b, int nodes)
{
    esp_tree_reset(b, below(1000));
    for (int i = 0; i < nodes; i++) {
        int parent = below(b->tree.count);
        double q = 0.05 + 0.9 * check_uniform(&state);
        if (b->tree.nodes[parent].verdict == ESP_CUT)
            continue;
        if (check_uniform(&state) < 0.1)
            esp_tree_add_cut(b, parent, below(1000), q, ESP_REASON_THRESHOLD);
        else
            esp_tree_add(b, parent, below(1000), q);
    }
    if (b->tree.count > 2 && check_uniform(&state) < 0.5)
        esp_tree_cut(b, 1 + below(b->tree.count - 1), ESP_REASON_RERANK);
}

static void check_flat(struct esp_tree_builder *b)
{
    const struct esp_tree *tree = &b->tree;
    int kept = 0;
    for (int i = 0; i < tree->count; i++) {
        const struct esp_node *node = &tree->nodes[i];
        bool cut = node->verdict == ESP_CUT;
        kept += !cut;
        CHECK((b->row[i] >= 0) == !cut, "node %d", i);
        if (i == 0)
            continue;
        const struct esp_node *parent = &tree->nodes[node->parent];
        CHECK(node->parent < i && node->depth == parent->depth + 1);
        CHECK(fabs(node->cumulative_log_q - parent->cumulative_log_q - log(node->q)) < 1e-5);
        CHECK(cut || parent->verdict != ESP_CUT, "a cut node has a child that is not cut");
        CHECK(cut || b->row[node->parent] < b->row[i],
              "a parent has a later row than its child");
    }
    CHECK(tree->verified == kept && b->room == b->capacity - (kept - 1), "room %d kept %d",
          b->room, kept);
    for (int r = 0; r < tree->verified; r++) {
        CHECK(b->row[tree->order[r]] == r);
        for (int c = 0; c < tree->verified; c++) {
            bool bit = b->mask[r * b->mask_words + c / 64] >> (c % 64) & 1;
            CHECK(bit == is_ancestor(tree, tree->order[c], tree->order[r]), "row %d sees %d", r,
                  c);
        }
    }
}

static int count_blocks(const struct esp_tree_builder *b)
{
    int blocks = 0, n = b->tree.verified;
    for (int top = 0; top < n; top += 32)
        for (int left = 0; left < n; left += 32) {
            bool any = false;
            for (int r = top; r < top + 32 && r < n; r++)
                for (int c = left; c < left + 32 && c < n; c++)
                    any |= b->mask[r * b->mask_words + c / 64] >> (c % 64) & 1;
            blocks += any;
        }
    return blocks;
}

TEST(random_trees_flatten_in_every_order)
{
    struct esp_tree_builder b;
    CHECK(esp_tree_open(&b, 100, NULL, 0) == ESP_OK);
    for (int trial = 0; trial < 10000; trial++) {
        grow_random(&b, below(120));
        esp_tree_flatten(&b, (enum esp_order)(trial % 3));
        check_flat(&b);
        CHECK(b.mask_blocks == count_blocks(&b), "%d blocks, not %d", b.mask_blocks,
              count_blocks(&b));
    }
    esp_tree_close(&b);
}

TEST(draws_are_remembered_in_order)
{
    enum { CAPACITY = 100, MOST = 2 * CAPACITY };
    struct esp_tree_builder b;
    CHECK(esp_tree_open(&b, CAPACITY, NULL, 0) == ESP_OK);
    for (int trial = 0; trial < 1000; trial++) {
        int32_t parent[MOST], node[MOST], got[MOST], want[MOST];
        int draws = below(MOST);
        esp_tree_reset(&b, 0);
        for (int i = 0; i < draws; i++) {
            parent[i] = below(b.tree.count);
            int32_t token = below(6);
            int before = esp_tree_find(&b, parent[i], token), room = b.room;
            node[i] = esp_tree_draw(&b, parent[i], token, 0.5);
            if (node[i] < 0)
                CHECK(room == 0 && before < 0, "draw %d of %d was refused", i, draws);
            else
                CHECK(b.tree.nodes[node[i]].token == token &&
                      (before < 0 ? b.room == room - 1 : node[i] == before && b.room == room));
        }
        if (b.tree.count > 1)
            esp_tree_cut(&b, 1 + below(b.tree.count - 1), ESP_REASON_RERANK);
        for (int u = 0; u < b.tree.count; u++) {
            int n = 0, copies = 0;
            for (int i = 0; i < draws; i++)
                if (node[i] >= 0 && parent[i] == u && b.tree.nodes[node[i]].verdict != ESP_CUT)
                    want[n++] = node[i];
            for (int c = b.first_child[u]; c >= 0; c = b.next_sibling[c])
                copies += b.tree.nodes[c].verdict == ESP_CUT ? 0 : b.tree.nodes[c].copies;
            CHECK(esp_tree_draws(&b, u, got, MOST) == n && copies == n, "node %d", u);
            CHECK(memcmp(got, want, (size_t)n * sizeof *got) == 0, "node %d", u);
            CHECK(esp_tree_draws(&b, u, NULL, 0) == n);
        }
    }
    esp_tree_reset(&b, 0);
    for (int i = 0; i <= CAPACITY; i++)
        CHECK(esp_tree_draw(&b, 0, 3, 0.5) == 1, "repetition %d", i);
    CHECK(esp_tree_draw(&b, 0, 3, 0.5) == -1,
          "a token must not be drawn more often than the tree can have nodes");
    CHECK(esp_tree_draws(&b, 0, NULL, 0) == CAPACITY + 1);
    esp_tree_close(&b);
}

TEST(row_orders_follow_their_definitions)
{
    /* 0 -> 1, 2; 1 -> 3; 2 -> 4, 5; 5 -> 6 */
    static const int parent[] = {0, 0, 1, 2, 2, 5};
    static const int32_t want[3][7] = {
        {0, 1, 2, 3, 4, 5, 6}, {0, 1, 3, 2, 4, 5, 6}, {0, 2, 5, 6, 4, 1, 3}};
    struct esp_tree_builder b;
    CHECK(esp_tree_open(&b, 10, NULL, 0) == ESP_OK);
    esp_tree_reset(&b, 7);
    for (int i = 0; i < 6; i++)
        CHECK(esp_tree_add(&b, parent[i], i, 0.5) == i + 1);
    for (int order = 0; order < 3; order++) {
        esp_tree_flatten(&b, (enum esp_order)order);
        CHECK(memcmp(b.tree.order, want[order], sizeof want[order]) == 0, "order %d", order);
    }
    CHECK(esp_tree_find(&b, 2, 4) == 5 && esp_tree_find(&b, 2, 99) == -1);
    CHECK(esp_tree_deepest(&b.tree) == 3);
    CHECK(b.tree.nodes[5].rank == 1 && b.tree.nodes[4].rank == 0);
    esp_tree_close(&b);
}

/* Grows a random tree. The parent of a node is any earlier node, with equal probability. */
static void grow_uniform(struct esp_tree_builder *b, int nodes)
{
    esp_tree_reset(b, 0);
    while (b->tree.count < nodes)
        esp_tree_add(b, below(b->tree.count), 1, 0.5);
}

/* Counts the blocks of the mask if the nodes stay in the order in which they were added. */
static int blocks_as_made(const struct esp_tree *tree)
{
    static bool seen[64][64];
    int blocks = 0;
    memset(seen, 0, sizeof seen);
    for (int i = 0; i < tree->count; i++)
        for (int a = i; a >= 0; a = tree->nodes[a].parent)
            if (!seen[i / 32][a / 32]) {
                seen[i / 32][a / 32] = true;
                blocks++;
            }
    return blocks;
}

/* before[] and after[] are from dyspec, app. C, table 5. They are the numbers of 32 x 32 blocks
 * in the masks of random trees, before and after depth-first ordering. The test also compares
 * other orders. */
TEST(depth_first_orders_leave_fewer_blocks)
{
    static const double before[] = {36, 135.5, 490.2, 1654.5},
                        after[] = {22.5, 52.8, 119.3, 278.7};
    enum { TREES = 20 };
    struct esp_tree_builder b;
    CHECK(esp_tree_open(&b, 2048, NULL, 0) == ESP_OK);
    for (int size = 0; size < 4; size++) {
        double made = 0, mean[3] = {0};
        for (int t = 0; t < TREES; t++) {
            grow_uniform(&b, 256 << size);
            made += (double)blocks_as_made(&b.tree) / TREES;
            for (int order = 0; order < 3; order++) {
                esp_tree_flatten(&b, (enum esp_order)order);
                mean[order] += (double)b.mask_blocks / TREES;
            }
        }
        double bfs = mean[ESP_ORDER_bfs], dfs = mean[ESP_ORDER_dfs], hpd = mean[ESP_ORDER_hpd];
        CHECK(hpd <= dfs && dfs <= bfs && bfs <= made,
              "blocks of %d nodes: hpd %g, dfs %g, bfs %g, in creation order %g", 256 << size,
              hpd, dfs, bfs, made);
        CHECK(fabs(made / before[size] - 1) < 0.1, "%g blocks, but the paper has %g", made,
              before[size]);
        CHECK(fabs(dfs / after[size] - 1) < 0.1, "%g blocks, but the paper has %g", dfs,
              after[size]);
    }
    esp_tree_close(&b);
}

TEST(a_tree_never_exceeds_its_capacity)
{
    struct esp_tree_builder b;
    char err[128];
    CHECK(esp_tree_open(&b, 0, err, sizeof err) == ESP_E_ARGUMENT);
    CHECK(esp_tree_open(&b, ESP_MAX_NODES + 1, err, sizeof err) == ESP_E_ARGUMENT);
    CHECK(esp_tree_open(&b, 3, err, sizeof err) == ESP_OK);
    for (int i = 0; i < 3; i++)
        CHECK(esp_tree_add(&b, i, i, 0.5) == i + 1);
    CHECK(esp_tree_add(&b, 0, 9, 0.5) == -1,
          "a tree for three nodes must refuse a fourth node");
    int cut = 0;
    while (esp_tree_add_cut(&b, 0, 5, 0.5, ESP_REASON_BUDGET) >= 0)
        cut++;
    CHECK(cut > 100 && b.tree.count == b.record, "the tree records only %d cut nodes", cut);
    esp_tree_cut(&b, 2, ESP_REASON_DEPTH);
    CHECK(b.room == 2, "cutting a node with its child must make room for two nodes, not %d",
          b.room);
    esp_tree_close(&b);
}
