/* Tests sessions on the toy backend. The output must not depend on the drafter, and bad
 * combinations of settings must be refused. Text, limits and events must be as
 * engine/espalier.h promises. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/check.h"
#include "tests/toy.h"

enum { VOCABULARY = 20, CONTEXT = 200 };

static struct toy toy;
static char err[512];

static struct esp_session *open_session(const char *drafter, esp_observer *observer, void *user)
{
    struct esp_session *session;
    struct esp_session_options options = {
        .drafter = drafter, .observer = observer, .user = user, .values.seed = 3};
    CHECK(esp_session_open(&session, &toy.engine, &options, err, sizeof err) == ESP_OK, "%s",
          err);
    return session;
}

static void prompt(struct esp_session *session, int32_t first)
{
    int32_t tokens[4] = {first, 5, 7, 1};
    CHECK(esp_session_prompt(session, tokens, 4, err, sizeof err) == ESP_OK, "%s", err);
}

static int generate(struct esp_session *session, int count, int32_t *text)
{
    int status, length;
    esp_session_allow(session, count);
    while ((status = esp_session_step(session, err, sizeof err)) > 0)
        continue;
    CHECK(status == 0, "%s", err);
    memcpy(text, esp_session_tokens(session, &length), sizeof(int32_t) * CONTEXT);
    return length;
}

/* Writes the text of plain decoding. Uses none of the engine's code, only the argmax of the toy
 * model's distribution. */
static void plain(int32_t first, int count, int32_t *text)
{
    int32_t start[4] = {first, 5, 7, 1};
    double p[VOCABULARY];
    memcpy(text, start, sizeof start);
    for (int n = 4; n < 4 + count; n++) {
        int best = 0;
        toy_distribution(&toy, false, text, n, p);
        for (int x = 1; x < VOCABULARY; x++)
            if (p[x] > p[best])
                best = x;
        text[n] = best;
    }
}

static void check_identity(const char *drafter, int trial, const int32_t *want)
{
    static const char *const orders[] = {"bfs", "dfs", "hpd"};
    int32_t text[CONTEXT];
    struct esp_session *session = open_session(drafter, NULL, NULL);
    CHECK(esp_session_set(session, "order", orders[trial % 3], err, sizeof err) == 0);
    prompt(session, trial);
    int length = generate(session, 150, text);
    CHECK(length == 154, "%s wrote %d tokens", drafter, length - 4);
    CHECK(memcmp(text, want, 154 * sizeof *text) == 0, "%s: another text", drafter);
    esp_session_close(session);
}

TEST(every_drafter_writes_what_plain_decoding_writes)
{
    static const char *const more[] = {
        "linear:K=9",
        "linear:cache=rebuild",
        "fixed:D=3,B=4,tau=0",
        "fixed:cache=rebuild",
        "fixed:root=draft,cache=rebuild",
        "dynatree:rhostop=0.001,tau=0.0001,N=40",
        "dynatree:root=draft,cache=rebuild",
        "ar:cache=rebuild",
        NULL,
    };
    int32_t want[CONTEXT];
    for (int trial = 0; trial < 6; trial++) {
        toy_open(&toy, VOCABULARY, CONTEXT, 40, (unsigned long long)trial + 1);
        toy.closeness = 0.5 + 0.1 * trial;
        plain(trial, 150, want);
        for (int i = 0; esp_drafters[i]; i++)
            /* drafter nde needs a selector, and the toy models have none */
            if (!esp_drafters[i]->chooser)
                check_identity(esp_drafters[i]->name, trial, want);
        for (int i = 0; more[i]; i++)
            check_identity(more[i], trial, want);
        toy_close(&toy);
    }
}

/* The target's logits are padded to a larger vocabulary than the draft's logits. */
TEST(a_draft_with_fewer_tokens_does_not_change_the_text)
{
    int32_t want[CONTEXT];
    toy_open(&toy, VOCABULARY, CONTEXT, 40, 3);
    toy.draft.desc.vocabulary = VOCABULARY / 2;
    plain(1, 150, want);
    for (int i = 0; esp_drafters[i]; i++)
        if (!esp_drafters[i]->chooser)
            check_identity(esp_drafters[i]->name, 1, want);
    toy_close(&toy);
}

TEST(drafters_can_be_switched_between_iterations)
{
    static const char *const specs[] = {
        "linear", "ar", "dynatree", "fixed:root=draft,cache=rebuild", "ar", "fixed:D=2,B=3"};
    int32_t want[CONTEXT], text[CONTEXT];
    toy_open(&toy, VOCABULARY, CONTEXT, 64, 9);
    plain(2, 120, want);
    struct esp_session *session = open_session("dynatree", NULL, NULL);
    prompt(session, 2);
    esp_session_allow(session, 120);
    for (int i = 0;; i++) {
        CHECK(esp_session_set(session, "drafter", specs[i % 6], err, sizeof err) == 0, "%s",
              err);
        int status = esp_session_step(session, err, sizeof err);
        CHECK(status >= 0, "%s", err);
        if (status == 0)
            break;
    }
    int length = generate(session, 0, text);
    CHECK(length == 124 && memcmp(text, want, 124 * sizeof *text) == 0);
    esp_session_close(session);
    toy_close(&toy);
}

TEST(the_context_is_filled_exactly)
{
    int32_t want[CONTEXT], text[CONTEXT];
    toy_open(&toy, VOCABULARY, CONTEXT, 64, 5);
    plain(0, CONTEXT - 4, want);
    struct esp_session *session = open_session("dynatree:rhostop=0.001,tau=0.0001", NULL, NULL);
    prompt(session, 0);
    int length = generate(session, 10000, text);
    CHECK(length == CONTEXT && memcmp(text, want, CONTEXT * sizeof *text) == 0, "%d", length);
    CHECK(strcmp(esp_session_end(session), "context full") == 0);
    int32_t more = 1;
    CHECK(esp_session_prompt(session, &more, 1, err, sizeof err) == ESP_E_CONTEXT);
    esp_session_clear(session);
    prompt(session, 0);
    CHECK(generate(session, 20, text) == 24 && memcmp(text, want, 24 * sizeof *text) == 0);
    esp_session_close(session);
    toy_close(&toy);
}

TEST(a_shortened_text_continues_like_a_new_one)
{
    static const char *const specs[] = {
        "dynatree",    "linear:K=5",         "ar", "ngram", "fixed:tau=0",
        "eagle2:N=30", "fixed:cache=rebuild"};
    const int32_t other[] = {2, 11, 4};
    int32_t text[CONTEXT], want[CONTEXT], start[CONTEXT];
    toy_open(&toy, VOCABULARY, CONTEXT, 64, 12);
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++)
        for (int kept = 1; kept < 60; kept += 7) {
            struct esp_session *session = open_session(specs[i], NULL, NULL);
            struct esp_session *fresh = open_session("ar", NULL, NULL);
            prompt(session, 3);
            CHECK(generate(session, 56, start) == 60);
            CHECK(esp_session_rewind(session, 61) == ESP_E_ARGUMENT);
            CHECK(esp_session_rewind(session, -1) == ESP_E_ARGUMENT);
            CHECK(esp_session_rewind(session, kept) == ESP_OK);
            CHECK(esp_session_step(session, err, sizeof err) == 0, "the generation continues");
            CHECK(generate(session, 60 - kept, text) == 60);
            CHECK(kept < 4 || memcmp(text, start, 60 * sizeof *text) == 0);
            CHECK(esp_session_rewind(session, kept) == ESP_OK);
            CHECK(esp_session_prompt(session, other, 3, err, sizeof err) == 0, "%s", err);
            CHECK(esp_session_prompt(fresh, start, kept, err, sizeof err) == 0, "%s", err);
            CHECK(esp_session_prompt(fresh, other, 3, err, sizeof err) == 0, "%s", err);
            int n = generate(session, 40, text), m = generate(fresh, 40, want);
            CHECK(n == kept + 43 && n == m && memcmp(text, want, (size_t)n * sizeof *text) == 0,
                  "%s, %d tokens kept", specs[i], kept);
            CHECK(esp_session_rewind(session, 0) == ESP_OK);
            prompt(session, 3);
            CHECK(generate(session, 56, text) == 60);
            CHECK(memcmp(text, start, 60 * sizeof *text) == 0);
            esp_session_close(fresh);
            esp_session_close(session);
        }
    toy_close(&toy);
}

static void count_tokens(void *user, const struct esp_event *event)
{
    int *tokens = user;
    if (event->type == ESP_EVENT_PROMPT)
        *tokens += event->token_count;
    if (event->type == ESP_EVENT_ITERATION)
        *tokens += event->iteration->committed_count;
    if (event->type == ESP_EVENT_REWIND)
        *tokens = event->token_count;
}

TEST(events_tell_how_long_the_text_is)
{
    int32_t text[CONTEXT];
    int told = 0;
    toy_open(&toy, VOCABULARY, CONTEXT, 64, 6);
    struct esp_session *session = open_session("dynatree", count_tokens, &told);
    for (int kept = 0; kept < 30; kept += 3) {
        prompt(session, 1);
        CHECK(generate(session, 26, text) == told);
        CHECK(esp_session_rewind(session, kept) == ESP_OK && told == kept);
    }
    esp_session_clear(session);
    CHECK(told == 0);
    esp_session_close(session);
    toy_close(&toy);
}

TEST(turns_continue_one_text)
{
    int32_t text[CONTEXT], again[CONTEXT];
    toy_open(&toy, VOCABULARY, CONTEXT, 64, 6);
    struct esp_session *a = open_session("dynatree", NULL, NULL);
    struct esp_session *b = open_session("ar", NULL, NULL);
    for (int turn = 0; turn < 3; turn++) {
        prompt(a, turn);
        prompt(b, turn);
        int n = generate(a, 17, text), m = generate(b, 17, again);
        CHECK(n == m && n == (turn + 1) * 21 && memcmp(text, again, (size_t)n * 4) == 0);
    }
    esp_session_close(a);
    esp_session_close(b);
    toy_close(&toy);
}

TEST(the_end_token_ends_the_text)
{
    int32_t want[CONTEXT], text[CONTEXT];
    toy_open(&toy, VOCABULARY, CONTEXT, 64, 8);
    plain(3, 100, want);
    toy.target.end[0] = want[40];
    toy.target.end_count = 1;
    int stop = 4;
    while (want[stop] != want[40])
        stop++;
    for (int i = 0; i < 3; i++) {
        static const char *const specs[] = {"ar", "dynatree", "fixed:root=draft,cache=rebuild"};
        struct esp_session *session = open_session(specs[i], NULL, NULL);
        prompt(session, 3);
        CHECK(generate(session, 100, text) == stop + 1, "%s", specs[i]);
        CHECK(strcmp(esp_session_end(session), "end of text") == 0);
        esp_session_close(session);
        session = open_session(specs[i], NULL, NULL);
        prompt(session, 3);
        CHECK(esp_session_set(session, "ignore_eos", "on", NULL, 0) == 0 &&
                  generate(session, 100, text) == 104 && memcmp(text, want, 104 * 4) == 0,
              "%s: with ignore_eos, the text does not continue", specs[i]);
        esp_session_close(session);
    }
    toy_close(&toy);
}

struct seen {
    int prompts, layers, stages, iterations, settings, ends;
    int next_stage, tokens;
    char key[32], value[128];
};

static void watch(void *user, const struct esp_event *event)
{
    struct seen *seen = user;
    const struct esp_iteration *it = event->iteration;
    switch (event->type) {
    case ESP_EVENT_PROMPT:
        seen->prompts += event->token_count;
        break;
    case ESP_EVENT_LAYER:
        CHECK(it->draft_passes > 0 && it->tree.count > 1);
        seen->layers++;
        break;
    case ESP_EVENT_STAGE:
        CHECK(event->stage == seen->next_stage);
        seen->next_stage = (seen->next_stage + 1) % ESP_STAGES;
        seen->stages++;
        break;
    case ESP_EVENT_ITERATION:
        CHECK(it->index == seen->iterations && seen->next_stage == 0);
        CHECK(it->committed_count >= 1 && it->committed_count <= it->path_length + 1);
        CHECK(it->tree.verified >= 1 && it->tree.nodes[0].depth == 0);
        for (int i = 0; i < it->path_length; i++) {
            const struct esp_node *node = &it->tree.nodes[it->path[i]];
            CHECK(node->verdict == ESP_ACCEPTED && node->depth == i + 1);
            CHECK(node->parent == (i ? it->path[i - 1] : 0));
            CHECK(node->p > 0 && node->q > 0);
        }
        for (int u = 0; u < it->tree.count; u++)
            CHECK(it->tree.nodes[u].verdict != ESP_CUT || it->tree.nodes[u].reason);
        seen->iterations++;
        seen->tokens += it->committed_count;
        break;
    case ESP_EVENT_SETTING:
        seen->settings++;
        snprintf(seen->key, sizeof seen->key, "%s", event->key);
        snprintf(seen->value, sizeof seen->value, "%s", event->text);
        break;
    case ESP_EVENT_END:
        seen->ends++;
        break;
    }
}

TEST(events_tell_the_whole_story)
{
    int32_t text[CONTEXT];
    struct seen seen = {0};
    struct esp_stats stats;
    toy_open(&toy, VOCABULARY, CONTEXT, 64, 4);
    struct esp_session *session = open_session("fixed:D=3,B=2,tau=0.01", watch, &seen);
    prompt(session, 1);
    CHECK(generate(session, 60, text) == 64);
    esp_session_stats(session, &stats);
    CHECK(seen.prompts == 4 && seen.tokens == 60 && seen.ends == 1);
    CHECK(seen.iterations == stats.iterations && seen.stages == stats.iterations * ESP_STAGES);
    CHECK(stats.generated_tokens == 60 && stats.draft_passes == seen.layers);
    CHECK(stats.accepted_nodes <= stats.drafted_nodes && stats.acceptance_rate <= 1);
    CHECK(fabs(stats.tokens_per_iteration - 60.0 / stats.iterations) < 1e-12);
    CHECK(stats.target_passes == stats.iterations, "each iteration has one target pass");
    CHECK(esp_session_set(session, "tau", "0.2", err, sizeof err) == 0);
    CHECK(seen.settings == 1 && strcmp(seen.key, "tau") == 0 && strcmp(seen.value, "0.2") == 0);
    esp_session_close(session);
    toy_close(&toy);
}

TEST(the_papers_literal_form_takes_two_target_passes)
{
    int32_t text[CONTEXT];
    struct esp_stats stats;
    toy_open(&toy, VOCABULARY, CONTEXT, 64, 4);
    struct esp_session *session = open_session("fixed:root=draft,cache=rebuild", NULL, NULL);
    prompt(session, 1);
    generate(session, 60, text);
    esp_session_stats(session, &stats);
    CHECK(stats.target_passes == 2 * stats.iterations);
    esp_session_close(session);
    toy_close(&toy);
}

static void drafter_is(const struct esp_session *session, const char *want)
{
    char now[200];
    CHECK(esp_session_get(session, "drafter", now, sizeof now) == ESP_OK);
    CHECK(strcmp(now, want) == 0, "%s, not %s", now, want);
}

static void set(struct esp_session *session, const char *key, const char *value)
{
    CHECK(esp_session_set(session, key, value, err, sizeof err) == ESP_OK, "%s", err);
}

TEST(the_default_drafter_follows_the_temperature)
{
    static char greedy[] = "dyspec:N=6", sampling[] = "iid:K=2,L=3";
    toy_open(&toy, VOCABULARY, CONTEXT, 64, 5);
    toy.target.preset = greedy;
    toy.target.sampling_preset = sampling;
    struct esp_session *session = open_session(NULL, NULL, NULL);
    drafter_is(session, "dyspec:N=6");
    set(session, "temp", "0.7");
    drafter_is(session, "iid:K=2,L=3");
    /* verifier swor does not accept the draws of the preset's drafter */
    set(session, "verifier", "swor");
    drafter_is(session, "dyspec:N=6");
    set(session, "verifier", "auto");
    drafter_is(session, "iid:K=2,L=3");
    set(session, "K", "4"); /* now the user has chosen K */
    set(session, "temp", "0");
    drafter_is(session, "iid:L=3");
    set(session, "drafter", "auto");
    drafter_is(session, "dyspec:N=6");
    set(session, "drafter", "dyspec:N=9");
    set(session, "temp", "1");
    drafter_is(session, "dyspec:N=9");
    esp_session_close(session);
    toy_close(&toy);
}

TEST(presets_with_the_same_drafter_can_differ_in_parameters)
{
    static char greedy[] = "iid:K=3", sampling[] = "iid:L=2", wrong[] = "dynatree:tua=1";
    struct esp_session *session;
    toy_open(&toy, VOCABULARY, CONTEXT, 64, 5);
    toy.target.preset = greedy;
    toy.target.sampling_preset = sampling;
    session = open_session(NULL, NULL, NULL);
    drafter_is(session, "iid:K=3");
    set(session, "temp", "0.7");
    drafter_is(session, "iid:L=2");
    set(session, "K", "7");
    drafter_is(session, "iid:K=7,L=2");
    set(session, "drafter", "auto");
    drafter_is(session, "iid:L=2");
    toy.target.preset = wrong;
    CHECK(esp_session_set(session, "temp", "0", err, sizeof err) == ESP_E_ARGUMENT);
    CHECK(strstr(err, "espalier.json: dynatree has no parameter 'tua'; it takes D0, "), "%s",
          err);
    drafter_is(session, "iid:L=2");
    esp_session_close(session);
    toy_close(&toy);
}

/* If the temperature changes but dynatree's parameters do not, dynatree must keep what it has
 * learned. */
TEST(an_unchanged_preset_keeps_what_was_learned)
{
    char preset[] = "dynatree:history=proportional";
    int32_t text[CONTEXT];
    struct esp_gauge before[ESP_MAX_GAUGES], after[ESP_MAX_GAUGES];
    toy_open(&toy, VOCABULARY, CONTEXT, 64, 5);
    toy.target.preset = preset;
    struct esp_session *session = open_session(NULL, NULL, NULL);
    prompt(session, 1);
    generate(session, 40, text);
    int count = session->set.drafter->gauges(&session->draft, before);
    set(session, "temp", "0.5");
    session->set.drafter->gauges(&session->draft, after);
    CHECK(before[0].after != 0.9, "nothing was learned");
    for (int i = 0; i < count; i++)
        CHECK(before[i].after == after[i].after, "%s", before[i].name);
    esp_session_close(session);
    toy_close(&toy);
}

TEST(a_notice_says_that_a_tree_does_not_fit)
{
    char note[300];
    toy_open(&toy, VOCABULARY, CONTEXT, 32, 4);
    struct esp_session *session = open_session("dyspec", NULL, NULL); /* N is 64 by default */
    CHECK(esp_session_get(session, "notice", note, sizeof note) == ESP_OK && !*note, "%s",
          note);
    CHECK(esp_session_set(session, "N", "33", err, sizeof err) == ESP_OK, "%s", err);
    CHECK(esp_session_get(session, "notice", note, sizeof note) == ESP_OK &&
              strstr(note, "N=33") && strstr(note, "32 nodes") &&
              strstr(note, "--max-nodes 33"),
          "%s", note);
    CHECK(esp_session_set(session, "N", "32", err, sizeof err) == ESP_OK, "%s", err);
    CHECK(esp_session_get(session, "notice", note, sizeof note) == ESP_OK && !*note, "%s",
          note);
    CHECK(esp_session_set(session, "drafter", "linear", err, sizeof err) == ESP_OK, "%s", err);
    CHECK(esp_session_get(session, "notice", note, sizeof note) == ESP_OK && !*note, "%s",
          note);
    esp_session_close(session);
    toy_close(&toy);
}

TEST(wrong_settings_change_nothing)
{
    static const char *const wrong[][2] = {
        {"drafter", "nothing"},  {"drafter", "fixed:D=0"},
        {"drafter", ""},         {"tau", "2"},
        {"verifier", "nothing"}, {"order", "up"},
        {"temp", "-1"},          {"temp", "hot"},
        {"seed", "-1"},          {"seed", "1e3"},
        {"top_p", "1.5"},        {"top_k", "1.5"},
        {"baseline", "maybe"},   {"nothing", "1"},
        {"taul", "0.95"},        {"verifier", "auto:lossy=allow"},
        {"top_p", "0"},          {"draft_temp", "0"},
        {"draft_temp", "learn"}, {"baseline", ""},
    };
    char before[1024], after[1024];
    toy_open(&toy, VOCABULARY, CONTEXT, 64, 4);
    struct esp_session *session = open_session("dynatree:tau=0.02", NULL, NULL);
    esp_session_get(session, "drafter", before, sizeof before);
    CHECK(strcmp(before, "dynatree:tau=0.02") == 0, "%s", before);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        CHECK(esp_session_set(session, wrong[i][0], wrong[i][1], err, sizeof err) ==
                  ESP_E_ARGUMENT,
              "%s=%s", wrong[i][0], wrong[i][1]);
        CHECK(*err && !strchr(err, '\n'));
        esp_session_get(session, "drafter", after, sizeof after);
        CHECK(strcmp(before, after) == 0, "%s=%s left %s", wrong[i][0], wrong[i][1], after);
    }
    CHECK(esp_session_get(session, "nothing", after, sizeof after) == ESP_E_ARGUMENT);
    esp_session_close(session);
    toy_close(&toy);
}

TEST(prompts_are_checked)
{
    int32_t big[CONTEXT + 1] = {0}, bad = VOCABULARY, negative = -1;
    toy_open(&toy, VOCABULARY, CONTEXT, 64, 4);
    struct esp_session *session = open_session("dynatree", NULL, NULL);
    CHECK(esp_session_step(session, err, sizeof err) == ESP_E_ARGUMENT);
    CHECK(esp_session_prompt(session, big, 0, err, sizeof err) == ESP_E_ARGUMENT);
    CHECK(esp_session_prompt(session, big, CONTEXT, err, sizeof err) == ESP_E_CONTEXT);
    CHECK(esp_session_prompt(session, &bad, 1, err, sizeof err) == ESP_E_ARGUMENT);
    CHECK(esp_session_prompt(session, &negative, 1, err, sizeof err) == ESP_E_ARGUMENT);
    prompt(session, 2);
    esp_session_close(session);
    toy_close(&toy);
}

TEST(a_target_alone_decodes_plainly)
{
    int32_t want[CONTEXT], text[CONTEXT];
    toy_open(&toy, VOCABULARY, CONTEXT, 64, 4);
    toy.engine.draft = NULL;
    plain(1, 50, want);
    struct esp_session *session = open_session(NULL, NULL, NULL);
    CHECK(esp_session_get(session, "drafter", err, sizeof err) == 0 && strcmp(err, "ar") == 0);
    CHECK(esp_session_set(session, "drafter", "dynatree", err, sizeof err) == ESP_E_ARGUMENT);
    prompt(session, 1);
    CHECK(generate(session, 50, text) == 54 && memcmp(text, want, 54 * sizeof *text) == 0);
    esp_session_close(session);
    toy_close(&toy);
}

/* Returns the cost of a draft pass. Costs are fixed here, because measured costs would vary
 * from run to run. */
static double pass_cost(int rows)
{
    return 0.1 + 0.01 * rows;
}

static double rows_cost(int rows)
{
    return 1 + 0.05 * rows;
}

static void warm(void *user, const struct esp_event *event)
{
    struct esp_session **session = user;
    if (event->type == ESP_EVENT_ITERATION)
        esp_session_warm(*session);
}

TEST(warm_up_passes_change_nothing)
{
    int32_t want[CONTEXT], text[CONTEXT];
    toy_open(&toy, VOCABULARY, CONTEXT, 40, 3);
    for (int i = 0; esp_drafters[i]; i++)
        for (int sampled = 0; sampled < 2 && !esp_drafters[i]->chooser; sampled++)
            for (int warmed = 0; warmed < 2; warmed++) {
                struct esp_session *session =
                    open_session(esp_drafters[i]->name, warmed ? warm : NULL, &session);
                session->costs.planted[ESP_COST_DRAFT] = pass_cost;
                session->costs.planted[ESP_COST_VERIFY] = rows_cost;
                set(session, "temp", sampled ? "0.9" : "0");
                esp_session_warm(session); /* this must work although there is no text yet */
                prompt(session, 2);
                CHECK(generate(session, 196, warmed ? text : want) == CONTEXT);
                esp_session_close(session);
                CHECK(!warmed || memcmp(text, want, CONTEXT * sizeof *text) == 0, "%s",
                      esp_drafters[i]->name);
            }
    toy_close(&toy);
}

TEST(measuring_the_baseline_does_not_change_the_text)
{
    int32_t want[CONTEXT], text[CONTEXT];
    struct esp_stats stats;
    toy_open(&toy, VOCABULARY, CONTEXT, 64, 4);
    for (int sampled = 0; sampled < 2; sampled++) {
        struct esp_session *session = open_session("dynatree", NULL, NULL);
        set(session, "temp", sampled ? "0.8" : "0");
        /* a learned draft temperature would change the second text */
        set(session, "draft_temp", "off");
        prompt(session, 1);
        CHECK(generate(session, 150, want) == 154);
        esp_session_clear(session);
        set(session, "baseline", "on");
        prompt(session, 1);
        CHECK(generate(session, 150, text) == 154);
        CHECK(memcmp(text, want, 154 * sizeof *text) == 0);
        esp_session_stats(session, &stats);
        CHECK(stats.baseline > 0);
        CHECK(stats.first_token_seconds > 0 &&
              stats.first_token_seconds <= stats.prefill_seconds + stats.decode_seconds);
        esp_session_close(session);
    }
    toy_close(&toy);
}

/* ------------------------------------------------------------------ times */

/* This is a copy of the toy backend's operations. Tests replace some of them. */
static struct esp_backend_ops changed;

static void open_changed(void)
{
    toy_open(&toy, VOCABULARY, CONTEXT, 64, 4);
    changed = toy_backend;
    toy.engine.backend->ops = &changed;
}

/* Returns the time of a stage. Each of the device's three stages takes a millisecond, but a
 * hundred milliseconds in every second iteration. */
static double stage_with_hiccups(struct esp_backend *backend, int from, int to)
{
    static int iteration;
    (void)backend;
    iteration += from == 0 && to == 1;
    return from != ESP_MARK_PREFILL && iteration % 2 == 0 ? 0.1 : 1e-3;
}

TEST(interruptions_do_not_count_in_the_pace)
{
    int32_t text[CONTEXT];
    struct esp_stats stats;
    open_changed();
    changed.between = stage_with_hiccups;
    struct esp_session *session = open_session("ar", NULL, NULL);
    prompt(session, 1);
    CHECK(generate(session, 100, text) == 104);
    esp_session_stats(session, &stats);
    CHECK(stats.decode_seconds > 100 * 0.1);
    CHECK(stats.token_seconds > 3e-3 && stats.token_seconds < 4e-3, "%g", stats.token_seconds);
    esp_session_close(session);
    toy_close(&toy);
}

static void look_long(void *user, const struct esp_event *event)
{
    double start = esp_clock();
    int *layers = user;
    if (event->type != ESP_EVENT_LAYER)
        return;
    ++*layers;
    while (esp_clock() - start < 0.1)
        continue;
}

TEST(time_in_the_observer_does_not_count_in_a_stage)
{
    struct esp_stats stats;
    int layers = 0;
    toy_open(&toy, VOCABULARY, CONTEXT, 64, 4);
    struct esp_session *session = open_session("linear:K=4", look_long, &layers);
    prompt(session, 1);
    esp_session_allow(session, 20);
    CHECK(esp_session_step(session, err, sizeof err) > 0, "%s", err);
    esp_session_stats(session, &stats);
    CHECK(layers == 4 && stats.decode_seconds < 0.3, "%d, %g", layers, stats.decode_seconds);
    esp_session_close(session);
    toy_close(&toy);
}

/* ------------------------------------------------------------------ failures */

static int failing_keep(struct esp_cache *cache, int first, const int32_t *which, int count)
{
    (void)cache, (void)first, (void)which, (void)count;
    return ESP_E_DEVICE;
}

/* If an iteration fails, the text must not change, and the next iteration must continue it. */
TEST(a_failed_commit_leaves_the_text_unchanged)
{
    int32_t want[CONTEXT], text[CONTEXT];
    int before, after;
    open_changed();
    plain(1, 60, want);
    struct esp_session *session = open_session("fixed:D=3,B=4,tau=0", NULL, NULL);
    prompt(session, 1);
    esp_session_allow(session, 60);
    for (int failed = 0; failed < 3;) {
        changed.keep = failing_keep;
        esp_session_tokens(session, &before);
        int status = esp_session_step(session, err, sizeof err);
        esp_session_tokens(session, &after);
        CHECK(status == ESP_E_DEVICE ? after == before : after == before + status);
        CHECK(status != 0 && !*esp_session_end(session));
        failed += status < 0;
        changed.keep = toy_backend.keep;
        CHECK(esp_session_step(session, err, sizeof err) > 0, "%s", err);
    }
    esp_session_tokens(session, &before);
    CHECK(generate(session, 64 - before, text) == 64);
    CHECK(memcmp(text, want, 64 * sizeof *text) == 0);
    esp_session_close(session);
    toy_close(&toy);
}
