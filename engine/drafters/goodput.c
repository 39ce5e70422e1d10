/* goodput.c - grows a tree such that every node and every layer is worth its time.
 *
 * Goodput means committed tokens per second (a term from SmartSpec). The expected tokens of a
 * tree are E = 1 + the sum of P(u) over its nodes, where P(u) is the probability that u is
 * accepted. The tree's time T is the time of the draft passes + verify(rows), both from curves
 * measured on this machine (costs.h). The tree with the largest E / T also has the largest E -
 * lambda T, where lambda is the recent number of tokens per second (Dinkelbach 1967). This
 * decides three things:
 *
 *   row    Candidates are taken by decreasing P. Their number n maximises the sum of P minus
 *          lambda verify(n + 1). If several rows together cost as much as one row, the sum of
 *          their gains is compared with this cost. Drawn nodes cannot be removed again.
 *          Therefore candidates also compete with the nodes that later passes will probably
 *          draft.
 *   layer  Another draft pass over w nodes runs if the expected gain of their children, minus
 *          the cost of their rows, exceeds lambda draft(w).
 *   plain  A tree must not cost more time than earlier trees have saved (goodput_account.h). If
 *          they have saved too little, nothing is drafted for a while.
 *
 * P is the product of the calibrated draft probabilities along the path (calibration.h). The
 * log odds of these probabilities are shifted by a value that follows the draft's success in
 * about the last thirty iterations of this text.
 *
 * At temperature 0, children are the likeliest tokens. Above 0, they are drawn without
 * replacement, and P alone decides how many are drawn and which nodes are expanded. P of a
 * child is fixed before the child is drawn: it depends on P of the parent, the parent's
 * confidence, and the number of earlier draws below the parent. So the tree never favours a
 * token, and verifiers for such draws are exact.
 *
 * The drafter can also choose a tree of guesses made without the draft model
 * (goodput_copied.h). This tree is used if its rows are expected to gain more than the draft
 * model's trees gained recently. It can be used even while the draft model is not used.
 *
 * This file reads no clock and has no parameters to tune: the costs come from the session.
 */
#include "engine/drafters/drafter.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/calibration.h"
#include "engine/costs.h"
#include "engine/drafters/goodput_account.h"
#include "engine/drafters/goodput_copied.h"
#include "engine/drafters/goodput_rate.h"

enum { N, RETRIEVAL, RECYCLE };

enum {
    CHILDREN = 8, /* number of children that are considered for each node */
    DEEPEST = 32,
    WIDEST = 16, /* maximum number of nodes that a pass expands */
    ENTRIES = 512,
    BIDS = 256,
    KINDS = 4, /* kinds of nodes: the root, and three ranges of acceptance rates (kind_of) */
    RANKS = 4, /* acceptance is learned for this many children of a node */
};

static const double FADE = 1.0 / 32; /* minimum weight of the newest gain in the mean gain */
/* The gain of a tree of the draft model that is assumed before its first tree, in tokens. It
 * counts like the gain of one iteration. Without this assumption, the draft model would never
 * be tried if other guesses are available that are hardly better than nothing. */
static const double HOPED = 1;

static const struct esp_param params[] = {
    [N] = {"N", ESP_INT, 1, 256, 64, .help = "maximum number of nodes"},
    [RETRIEVAL] = {"retrieval", ESP_CHOICE, 0, 1, 1, .choices = "off|on",
                   .help = "also draft what followed the same tokens earlier in the text"},
    [RECYCLE] = {"recycled", ESP_CHOICE, 0, 1, 1, .choices = "off|on",
                 .help = "also draft what the target found likely after the same token"},
    {0},
};

/* A child that is already in the tree or could be added to it. */
struct entry {
    double value; /* P */
    double key;   /* sort key: P, or P + 2 for drawn entries, so that drawn entries come
                     first */
    double rate;  /* P divided by the parent's P */
    double q;
    int32_t parent, token, node; /* node: -1 if not in the tree yet */
    int draw;
    bool expanded;
};

struct state {
    struct esp_rate rate;
    struct esp_account account;
    struct esp_copied copied;
    double expected[KINDS][RANKS], seen[KINDS];
    double shift;      /* shift of the log odds: how much better the draft is in this text than
                          on average */
    double model_gain; /* mean gain of the draft model's trees over plain decoding, in tokens */
    bool started;

    /* The following members describe the current iteration. */
    double spent; /* seconds of draft passes */
    /* Gauges: cost of a row, cost of a draft pass, and expected number of tokens. */
    double row, layer, hope;
    int obtained;
    struct entry entry[ENTRIES]; /* likeliest first */
    int count;
    int32_t nodes[WIDEST], parents[WIDEST * CHILDREN], children[WIDEST * CHILDREN];
};

static void init(void *memory, const struct esp_params *values, int changed)
{
    struct state *s = memory;
    static const double prior[RANKS] = {0.5, 0.15, 0.08, 0.05};
    (void)values;
    if (s->started || changed >= 0)
        return;
    s->started = true;
    esp_account_open(&s->account);
    s->copied.balance = ESP_COPIED_SAVINGS;
    s->model_gain = HOPED;
    for (int i = 0; i < KINDS; i++)
        memcpy(s->expected[i], prior, sizeof prior);
}

/* Returns the expected seconds of a draft pass. */
static double draft_cost(const struct esp_draft *d, int rows)
{
    return esp_costs_draft(d->context->costs, rows);
}

/* ------------------------------------------------------------------ probabilities */

/* Shifts an acceptance rate by the shift that was learned in this text. */
static double shifted(const struct state *s, double rate)
{
    if (!(rate > 0 && rate < 1))
        return rate;
    return 1 / (1 + (1 - rate) / rate * exp(-s->shift));
}

static int kind_of(double rate)
{
    return rate < 0.5 ? 1 : rate < 0.9 ? 2 : 3;
}

/* Returns the expected gain of the children of a node with probability `value`, minus the cost
 * of their rows. */
static double gain_of(const struct state *s, int kind, double value, double row)
{
    double gain = 0;
    for (int k = 0; k < RANKS; k++)
        gain += fmax(0, value * shifted(s, s->expected[kind][k]) - row);
    return gain;
}

/* ------------------------------------------------------------------ candidates */

static void insert(struct state *s, struct entry e)
{
    const struct entry *last = &s->entry[ENTRIES - 1];
    e.key = e.value;
    if (s->count == ENTRIES && (last->node >= 0 || last->key >= e.key))
        return; /* the list is full of likelier entries */
    int at = s->count < ENTRIES ? s->count++ : ENTRIES - 1;
    for (; at > 0 && s->entry[at - 1].key < e.key; at--)
        s->entry[at] = s->entry[at - 1];
    s->entry[at] = e;
}

/* Adds the children of node `i`, which was just expanded and has probability `value`, to the
 * entries. */
static void list_children(const struct esp_draft *d, struct state *s, int i, int kind,
                          double value, double floor)
{
    const int32_t node = s->nodes[i];
    const int most = s->rate.budget < CHILDREN ? s->rate.budget : CHILDREN;
    double left = 1, usually_left = 1, last = 1, usual, weight;
    s->seen[kind] += s->seen[kind] < 64;
    weight = 1 / (s->seen[kind] + 1);
    for (int k = 0; k < most; k++) {
        struct entry e = {.parent = node, .node = -1, .draw = k};
        if (d->greedy) {
            e.q = (double)d->top_q[i * most + k];
            e.token = d->top_token[i * most + k];
            usual = e.q > 0 ? esp_calibration_likely(d->context->calibration, e.q) : 0;
            e.rate = shifted(s, usual);
        } else {
            double confidence = d->tree->tree.nodes[node].confidence;
            double mean = esp_calibration_drawn(d->context->calibration, confidence, k);
            double own = shifted(s, mean);
            usual = usually_left * mean;
            usually_left *= 1 - mean;
            e.rate = left * own;
            left *= 1 - own;
        }
        e.rate = last = fmin(e.rate, last); /* not higher than the rate of an earlier child */
        e.value = value * e.rate;
        if (k < RANKS)
            s->expected[kind][k] += weight * (usual - s->expected[kind][k]);
        if (e.rate > 0 && e.value >= floor)
            insert(s, e);
    }
}

/* Something that competes for a row: a candidate, or a node that a later pass will probably
 * draft. */
struct bid {
    double value; /* P; for a node of a later pass, P minus the cost of that pass */
    bool candidate;
};

static int by_value(const void *a, const void *b)
{
    const double x = ((const struct bid *)a)->value, y = ((const struct bid *)b)->value;
    return (x < y) - (x > y);
}

/* Below a node that is not expanded yet, later passes will probably draft a chain: the node's
 * first child, the first child of this child, and so on. Adds a bid for each of these passes
 * that is worth its cost. Returns the new number of bids. */
static int bid_below(const struct esp_draft *d, const struct state *s, const struct entry *e,
                     struct bid *bids, int count)
{
    const double layer = s->rate.now * draft_cost(d, 1);
    const int deepest = d->max_depth < DEEPEST ? d->max_depth : DEEPEST;
    double value = e->value, rate = e->rate;
    for (int depth = d->tree->tree.nodes[e->parent].depth + 2; depth <= deepest; depth++) {
        rate = shifted(s, s->expected[kind_of(rate)][0]);
        value *= rate;
        if (value <= layer || count == BIDS)
            break;
        bids[count++] = (struct bid){value - layer, false};
    }
    return count;
}

/* Returns how many entries to draw, including the entries that are drawn already. A drawn node
 * stays in the tree, so later passes cannot use its row. Therefore candidates compete with the
 * nodes that these passes will probably draft. This matters if the cost of rows rises in steps:
 * then a few more rows are nearly free, but the row after them is not. */
static int count_drawn(const struct esp_draft *d, const struct state *s)
{
    const double *verify = s->rate.verify;
    struct bid bids[BIDS];
    int drawn = 0, count = 0, candidates = 0, taken = 0;
    for (int i = 0; i < s->count && count < BIDS; i++) {
        const struct entry *e = &s->entry[i];
        drawn += e->node >= 0;
        if (e->node < 0)
            bids[count++] = (struct bid){e->value, true};
        if (!e->expanded)
            count = bid_below(d, s, e, bids, count);
    }
    qsort(bids, (size_t)count, sizeof *bids, by_value);
    double sum = 0, best = -s->rate.now * verify[drawn + 1];
    for (int i = 0; i < count && drawn + i < s->rate.budget; i++) {
        const double cost = verify[drawn + i + 2];
        if (s->spent + cost - verify[1] > s->account.stake)
            break;
        sum += bids[i].value;
        candidates += bids[i].candidate;
        if (sum - s->rate.now * cost > best) {
            best = sum - s->rate.now * cost;
            taken = candidates;
        }
    }
    return drawn + taken;
}

/* Returns how many entries to take: the number for which the expected gain minus the cost of
 * the rows is largest. */
static int count_worthy(const struct esp_draft *d, const struct state *s)
{
    double sum = 0, best = -s->rate.now * s->rate.verify[1];
    int count = 0;
    if (!d->greedy)
        return count_drawn(d, s);
    for (int i = 0; i < s->count && i < s->rate.budget; i++) {
        if (s->spent + s->rate.verify[i + 2] - s->rate.verify[1] > s->account.stake)
            break;
        sum += s->entry[i].value;
        if (sum - s->rate.now * s->rate.verify[i + 2] > best) {
            best = sum - s->rate.now * s->rate.verify[i + 2];
            count = i + 1;
        }
    }
    return count;
}

/* ------------------------------------------------------------------ the tree */

static void took(struct esp_draft *d, struct entry *e, int node)
{
    e->node = node;
    if (node < 0)
        return;
    d->tree->tree.nodes[node].value = (float)e->value;
    d->tree->tree.nodes[node].reason = ESP_REASON_LAYER;
}

/* Stores the node that was added for a drawn token. From now on, the values of nodes below it
 * use the acceptance rate of this token instead of the average rate of such draws. The values
 * of its siblings do not change. */
static void drew(struct esp_draft *d, const struct state *s, struct entry *e, int node)
{
    took(d, e, node);
    if (node >= 0 && e->draw == 0) {
        double above = e->value / e->rate;
        double q = d->tree->tree.nodes[node].q;
        e->rate = shifted(s, esp_calibration_first(d->context->calibration, q));
        e->value = above * e->rate;
        d->tree->tree.nodes[node].value = (float)e->value;
    }
    e->key = 2 + e->value;
}

static void sort(struct state *s)
{
    for (int i = 1; i < s->count; i++) {
        struct entry e = s->entry[i];
        int at = i;
        for (; at > 0 && s->entry[at - 1].key < e.key; at--)
            s->entry[at] = s->entry[at - 1];
        s->entry[at] = e;
    }
}

/* Draws the chosen children, in rounds of one child below each parent. */
static int draw(struct esp_draft *d, struct state *s, int count)
{
    struct entry *of[WIDEST * CHILDREN];
    for (int round = 0; round < CHILDREN; round++) {
        int n = 0;
        for (int i = 0; i < count; i++) {
            struct entry *e = &s->entry[i];
            if (e->node >= 0 || e->draw != round || n == WIDEST * CHILDREN)
                continue;
            of[n] = e;
            s->parents[n++] = e->parent;
        }
        int status = n ? esp_draft_draw(d, s->parents, n, ESP_DRAW_SWOR, s->children) : ESP_OK;
        if (status < 0)
            return status;
        for (int i = 0; i < n; i++)
            drew(d, s, of[i], s->children[i]);
    }
    sort(s);
    return ESP_OK;
}

static int take(struct esp_draft *d, struct state *s, int count)
{
    if (!d->greedy)
        return draw(d, s, count);
    for (int i = 0; i < count; i++) {
        struct entry *e = &s->entry[i];
        if (e->node < 0)
            took(d, e, esp_tree_add(d->tree, e->parent, e->token, e->q));
    }
    return ESP_OK;
}

/* Chooses the nodes that the next pass expands, if any. */
static int choose_layer(const struct esp_draft *d, struct state *s, int count)
{
    double sum = 0, best = 0;
    int n = 0, chosen = 0;
    int room = d->capacity - d->expanded < WIDEST ? d->capacity - d->expanded : WIDEST;
    double left = s->account.stake - s->spent - (s->rate.verify[count + 1] - s->rate.verify[1]);
    int deepest = d->max_depth < DEEPEST ? d->max_depth : DEEPEST;
    s->row = esp_rate_row(&s->rate, count);
    s->layer = s->rate.now * draft_cost(d, 1);
    for (int i = 0; i < count && n < room; i++) {
        const struct entry *e = &s->entry[i];
        if (e->node < 0 || e->expanded || d->tree->tree.nodes[e->node].depth >= deepest)
            continue;
        s->nodes[n++] = e->node;
        if (draft_cost(d, n) > left)
            break;
        sum += gain_of(s, kind_of(e->rate), e->value, s->row);
        double net = sum - s->rate.now * draft_cost(d, n);
        if (net > best) {
            best = net;
            chosen = n;
        }
    }
    return chosen;
}

/* Runs one pass over s->nodes and lists their children. */
static int expand(struct esp_draft *d, struct state *s, int count)
{
    const int most = s->rate.budget < CHILDREN ? s->rate.budget : CHILDREN;
    const double floor = 0.25 * esp_rate_row(&s->rate, 0);
    const int behind = esp_draft_behind(d);
    s->spent += draft_cost(d, s->nodes[0] == 0 ? behind : count);
    int status = esp_draft_expand(d, s->nodes, count, d->greedy ? most : 1);
    for (int i = 0; i < count && status == ESP_OK; i++) {
        double value = 1;
        int kind = 0;
        for (int j = 0; j < s->count; j++) {
            if (s->entry[j].node != s->nodes[i] || s->nodes[i] == 0)
                continue;
            s->entry[j].expanded = true;
            value = s->entry[j].value;
            kind = kind_of(s->entry[j].rate);
        }
        d->tree->tree.nodes[s->nodes[i]].reason = ESP_REASON_NONE;
        list_children(d, s, i, kind, value, floor);
    }
    return status;
}

/* Cuts the nodes that are no longer among the first `count` entries, and records candidates
 * that were not taken. */
static void leave(struct esp_draft *d, struct state *s, int count)
{
    enum { SHOWN = 16 };
    for (int i = count; i < s->count; i++) {
        const struct entry *e = &s->entry[i];
        int node = e->node;
        if (node >= 0)
            esp_tree_cut(d->tree, node, ESP_REASON_PRICE);
        else if (d->greedy && i < count + SHOWN)
            node = esp_tree_add_cut(d->tree, e->parent, e->token, e->q, ESP_REASON_PRICE);
        if (node >= 0)
            d->tree->tree.nodes[node].value = (float)e->value;
    }
    s->hope = 1;
    for (int i = 0; i < count; i++)
        s->hope += s->entry[i].value;
    s->row = esp_rate_row(&s->rate, count);
}

/* Returns whether this iteration decodes without a draft. */
static bool is_plain(const struct esp_draft *d, struct state *s)
{
    const double *verify = s->rate.verify, pass = draft_cost(d, esp_draft_behind(d));
    return esp_account_is_plain(&s->account, s->rate.budget < 1 ? 0 : verify[1],
                                pass + verify[2] - verify[1], fmax(0, pass - draft_cost(d, 1)));
}

/* Starts an iteration: reads the costs and the text, and finds guesses. */
static int begin(struct esp_draft *d, struct state *s)
{
    const int most = (int)esp_param(d->params, N), room = d->tree->room;
    esp_rate_read(&s->rate, d->context->costs, most < room ? most : room);
    const bool pays = s->rate.tokens * s->rate.verify[1] > s->rate.seconds;
    if (esp_account_read(&s->account, d->text_length, pays))
        s->shift = 0;
    s->count = 0;
    s->spent = 0;
    s->hope = 1;
    s->nodes[0] = 0;
    s->copied.retrieval.count = 0;
    if (s->rate.budget < 1 || esp_param(d->params, RETRIEVAL) == 0)
        return ESP_OK;
    const struct esp_copied_plan plan = {
        .depth = DEEPEST, .copy = true, .recycle = esp_param(d->params, RECYCLE) != 0};
    return esp_copied_find(&s->copied, d, &s->rate, &plan);
}

/* ------------------------------------------------------------------ the iteration */

static int draft_with_model(struct esp_draft *d, struct state *s)
{
    int count = 0, width = 1, status = ESP_OK;
    s->account.since_plain++;
    while (width > 0 && status == ESP_OK) {
        status = expand(d, s, width);
        count = count_worthy(d, s);
        if (s->account.probing && count == 0 && s->count > 0)
            count = 1; /* after a pause, one node is verified to test how good the draft is */
        if (status == ESP_OK)
            status = take(d, s, count);
        if (status == ESP_OK)
            esp_draft_layer_done(d);
        width = choose_layer(d, s, count);
    }
    if (status == ESP_OK)
        leave(d, s, count);
    return status;
}

static int draft(struct esp_draft *d)
{
    struct state *s = d->state;
    int status = begin(d, s);
    if (status < 0)
        return status;
    const bool plain = is_plain(d, s);
    s->copied.nodes = 0;
    s->copied.used = false;
    if (!s->account.timed)
        esp_copied_choose(&s->copied, &s->rate, plain ? 0 : s->model_gain);
    if (s->copied.used || plain)
        s->account.forgiven = 0;
    if (s->copied.used) {
        s->hope = esp_copied_take(&s->copied, d);
        s->row = esp_rate_row(&s->rate, s->copied.nodes);
        s->account.since_plain++;
    } else if (plain) {
        d->tree->tree.nodes[0].reason = ESP_REASON_PLAIN;
        s->account.since_plain = 0;
    } else {
        status = draft_with_model(d, s);
    }
    return status;
}

/* Moves the shift of the log odds. For every node that the verifier reached, the shift rises if
 * a child was accepted. It falls in proportion to the expected probability that a child is
 * accepted. The shift depends on the text: in a list or a refrain, the draft is right far more
 * often than its probabilities say. */
static void learn_shift(struct state *s, const struct esp_iteration *it)
{
    static const double step = 0.05, kept = 0.97, most = 2;
    const struct esp_tree *tree = &it->tree;
    s->shift *= kept; /* decays even if nothing was drafted, so that drafting resumes after a
                       * passage in which the draft was bad */
    for (int i = 0; i <= it->path_length; i++) {
        int32_t parent = i == 0 ? 0 : it->path[i - 1];
        double above = i == 0 ? 1 : tree->nodes[parent].value, likely = 0;
        for (int u = parent + 1; u < tree->count; u++)
            if (tree->nodes[u].parent == parent && tree->nodes[u].verdict != ESP_CUT &&
                above > 0)
                likely += tree->nodes[u].value / above;
        if (likely > 0)
            s->shift += step * ((i < it->path_length) - fmin(likely, 1));
    }
    s->shift = fmin(fmax(s->shift, -most), most);
}

static void adapt(struct esp_draft *d, const struct esp_iteration *it)
{
    struct state *s = d->state;
    const double step = s->rate.verify[1];
    const int rows = it->tree.verified, tokens = it->committed_count;
    const bool plain = s->account.plain, copied = s->copied.used;
    s->obtained = tokens;
    const int right = esp_retrieval_learn(&s->copied.retrieval, it->committed, tokens);
    if (!copied)
        learn_shift(s, it);
    if (!(step > 0) || rows > s->rate.budget + 1)
        return;
    const double seconds = s->spent + s->rate.verify[rows];
    const double saved = tokens - (seconds - s->account.forgiven) / step;
    s->spent = 0; /* stays 0 if the next iteration is at the end of a text and drafts nothing */
    esp_rate_learn(&s->rate, tokens, seconds);
    esp_copied_learn(&s->copied, &s->rate, right, saved);
    if (plain)
        esp_account_waited(&s->account, tokens);
    if (plain || copied)
        return;
    esp_account_settle(&s->account, saved);
    s->model_gain += fmax(FADE, 1.0 / (1 + s->account.trees)) *
                     (tokens - 1 - s->rate.now * (seconds - step) - s->model_gain);
}

static int gauges(const struct esp_draft *d, struct esp_gauge *g)
{
    const struct state *s = d->state;
    /* The upper end of this gauge's scale, in tokens per second. Values can be higher. */
    enum { HIGHEST = 10000 };
    g[0] = (struct esp_gauge){"price", .after = s->rate.now, .maximum = HIGHEST};
    g[1] = (struct esp_gauge){"row", .after = s->row, .maximum = 1};
    g[2] = (struct esp_gauge){"layer", .after = s->layer, .maximum = 1};
    g[3] = (struct esp_gauge){"expected", .after = s->hope, .maximum = 8};
    g[4] = (struct esp_gauge){"obtained", .after = s->obtained, .maximum = 8};
    g[5] = (struct esp_gauge){"account", .after = s->account.balance, .maximum = ESP_SAVINGS};
    g[6] = (struct esp_gauge){"wait", .after = s->account.plain ? s->account.wait : 0,
                              .maximum = ESP_LONGEST_WAIT};
    return 7;
}

static void finish(void *memory)
{
    esp_retrieval_close(&((struct state *)memory)->copied.retrieval);
}

const struct esp_drafter_ops esp_drafter_goodput = {
    .name = "goodput",
    .summary = "adds nodes and layers that save time at measured costs; else decodes plainly",
    .source = "Dinkelbach 1967; SmartSpec, Liu et al. 2024; SuffixDecoding, Oliaro et al. 2024",
    .differs =
        "costs are measured on this machine and this text, not given in advance. It drafts "
        "trees, not chains. " ESP_DIFFERS_TEMPERED,
    .draws = ESP_DRAW_TOPK | ESP_DRAW_SWOR,
    .verifier = "traversal",
    .asks = ESP_ASK_COSTS | ESP_ASK_EXPECTED | ESP_ASK_RECYCLED,
    .params = params,
    .state_size = sizeof(struct state),
    .init = init,
    .close = finish,
    .draft = draft,
    .adapt = adapt,
    .gauges = gauges,
};
