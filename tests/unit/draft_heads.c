/* draft_heads.c - compares the output of draft heads with an independent implementation
 * (tests/vectors/make_head_vectors.py, make_mtp_vectors.py), and tests that a session uses them
 * correctly.
 *
 * A head in tests/vectors/heads belongs to the target in that folder or to the target that
 * target_of() names. An MTP layer can belong to the model in its own folder. Sessions use the
 * target and the head without a tokenizer. The results of the CUDA backend in exact mode may
 * differ only by rounding to 16 bits.
 */
#include <cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/drafters/drafter.h"
#include "engine/engine.h"
#include "engine/espalier.h"
#include "engine/lossless.h"
#include "engine/model/draft_head.h"
#include "engine/session_parts.h"
#include "kernels/backends.h"
#include "kernels/model_desc.h"
#include "tests/each_backend.h"
#include "tests/folder.h"
#include "tests/rounding.h"

enum {
    TEXT = 20,
    NODES = 7,
    ROWS = TEXT - 1 + NODES,
    VOCABULARY = 97,
    WIDEST = 32 + VOCABULARY
};

static const char *const heads[] = {"eagle",
                                    "eagle-own",
                                    "eagle3",
                                    "eagle3-narrow",
                                    "mtp-qwen3-5",
                                    "eagle3-torch",
                                    "mtp-qwen3-5-moe",
                                    "mtp-mimo",
                                    "eagle3-speculators",
                                    "eagle3-speculators-llama",
                                    "eagle3-speculators-layers",
                                    "speculators-mtp",
                                    "speculators-mtp-qwen3-5",
                                    "speculators-mtp-qwen3-next",
                                    "mtp-qwen3-next",
                                    "eagle3-speculators-norm-before-fc",
                                    "eagle3-speculators-fc-norm"};

/* The first heads run in all tests. Later heads run only in the tests that compare formulas and
 * texts. */
enum { HEADS = sizeof heads / sizeof *heads, FIRST_HEADS = 6 };

static char err[512];

/* ------------------------------------------------------------------ an engine */

static bool is_mtp(const char *head)
{
    return strncmp(head, "mtp-", 4) == 0;
}

/* Returns whether the head's target has recurrent layers. */
static bool is_hybrid(const char *head)
{
    return strstr(head, "qwen3-5") || strstr(head, "qwen3-next");
}

static const char *target_of(const char *head)
{
    return is_mtp(head)                                      ? head
           : strcmp(head, "speculators-mtp-qwen3-5") == 0    ? "mtp-qwen3-5"
           : strcmp(head, "speculators-mtp-qwen3-next") == 0 ? "../logits/qwen3-next"
                                                             : "target";
}

static const char *folder_of(const char *head)
{
    char name[128];
    snprintf(name, sizeof name, "vectors/%s/%s", strstr(head, ".gguf") ? "gguf" : "heads",
             head);
    return check_path(name);
}

static struct esp_model *open_model(const char *folder)
{
    struct esp_model *model;
    CHECK(esp_model_open(&model, folder_of(folder), err, sizeof err) == 0, "%s", err);
    return model;
}

static struct esp_model *open_mtp(const char *folder)
{
    struct esp_model *head;
    CHECK(esp_model_open_mtp(&head, folder_of(folder), err, sizeof err) == 0, "%s", err);
    return head;
}

/* If the number of threads is CUDA, the CUDA backend is used. */
enum { CUDA = -1, EMULATED_NODES = 24 };

/* These pointers hold the memory of the matrices that this test quantises. There are at most
 * MOST_QUANTISED such matrices. Their memory is freed after the engine is closed. */
enum { MOST_QUANTISED = 64 };
static void *quantised[MOST_QUANTISED];
static int quantised_count;

/* Quantises a matrix to Q8_0 if its number of columns allows that. */
static void quantise(struct esp_tensor *t)
{
    if (!t->data || t->columns % esp_dtype_block(ESP_Q8_0) != 0)
        return;
    const size_t bytes = esp_dtype_row_bytes(ESP_Q8_0, t->columns);
    float *row = malloc((size_t)t->columns * sizeof *row);
    char *data = malloc((size_t)t->rows * bytes);
    CHECK(row && data && quantised_count < MOST_QUANTISED);
    for (int i = 0; i < t->rows; i++) {
        esp_tensor_read_row(t, i, row);
        esp_quantise(ESP_Q8_0, row, t->columns, data + (size_t)i * bytes);
    }
    free(row);
    quantised[quantised_count++] = data;
    *t = (struct esp_tensor){.data = data,
                             .dtype = ESP_Q8_0,
                             .rows = t->rows,
                             .columns = t->columns,
                             .block = t->rows,
                             .stride = t->rows};
}

static void quantise_model(struct esp_model_desc *d)
{
    const bool tied = d->head.data == d->embedding.data;
    quantise(&d->embedding);
    if (tied)
        d->head = d->embedding;
    else
        quantise(&d->head);
    for (int i = 0; i < d->layers; i++) {
        struct esp_layer *l = &d->layer[i];
        struct esp_tensor *const all[] = {&l->query, &l->key, &l->value, &l->output,
                                          &l->gate,  &l->up,  &l->down};
        for (size_t j = 0; j < sizeof all / sizeof *all; j++)
            quantise(all[j]);
    }
}

/* Opens the target and the head on the engine's backend. */
static void open_models(struct esp_engine *e, const char *head, bool quantised_target)
{
    const struct esp_backend_ops *ops = e->backend->ops;
    if (ops->set_exact)
        ops->set_exact(e->backend, true);
    e->target = open_model(target_of(head));
    e->draft = is_mtp(head) ? open_mtp(head) : open_model(head);
    e->target->end_count = 0; /* a random model would soon write an end token */
    if (quantised_target)
        quantise_model(&e->target->desc);
    CHECK(esp_draft_head_join(e->draft, e->target, err, sizeof err) == 0, "%s", err);
    CHECK(ops->weights_open(&e->target_weights, e->backend, &e->target->desc, NULL, NULL, err,
                            sizeof err) == 0,
          "%s", err);
    e->draft->desc.lender = e->target_weights;
    CHECK(ops->weights_open(&e->draft_weights, e->backend, &e->draft->desc, NULL, NULL, err,
                            sizeof err) == 0,
          "%s", err);
}

static void open_engine_as(struct esp_engine *e, const char *head, int threads,
                           bool quantised_target)
{
    *e =
        (struct esp_engine){.max_nodes = threads == CUDA ? EMULATED_NODES : 64, .context = 128};
    if (threads == CUDA)
        e->backend = open_cuda();
    else
        CHECK(esp_backend_open(&e->backend, "cpu", threads, 0, err, sizeof err) == 0, "%s",
              err);
    open_models(e, head, quantised_target);
}

static void open_engine(struct esp_engine *e, const char *head, int threads)
{
    open_engine_as(e, head, threads, false);
}

static void close_models(struct esp_engine *e)
{
    const struct esp_backend_ops *ops = e->backend->ops;
    ops->weights_close(e->draft_weights);
    ops->weights_close(e->target_weights);
    esp_model_close(e->draft);
    esp_model_close(e->target);
    while (quantised_count > 0)
        free(quantised[--quantised_count]);
}

static void close_engine(struct esp_engine *e)
{
    close_models(e);
    e->backend->ops->close(e->backend);
}

/* ------------------------------------------------------------------ the reference */

struct reference {
    int32_t tokens[TEXT], parents[NODES], nodes[NODES];
    int outputs, width;
    float rows[ROWS][WIDEST]; /* (rows, width): each row has a hidden state, then logits */
};

static void read_reference(struct reference *r, const char *name, const struct esp_model *head)
{
    char path[600], folder[64];
    snprintf(folder, sizeof folder, "%.*s", (int)strcspn(name, "."), name);
    snprintf(path, sizeof path, "%s/reference.json", folder_of(folder));
    struct folder_bytes bytes = folder_read(path);
    cJSON *json = cJSON_ParseWithLength(bytes.data, bytes.size);
    const cJSON *tokens = cJSON_GetObjectItem(json, "tokens");
    const cJSON *tree = cJSON_GetObjectItem(json, "tree");
    CHECK(cJSON_GetArraySize(tokens) == TEXT && cJSON_GetArraySize(tree) == NODES);
    for (int i = 0; i < TEXT; i++)
        r->tokens[i] = cJSON_GetArrayItem(tokens, i)->valueint;
    for (int i = 0; i < NODES; i++) {
        r->parents[i] = cJSON_GetArrayItem(cJSON_GetArrayItem(tree, i), 0)->valueint;
        r->nodes[i] = cJSON_GetArrayItem(cJSON_GetArrayItem(tree, i), 1)->valueint;
    }
    cJSON_Delete(json);
    free(bytes.data);
    r->outputs = head->desc.outputs;
    r->width = head->desc.hidden + r->outputs;
    snprintf(path, sizeof path, "%s/drafts.f32", folder_of(folder));
    bytes = folder_read(path);
    CHECK(bytes.size == (size_t)(ROWS * r->width) * sizeof(float));
    for (int i = 0; i < ROWS; i++)
        memcpy(r->rows[i], bytes.data + (size_t)(i * r->width) * sizeof(float),
               (size_t)r->width * sizeof(float));
    free(bytes.data);
}

struct computed {
    float states[ROWS][32], logits[ROWS][VOCABULARY];
};

struct passes {
    struct esp_engine *engine;
    const struct reference *want;
    struct esp_cache *target, *head;
    struct esp_rows *features, *states, *logits;
};

/* Runs the text in batches of at most `chunk` tokens. */
static void run_text(struct passes *p, int chunk)
{
    const struct esp_backend_ops *ops = p->engine->backend->ops;
    struct esp_states asked = esp_draft_head_states(p->engine->draft, p->engine->target);
    struct esp_states drafted = {
        .count = 1, .state = {esp_draft_head_fed_back(p->engine->draft)}, .to = p->states};
    int32_t position[TEXT], row[TEXT];
    asked.to = p->features;
    for (int i = 0; i < TEXT; i++)
        position[i] = row[i] = i;
    for (int first = 0, rows; first < TEXT; first += rows) {
        rows = TEXT - first < chunk ? TEXT - first : chunk;
        asked.row = row + first;
        struct esp_batch batch = {.rows = rows,
                                  .tokens = p->want->tokens + first,
                                  .positions = position + first,
                                  .first = first,
                                  .prefix = first,
                                  .text = rows,
                                  .states = &asked};
        CHECK(ops->forward(p->target, &batch) == 0);
    }
    for (int first = 0, rows; first < TEXT - 1; first += rows) {
        rows = TEXT - 1 - first < chunk ? TEXT - 1 - first : chunk;
        drafted.row = row + first;
        struct esp_batch batch = {.rows = rows,
                                  .tokens = p->want->tokens + first + 1,
                                  .positions = position + first,
                                  .first = first,
                                  .prefix = first,
                                  .logits = p->logits,
                                  .logits_row = row + first,
                                  .states = &drafted,
                                  .input = p->features,
                                  .input_row = row + first};
        CHECK(ops->forward(p->head, &batch) == 0);
    }
}

/* Runs the nodes of the tree with one pass for each depth. In a pass, nodes read the states of
 * their parents. */
static void run_tree(struct passes *p)
{
    const struct reference *want = p->want;
    const int text = TEXT - 1;
    int depth[NODES], place[NODES], done = 0;
    uint64_t mask[NODES];
    for (int i = 0; i < NODES; i++)
        depth[i] = want->parents[i] < 0 ? 1 : depth[want->parents[i]] + 1;
    for (int level = 1; done < NODES; level++) {
        int32_t tokens[NODES], positions[NODES], above[NODES], row[NODES];
        uint64_t seen[NODES];
        int rows = 0;
        for (int i = 0; i < NODES; i++) {
            const int parent = want->parents[i];
            if (depth[i] != level)
                continue;
            place[i] = done + rows;
            mask[i] = (parent < 0 ? 0 : mask[parent]) | (uint64_t)1 << place[i];
            tokens[rows] = want->nodes[i];
            positions[rows] = text - 1 + level;
            above[rows] = parent < 0 ? text - 1 : text + parent;
            seen[rows] = mask[i];
            row[rows++] = text + i;
        }
        const struct esp_states drafted = {.count = 1,
                                           .state = {esp_draft_head_fed_back(p->engine->draft)},
                                           .to = p->states,
                                           .row = row};
        struct esp_batch batch = {.rows = rows,
                                  .tokens = tokens,
                                  .positions = positions,
                                  .first = text + done,
                                  .prefix = text,
                                  .mask = seen,
                                  .mask_words = 1,
                                  .logits = p->logits,
                                  .logits_row = row,
                                  .states = &drafted,
                                  .input = p->states,
                                  .input_row = above};
        CHECK(p->engine->backend->ops->forward(p->head, &batch) == 0);
        done += rows;
    }
}

static void compute(struct esp_engine *e, const struct reference *want, int chunk,
                    struct computed *got)
{
    const struct esp_backend_ops *ops = e->backend->ops;
    const struct esp_model_desc *d = &e->draft->desc;
    struct passes p = {.engine = e, .want = want};
    memset(got, 0, sizeof *got);
    CHECK(ops->cache_open(&p.target, e->target_weights, 64, 64, err, sizeof err) == 0 &&
          ops->cache_open(&p.head, e->draft_weights, 64, 64, err, sizeof err) == 0 &&
          ops->rows_open(&p.features, e->backend, TEXT, d->input, err, sizeof err) == 0 &&
          ops->rows_open(&p.states, e->backend, ROWS, d->hidden, err, sizeof err) == 0 &&
          ops->rows_open(&p.logits, e->backend, ROWS, VOCABULARY, err, sizeof err) == 0);
    run_text(&p, chunk);
    run_tree(&p);
    for (int i = 0; i < ROWS; i++) {
        ops->read_row(p.states, i, got->states[i]);
        ops->read_row(p.logits, i, got->logits[i]);
    }
    ops->cache_close(p.target);
    ops->cache_close(p.head);
    ops->rows_close(p.features);
    ops->rows_close(p.states);
    ops->rows_close(p.logits);
}

/* Computes all outputs of a head. `user` is the name of the head. */
static void compute_outputs(struct esp_backend *cpu, void *user, float *out, int count)
{
    static struct reference want;
    static struct computed got;
    struct esp_engine e = {.backend = cpu, .max_nodes = 64, .context = 128};
    open_models(&e, user, false);
    const struct esp_model_desc *d = &e.draft->desc;
    CHECK(count == ROWS * (d->hidden + d->outputs));
    read_reference(&want, user, e.draft);
    compute(&e, &want, TEXT, &got);
    for (int row = 0; row < ROWS; row++) {
        memcpy(out, got.states[row], (size_t)d->hidden * sizeof *out);
        out += d->hidden;
        for (int i = 0; i < d->outputs; i++)
            *out++ = got.logits[row][d->output_token ? d->output_token[i] : i];
    }
    close_models(&e);
}

/* Adds the squared differences to *error, and the squares of the reference to *norm. */
static void compare_row(const struct esp_model_desc *d, const struct reference *want,
                        const struct computed *got, int row, double *error, double *norm)
{
    for (int i = 0; i < d->hidden + d->outputs; i++) {
        const int output = i - d->hidden;
        const int token = output < 0 ? 0 : d->output_token ? d->output_token[output] : output;
        const double x = want->rows[row][i];
        const double is = output < 0 ? got->states[row][i] : got->logits[row][token];
        *error += (is - x) * (is - x);
        *norm += x * x;
    }
}

/* Checks that a token for which the head has no row gets probability 0. */
static void check_missing(const char *name, const struct esp_model_desc *d,
                          const struct computed *got, int row)
{
    int output = 0;
    for (int token = 0; token < VOCABULARY && d->output_token; token++)
        if (output < d->outputs && d->output_token[output] == token)
            output++;
        else
            CHECK(got->logits[row][token] == -1e30f, "%s, row %d, logit of %d: %g", name, row,
                  token, got->logits[row][token]);
    CHECK(!d->output_token || output == d->outputs);
}

/* Returns the largest allowed norm of the difference, relative to the norm of the reference.
 * The states of recurrent layers accumulate the rounding errors of all tokens. */
static double tolerance(const struct esp_engine *e, const char *head, double norm)
{
    const int count = ROWS * (e->draft->desc.hidden + e->draft->desc.outputs);
    if (e->backend->ops != &esp_backend_cpu)
        return is_hybrid(head) ? 6e-2 : 5e-2;
    return rounding_bound(e->backend, compute_outputs, (void *)head, count, count) /
           sqrt(norm / count);
}

/* Compares the outputs of a head with the reference, in one batch and in several, on 1 and 2
 * threads of the CPU, or on CUDA. If the target has recurrent layers, only rows of the text are
 * compared on CUDA. Nodes of the tree read the head's own states, and with bf16 the head can
 * choose a different expert for these nodes. */
static void check_head(const char *head, bool cuda)
{
    const int rows = cuda && is_hybrid(head) ? TEXT - 1 : ROWS;
    static struct reference want;
    static struct computed first, got;
    static const int chunks[] = {TEXT, 6, 1};
    for (int i = 0; i < (cuda ? 2 : 3); i++) {
        struct esp_engine e;
        open_engine(&e, head, cuda ? CUDA : i + 1);
        read_reference(&want, head, e.draft);
        compute(&e, &want, chunks[i], &got);
        double error = 0, norm = 0;
        for (int row = 0; row < rows; row++) {
            check_missing(head, &e.draft->desc, &got, row);
            compare_row(&e.draft->desc, &want, &got, row, &error, &norm);
        }
        const double most = tolerance(&e, head, norm);
        CHECK(sqrt(error / norm) < most,
              "%s: differs by %g relative to the reference, more than %g", head,
              sqrt(error / norm), most);
        if (i == 0)
            first = got;
        CHECK(memcmp(&first, &got, sizeof got) == 0, "%s in batches of %d", head, chunks[i]);
        close_engine(&e);
    }
}

static void check_heads(bool cuda)
{
    for (int h = 0; h < HEADS; h++)
        check_head(heads[h], cuda);
}

EACH_ISA(every_kind_of_head_matches_the_reference)
{
    check_heads(false);
}

/* A GGUF file has the heads of recurrent states in a different order from the original file. It
 * stores the norm weights themselves, not the norm weights minus 1. */
TEST(an_mtp_layer_in_a_gguf_file_matches_the_reference)
{
    check_head("mtp-qwen3-5.gguf", false);
    check_head("mtp-qwen3-5-moe.gguf", false);
    check_head("mtp-qwen3-next.gguf", false);
}

TEST(every_kind_of_head_matches_the_reference_on_cuda)
{
    if (has_cuda())
        check_heads(true);
}

/* Draft heads have matrices of floats, and use the target's quantised embedding or output head.
 * CUDA stores keys, values and the activations of float matrices in 16 bits. Nodes of a tree
 * read the head's own states, and a random head enlarges differences, so only rows of the text
 * are compared. */
TEST(a_head_works_beside_a_quantised_target)
{
    for (int h = 0; h < HEADS; h++) {
        static struct reference want;
        static struct computed got[3];
        struct esp_engine e;
        double error = 0, norm = 0;
        if (is_hybrid(heads[h])) /* the first layer of this target has no queries to quantise */
            continue;
        for (int i = 0; i < 3; i++) {
            open_engine_as(&e, heads[h], i == 0 ? 1 : CUDA, true);
            read_reference(&want, heads[h], e.draft);
            compute(&e, &want, i == 2 ? 5 : TEXT, &got[i]);
            CHECK(esp_dtype_quantised(e.target->desc.layer[0].query.dtype));
            const int hidden = e.draft->desc.hidden;
            for (int row = 0; i == 1 && row < TEXT - 1; row++)
                for (int k = 0; k < hidden + VOCABULARY; k++) {
                    const bool state = k < hidden;
                    const double x =
                        state ? got[0].states[row][k] : got[0].logits[row][k - hidden];
                    const double y =
                        state ? got[1].states[row][k] : got[1].logits[row][k - hidden];
                    error += x < -1e29 && y < -1e29 ? 0 : (x - y) * (x - y);
                    norm += x < -1e29 ? 0 : x * x;
                }
            close_engine(&e);
        }
        CHECK(error < 25e-4 * norm, "%s: off by %g", heads[h], sqrt(error / norm));
        CHECK(memcmp(&got[1], &got[2], sizeof got[1]) == 0, "%s: results depend on the batches",
              heads[h]);
    }
}

/* ----------------------------------------------------------------- draft heads in a session */

enum { NEW = 32 };

/* Under sanitizers, texts are short, and only one head of each form is tested. */
static int new_tokens(void)
{
    return check_quick() ? 12 : NEW;
}

static int tokens_on(const struct esp_engine *e)
{
    return e->backend->ops == &esp_backend_cpu ? new_tokens() : 8;
}

static int head_step(void)
{
    return check_quick() ? 2 : 1;
}

static const int32_t prompt[] = {3, 60, 22, 9, 71, 5};

enum { PROMPT = sizeof prompt / sizeof *prompt };

static struct esp_session *open_session(struct esp_engine *e, const char *drafter,
                                        esp_observer *observer, void *user)
{
    struct esp_session *session;
    struct esp_session_options options = {
        .drafter = drafter, .repeatable = true, .observer = observer, .user = user};
    options.values.draft_temp = ESP_DRAFT_OFF; /* `auto` would learn a temperature */
    CHECK(esp_session_open(&session, e, &options, err, sizeof err) == 0, "%s", err);
    return session;
}

static void prompt_session(struct esp_session *session)
{
    CHECK(esp_session_prompt(session, prompt, PROMPT, err, sizeof err) == 0, "%s", err);
    esp_session_allow(session, tokens_on(session->engine));
}

static void finish(struct esp_session *session)
{
    int status;
    while ((status = esp_session_step(session, err, sizeof err)) > 0)
        continue;
    CHECK(status == 0, "%s", err);
}

/* Checks the text with drafters `first`, first + step, first + 2 * step, ... */
static void check_drafters(struct esp_engine *e, const char *head, int first, int step)
{
    int length;
    struct esp_session *plain = open_session(e, "ar", NULL, NULL);
    prompt_session(plain);
    finish(plain);
    const int32_t *want = esp_session_tokens(plain, &length);
    CHECK(length == PROMPT + tokens_on(e));
    for (int i = 0; esp_drafters[i]; i++) {
        /* drafter nde needs a selector, and there is none for these models */
        if (i % step != first || esp_drafters[i]->chooser)
            continue;
        struct esp_session *session = open_session(e, esp_drafters[i]->name, NULL, NULL);
        prompt_session(session);
        finish(session);
        const int32_t *got = esp_session_tokens(session, &length);
        CHECK(length == PROMPT + tokens_on(e) &&
                  memcmp(got, want, (size_t)length * sizeof *want) == 0,
              "%s, %s", head, esp_drafters[i]->name);
        esp_session_close(session);
    }
    esp_session_close(plain);
}

EACH_ISA(every_drafter_with_a_head_writes_what_plain_decoding_writes)
{
    for (int h = 0; h < HEADS; h += head_step()) {
        struct esp_engine e;
        open_engine(&e, heads[h], 2);
        check_drafters(&e, heads[h], h % 3, h < FIRST_HEADS ? 3 : 9);
        close_engine(&e);
    }
}

TEST(a_drafter_with_an_mtp_layer_of_a_gguf_file_writes_what_plain_decoding_writes)
{
    struct esp_engine e;
    open_engine(&e, "mtp-qwen3-next.gguf", 2);
    check_drafters(&e, "mtp-qwen3-next.gguf", 0, 4);
    close_engine(&e);
}

TEST(a_drafter_with_a_head_on_cuda_writes_what_plain_decoding_writes)
{
    static const char *const some[] = {"eagle-own",
                                       "eagle3-narrow",
                                       "mtp-mimo",
                                       "mtp-qwen3-5",
                                       "mtp-qwen3-next",
                                       "eagle3-speculators-norm-before-fc",
                                       "eagle3-speculators-fc-norm"};
    for (size_t h = 0; h < sizeof some / sizeof *some; h++) {
        struct esp_engine e;
        open_engine(&e, some[h], CUDA);
        check_drafters(&e, some[h], 0, 12);
        close_engine(&e);
    }
}

/* Stores what an iteration drafted: the tokens and probabilities of all nodes, in order. */
struct drafted {
    int count;
    struct {
        int32_t token, parent;
        float q;
    } node[65];
};

/* A window drops rows from the caches of target and head. If the text is shortened so much that
 * the remaining rows do not suffice, both compute their rows again. */
TEST(with_a_window_a_head_drafts_and_does_not_change_the_text)
{
    enum { MOST = 560 };
    static int32_t want[PROMPT + MOST];
    const int more = check_quick() ? MOST * 3 / 4 : MOST;
    const size_t bytes = (size_t)(PROMPT + more) * sizeof *want;
    for (int h = 0; h < FIRST_HEADS; h += 2 * head_step()) {
        static const char *const drafters[] = {"ar", "linear", "eagle2"};
        struct esp_engine e;
        open_engine(&e, heads[h], 2);
        for (int i = 0; i < 3; i++) {
            int length;
            struct esp_session *session = open_session(&e, drafters[i], NULL, NULL);
            CHECK(esp_session_set(session, "window", "20", err, sizeof err) == 0, "%s", err);
            prompt_session(session);
            esp_session_allow(session, more);
            finish(session);
            if (i > 0) {
                CHECK(esp_session_rewind(session, 200) == 0);
                CHECK(session->target.length == 0 && session->draft_cache.length == 0);
                esp_session_allow(session, PROMPT + more - 200);
                CHECK(esp_session_step(session, err, sizeof err) > 0, "%s", err);
                finish(session);
            }
            const int32_t *got = esp_session_tokens(session, &length);
            CHECK(length == PROMPT + more, "%d", length);
            if (i == 0)
                memcpy(want, got, bytes);
            CHECK(memcmp(got, want, bytes) == 0, "%s, %s", heads[h], drafters[i]);
            esp_session_close(session);
        }
        close_engine(&e);
    }
}

static void note_drafted(void *user, const struct esp_event *event)
{
    struct drafted *d = user;
    if (event->type != ESP_EVENT_ITERATION)
        return;
    const struct esp_tree *tree = &event->iteration->tree;
    memset(d, 0, sizeof *d);
    for (; d->count < tree->count && d->count < 65; d->count++) {
        d->node[d->count].token = tree->nodes[d->count].token;
        d->node[d->count].parent = tree->nodes[d->count].parent;
        d->node[d->count].q = tree->nodes[d->count].q;
    }
}

/* Checks that a session drafts exactly what a new session drafts after the same text. What the
 * session did before must not matter. The head's rows must come from the target's states, not
 * from the head's own drafts. */
static void check_like_new(struct esp_engine *e, struct esp_session *session,
                           const struct drafted *got, const char *what)
{
    struct drafted want = {0};
    int length;
    const int32_t *text = esp_session_tokens(session, &length);
    struct esp_session *fresh = open_session(e, "fixed", note_drafted, &want);
    CHECK(esp_session_prompt(fresh, text, length, err, sizeof err) == 0, "%s", err);
    esp_session_allow(fresh, 40);
    esp_session_allow(session, 40);
    CHECK(esp_session_step(fresh, err, sizeof err) > 0, "%s", err);
    CHECK(esp_session_step(session, err, sizeof err) > 0, "%s", err);
    CHECK(want.count > 1 && memcmp(&want, got, sizeof want) == 0, "%s, after %d tokens: %s",
          e->draft->path, length, what);
    esp_session_close(fresh);
}

EACH_ISA(drafts_depend_only_on_the_text)
{
    for (int h = 0; h < FIRST_HEADS; h += head_step()) {
        struct esp_engine e;
        struct drafted got = {0};
        open_engine(&e, heads[h], 1);
        struct esp_session *s = open_session(&e, "fixed", note_drafted, &got);
        prompt_session(s);
        for (int i = 0; i < 3; i++)
            check_like_new(&e, s, &got, "iterations");
        CHECK(esp_session_rewind(s, PROMPT + 2) == 0);
        check_like_new(&e, s, &got, "a rewind");
        CHECK(esp_session_prompt(s, prompt, PROMPT, err, sizeof err) == 0, "%s", err);
        check_like_new(&e, s, &got, "a second prompt");
        CHECK(esp_session_set(s, "drafter", "ar", err, sizeof err) == 0, "%s", err);
        esp_session_allow(s, 4);
        finish(s);
        CHECK(esp_session_set(s, "drafter", "fixed", err, sizeof err) == 0, "%s", err);
        check_like_new(&e, s, &got, "plain decoding");
        CHECK(esp_session_set(s, "drafter", "fixed:cache=rebuild", err, sizeof err) == 0);
        esp_session_allow(s, 8);
        CHECK(esp_session_step(s, err, sizeof err) > 0, "%s", err);
        CHECK(esp_session_set(s, "drafter", "fixed", err, sizeof err) == 0);
        check_like_new(&e, s, &got, "rows that were computed again");
        esp_session_warm(s);
        check_like_new(&e, s, &got, "warming up");
        /* there is no hidden state before the first token */
        CHECK(esp_session_rewind(s, 1) == 0);
        esp_session_allow(s, 5);
        finish(s);
        check_like_new(&e, s, &got, "a text of one token");
        esp_session_clear(s);
        prompt_session(s);
        check_like_new(&e, s, &got, "a new text");
        esp_session_close(s);
        close_engine(&e);
    }
}

EACH_ISA(a_long_prompt_runs_in_several_passes)
{
    struct esp_engine e;
    struct drafted got = {0}, want = {0};
    open_engine(&e, "eagle", 2);
    e.max_nodes = 8;
    e.context = 400;
    e.target->desc.context = e.draft->desc.context = 400;
    int32_t tokens[300];
    for (int i = 0; i < 300; i++)
        tokens[i] = i * 7 % VOCABULARY;
    struct esp_session *s = open_session(&e, "fixed", note_drafted, &want);
    CHECK(esp_session_prompt(s, tokens, 300, err, sizeof err) == 0, "%s", err);
    esp_session_allow(s, 20);
    CHECK(esp_session_step(s, err, sizeof err) > 0, "%s", err);
    struct esp_session *parts = open_session(&e, "fixed", note_drafted, &got);
    for (int i = 0; i < 300; i += 25)
        CHECK(esp_session_prompt(parts, tokens + i, 25, err, sizeof err) == 0, "%s", err);
    esp_session_allow(parts, 20);
    CHECK(esp_session_step(parts, err, sizeof err) > 0, "%s", err);
    CHECK(want.count > 1 && memcmp(&want, &got, sizeof want) == 0);
    esp_session_close(s);
    esp_session_close(parts);
    close_engine(&e);
}

/* When the head is used again, it reads the stored states of the target. If it needs states
 * that are no longer stored, the target computes them again. */
EACH_ISA(a_head_that_was_not_used_for_long_catches_up)
{
    static const int pauses[] = {1, 70, 200};
    struct esp_engine e;
    struct drafted got = {0};
    open_engine(&e, "eagle3", 2);
    e.max_nodes = 8;
    e.context = 400;
    e.target->desc.context = e.draft->desc.context = 400;
    struct esp_session *s = open_session(&e, "fixed", note_drafted, &got);
    prompt_session(s);
    for (int i = 0; i < 3; i++) {
        CHECK(esp_session_set(s, "drafter", "ar", err, sizeof err) == 0, "%s", err);
        esp_session_allow(s, pauses[i]);
        finish(s);
        CHECK(esp_session_set(s, "drafter", "fixed", err, sizeof err) == 0, "%s", err);
        check_like_new(&e, s, &got, "a pause");
    }
    esp_session_close(s);
    close_engine(&e);
}

/* Drafts must be sampled from the same distribution q that verifiers divide by, even if the
 * head cannot draft some tokens. */
TEST(sampling_with_a_head_follows_the_target)
{
    static const char *const drafters[] = {"dynatree", "iid"};
    const struct esp_lossless_plan plan = {.trials = check_quick() ? 15 : 150, .tokens = 4};
    for (int i = 0; i < FIRST_HEADS * 2; i += check_quick() ? 5 : 1) {
        struct esp_engine e;
        struct esp_item rule;
        int measured = 0;
        open_engine(&e, heads[i / 2], 1);
        for (int v = 0; esp_item(ESP_VERIFIERS, v, &rule); v++) {
            struct esp_session *s;
            struct esp_session_options options = {
                .drafter = drafters[i % 2], .verifier = rule.name, .repeatable = true};
            struct esp_lossless result;
            options.values.temperature = 0.8;
            options.values.seed = 7;
            if (esp_session_open(&s, &e, &options, err, sizeof err) < 0)
                continue; /* this verifier would not be exact with this drafter */
            CHECK(esp_session_prompt(s, prompt, PROMPT, err, sizeof err) == 0, "%s", err);
            CHECK(esp_lossless_measure(s, &plan, &result, err, sizeof err) == 0, "%s", err);
            CHECK(result.impossible == 0, "%s, %s, %s", heads[i / 2], options.drafter,
                  rule.name);
            for (int t = 0; t < ESP_LOSSLESS_TEST_COUNT; t++)
                CHECK(result.test[t].p > 1e-6, "%s, %s, %s: %s gives p = %g", heads[i / 2],
                      options.drafter, rule.name, esp_lossless_test_name(t), result.test[t].p);
            measured++;
            esp_session_close(s);
        }
        CHECK(measured > 1, "%s: only %d rules", drafters[i % 2], measured);
        close_engine(&e);
    }
}

/* ------------------------------------------------------------------ branches */

static int write_on(struct esp_session *session, int tokens, int32_t *text)
{
    int status, count;
    esp_session_allow(session, tokens);
    while ((status = esp_session_step(session, err, sizeof err)) > 0)
        continue;
    CHECK(status == 0, "%s", err);
    const int32_t *all = esp_session_tokens(session, &count);
    memcpy(text, all, (size_t)count * sizeof *text);
    return count;
}

/* A branch must continue like a new session with the same text. So the head's cache and the
 * target's states must be those of the branch. */
TEST(branches_with_a_head_match_fresh_sessions)
{
    for (int i = 0; i < FIRST_HEADS; i++)
        for (int sampled = 0; sampled < 2; sampled++) {
            struct esp_engine engine;
            struct esp_session *session, *fresh;
            const struct esp_session_options options = {
                .drafter = "fixed:D=2,B=2",
                .repeatable = true,
                .values = {.temperature = sampled, .draft_temp = ESP_DRAFT_OFF}};
            const int32_t start[] = {3, 5, 7, 1};
            int32_t text[128], again[128], other[128];
            struct esp_text_token branch[128];
            open_engine(&engine, heads[i], 1);
            CHECK(esp_session_open(&session, &engine, &options, err, sizeof err) == 0 &&
                      esp_session_open(&fresh, &engine, &options, err, sizeof err) == 0,
                  "%s", err);
            CHECK(esp_session_prompt(session, start, 4, err, sizeof err) == 0, "%s", err);
            const int length = write_on(session, 30, text), keep = length - 13;
            for (int j = 0; j < keep; j++)
                branch[j] = (struct esp_text_token){text[j], ESP_TEXT_BONUS};
            branch[keep] =
                (struct esp_text_token){(text[keep] + 1) % VOCABULARY, ESP_TEXT_CHOSEN};
            CHECK(esp_session_fork(session, branch, keep + 1, err, sizeof err) == keep, "%s",
                  err);
            CHECK(esp_session_set(session, "seed", "0", err, sizeof err) == 0);
            CHECK(esp_session_fork(fresh, branch, keep + 1, err, sizeof err) == 0, "%s", err);
            const int count = write_on(session, 30, again);
            CHECK(write_on(fresh, 30, other) == count &&
                      memcmp(again, other, (size_t)count * sizeof *again) == 0,
                  "%s: a branch differs from a fresh session", heads[i]);
            esp_session_close(session);
            esp_session_close(fresh);
            close_engine(&engine);
        }
}
