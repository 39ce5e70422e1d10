/* dyspec.c - a tree of N sampled nodes, each drawn where acceptance is likeliest (dyspec, alg.
 * 1).
 *
 * The queue holds the draws that can be made next, each with a value v. v estimates the
 * probability that verification reaches the next child of a node: the node and its ancestors
 * are accepted, and the child's earlier siblings are rejected. R, the draft distribution
 * without those siblings, serves as the acceptance rate. The draw with the largest v is popped
 * from the queue, and a child y is drawn from R. Two entries replace the popped entry: the next
 * sibling with v (1 - R[y]) and the first child of y with v R[y]. v never rises along a path,
 * so the N draws with the largest v are found.
 *
 * Whether a child is drawn depends only on v, which earlier draws determine, and never on the
 * drawn token. Otherwise the tree would favour some tokens and bias the output.
 *
 * The draft distribution q of a node is needed when its first child is about to be drawn. The
 * pass that computes this q also computes nodes that will probably be popped soon. These nodes
 * are taken from the first entries of the queue, as many as there are draws left. Their v must
 * be at least a fraction of the last v of the previous iteration. Computing them before they
 * are needed does not change the tree.
 */
#include "engine/drafters/drafter.h"

enum { N };

/* A node is computed early if its v is at least this fraction of `last` (see struct state). */
static const double NEAR = 0.6;

static const struct esp_param params[] = {
    [N] = {"N", ESP_INT, 1, ESP_MAX_NODES, 64, .help = "number of nodes"},
    {0},
};

/* A draw that can be made next: of the first child of a node, or of the next sibling. */
struct entry {
    double v;
    int32_t parent;
};

struct state {
    struct entry heap[ESP_MAX_NODES + 1]; /* largest v first; if equal, the older node first */
    int count;
    double last; /* v of the last draw in the previous iteration; 0 means there was none */
    int32_t nodes[ESP_MAX_NODES + 1];
};

static bool before(struct entry a, struct entry b)
{
    return a.v > b.v || (a.v == b.v && a.parent < b.parent);
}

static void push(struct state *s, double v, int32_t parent)
{
    struct entry entry = {v, parent};
    if (!(v > 0))
        return; /* no token is left to draw, or it can never be accepted */
    int at = s->count++;
    for (; at > 0 && before(entry, s->heap[(at - 1) / 2]); at = (at - 1) / 2)
        s->heap[at] = s->heap[(at - 1) / 2];
    s->heap[at] = entry;
}

static struct entry pop(struct state *s)
{
    struct entry top = s->heap[0], last = s->heap[--s->count];
    int at = 0;
    for (int child; (child = 2 * at + 1) < s->count; at = child) {
        child += child + 1 < s->count && before(s->heap[child + 1], s->heap[child]);
        if (!before(s->heap[child], last))
            break;
        s->heap[at] = s->heap[child];
    }
    s->heap[at] = last;
    return top;
}

/* Lists the nodes whose q is missing and is needed now (the top entry) or probably soon, as
 * described at the top of this file. Returns the number of these nodes. */
static int list_missing(const struct esp_draft *d, struct state *s, int left)
{
    int n = 0;
    for (int i = 0; i < s->count; i++) {
        const struct entry *e = &s->heap[i];
        int ahead = 0;
        if (d->q_row[e->parent] >= 0 || (i > 0 && e->v < NEAR * s->last))
            continue;
        for (int j = 0; j < s->count && ahead < left; j++)
            ahead += before(s->heap[j], *e);
        if (ahead < left)
            s->nodes[n++] = e->parent;
    }
    return n;
}

/* Draws the child of the popped entry and pushes the two entries that replace it. */
static int draw(struct esp_draft *d, struct state *s, struct entry top)
{
    int32_t child;
    int status = esp_draft_draw(d, &top.parent, 1, ESP_DRAW_SWOR, &child);
    if (status < 0 || child < 0)
        return status;
    struct esp_node *node = &d->tree->tree.nodes[child];
    double r = esp_draft_share(d, child);
    node->value = (float)top.v;
    node->reason = ESP_REASON_BUDGET;
    push(s, top.v * (1 - r), top.parent);
    if (node->depth < d->max_depth)
        push(s, top.v * r, child);
    else
        node->reason = ESP_REASON_DEPTH;
    return ESP_OK;
}

static int draft(struct esp_draft *d)
{
    struct state *s = d->state;
    int budget = (int)esp_param(d->params, N);
    int left = budget < d->tree->room ? budget : d->tree->room, status = ESP_OK;
    s->count = 0;
    push(s, 1, 0);
    double v = 0;
    for (; left > 0 && s->count > 0 && status == ESP_OK; left--) {
        if (d->q_row[s->heap[0].parent] < 0) {
            if (d->passes > 0)
                esp_draft_layer_done(d);
            status = esp_draft_expand(d, s->nodes, list_missing(d, s, left), 0);
        }
        struct entry top = pop(s);
        v = top.v;
        d->tree->tree.nodes[top.parent].reason = ESP_REASON_NONE;
        if (status == ESP_OK)
            status = draw(d, s, top);
    }
    s->last = v;
    esp_draft_layer_done(d);
    return status;
}

const struct esp_drafter_ops esp_drafter_dyspec = {
    .name = "dyspec",
    .summary = "N sampled nodes, each drawn where acceptance is likeliest",
    .source = "dyspec, alg. 1",
    .differs =
        "a draft pass computes several nodes, which gives the same tree. --draft-temp 0.6 "
        "is the setting of sec. 5.1. " ESP_DIFFERS_TEMPERED,
    .draws = ESP_DRAW_SWOR,
    .params = params,
    .state_size = sizeof(struct state),
    .draft = draft,
};
