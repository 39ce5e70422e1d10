/* Tests verifiers in sessions on the toy backend: which pairs of drafter and verifier are
 * allowed, the messages about refused pairs, and the recorded decisions of a verifier. Edge
 * cases are a top-p that leaves only one token, and logits that are NaN. The tests in
 * tests/lossless check whether verifiers are exact. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/check.h"
#include "engine/compatible.h"
#include "tests/toy.h"

enum { VOCABULARY = 12, CONTEXT = 120 };

static struct toy toy;
static char err[512];

static struct esp_session *try_open(const char *drafter, const char *verifier,
                                    double temperature)
{
    struct esp_session_options options = {
        .drafter = drafter,
        .verifier = verifier,
        .values = {.temperature = temperature, .draft_temp = ESP_DRAFT_OFF, .seed = 5}};
    struct esp_session *session;
    return esp_session_open(&session, &toy.engine, &options, err, sizeof err) == ESP_OK
               ? session
               : NULL;
}

static struct esp_session *open_session(const char *drafter, const char *verifier,
                                        double temperature)
{
    struct esp_session *session = try_open(drafter, verifier, temperature);
    int32_t prompt[2] = {3, 4};
    CHECK(session, "%s", err);
    CHECK(esp_session_prompt(session, prompt, 2, err, sizeof err) == ESP_OK, "%s", err);
    return session;
}

static const char *get(const struct esp_session *session, const char *key)
{
    static char value[ESP_SPEC_TEXT];
    CHECK(esp_session_get(session, key, value, sizeof value) == ESP_OK, "no setting %s", key);
    return value;
}

/* ------------------------------------------------------------------ pairs */

/* Lists the verifiers that can be used with a drafter, separated by spaces. The order is the
 * order of the table of verifiers. */
static const char *allowed(const char *drafter, double temperature)
{
    static char names[256];
    size_t used = 0;
    names[0] = '\0';
    for (int i = 0; esp_verifiers[i]; i++) {
        struct esp_session *session = try_open(drafter, esp_verifiers[i]->name, temperature);
        if (!session)
            continue;
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", used ? " " : "",
                                 esp_verifiers[i]->name);
        esp_session_close(session);
    }
    return names;
}

static void check_allowed(const char *drafter, const char *want, const char *normal)
{
    const char *names = allowed(drafter, 1);
    CHECK(strcmp(names, want) == 0, "%s: %s, want %s", drafter, names, want);
    CHECK(strcmp(allowed(drafter, 0), "greedy") == 0, "%s at 0: %s", drafter,
          allowed(drafter, 0));
    struct esp_session *session = open_session(drafter, NULL, 1);
    CHECK(strcmp(get(session, "verifier"), normal) == 0, "%s: default %s", drafter,
          get(session, "verifier"));
    CHECK(strcmp(get(session, "lossy"), "no") == 0);
    esp_session_close(session);
}

TEST(each_kind_of_draws_has_its_verifiers)
{
    const char *branching = "nss naivetree spectr specinfer khisti traversal";
    const char *path = "nss naive naivetree spectr specinfer khisti bv traversal";
    toy_open(&toy, VOCABULARY, CONTEXT, 64, 2);
    check_allowed("ar", "nss naive naivetree spectr specinfer khisti swor bv traversal", "nss");
    check_allowed("dynatree:draws=topk", "nss", "nss");
    check_allowed("dynatree", "nss swor traversal", "swor");
    check_allowed("linear:draws=topk", "nss", "nss");
    check_allowed("linear", path, "traversal");
    check_allowed("assisted", path, "traversal");
    check_allowed("iid", branching, "traversal");
    check_allowed("iid:K=1", path, "traversal");
    check_allowed("delayed", branching, "traversal");
    check_allowed("delayed:L2=0", path, "traversal");
    check_allowed("specinfer", branching, "traversal");
    check_allowed("specinfer:expansion=1.1", path, "traversal");
    check_allowed("dyspec", "nss swor traversal", "swor");
    toy_close(&toy);
}

static void check_refusal(const char *drafter, const char *verifier, double temperature,
                          const char *why, const char *instead)
{
    struct esp_session *session = try_open(drafter, verifier, temperature);
    CHECK(!session, "%s with %s at %g", drafter, verifier, temperature);
    CHECK(strstr(err, why) && strstr(err, instead), "%s", err);
}

TEST(a_refusal_says_why_and_what_would_work)
{
    toy_open(&toy, VOCABULARY, CONTEXT, 64, 2);
    check_refusal("dynatree:draws=topk", "traversal", 1, "likeliest tokens", "nss");
    check_refusal("iid", "swor", 1, "independent draws", "traversal");
    check_refusal("dyspec", "specinfer", 1, "without replacement", "swor");
    check_refusal("iid", "bv", 1, "single path", "khisti");
    check_refusal("iid", "greedy", 1, "temperature 0", "traversal");
    check_refusal("iid", "nss", 0, "temperature above 0", "greedy");
    check_refusal("iid", "nss:lossy=allow", 0, "temperature above 0", "greedy");
    check_refusal("iid", "tournament", 1, "no verifier", "list");
    toy_close(&toy);
}

TEST(settings_that_do_not_fit_are_refused)
{
    toy_open(&toy, VOCABULARY, CONTEXT, 64, 2);
    struct esp_session *session = open_session("iid", "khisti", 1);
    CHECK(esp_session_set(session, "drafter", "dynatree", err, sizeof err) < 0);
    CHECK(strcmp(get(session, "drafter"), "iid") == 0);
    CHECK(esp_session_set(session, "temp", "0", err, sizeof err) < 0);
    CHECK(strcmp(get(session, "temp"), "1") == 0);
    CHECK(esp_session_set(session, "verifier", "auto", err, sizeof err) == ESP_OK);
    CHECK(strcmp(get(session, "verifier"), "traversal") == 0);
    CHECK(esp_session_set(session, "drafter", "dynatree", err, sizeof err) == ESP_OK);
    CHECK(strcmp(get(session, "verifier"), "swor") == 0);
    CHECK(esp_session_set(session, "draws", "topk", err, sizeof err) == ESP_OK);
    CHECK(strcmp(get(session, "verifier"), "nss") == 0);
    CHECK(esp_session_set(session, "temp", "0", err, sizeof err) == ESP_OK);
    CHECK(strcmp(get(session, "verifier"), "greedy") == 0);
    esp_session_close(session);
    toy_close(&toy);
}

static void note_lossy(void *user, const struct esp_event *event)
{
    if (event->type == ESP_EVENT_ITERATION)
        *(int *)user = event->iteration->lossy;
    if (event->type == ESP_EVENT_SETTING)
        *(int *)user = event->lossy;
}

TEST(a_lossy_pair_that_is_allowed_is_called_lossy)
{
    static const char *const pairs[][3] = {
        {"fixed", "traversal:lossy=allow", "yes"}, {"iid", "greedy:lossy=allow", "yes"},
        {"iid", "bv:lossy=allow", "yes"},          {"iid", "khisti:lossy=allow", "no"},
        {"ngram", "specinfer:lossy=allow", "yes"}, {"ar", "swor:lossy=allow", "no"},
    };
    toy_open(&toy, VOCABULARY, CONTEXT, 64, 2);
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        int lossy = -1;
        struct esp_session *session = open_session(pairs[i][0], pairs[i][1], 1);
        session->observer = note_lossy;
        session->user = &lossy;
        CHECK(strcmp(get(session, "lossy"), pairs[i][2]) == 0, "%s with %s", pairs[i][0],
              pairs[i][1]);
        CHECK(esp_session_is_lossy(session) == (pairs[i][2][0] == 'y'));
        CHECK(esp_session_set(session, "seed", "5", err, sizeof err) == ESP_OK);
        CHECK(lossy == (pairs[i][2][0] == 'y'), "the setting's event");
        esp_session_allow(session, 60);
        while (esp_session_step(session, err, sizeof err) > 0)
            CHECK(lossy == (pairs[i][2][0] == 'y'));
        CHECK(session->length == 62);
        esp_session_close(session);
    }
    toy_close(&toy);
}

/* ------------------------------------------------------------------ the record */

/* Returns the target's probability of `token` after the text and the path to `node`. */
static double target_of(const struct esp_session *s, int node, int32_t token)
{
    const struct esp_node *nodes = s->tree.tree.nodes;
    int32_t text[CONTEXT];
    double p[VOCABULARY];
    int length = s->iteration.position + nodes[node].depth;
    memcpy(text, s->text, sizeof(int32_t) * (size_t)s->iteration.position);
    for (int u = node; u > 0; u = nodes[u].parent)
        text[s->iteration.position - 1 + nodes[u].depth] = nodes[u].token;
    toy_distribution(&toy, false, text, length, p);
    return p[token];
}

static void check_node(const struct esp_session *s, int u)
{
    const struct esp_node *node = &s->tree.tree.nodes[u];
    bool tested = !isnan(node->u);
    if (node->verdict == ESP_CUT)
        return;
    CHECK(fabs(node->p - target_of(s, node->parent, node->token)) < 1e-6);
    CHECK(tested == !isnan(node->acceptance));
    if (!tested)
        return;
    CHECK(node->u >= 0 && node->u <= 1 && node->acceptance >= 0 &&
          node->acceptance <= 1.000001);
    CHECK(node->verdict == ESP_ACCEPTED || node->verdict == ESP_REJECTED);
}

/* Checks the record of an iteration. The recorded random number must agree with the result of
 * each test of a child. A child whose token was drawn must be accepted. */
static void check_record(void *user, const struct esp_event *event)
{
    const struct esp_session *s = *(struct esp_session **)user;
    const struct esp_iteration *it = event->iteration;
    const struct esp_verifier_ops *rule = s->set.verifier;
    if (event->type != ESP_EVENT_ITERATION)
        return;
    int accepted = 0;
    for (int u = 1; u < it->tree.count; u++) {
        const struct esp_node *node = &it->tree.nodes[u];
        check_node(s, u);
        accepted += node->verdict == ESP_ACCEPTED;
        if (!isnan(node->u) && node->verdict == ESP_REJECTED)
            CHECK(node->u >= node->acceptance, "%s rejects at u = %g, acceptance %g",
                  rule->name, (double)node->u, (double)node->acceptance);
        if (!isnan(node->u) && node->verdict == ESP_ACCEPTED && !node->drawn)
            CHECK(node->u <= node->acceptance, "%s accepts at u = %g, acceptance %g",
                  rule->name, (double)node->u, (double)node->acceptance);
    }
    CHECK(accepted == it->path_length, "%s: %d accepted, path of %d", rule->name, accepted,
          it->path_length);
    for (int i = 0; i < it->path_length; i++) {
        const struct esp_node *node = &it->tree.nodes[it->path[i]];
        CHECK(node->verdict == ESP_ACCEPTED && node->parent == (i ? it->path[i - 1] : 0));
    }
    CHECK(it->bonus >= 0 && it->bonus < VOCABULARY && it->bonus_u >= 0 && it->bonus_u <= 1);
}

TEST(the_record_shows_how_every_visited_node_was_decided)
{
    static const char *const specs[] = {"iid:K=3,L=3", "delayed", "linear", "dyspec:N=10",
                                        "dynatree"};
    toy_open(&toy, VOCABULARY, CONTEXT, 64, 7);
    for (int d = 0; d < 5; d++)
        for (int v = 0; esp_verifiers[v]; v++) {
            struct esp_session *session = try_open(specs[d], esp_verifiers[v]->name, 1);
            if (!session)
                continue;
            int32_t prompt[2] = {3, 4};
            esp_session_prompt(session, prompt, 2, err, sizeof err);
            session->observer = check_record;
            session->user = &session;
            esp_session_allow(session, 100);
            while (esp_session_step(session, err, sizeof err) > 0)
                continue;
            CHECK(session->length == 102, "%s", err);
            esp_session_close(session);
        }
    toy_close(&toy);
}

/* --------------------------------------------------------- repeatability and edge cases */

static void write_text(struct esp_session *session, int32_t *text)
{
    esp_session_allow(session, 100);
    while (esp_session_step(session, err, sizeof err) > 0)
        continue;
    CHECK(session->length == 102, "%s", err);
    memcpy(text, session->text, 102 * sizeof *text);
}

TEST(the_same_seed_gives_the_same_text)
{
    int32_t one[102], again[102], other[102];
    toy_open(&toy, VOCABULARY, CONTEXT, 64, 7);
    for (int v = 0; esp_verifiers[v]; v++) {
        struct esp_session *session = try_open("iid", esp_verifiers[v]->name, 1);
        int32_t prompt[2] = {3, 4};
        if (!session)
            continue;
        esp_session_prompt(session, prompt, 2, err, sizeof err);
        write_text(session, one);
        esp_session_clear(session);
        esp_session_prompt(session, prompt, 2, err, sizeof err);
        write_text(session, again);
        esp_session_clear(session);
        esp_session_set(session, "seed", "6", err, sizeof err);
        esp_session_prompt(session, prompt, 2, err, sizeof err);
        write_text(session, other);
        CHECK(memcmp(one, again, sizeof one) == 0);
        CHECK(memcmp(one, other, sizeof one) != 0);
        esp_session_close(session);
    }
    toy_close(&toy);
}

TEST(with_one_possible_token_every_verifier_writes_the_greedy_text)
{
    static const char *const specs[] = {"iid", "delayed:K=1", "dyspec:N=10", "dynatree", "ar"};
    int32_t greedy[102], text[102];
    toy_open(&toy, VOCABULARY, CONTEXT, 64, 9);
    struct esp_session *plain = open_session("ar", NULL, 0);
    write_text(plain, greedy);
    esp_session_close(plain);
    for (int d = 0; d < 5; d++)
        for (int v = 0; esp_verifiers[v]; v++) {
            struct esp_session *session = try_open(specs[d], esp_verifiers[v]->name, 1);
            int32_t prompt[2] = {3, 4};
            if (!session)
                continue;
            CHECK(esp_session_set(session, "top_p", v % 2 ? "1e-9" : "1", err, sizeof err) ==
                  0);
            CHECK(esp_session_set(session, "top_k", v % 2 ? "0" : "1", err, sizeof err) == 0);
            esp_session_prompt(session, prompt, 2, err, sizeof err);
            write_text(session, text);
            CHECK(memcmp(text, greedy, sizeof greedy) == 0, "%s with %s", specs[d],
                  esp_verifiers[v]->name);
            esp_session_close(session);
        }
    toy_close(&toy);
}

/* bad_forward() replaces one logit in each row of the target with this value. */
static double bad_logit;

static int bad_forward(struct esp_cache *cache, const struct esp_batch *batch)
{
    int status = toy_backend.forward(cache, batch);
    bool target = cache->weights == toy.engine.target_weights;
    for (int i = 0; target && batch->logits && i < batch->rows; i++) {
        int row = batch->logits_row ? batch->logits_row[i] : i;
        if (row >= 0)
            toy_row(batch->logits, row)[VOCABULARY / 2] = bad_logit;
    }
    return status;
}

TEST(logits_that_are_not_numbers_give_an_error_and_no_token)
{
    static const char *const specs[] = {"iid", "linear", "dyspec:N=10", "ar", "dynatree"};
    static const double bad[] = {NAN, INFINITY};
    struct esp_backend_ops ops = toy_backend;
    toy_open(&toy, VOCABULARY, CONTEXT, 64, 9);
    toy.engine.backend->ops = &ops;
    for (int d = 0; d < 5; d++)
        for (int v = 0; esp_verifiers[v]; v++)
            for (int b = 0; b < 2; b++) {
                struct esp_session *session = try_open(specs[d], esp_verifiers[v]->name,
                                                       esp_verifiers[v]->greedy ? 0 : 1);
                int32_t prompt[2] = {3, 4};
                if (!session)
                    continue;
                bad_logit = bad[b];
                ops.forward = bad_forward;
                CHECK(esp_session_prompt(session, prompt, 2, err, sizeof err) == ESP_OK);
                esp_session_allow(session, 10);
                int status = esp_session_step(session, err, sizeof err);
                CHECK(status == ESP_E_NUMERIC, "%s with %s: %d", specs[d],
                      esp_verifiers[v]->name, status);
                CHECK(strstr(err, "not a number"), "%s", err);
                CHECK(session->length == 2 && session->verify.path_length == 0);
                /* after the failure, the session must be able to continue */
                ops.forward = toy_backend.forward;
                CHECK(esp_session_step(session, err, sizeof err) > 0, "%s", err);
                esp_session_close(session);
            }
    toy_close(&toy);
}

TEST(a_token_with_probability_0_is_never_written)
{
    struct esp_backend_ops ops = toy_backend;
    toy_open(&toy, VOCABULARY, CONTEXT, 64, 9);
    toy.engine.backend->ops = &ops;
    ops.forward = bad_forward;
    bad_logit = -INFINITY;
    for (int v = 0; esp_verifiers[v]; v++) {
        struct esp_session *session = try_open("iid", esp_verifiers[v]->name, 1);
        int32_t prompt[2] = {3, 4}, text[102];
        if (!session)
            continue;
        esp_session_prompt(session, prompt, 2, err, sizeof err);
        write_text(session, text);
        for (int i = 2; i < 102; i++)
            CHECK(text[i] != VOCABULARY / 2);
        esp_session_close(session);
    }
    toy_close(&toy);
}
