/* nde.c - `delayed` with K, L1 and L2 chosen for each tree by a trained selector
 * (delayed-tree-expansion, sec. 6).
 *
 * An action is one choice of K, L1 and L2. In each iteration, the selector computes a logit for
 * each action, and the action with the highest logit is taken. The selector's input is known at
 * the root: the hidden states of both models, the distance between their distributions one
 * token earlier, and the draft's confidence. The choice depends only on the past and on the
 * draft's own distribution at the root, never on the verifier's random numbers, so the output
 * distribution does not change. The draft's first pass computes the root, because the choice
 * depends on it. The draft's output for the token before the root is kept from the last tree.
 * If the draft has not computed that token, because it was a leaf, the first pass also computes
 * that token.
 *
 * Right after a prompt, the target has not computed anything for the token before the root. In
 * this case, the static action that was best in training is used.
 *
 * A selector identifies the models by their vocabulary and norms. If the target is widened
 * (--width), the selector reads its states in the original size. It therefore also works with
 * quantised models and with --width; a warning then says that the costs of these models differ
 * from the costs in its training.
 */
#include "engine/drafters/drafter.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/engine.h"
#include "engine/model/gguf.h"
#include "engine/selector/selector.h"
#include "engine/support/paths.h"
#include "kernels/status.h"

#define LEAST_TEMPERATURE 0.2 /* the lowest temperature in training */

enum { GOAL };

static const struct esp_param params[] = {
    [GOAL] = {"goal", ESP_CHOICE, 0, ESP_GOALS - 1, 0, .choices = ESP_GOAL_NAMES,
              .help = "what the selector was trained for: tokens per second, tokens per "
                      "iteration, or tokens per second if a row of the target costs little"},
    {0},
};

struct state {
    struct esp_selector selector;
    bool bound, other_costs;
    int target_hidden;
    float *numbers; /* hidden states; p and q for the token before the root; q for the root */
    int actions[ESP_ACTIONS], action_count; /* one action for each different tree */
    struct esp_shape_choice choices[ESP_MAX_CHOICES];
    int choice_count;
    double obtained;
};

/* Returns the verifier for which the selector must be trained. For the verifier greedy this is
 * nss, because both accept the target's likeliest token in the limit of temperature 0. */
static const char *rule_of(const char *verifier)
{
    return strcmp(verifier, "greedy") == 0 ? "nss" : verifier;
}

static int refuse(const struct esp_engine *e, const char *rule, const char *goal, int status,
                  const char *why, char *err, size_t errlen)
{
    if (status != ESP_E_FILE)
        return esp_fail(err, errlen, status, "drafter nde: %s", why);
    return esp_fail(
        err, errlen, status,
        "drafter nde needs a selector that was trained for this pair, verifier %s and goal "
        "%s, and there is none: make it with espalier train selector --target %.200s "
        "--draft %.200s --verifier %s --goal %s --text FILE",
        rule, goal, e->target->path, e->draft->path, rule, goal);
}

/* Looks for the selector next to the target's file. If this is a GGUF file, also looks next to
 * the built-in target, because the GGUF file can be a copy of that target. */
static int read_selector(struct esp_selector *selector, const struct esp_engine *e,
                         const char *rule, enum esp_goal goal,
                         const struct esp_selector_shape *shape, char *why, size_t size)
{
    const char *path = e->target->path ? e->target->path : "";
    char built_in[4096], ignored[512];
    int status = esp_selector_read(selector, path, rule, goal, e->sources, shape, why, size);
    if (status == ESP_E_FILE && esp_gguf_is(path) &&
        esp_find_data(built_in, sizeof built_in, "models", "fairytale-target") == ESP_OK &&
        esp_selector_read(selector, built_in, rule, goal, e->sources, shape, ignored,
                          sizeof ignored) == ESP_OK)
        status = ESP_OK;
    return status;
}

static int bind_selector(void *memory, const struct esp_params *values,
                         const struct esp_engine *e, const char *verifier, char *err,
                         size_t errlen)
{
    struct state *s = memory;
    struct esp_selector selector;
    const char *rule = rule_of(verifier);
    const enum esp_goal goal = (enum esp_goal)esp_param(values, GOAL);
    char why[512];
    if (!e->backend->ops->gives_states)
        return esp_fail(
            err, errlen, ESP_E_UNSUPPORTED,
            "drafter nde reads the target's hidden states, which the backend %s does "
            "not provide yet; use --backend cpu, or another drafter",
            e->backend->ops->name);
    if (s->bound && strcmp(s->selector.rule, rule) == 0 && s->selector.goal == goal)
        return ESP_OK;
    const struct esp_selector_shape shape = {
        {e->source_hidden, e->draft->desc.hidden, e->draft->desc.hidden}};
    int status = read_selector(&selector, e, rule, goal, &shape, why, sizeof why);
    if (status < 0)
        return refuse(e, rule, esp_goal_name(goal), status, why, err, errlen);
    float *numbers = calloc((size_t)e->target->desc.hidden + 2 * (size_t)e->draft->desc.hidden +
                                3 * (size_t)e->target->desc.vocabulary,
                            sizeof *numbers);
    if (!numbers) {
        esp_selector_close(&selector);
        return esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory for drafter nde");
    }
    if (s->bound)
        esp_selector_close(&s->selector);
    free(s->numbers);
    s->selector = selector;
    s->numbers = numbers;
    s->target_hidden = e->target->desc.hidden;
    s->other_costs = selector.costs != 0 && selector.costs != e->pair;
    s->bound = true;
    s->action_count = 0;
    for (int a = 0; a < ESP_ACTIONS; a++)
        if (esp_action_canonical(a))
            s->actions[s->action_count++] = a;
    return ESP_OK;
}

static const char *note(const void *memory)
{
    const struct state *s = memory;
    return s->other_costs ? "nde: its selector was trained with the costs of these models in a "
                            "different width or number format; the text is just as good, but "
                            "other trees may be faster here"
                          : NULL;
}

static void close_selector(void *memory)
{
    struct state *s = memory;
    if (s->bound)
        esp_selector_close(&s->selector);
    free(s->numbers);
    s->numbers = NULL;
    s->bound = false;
}

/* ------------------------------------------------------------------ the choice */

struct part {
    struct esp_rows *rows;
    int row;
    float *to;
};

static int read_parts(const struct part *parts, int count)
{
    int status = ESP_OK;
    for (int i = 0; i < count && status == ESP_OK; i++)
        status =
            parts[i].rows->backend->ops->read_row(parts[i].rows, parts[i].row, parts[i].to);
    return status;
}

/* Runs the draft's pass over the root. Reads the outputs of both models for the token before
 * the root, and the draft's output for the root. If the draft's output for the token before the
 * root was kept, it is read before the pass overwrites it. Otherwise the pass computes it. */
static int look(struct esp_draft *d, struct state *s, const float *states[], float *scalars)
{
    const struct esp_look_back *back = &d->context->back;
    const int *hidden = s->selector.shape.hidden, n = back->q->vocabulary;
    float *target = s->numbers, *draft = target + s->target_hidden,
          *root = draft + hidden[ESP_SELECTOR_H_DRAFT], *p = root + hidden[ESP_SELECTOR_H_ROOT],
          *q = p + n, *q_root = q + n;
    const bool kept = back->draft_row >= 0 && esp_draft_behind(d) == 1;
    const int row = kept ? back->draft_row : d->capacity;
    const struct part before[] = {{back->draft_states, row, draft}, {back->q, row, q}};
    const struct part now[] = {{back->state, back->state_row, target},
                               {back->p, 0, p},
                               {back->draft_states, 0, root},
                               {back->q, 0, q_root}};
    int status = kept ? read_parts(before, 2) : (int)ESP_OK;
    if (status == ESP_OK)
        status = esp_draft_expand_root(d, !kept);
    if (status == ESP_OK && !kept)
        status = read_parts(before, 2);
    if (status == ESP_OK)
        status = read_parts(now, 4);
    if (status < 0)
        return status;
    states[ESP_SELECTOR_H_TARGET] = target;
    states[ESP_SELECTOR_H_DRAFT] = draft;
    states[ESP_SELECTOR_H_ROOT] = root;
    esp_features_of(p, q, q_root, n, scalars);
    return ESP_OK;
}

/* Returns whether the action's tree can be drafted within the limits of depth and size. */
static bool fits(const struct esp_draft *d, int action)
{
    const struct esp_action a = esp_action_at(action);
    return esp_action_depth(a) <= d->max_depth && esp_action_rows(a) - 1 <= d->tree->room;
}

static struct esp_shape_choice describe(const struct esp_draft *d, const struct state *s,
                                        const struct esp_selector_score *score, int action)
{
    const struct esp_action a = esp_action_at(action);
    struct esp_shape_choice choice = {a.paths, a.stem, a.branch, .tokens = NAN};
    choice.seconds =
        s->selector.times.choice + esp_time_of_action(&s->selector.times, a, d->seen);
    if (score)
        choice.tokens = esp_selector_tokens(&s->selector, score, action);
    return choice;
}

/* Lists the best actions, likeliest first, with their probabilities under the policy. */
static void rank(const struct esp_draft *d, struct state *s,
                 const struct esp_selector_score *score)
{
    const float *logits = score->logits;
    const bool all = 2 * ESP_ACTION_LENGTH <= d->max_depth &&
                     ESP_ACTION_ROWS - 1 <= d->tree->room; /* all actions fit */
    float fitting[ESP_ACTIONS], total = 0;
    int best[ESP_MAX_CHOICES], count = 0, kept = 0;
    for (int i = 0; i < s->action_count; i++) {
        const int a = s->actions[i];
        if (!all && !fits(d, a))
            continue;
        fitting[kept++] = logits[a];
        if (count == ESP_MAX_CHOICES && logits[a] <= logits[best[count - 1]])
            continue;
        int at = count < ESP_MAX_CHOICES ? count++ : ESP_MAX_CHOICES - 1;
        for (; at > 0 && logits[a] > logits[best[at - 1]]; at--)
            best[at] = best[at - 1];
        best[at] = a;
    }
    for (int i = 0; i < kept; i++)
        total += expf(fitting[i] - logits[best[0]]);
    for (int i = 0; i < count; i++) {
        s->choices[i] = describe(d, s, score, best[i]);
        s->choices[i].share = expf(logits[best[i]] - logits[best[0]]) / total;
    }
    s->choice_count = count;
}

/* Chooses the action right after a prompt. */
static void take_first(const struct esp_draft *d, struct state *s)
{
    int action = s->selector.first;
    while (action > 0 && !(esp_action_canonical(action) && fits(d, action)))
        action--;
    s->choices[0] = describe(d, s, NULL, action);
    s->choices[0].share = 1;
    s->choice_count = 1;
}

static int choose(struct esp_draft *d, struct state *s)
{
    const float *states[ESP_SELECTOR_STATES];
    float scalars[ESP_SCALARS];
    struct esp_selector_score score;
    if (d->context->back.length != d->text_length ||
        d->text_length < 2) { /* the models have computed nothing yet */
        take_first(d, s);
        return ESP_OK;
    }
    int status = look(d, s, states, scalars);
    if (status < 0)
        return status;
    scalars[ESP_FEATURE_LENGTH] = (float)d->seen;
    scalars[ESP_FEATURE_TEMPERATURE] = (float)fmax(d->temperature, LEAST_TEMPERATURE);
    scalars[ESP_FEATURE_TOP_P] = d->greedy ? 1 : (float)d->sampling.top_p;
    scalars[ESP_FEATURE_TIME_Q] = (float)esp_time_draft(&s->selector.times, 1, d->seen);
    scalars[ESP_FEATURE_TIME_P] = (float)esp_time_target(&s->selector.times, 1, d->seen);
    esp_selector_run(&s->selector, states, scalars, &score);
    rank(d, s, &score);
    return ESP_OK;
}

static int draft(struct esp_draft *d)
{
    struct state *s = d->state;
    int width[2 * ESP_ACTION_LENGTH];
    int status = choose(d, s);
    const struct esp_shape_choice *c = &s->choices[0];
    struct esp_path_rule rule = {.width = width, .levels = c->stem + c->branch};
    for (int i = 0; i < rule.levels; i++)
        width[i] = i == c->stem ? c->paths : 1;
    if (status == ESP_OK && rule.levels == 0)
        d->tree->tree.nodes[0].reason = ESP_REASON_PLAIN;
    if (status < 0 || rule.levels == 0)
        return status;
    if (d->expanded == 0) /* right after a prompt; the next choice needs the root's state */
        status = esp_draft_expand_root(d, false);
    return status == ESP_OK ? esp_draft_paths(d, &rule) : status;
}

/* ------------------------------------------------------------------ display */

static int list_choices(const void *memory, struct esp_shape_choice choices[ESP_MAX_CHOICES])
{
    const struct state *s = memory;
    memcpy(choices, s->choices, sizeof s->choices);
    return s->choice_count;
}

static void adapt(struct esp_draft *d, const struct esp_iteration *it)
{
    struct state *s = d->state;
    s->obtained = it->committed_count;
}

static int gauges(const struct esp_draft *d, struct esp_gauge *g)
{
    const struct state *s = d->state;
    const struct esp_shape_choice *c = &s->choices[0];
    g[0] = (struct esp_gauge){"K", .after = c->paths, .maximum = ESP_ACTION_PATHS};
    g[1] = (struct esp_gauge){"L1", .after = c->stem, .maximum = ESP_ACTION_LENGTH};
    g[2] = (struct esp_gauge){"L2", .after = c->branch, .maximum = ESP_ACTION_LENGTH};
    g[3] = (struct esp_gauge){"expected", .after = isnan(c->tokens) ? 0 : c->tokens,
                              .maximum = 2 * ESP_ACTION_LENGTH};
    g[4] =
        (struct esp_gauge){"obtained", .after = s->obtained, .maximum = 2 * ESP_ACTION_LENGTH};
    return 5;
}

static const struct esp_chooser_ops chooser = {
    .least_draft_temp = LEAST_TEMPERATURE,
    .bind = bind_selector,
    .note = note,
    .choices = list_choices,
};

const struct esp_drafter_ops esp_drafter_nde = {
    .name = "nde",
    .summary = "delayed, with K, L1 and L2 chosen for each tree by a trained selector",
    .source = "delayed-tree-expansion, sec. 6",
    .differs =
        "the selector is trained on pieces of one text, which the target continues. There is "
        "also a selector for Traversal. For each root, the values of all actions are "
        "computed from trees that are drawn together: every action uses the same four draws. "
        "Parameters that give the same tree are one action. With the loss of equation 12 "
        "alone, the policy always chooses the same tree. Therefore .03 of the policy's "
        "entropy is subtracted from the loss, training starts from the best static trees, "
        "and the epoch that is best on held-out pieces is kept. Right after a prompt, when "
        "nothing is known about the target, the tree is the static one that was best in "
        "training. The times of passes are measured once, in training, for several numbers "
        "of rows and several lengths of the text. They include the selector's own time. The "
        "network is narrower for small targets. A separate head predicts the tokens that an "
        "action gives. The goals tokens and cheap-rows are not in the paper. With "
        "cheap-rows, each additional row costs 3 % of a pass of the target, and a draft pass "
        "5 %. At temperature 0, the selector for nss is used as if the temperature were 0.2. "
        "The draft has the output's temperature, but at least 0.2, in training and in use: "
        "draft_temp auto learns nothing. For the built-in pair with goal=speed, five of the "
        "six selectors nearly always draft a chain of three tokens, and the selector for nss "
        "a chain of one token. The reason is that rows of this target are expensive. With "
        "goal=tokens and goal=cheap-rows, the selectors draft trees",
    .draws = ESP_DRAW_IID,
    .verifier = "traversal",
    .asks = ESP_ASK_PAST,
    .params = params,
    .state_size = sizeof(struct state),
    .chooser = &chooser,
    .close = close_selector,
    .draft = draft,
    .adapt = adapt,
    .gauges = gauges,
};
