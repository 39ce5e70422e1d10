/* Tests whole iterations of sessions on the toy models. The tests enumerate every draw of the
 * draft and every decision of the verifier. The decoding loop, the caches and the drafters are
 * the engine's own code. The distribution of the first output tokens must equal the target's to
 * 1e-9.
 *
 * Three kinds of drafts are tested. The first is a model with another vocabulary
 * (engine/model/translation.h). Some of its probabilities are zero, and it reads some of the
 * target's tokens as two tokens. The second is a copy of the target, which drafts in the
 * target's KV cache. The third comes from the matrix of recycled tokens, which has random
 * contents. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/check.h"
#include "tests/enumerate.h"
#include "tests/folder.h"

enum { V = 3, TOKENS = 2, SEQUENCES = V * V, PROMPT = 3, ALLOWED = 8 };
enum { MOST_OUTCOMES = 100000 /* for one pair of drafter and verifier */ };
static const double EXACT = 1e-9;

static const int32_t start[PROMPT] = {0, 2, 1};

static struct toy toy;
static struct esp_backend_ops ops;
static struct enumerate all;
static char err[512];

/* ------------------------------------------------------------------ enumerated draws */

/* If true, the draft draws tokens 0 and 1 half as often as its distribution says. */
static bool biased;

static int draw_one(struct esp_rows *rows, int row, const int32_t *excluded, int count,
                    int32_t *token, double *value)
{
    double weight[V], sum = 0;
    memcpy(weight, toy_row(rows, row), sizeof weight);
    for (int i = 0; i < count; i++)
        if (excluded[i] >= 0)
            weight[excluded[i]] = 0;
    const double probability[V] = {weight[0], weight[1], weight[2]};
    for (int x = 0; x < V; x++)
        sum += weight[x] *= biased && x < 2 ? 0.5 : 1;
    *token = -1;
    *value = 0;
    if (!(sum > 0))
        return ESP_OK;
    const struct esp_odds odds = {.weight = weight, .count = V};
    double u = enumerate_number(&all, &odds) * sum;
    for (int x = 0; x < V; x++) {
        if (weight[x] > 0 && u >= 0)
            *token = x;
        u -= weight[x];
    }
    *value = probability[*token];
    return ESP_OK;
}

/* Replaces the backend's sample(). The enumeration chooses the tokens. No random numbers are
 * used. */
static int sample(struct esp_rows *rows, const int32_t *which, const double *u, int count,
                  int draws, const int32_t *excluded, int per, int32_t *tokens, double *values,
                  enum esp_delivery when)
{
    int32_t without[64];
    (void)u, (void)when;
    for (int i = 0; i < count; i++) {
        CHECK(per + draws <= 64);
        if (per > 0)
            memcpy(without, excluded + i * per, (size_t)per * sizeof *without);
        for (int j = 0; j < draws; j++) {
            const int at = i * draws + j;
            draw_one(rows, which[i], without, per + j, &tokens[at], &values[at]);
            without[per + j] = tokens[at];
        }
    }
    return ESP_OK;
}

/* ------------------------------------------------------------------ two small vocabularies */

/* Opens a byte-level tokenizer with a token for each printable ASCII character and the space.
 * `tokens` are its other tokens, with ids below 32. */
static struct esp_tokenizer *open_vocabulary(const char *tokens, const char *merges)
{
    struct esp_tokenizer *tokenizer;
    char text[4096];
    size_t used = (size_t)sprintf(text, "{\"model\":{\"type\":\"BPE\",\"vocab\":{%s", tokens);
    for (int c = '!'; c <= '~'; c++)
        used += (size_t)sprintf(text + used,
                                c == '"' || c == '\\' ? ",\"\\%c\":%d" : ",\"%c\":%d", c, c);
    sprintf(text + used,
            ",\"\xC4\xA0\":32},\"merges\":[%s]},\"pre_tokenizer\":{\"type\":\"ByteLevel\","
            "\"add_prefix_space\":false,\"use_regex\":true},\"decoder\":{\"type\":"
            "\"ByteLevel\"},\"added_tokens\":[]}",
            merges);
    folder_write_text("tokenizer.json", text);
    CHECK(esp_tokenizer_open(&tokenizer, folder_path(), err, sizeof err) == 0, "%s", err);
    return tokenizer;
}

/* Vocabularies of drafts. The target has the tokens ab, cd and abcd. */
static const struct vocabulary {
    const char *name, *tokens, *merges;
    /* how many tokens the draft shares with the target; how many draft tokens spell abcd */
    int shared, rows;
} vocabularies[] = {
    {"all tokens, with other ids", "\"abcd\":1,\"cd\":4,\"ab\":7", "\"a b\",\"c d\",\"ab cd\"",
     3, 1},
    {"two of three tokens", "\"cd\":0,\"ab\":2,\"xab\":3", "\"a b\",\"c d\",\"x ab\"", 2, 2},
    {"one of three tokens", "\"cd\":1,\"bcd\":2", "\"c d\",\"b cd\"", 1, 2},
};
enum { VOCABULARIES = sizeof vocabularies / sizeof *vocabularies };

static struct esp_translation translation;

/* Gives the toy's draft the vocabulary *v. */
static void translate(const struct vocabulary *v)
{
    folder_copy("qwen2");
    struct esp_tokenizer *target =
        open_vocabulary("\"ab\":0,\"cd\":1,\"abcd\":2", "\"a b\",\"c d\",\"ab cd\"");
    struct esp_tokenizer *draft = open_vocabulary(v->tokens, v->merges);
    const struct esp_language languages[2] = {{.tokenizer = target, .vocabulary = V},
                                              {draft, esp_tokenizer_size(draft), NULL, 0}};
    const int32_t *spelled;
    CHECK(esp_translation_open(&translation, &languages[0], &languages[1]) == 0);
    CHECK(translation.shared == v->shared, "%s: %d are shared", v->name, translation.shared);
    CHECK(esp_translation_spell(&translation, 2, &spelled) == v->rows, "%s", v->name);
    toy_translate(&toy, &translation, languages[1].vocabulary);
    esp_tokenizer_close(target);
    esp_tokenizer_close(draft);
}

/* ------------------------------------------------------------------ enumerated sessions */

/* Drafters that do not learn, with the number of iterations to enumerate for each. */
static const struct {
    const char *name;
    int iterations;
} drafters[] = {
    {"linear:K=1", 2},
    {"linear:K=2", 1},
    {"linear:K=2,draws=topk", 1},
    {"iid:K=2,L=1", 1},
    {"delayed:K=2,L1=1,L2=1", 1},
    {"specinfer:expansion=2.1", 1},
    {"sequoia:learn=off,N=3", 1},
    {"dyspec:N=3", 1},
    {"fixed:D=2,B=2,tau=0", 1},
    {NULL, 0},
};

struct seen {
    double sequence[SEQUENCES]; /* probability of each sequence of TOKENS output tokens */
    int outcomes, nodes, accepted, sources[ESP_SOURCES];
};

/* Distributes `weight` to the sequences that begin with text[PROMPT, length). The tokens that
 * are missing follow the target's distribution at temperature 1. */
static void complete(int32_t text[PROMPT + TOKENS], int length, double weight, double *sequence)
{
    double p[V];
    if (length == PROMPT + TOKENS) {
        sequence[text[PROMPT] * V + text[PROMPT + 1]] += weight;
        return;
    }
    toy_distribution(&toy, false, text, length, p);
    for (int x = 0; x < V; x++) {
        text[length] = x;
        complete(text, length + 1, weight * p[x], sequence);
    }
}

/* Runs the session once, with the decisions of `all` instead of random numbers. */
static void run_once(struct esp_session *session, int iterations, struct seen *seen)
{
    int32_t text[PROMPT + TOKENS];
    int length;
    CHECK(esp_session_rewind(session, PROMPT) == 0);
    esp_session_allow(session, ALLOWED);
    for (int i = 0; i < iterations; i++) {
        CHECK(esp_session_step(session, err, sizeof err) > 0, "%s", err);
        seen->nodes += session->tree.tree.count - 1;
        seen->accepted += session->verify.path_length;
    }
    const int32_t *tokens = esp_session_tokens(session, &length);
    length = length < PROMPT + TOKENS ? length : PROMPT + TOKENS;
    memcpy(text, tokens, (size_t)length * sizeof *text);
    complete(text, length, all.probability, seen->sequence);
}

static struct esp_session *open_session(const char *drafter, const char *verifier)
{
    struct esp_session *session;
    struct esp_session_options options = {
        .drafter = drafter, .verifier = verifier, .repeatable = true, .values.temperature = 1};
    esp_value_parse(&options.values, ESP_VALUE_OF_draft_temp, "draft_temp", "off", NULL, 0);
    if (esp_session_open(&session, &toy.engine, &options, err, sizeof err) < 0)
        return NULL;
    CHECK(esp_session_prompt(session, start, PROMPT, err, sizeof err) == 0, "%s", err);
    session->verify.chance = (struct esp_chance){.number = enumerate_number, .user = &all};
    return session;
}

/* Returns the largest difference between a measured probability and the target's
 * probability. */
static double difference(const struct seen *seen)
{
    double want[SEQUENCES] = {0}, worst = 0;
    int32_t text[PROMPT + TOKENS];
    memcpy(text, start, sizeof start);
    complete(text, PROMPT, 1, want);
    for (int i = 0; i < SEQUENCES; i++)
        worst = fmax(worst, fabs(seen->sequence[i] - want[i]));
    return worst;
}

static double enumerate_session(struct esp_session *session, int iterations, struct seen *seen)
{
    enumerate_start(&all);
    do {
        run_once(session, iterations, seen);
        CHECK(++seen->outcomes <= MOST_OUTCOMES);
    } while (enumerate_next(&all));
    return difference(seen);
}

/* Tests each drafter with each allowed verifier. `what` describes the draft. */
static void check_pairs(const char *what)
{
    int pairs = 0, outcomes = 0, accepted = 0;
    for (int d = 0; drafters[d].name; d++)
        for (int v = 0; esp_verifiers[v]; v++) {
            struct seen seen = {.outcomes = 0};
            struct esp_session *session =
                open_session(drafters[d].name, esp_verifiers[v]->name);
            if (!session)
                continue;
            const double worst = enumerate_session(session, drafters[d].iterations, &seen);
            CHECK(worst < EXACT, "%s, %s with %s: a probability differs by %g", what,
                  drafters[d].name, esp_verifiers[v]->name, worst);
            CHECK(seen.nodes > 0, "%s, %s: nothing is drafted", what, drafters[d].name);
            outcomes += seen.outcomes;
            accepted += seen.accepted;
            pairs++;
            esp_session_close(session);
        }
    CHECK(pairs >= 30, "%s: only %d pairs", what, pairs);
    CHECK(accepted > outcomes / 4, "%s: %d accepted", what, accepted);
    printf("    %s: %d pairs, %d outcomes\n", what, pairs, outcomes);
}

static void open_toy(unsigned long long seed)
{
    toy_open(&toy, V, 32, 16, seed);
    ops = toy_backend;
    ops.sample = sample;
    toy.engine.backend->ops = &ops;
    toy.sharpness = 1;
}

TEST(drafts_of_another_vocabulary_keep_the_target)
{
    for (int i = 0; i < VOCABULARIES; i++) {
        open_toy((unsigned long long)i + 1);
        translate(&vocabularies[i]);
        check_pairs(vocabularies[i].name);
        esp_translation_free(&translation);
        toy_close(&toy);
    }
}

TEST(own_copies_keep_the_target)
{
    open_toy(9);
    toy_join(&toy);
    check_pairs("the target's own copy");
    toy_close(&toy);
}

/* ------------------------------------------------------------------ recycled tokens */

/* A draft pass takes longer than drafter goodput may lose at first, so goodput verifies recycled
 * tokens from the first iteration on. */
static double dear_pass(int rows)
{
    return 100 + rows;
}

static double cheap_rows(int rows)
{
    return 1 + 0.01 * rows;
}

/* Opens a session. Its matrix of recycled tokens has random contents, which are the same for
 * every outcome. */
static struct esp_session *open_scrambled(const char *drafter, const char *verifier)
{
    struct esp_session *session = open_session(drafter, verifier);
    unsigned long long state = 3;
    if (!session)
        return NULL;
    session->costs.planted[ESP_COST_DRAFT] = dear_pass;
    session->costs.planted[ESP_COST_VERIFY] = cheap_rows;
    for (int32_t token = 0; token < V; token++) {
        const int32_t next[2] = {(int32_t)(check_uniform(&state) * V),
                                 (int32_t)(check_uniform(&state) * V)};
        esp_recycled_write(&session->recycling.matrix, token, next, 2);
    }
    return session;
}

/* Enumerates a drafter that learns, so each outcome needs a new session. Returns the largest
 * difference from the target's probabilities, or -1 if the drafter and the verifier cannot be
 * combined. */
static double enumerate_scrambled(const char *drafter, const char *verifier, struct seen *seen)
{
    struct esp_session *session = open_scrambled(drafter, verifier);
    if (!session)
        return -1;
    enumerate_start(&all);
    do {
        run_once(session, 1, seen);
        CHECK(++seen->outcomes <= MOST_OUTCOMES);
        for (int u = 1; u < session->tree.tree.count; u++)
            seen->sources[session->tree.tree.nodes[u].source]++;
        esp_session_close(session);
        session = open_scrambled(drafter, verifier);
    } while (enumerate_next(&all));
    esp_session_close(session);
    return difference(seen);
}

TEST(random_contents_of_the_recycled_matrix_keep_the_target)
{
    static const char *const recycling[] = {"recycle:cost=off,N=4,suffix=off", "hybrid:N=4",
                                            "goodput:N=4"};
    int pairs = 0;
    open_toy(5);
    for (size_t d = 0; d < sizeof recycling / sizeof *recycling; d++)
        for (int v = 0; esp_verifiers[v]; v++) {
            struct seen seen = {.outcomes = 0};
            const double worst =
                enumerate_scrambled(recycling[d], esp_verifiers[v]->name, &seen);
            if (worst < 0)
                continue;
            CHECK(worst < EXACT, "%s with %s: a probability differs by %g", recycling[d],
                  esp_verifiers[v]->name, worst);
            CHECK(seen.sources[ESP_SOURCE_RECYCLED] > 0, "%s with %s recycles nothing",
                  recycling[d], esp_verifiers[v]->name);
            pairs++;
        }
    CHECK(pairs == 5, "%d pairs", pairs);
    toy_close(&toy);
}

/* The enumeration must detect a draft that does not draw from the distribution that it gives.
 * */
TEST(a_draft_that_draws_from_another_distribution_is_detected)
{
    static const char *const pairs[][2] = {
        {"linear:K=2", "naive"}, {"iid:K=2,L=1", "specinfer"}, {"dyspec:N=3", "swor"}};
    open_toy(1);
    translate(&vocabularies[0]);
    biased = true;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        struct seen seen = {.outcomes = 0};
        struct esp_session *session = open_session(pairs[i][0], pairs[i][1]);
        CHECK(session, "%s", err);
        const double worst = enumerate_session(session, 1, &seen);
        CHECK(worst > 1e-3, "%s with %s: %g", pairs[i][0], pairs[i][1], worst);
        esp_session_close(session);
    }
    biased = false;
    esp_translation_free(&translation);
    toy_close(&toy);
}
