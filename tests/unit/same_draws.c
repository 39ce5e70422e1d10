/* Tests that a seed gives the same text on every backend. On a backend where every call waits
 * for a device, children are drawn ahead of time. This may change only the number of waits.
 *
 * Every drafter and setting that samples runs with every verifier that accepts its draws. They
 * run on toy models and on small transformers, on the CPU and on CUDA. The probabilities of
 * these models are bit-identical on both backends. */
#include <stdlib.h>
#include <string.h>

#include "tests/each_backend.h"
#include "tests/random_model.h"
#include "engine/session_parts.h"
#include "tests/toy.h"

static const char *const drawing[] = {
    "linear:K=5,draws=iid",
    "assisted:K=4,draws=iid",
    "specinfer:expansion=2.2.1,draws=iid",
    "iid:K=3,L=3",
    "delayed:K=3,L1=1,L2=2",
    "sequoia:N=12,draws=swor,learn=off",
    "dynatree:rhostop=0.01,rhodeep=0.05",
    "dyspec:N=20",
    "dyspec-layer:N=20",
};
enum { DRAWING = sizeof drawing / sizeof *drawing, MOST = 64 };

/* Holds the text that a session wrote, and counts how many random numbers it used. */
struct outcome {
    int32_t text[MOST];
    int length;
    /* the number of streams that were split off for the draft, and the number of random numbers
     * that the verifier used */
    uint64_t expanded, decided;
    int nodes; /* the number of drafted nodes */
};

/* Writes a text. Returns false if the verifier does not accept the drafter's draws. */
static bool generate(struct esp_engine *engine, const char *drafter, const char *verifier,
                     uint64_t seed, int tokens, struct outcome *o)
{
    const int32_t prompt[4] = {1, 2, 3, 1};
    char err[300] = "";
    struct esp_session *s;
    struct esp_session_options options = {
        .drafter = drafter, .verifier = verifier, .values = {.temperature = 1, .seed = seed}};
    if (esp_session_open(&s, engine, &options, err, sizeof err) < 0)
        return false;
    CHECK(esp_session_prompt(s, prompt, 4, err, sizeof err) == 0, "%s", err);
    esp_session_allow(s, tokens);
    while (esp_session_step(s, err, sizeof err) > 0)
        continue;
    *o = (struct outcome){.length = s->length,
                          .expanded = s->draft_rng.next,
                          .decided = s->verify_rng.next,
                          .nodes = s->stats.drafted_nodes};
    CHECK(!*err && s->length <= MOST, "%s with %s: %s", drafter, verifier, err);
    memcpy(o->text, s->text, (size_t)s->length * sizeof *s->text);
    esp_session_close(s);
    return true;
}

static void compare(const struct outcome *a, const struct outcome *b, const char *drafter,
                    const char *verifier)
{
    CHECK(a->length == b->length &&
              memcmp(a->text, b->text, (size_t)a->length * sizeof *a->text) == 0,
          "%s with %s: another text", drafter, verifier);
    CHECK(a->expanded == b->expanded && a->decided == b->decided && a->nodes == b->nodes,
          "%s with %s: %llu and %llu nodes expanded, %llu and %llu random numbers", drafter,
          verifier, (unsigned long long)a->expanded, (unsigned long long)b->expanded,
          (unsigned long long)a->decided, (unsigned long long)b->decided);
}

TEST(drawing_ahead_does_not_change_the_text)
{
    const struct esp_backend_ops waits = toy_backend_that_waits();
    int pairs = 0;
    for (int d = 0; d < DRAWING; d++)
        for (int v = 0; esp_verifiers[v]; v++)
            for (uint64_t seed = 1; seed <= 5; seed++) {
                struct outcome now, ahead;
                struct toy toy;
                toy_open(&toy, 20, 128, 24, seed);
                toy.sharpness = 1; /* with flat distributions, nodes have many children */
                if (generate(&toy.engine, drawing[d], esp_verifiers[v]->name, seed, 50, &now)) {
                    toy.engine.backend->ops = &waits;
                    generate(&toy.engine, drawing[d], esp_verifiers[v]->name, seed, 50, &ahead);
                    compare(&now, &ahead, drawing[d], esp_verifiers[v]->name);
                    CHECK(now.expanded > 0 && now.nodes > 20);
                    pairs++;
                }
                toy_close(&toy);
            }
    CHECK(pairs >= 5 * 20, "only %d", pairs);
}

/* ------------------------------------------------------------------ on CUDA */

enum { HIDDEN = 32, VOCABULARY = 90 };

static void write_all(const struct esp_tensor *t, unsigned long long *state,
                      float (*value)(double u))
{
    for (int i = 0; i < t->rows * t->columns; i++) {
        const float x = value(state ? check_uniform(state) : 0);
        uint32_t bits;
        memcpy(&bits, &x, sizeof bits);
        const uint16_t half = (uint16_t)(bits >> 16);
        memcpy((char *)t->data + 2 * (size_t)i, &half, sizeof half);
    }
}

static float zero(double u)
{
    return (float)(0 * u);
}

static float one(double u)
{
    return (float)(1 + 0 * u);
}

static float sign(double u)
{
    return u < 0.5 ? -1 : 1;
}

static float sixteenths(double u)
{
    return (float)((int)(33 * u) - 16) / 16;
}

/* Makes a model whose logits do not depend on precision or on the order of sums. Its layers add
 * nothing to their inputs. Its embedding has only the values 1 and -1, which the norm does not
 * change. Its head has only multiples of 1/16. So the output depends only on the last token.
 * The heads of target and draft have some rows in common. */
static void make_model(struct random_model *m, bool draft)
{
    static const struct random_shape shape = {"exact", 1,     HIDDEN,     2,     1,
                                              16,      40,    VOCABULARY, 16,    ESP_BF16,
                                              false,   false, false,      false, false};
    unsigned long long embedding = 1, head = 2, other = 3;
    random_model_make(m, &shape, 4);
    m->desc.norm_epsilon = 0;
    write_all(&m->layers[0].output, NULL, zero);
    write_all(&m->layers[0].down, NULL, zero);
    write_all(&m->desc.norm_final, NULL, one);
    write_all(&m->desc.embedding, &embedding, sign);
    write_all(&m->desc.head, &head, sixteenths);
    struct esp_tensor rest = m->desc.head;
    rest.rows = draft ? VOCABULARY / 2 : 0;
    write_all(&rest, &other, sixteenths);
}

static void open_weights(struct esp_engine *engine, struct esp_weights **weights,
                         struct random_model *m)
{
    char err[300] = "";
    CHECK(engine->backend->ops->weights_open(weights, engine->backend, &m->desc, NULL, NULL,
                                             err, sizeof err) == 0,
          "%s", err);
}

static void run_on(struct esp_backend *backend, struct outcome *outcomes)
{
    struct random_model target, draft;
    make_model(&target, false);
    make_model(&draft, true);
    struct esp_model models[2] = {{.desc = target.desc}, {.desc = draft.desc}};
    struct esp_engine engine = {.backend = backend,
                                .target = &models[0],
                                .draft = &models[1],
                                .max_nodes = 24,
                                .context = 128};
    models[0].desc.context = models[1].desc.context = 128;
    open_weights(&engine, &engine.target_weights, &target);
    open_weights(&engine, &engine.draft_weights, &draft);
    for (int d = 0; d < DRAWING; d += check_quick() ? 3 : 1)
        CHECK(generate(&engine, drawing[d], NULL, 7, check_quick() ? 10 : 40, &outcomes[d]));
    backend->ops->weights_close(engine.target_weights);
    backend->ops->weights_close(engine.draft_weights);
    random_model_free(&target);
    random_model_free(&draft);
}

TEST(cuda_writes_what_the_cpu_writes)
{
    static struct outcome on[2][DRAWING];
    char err[300] = "";
    for (int b = 0; b < 2; b++) {
        struct esp_backend *backend = NULL;
        if (b == 1)
            backend = open_cuda();
        else
            CHECK(esp_backend_cpu.open(&backend, 2, err, sizeof err) == 0, "%s", err);
        if (backend->ops->set_exact)
            backend->ops->set_exact(backend, true);
        run_on(backend, on[b]);
        backend->ops->close(backend);
    }
    for (int d = 0; d < DRAWING; d += check_quick() ? 3 : 1) {
        CHECK(on[0][d].expanded > 8, "%s", drawing[d]);
        compare(&on[0][d], &on[1][d], drawing[d], "its rule");
    }
}
