/* recycle.c - drafts tokens that the target found likely after the same token (Token Recycling,
 * Luo et al., arXiv 2408.08696). Also drafts tokens that followed the same tokens in the text.
 *
 * Every pass of the target gives the likeliest next tokens for all its rows, even for rejected
 * rows. These likely tokens are stored under the token of the row (recycled.h). The tree
 * consists of these tokens: the children of a node are tokens that the target found likely
 * after the same token. With suffix=on the tree also has the guesses of drafter `suffix` and of
 * the expected text, and recycled tokens below these guesses.
 *
 * The paper's tree has a fixed shape of 80 nodes. On a CPU, rows are more expensive than on a
 * GPU. Therefore nodes are added in the order of their learned probabilities, and only while
 * another node is worth the measured cost of its row (goodput_copied.h). If every tree would
 * lose time, no tree is verified. With cost=off the tree has the N likeliest nodes.
 */
#include "engine/drafters/drafter.h"

#include "engine/drafters/goodput_copied.h"
#include "engine/drafters/goodput_account.h"
#include "engine/drafters/goodput_rate.h"

enum { N, K, SUFFIX, COST };

enum { REFRESH = 128 /* iterations after which plain decoding is timed again */ };

static const struct esp_param params[] = {
    [N] = {"N", ESP_INT, 1, ESP_GUESSES, 64, .help = "maximum number of nodes"},
    [K] = {"K", ESP_INT, 1, 64, 24, .help = "depth of the tree"},
    [SUFFIX] = {"suffix", ESP_CHOICE, 0, 1, 1, .choices = "off|on",
                .help = "also draft what followed the same tokens earlier in the text"},
    [COST] = {"cost", ESP_CHOICE, 0, 1, 1, .choices = "off|on",
              .help = "draft only nodes that save more time than their rows cost (costs are "
                      "measured)"},
    {0},
};

struct state {
    struct esp_rate rate;
    struct esp_copied copied;
    int since_plain; /* iterations since the last iteration without a tree */
    bool started;
};

static void init(void *memory, const struct esp_params *values, int changed)
{
    struct state *s = memory;
    (void)values, (void)changed;
    if (!s->started)
        s->copied.balance = ESP_COPIED_SAVINGS;
    s->started = true;
}

static int draft(struct esp_draft *d)
{
    struct state *s = d->state;
    struct esp_copied *c = &s->copied;
    const bool costs = esp_param(d->params, COST) != 0,
               suffix = esp_param(d->params, SUFFIX) != 0;
    const int most = (int)esp_param(d->params, N), room = d->tree->room;
    esp_rate_read(&s->rate, d->context->costs, most < room ? most : room);
    int status =
        esp_copied_find(c, d, &s->rate,
                        &(struct esp_copied_plan){.depth = (int)esp_param(d->params, K),
                                                  .copy = suffix,
                                                  .recycle = true,
                                                  .free = !costs});
    if (status < 0)
        return status;
    const bool timed = costs && (s->since_plain >= REFRESH || !(s->rate.verify[1] > 0));
    c->nodes = c->retrieval.count < s->rate.budget ? c->retrieval.count : s->rate.budget;
    c->used = c->nodes > 0;
    if (costs)
        esp_copied_choose(c, &s->rate, 0);
    c->used = c->used && !timed;
    if (c->used)
        esp_copied_take(c, d);
    else
        d->tree->tree.nodes[0].reason = ESP_REASON_PLAIN;
    s->since_plain = c->used ? s->since_plain + 1 : 0;
    return ESP_OK;
}

static void adapt(struct esp_draft *d, const struct esp_iteration *it)
{
    struct state *s = d->state;
    const int rows = it->tree.verified, tokens = it->committed_count;
    const int right = esp_retrieval_learn(&s->copied.retrieval, it->committed, tokens);
    if (!(s->rate.verify[1] > 0) || rows > s->rate.budget + 1)
        return;
    const double seconds = s->rate.verify[rows];
    esp_rate_learn(&s->rate, tokens, seconds);
    esp_copied_learn(&s->copied, &s->rate, right, tokens - seconds / s->rate.verify[1]);
}

static int gauges(const struct esp_draft *d, struct esp_gauge *g)
{
    const struct state *s = d->state;
    enum { HIGHEST = 10000 };
    g[0] = (struct esp_gauge){"match", .after = s->copied.retrieval.match, .maximum = 1000};
    g[1] = (struct esp_gauge){"price", .after = s->rate.now, .maximum = HIGHEST};
    g[2] = (struct esp_gauge){"account", .after = s->copied.balance, .maximum = ESP_SAVINGS};
    return 3;
}

static void finish(void *memory)
{
    esp_retrieval_close(&((struct state *)memory)->copied.retrieval);
}

const struct esp_drafter_ops esp_drafter_recycle = {
    .name = "recycle",
    .summary = "tokens that the target found likely before; needs no draft model",
    .source = "Token Recycling, Luo et al. 2024; SuffixDecoding, Oliaro et al. 2024",
    .differs =
        "the tree grows by learned probabilities and measured costs, instead of having one "
        "fixed shape. The rows of likely tokens are saved for the next run. Passages copied "
        "from the text are in the tree, too",
    .draws = ESP_DRAW_TOPK,
    .without_model = true,
    .asks = ESP_ASK_COSTS | ESP_ASK_EXPECTED | ESP_ASK_RECYCLED,
    .params = params,
    .state_size = sizeof(struct state),
    .init = init,
    .close = finish,
    .draft = draft,
    .adapt = adapt,
    .gauges = gauges,
};
