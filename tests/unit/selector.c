/* Tests selectors. A selector must give the output of the trained network, also after it was
 * written to a file and read again. Opening a damaged file must give an error message. Features
 * must have the documented meaning. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/check.h"
#include "engine/selector/selector.h"
#include "engine/session_parts.h"
#include "engine/train/selector_net.h"
#include "kernels/status.h"

enum { PAIR = 77 }; /* used as the hash of the two models */

static const struct esp_selector_shape shape = {{24, 16, 16}};
static char err[512];

static void folder_make(char *folder, size_t size)
{
    const char *at = getenv("TMPDIR");
    snprintf(folder, size, "%s/espalier-selector-XXXXXX", at ? at : "/tmp");
    CHECK(mkdtemp(folder), "%s", folder);
}

static void path_of(char *path, size_t size, const char *folder, const char *rule)
{
    char name[ESP_SELECTOR_NAME];
    esp_selector_file_name(name, rule, ESP_GOAL_SPEED);
    snprintf(path, size, "%s/%s", folder, name);
}

static void folder_remove(const char *folder)
{
    char path[512];
    path_of(path, sizeof path, folder, "nss");
    unlink(path);
    rmdir(folder);
}

/* Makes a selector with random weights, and the network with the same weights. */
static void make(struct esp_selector *s, struct esp_selector_net *net)
{
    unsigned long long state = 5;
    CHECK(esp_selector_net_open(net, &shape, 1, 9) == 0);
    CHECK(esp_selector_open(s, &shape) == 0);
    snprintf(s->rule, sizeof s->rule, "nss");
    s->sources = PAIR;
    s->costs = 0x123456789abcdef0;
    s->first = 12;
    for (size_t i = 0; i < net->count; i++)
        s->weights[i] = (float)(net->weights[i] += 0.02 * (check_uniform(&state) - 0.5));
    for (int i = 0; i < ESP_SCALARS; i++) {
        s->mean[i] = (float)check_uniform(&state);
        s->deviation[i] = (float)(1 + check_uniform(&state));
    }
    for (int i = 0; i < (ESP_SELECTOR_NARROW_WIDTH + 1) * ESP_ACTIONS; i++)
        s->value[i] = (float)check_uniform(&state);
    for (int i = 0; i < ESP_TIME_LENGTHS; i++) {
        s->times.length[i] = (float)(100 * (i + 1));
        for (int j = 0; j < ESP_TIME_DRAFT_ROWS; j++)
            s->times.draft[i][j] = 0.001f;
        for (int j = 0; j < ESP_TIME_ROWS; j++)
            s->times.target[i][j] = 0.002f;
    }
    s->times.choice = 0.0001f;
    CHECK(esp_selector_prepare(s) == 0);
}

/* Computes the output of the network and of the selector for the same random inputs. */
static void run(const struct esp_selector *s, struct esp_selector_net *net,
                struct esp_selector_score *score)
{
    float numbers[24 + 16 + 16], scalars[ESP_SCALARS];
    const float *states[ESP_SELECTOR_STATES] = {numbers, numbers + 24, numbers + 40};
    unsigned long long state = 6;
    for (int i = 0; i < 56; i++)
        numbers[i] = (float)(2 * check_uniform(&state) - 1);
    for (int i = 0; i < ESP_SCALARS; i++)
        scalars[i] = (float)(3 * check_uniform(&state));
    for (int i = 0, at = 0; net && i < ESP_SELECTOR_STATES; at += shape.hidden[i++])
        for (int j = 0; j < shape.hidden[i]; j++)
            net->state[i][j] = numbers[at + j];
    for (int i = 0; net && i < ESP_SCALARS; i++)
        net->scalars[i] = ((double)scalars[i] - s->mean[i]) / s->deviation[i];
    esp_selector_run(s, states, scalars, score);
}

TEST(a_selector_gives_the_result_of_its_network)
{
    struct esp_selector s;
    struct esp_selector_net net;
    struct esp_selector_score score;
    make(&s, &net);
    run(&s, &net, &score);
    esp_selector_net_forward(&net, 1, NULL);
    double most = 0;
    for (int a = 0; a < ESP_ACTIONS; a++)
        most = fmax(most, fabs(net.logits[a]));
    for (int a = 0; a < ESP_ACTIONS; a++) /* a selector rounds its weights to 8 bits */
        CHECK(fabs(net.logits[a] - score.logits[a]) < 0.03 * most, "logit %d: %g, not %g", a,
              (double)score.logits[a], net.logits[a]);
    esp_selector_close(&s);
    esp_selector_net_close(&net);
}

TEST(a_selector_survives_writing_and_reading)
{
    char folder[256], path[512];
    struct esp_selector s, read;
    struct esp_selector_net net;
    struct esp_selector_score score, again;
    folder_make(folder, sizeof folder);
    make(&s, &net);
    path_of(path, sizeof path, folder, "nss");
    CHECK(esp_selector_write(&s, path, err, sizeof err) == 0, "%s", err);
    CHECK(esp_selector_read(&read, folder, "nss", ESP_GOAL_SPEED, PAIR, &shape, err,
                            sizeof err) == 0,
          "%s", err);
    CHECK(read.first == 12 && strcmp(read.rule, "nss") == 0 && read.costs == s.costs);
    CHECK(memcmp(&read.times, &s.times, sizeof s.times) == 0);
    run(&s, NULL, &score);
    run(&read, NULL, &again);
    for (int a = 0; a < ESP_ACTIONS; a++) {
        CHECK(fabsf(score.logits[a] - again.logits[a]) < 1e-3f);
        CHECK(fabs(esp_selector_tokens(&s, &score, a) - esp_selector_tokens(&read, &again, a)) <
              1e-3);
    }
    esp_selector_close(&read);
    esp_selector_close(&s);
    esp_selector_net_close(&net);
    folder_remove(folder);
}

static void refused(const char *folder, const char *rule, uint64_t pair,
                    const struct esp_selector_shape *with, const char *why)
{
    struct esp_selector s;
    *err = '\0';
    CHECK(esp_selector_read(&s, folder, rule, ESP_GOAL_SPEED, pair, with, err, sizeof err) < 0,
          "%s", why);
    CHECK(*err && !strchr(err, '\n'), "%s: '%s'", why, err);
    CHECK(s.weights == NULL, "%s", why);
}

TEST(damaged_files_and_other_pairs_are_refused)
{
    static const struct esp_selector_shape wider = {{25, 16, 16}};
    char folder[256], path[512], other[512];
    struct esp_selector s;
    struct esp_selector_net net;
    folder_make(folder, sizeof folder);
    refused(folder, "nss", PAIR, &shape, "no file");
    make(&s, &net);
    path_of(path, sizeof path, folder, "nss");
    CHECK(esp_selector_write(&s, path, err, sizeof err) == 0, "%s", err);
    refused(folder, "nss", PAIR + 1, &shape, "another pair");
    CHECK(strstr(err, "another pair"), "%s", err);
    refused(folder, "nss", PAIR, &wider, "another width");
    path_of(other, sizeof other, folder, "khisti");
    CHECK(rename(path, other) == 0);
    refused(folder, "khisti", PAIR, &shape, "another rule");
    CHECK(rename(other, path) == 0);

    FILE *file = fopen(path, "rb");
    static char bytes[1 << 20];
    const size_t length = file ? fread(bytes, 1, sizeof bytes, file) : 0;
    CHECK(file && length > 1000 && length < sizeof bytes);
    fclose(file);
    for (size_t cut = 0; cut < length; cut += length / 23) { /* truncated at several places */
        CHECK(truncate(path, 0) == 0 && (file = fopen(path, "wb")));
        fwrite(bytes, 1, cut, file);
        fclose(file);
        refused(folder, "nss", PAIR, &shape, "cut");
    }
    const float nan = NAN;
    /* makes a bias of the last layer NaN */
    memcpy(bytes + length - sizeof nan, &nan, sizeof nan);
    CHECK((file = fopen(path, "wb")));
    fwrite(bytes, 1, length, file);
    fclose(file);
    refused(folder, "nss", PAIR, &shape, "no number");
    esp_selector_close(&s);
    esp_selector_net_close(&net);
    folder_remove(folder);
}

TEST(features_are_entropies_and_divergences)
{
    enum { N = 333 };
    float p[N], q[N], root[N], features[ESP_SCALARS];
    double want[6] = {0}, sum[3] = {0};
    unsigned long long state = 8;
    for (int x = 0; x < N; x++) {
        sum[0] += p[x] = x % 9 ? (float)exp(-9 * check_uniform(&state)) : 0;
        sum[1] += q[x] = x % 7 ? (float)exp(-9 * check_uniform(&state)) : 0;
        sum[2] += root[x] = (float)exp(-9 * check_uniform(&state));
    }
    for (int x = 0; x < N; x++) {
        p[x] = (float)(p[x] / sum[0]);
        q[x] = (float)(q[x] / sum[1]);
        root[x] = (float)(root[x] / sum[2]);
        const double log_p = log(fmax(p[x], 1e-9)), log_q = log(fmax(q[x], 1e-9));
        want[ESP_FEATURE_ENTROPY_P] -= p[x] * log_p;
        want[ESP_FEATURE_ENTROPY_Q] -= q[x] * log_q;
        want[ESP_FEATURE_ENTROPY_ROOT] -= root[x] * log(root[x]);
        want[ESP_FEATURE_KL_PQ] += p[x] * (log_p - log_q);
        want[ESP_FEATURE_KL_QP] += q[x] * (log_q - log_p);
        want[ESP_FEATURE_DISTANCE] += fabs((double)p[x] - q[x]);
    }
    esp_features_of(p, q, root, N, features);
    for (int i = 0; i < 6; i++)
        CHECK(fabs(features[i] - want[i]) < 1e-4 * (1 + fabs(want[i])),
              "feature %d: %g, not %g", i, (double)features[i], want[i]);
}

/* ------------------------------------------------------------------ drafter nde */

struct chosen {
    struct esp_shape_choice choice[64];
    /* rows_before is the number of iterations in which the first draft pass also computed the
     * token before the root */
    int count, rows_before;
};

/* Writes tokens with the built-in pair. If `forget` is set, the draft's distributions of
 * earlier tokens are dropped before each iteration. */
static int write_text(struct esp_engine *engine, const char *drafter, bool forget,
                      struct chosen *chosen, int32_t *text, int most)
{
    static const char story[] = "The king said to his youngest daughter";
    const struct esp_session_options options = {
        .drafter = drafter, .verifier = "traversal", .values = {.seed = 3, .temperature = 0.8}};
    struct esp_session *session;
    int status, length = 0;
    *chosen = (struct chosen){.count = 0};
    CHECK(esp_session_open(&session, engine, &options, err, sizeof err) == 0, "%s", err);
    CHECK(esp_session_prompt_text(session, story, strlen(story), 0, err, sizeof err) >= 0, "%s",
          err);
    esp_session_allow(session, 60);
    while ((status = esp_session_step(session, err, sizeof err)) > 0) {
        if (chosen->count < 64 && session->iteration.choice_count > 0)
            chosen->choice[chosen->count++] = session->iteration.choices[0];
        chosen->rows_before += session->draft.work->pass_rows[0] == 2;
        if (forget)
            session->draft_context.back.draft_row = -1;
    }
    CHECK(status == 0, "%s", err);
    const int32_t *tokens = esp_session_tokens(session, &length);
    CHECK(length <= most);
    memcpy(text, tokens, (size_t)length * sizeof *text);
    esp_session_close(session);
    return length;
}

TEST(nde_chooses_the_same_shapes_without_stored_draft_distributions)
{
    const struct esp_engine_options options = {.backend = "cpu", .threads = 1};
    struct esp_engine *engine;
    static struct chosen kept, lost;
    int32_t text[512], again[512];
    CHECK(esp_engine_open(&engine, &options, err, sizeof err) == 0, "%s", err);
    const int length = write_text(engine, "nde:goal=tokens", false, &kept, text, 512);
    const int count = write_text(engine, "nde:goal=tokens", true, &lost, again, 512);
    CHECK(length == count && memcmp(text, again, (size_t)length * sizeof *text) == 0);
    CHECK(kept.count == lost.count && kept.count > 5, "%d and %d", kept.count, lost.count);
    for (int i = 0; i < kept.count; i++)
        CHECK(memcmp(&kept.choice[i], &lost.choice[i], sizeof *kept.choice) == 0, "choice %d",
              i);
    CHECK(kept.rows_before < lost.rows_before, "%d and %d draft passes computed two tokens",
          kept.rows_before, lost.rows_before);
    esp_engine_close(engine);
}

/* In a target of twice the width, hidden states contain all numbers twice, but sums are
 * computed in a different order. */
TEST(nde_chooses_the_same_shapes_with_a_wider_target)
{
    static struct chosen chosen[2];
    static int32_t text[2][512];
    int length[2];
    for (int i = 0; i < 2; i++) {
        const struct esp_engine_options options = {
            .backend = "cpu", .threads = 1, .width = i + 1};
        struct esp_engine *engine;
        CHECK(esp_engine_open(&engine, &options, err, sizeof err) == 0, "%s", err);
        CHECK(engine->source_hidden * (i + 1) == engine->target->desc.hidden);
        length[i] = write_text(engine, "nde:goal=tokens", false, &chosen[i], text[i], 512);
        esp_engine_close(engine);
    }
    CHECK(length[0] == length[1] &&
          memcmp(text[0], text[1], (size_t)length[0] * sizeof *text[0]) == 0);
    CHECK(chosen[0].count == chosen[1].count && chosen[0].count > 5);
    for (int i = 0; i < chosen[0].count; i++) {
        const struct esp_shape_choice *a = &chosen[0].choice[i], *b = &chosen[1].choice[i];
        CHECK(a->paths == b->paths && a->stem == b->stem && a->branch == b->branch, "choice %d",
              i);
        CHECK(!(fabs(a->tokens - b->tokens) > 0.01), "%g and %g tokens", a->tokens, b->tokens);
    }
}
