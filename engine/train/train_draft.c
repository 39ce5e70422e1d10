/* train_draft.c - trains a draft head or a draft model; see train_draft.h.
 *
 * A step has six parts: (1) read the samples of its pieces, (2) turn the samples into rows, (3)
 * run the network forward, (4) compute the loss and its gradient, (5) run the network backward,
 * (6) update the weights with AdamW. A step depends only on the settings, the weights and the
 * index of the step, so a checkpoint is enough to continue.
 */
#include "engine/train/train_draft.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/support/hash.h"
#include "engine/support/rng.h"
#include "engine/train/checkpoint.h"
#include "engine/train/draft_folder.h"
#include "engine/train/draft_samples.h"
#include "engine/train/presets.h"
#include "kernels/clock.h"
#include "kernels/cpu/cpu.h"
#include "kernels/model_desc.h"

enum { LENGTH = 512, BATCH = 8, KEPT_APART = 20, MOST_LENGTH = 1 << 16 };
static const double WARMUP = 0.05; /* fraction of the steps in which the learning rate rises */

struct training {
    const struct esp_train_options *o;
    char *err;
    size_t errlen;
    char model_path[4096], features_path[4096], checkpoint_path[4096];
    struct esp_loss_preset loss;
    struct esp_model *target, *draft;
    float *inverse_frequency; /* rotary table of a head; NULL for a draft model */
    float *embedding;         /* (vocabulary, hidden) the target's embedding, for a head */
    float *target_head;       /* (vocabulary, hidden) the target's LM head */
    struct esp_workers *workers;
    struct esp_network network;
    struct esp_loss_memory *memory;
    struct esp_draft_samples samples;
    struct esp_training_sample *sample; /* (batch) */
    struct esp_learning_batch batch;
    int *order;         /* indices of the training pieces, then of the held-out pieces */
    int learned, apart; /* number of training pieces; number of held-out pieces */
    int epochs, texts;  /* texts: number of pieces in a step */
    struct esp_optimizer optimizer;
    struct esp_progress_state state;
    uint64_t fingerprint;
    double written; /* when the last checkpoint was written */
    struct esp_train_report report;
};

static int fail_memory(const struct training *t)
{
    return esp_fail(t->err, t->errlen, ESP_E_MEMORY, "not enough memory to train");
}

/* ------------------------------------------------------------------ the network */

static int read_matrix(const struct training *t, float **to, const struct esp_tensor *from)
{
    *to = esp_cpu_alloc((size_t)from->rows, (size_t)from->columns * sizeof **to);
    if (!*to)
        return fail_memory(t);
    esp_tensor_read_rows(from, 0, from->rows, *to);
    return ESP_OK;
}

static void randomise(const struct esp_parameters *p, uint64_t seed)
{
    struct esp_rng rng = {.seed = seed, .stream = ESP_RNG_TRAIN};
    for (int i = 0; i < p->count; i++) {
        const struct esp_parameter *one = &p->list[i];
        const bool norm = strstr(one->name, "layernorm") != NULL;
        const double width = one->columns > 0 ? 1.0 / sqrt(one->columns) : 0.0;
        for (size_t j = 0; j < esp_parameter_size(one); j++)
            p->value[one->offset + j] =
                norm ? 1.0f : (float)(width * (2.0 * esp_rng_uniform(&rng) - 1.0));
    }
}

static int open_draft(struct training *t)
{
    if (!t->o->draft)
        return esp_fail(t->err, t->errlen, ESP_E_ARGUMENT,
                        "name the draft model to train with --draft DIR");
    int status = esp_model_open(&t->draft, t->o->draft, t->err, t->errlen);
    if (status == ESP_OK && t->draft->desc.vocabulary != t->target->desc.vocabulary)
        status = esp_fail(t->err, t->errlen, ESP_E_MISMATCH,
                          "%s has %d tokens and %s has %d; both must have the same vocabulary",
                          t->o->draft, t->draft->desc.vocabulary, t->o->target,
                          t->target->desc.vocabulary);
    return status;
}

static int open_network(struct training *t)
{
    struct esp_network_shape shape;
    const struct esp_parameters *p = &t->network.parameters;
    int status =
        t->o->head ? esp_head_shape(&shape, t->target, &t->inverse_frequency, t->err, t->errlen)
                   : esp_draft_shape(&shape, t->draft, t->err, t->errlen);
    if (status == ESP_OK)
        status =
            esp_network_open(&t->network, &shape, t->workers, t->embedding, t->err, t->errlen);
    if (status == ESP_OK && t->o->draft)
        status = esp_draft_weights_read(&t->network, t->o->draft, t->err, t->errlen);
    else if (status == ESP_OK)
        randomise(p, t->o->seed);
    for (int i = 0; i < p->count; i++)
        t->report.parameters += (int64_t)esp_parameter_size(&p->list[i]);
    return status;
}

static int open_models(struct training *t)
{
    int status = esp_model_open(&t->target, t->o->target, t->err, t->errlen);
    if (status == ESP_OK)
        status = read_matrix(t, &t->target_head, &t->target->desc.head);
    if (status == ESP_OK)
        status = esp_workers_open(&t->workers, t->o->threads, t->err, t->errlen);
    if (status == ESP_OK)
        status = t->o->head ? read_matrix(t, &t->embedding, &t->target->desc.embedding)
                            : open_draft(t);
    if (status == ESP_OK)
        status = open_network(t);
    if (status == ESP_OK)
        status = esp_loss_open(&t->memory, t->target->desc.vocabulary, t->err, t->errlen);
    return status;
}

/* ------------------------------------------------------------------ the data */

/* If `of_target` is true, returns a hash of everything that the samples depend on. Otherwise,
 * returns a hash of everything that the trained draft depends on. */
static uint64_t fingerprint_of(const struct training *t, bool of_target)
{
    const struct esp_train_options *o = t->o;
    const struct esp_teacher_shape *s = &t->samples.shape;
    const size_t matrix = (size_t)t->target->desc.vocabulary * (size_t)t->target->desc.hidden;
    uint64_t hash = esp_fnv(t->samples.fingerprint, s, sizeof *s);
    hash = esp_fnv(hash, t->target_head, matrix * sizeof *t->target_head);
    if (of_target)
        return hash;
    const double numbers[] = {
        o->head,           (double)t->epochs,       (double)t->texts,
        t->optimizer.rate, (double)(o->seed >> 32), (double)(o->seed & 0xffffffffu)};
    hash = esp_fnv(hash, t->loss.spec, strlen(t->loss.spec));
    hash = esp_fnv(hash, numbers, sizeof numbers);
    return esp_fnv(hash, t->network.parameters.value,
                   t->network.parameters.total * sizeof(float));
}

static bool report(struct training *t, enum esp_train_stage stage, int64_t done, int64_t total)
{
    t->report.stage = stage;
    t->report.done = done;
    t->report.total = total;
    t->report.loss = stage == ESP_TRAIN_STEPS ? t->state.loss : NULL;
    return !t->o->progress || t->o->progress(t->o->user, &t->report);
}

static bool report_target(void *user, int64_t done, int64_t total)
{
    return report(user, ESP_TRAIN_TARGET, done, total);
}

static int open_samples(struct training *t)
{
    const struct esp_model_desc *d = &t->target->desc;
    const bool trees = t->loss.batch.paths == ESP_PATHS_TREE;
    int context = d->context;
    if (t->draft && t->draft->desc.context < context)
        context = t->draft->desc.context;
    context -= t->loss.batch.depth;
    struct esp_teacher_shape shape = {
        .length = t->o->length > 0 ? t->o->length : LENGTH,
        .hidden = d->hidden,
        .vocabulary = d->vocabulary,
        .every = trees ? t->loss.batch.every : 0,
        .k = trees ? t->loss.k : 0,
        .depth = trees ? t->loss.batch.depth : 1,
    };
    if (t->o->length > context)
        return esp_fail(t->err, t->errlen, ESP_E_ARGUMENT,
                        "pieces of %d tokens are too long: at most %d tokens fit", t->o->length,
                        context);
    shape.length = shape.length < context ? shape.length : context;
    int status =
        esp_draft_samples_read(&t->samples, t->o->target, &shape, t->o->texts, t->o->text_count,
                               d->vocabulary, t->o->tokens, t->err, t->errlen);
    if (status == ESP_OK)
        status = esp_draft_samples_make(&t->samples, t->features_path, fingerprint_of(t, true),
                                        t->target, t->o->threads, report_target, t, t->err,
                                        t->errlen);
    return status;
}

/* Holds out every twentieth piece for validation, if there are enough pieces. */
static int divide(struct training *t)
{
    const int count = t->samples.count, step = count >= KEPT_APART ? KEPT_APART : count + 1;
    t->order = calloc((size_t)count, sizeof *t->order);
    if (!t->order)
        return fail_memory(t);
    t->apart = count / step;
    t->learned = count - t->apart;
    for (int i = 0; i < count; i++)
        t->order[i % step == step - 1 ? t->learned + i / step : i - i / step] = i;
    return ESP_OK;
}

static int open_batch(struct training *t)
{
    const int wanted = t->o->batch > 0 ? t->o->batch : BATCH;
    int status = divide(t);
    if (status < 0)
        return status;
    t->texts = wanted < t->learned ? wanted : t->learned;
    t->sample = calloc((size_t)t->texts, sizeof *t->sample);
    if (!t->sample)
        return fail_memory(t);
    for (int i = 0; i < t->texts; i++)
        if (esp_training_sample_open(&t->sample[i], &t->samples.shape) < 0)
            return fail_memory(t);
    struct esp_batch_shape shape = t->loss.batch;
    shape.sample = t->samples.shape;
    shape.texts = t->texts;
    return esp_learning_batch_open(&t->batch, &shape, t->err, t->errlen);
}

static int plan(struct training *t)
{
    const int64_t each = (t->learned + t->texts - 1) / t->texts, steps = each * t->epochs;
    const int64_t warmup = (int64_t)ceil(WARMUP * (double)steps);
    t->optimizer = (struct esp_optimizer){
        .rate = t->o->rate > 0 ? t->o->rate : 3e-4,
        .beta1 = 0.9,
        .beta2 = 0.95,
        .epsilon = 1e-8,
        .decay = 0.0,
        .clip = 0.5,
        .warmup = warmup,
        .steps = steps,
    };
    t->state.steps = steps;
    t->state.loss = calloc((size_t)steps, sizeof *t->state.loss);
    if (!t->state.loss)
        return fail_memory(t);
    t->fingerprint = fingerprint_of(t, false);
    return ESP_OK;
}

/* ------------------------------------------------------------------ steps */

static int run_batch(struct training *t, const int *pieces, int count, struct esp_rng *noise,
                     bool learn, struct esp_loss_sums *sums)
{
    int status = ESP_OK;
    for (int i = 0; i < count && status == ESP_OK; i++) /* part 1 */
        status =
            esp_draft_samples_get(&t->samples, pieces[i], &t->sample[i], t->err, t->errlen);
    if (status < 0)
        return status;
    esp_learning_batch_fill(&t->batch, t->sample, count, noise); /* part 2 */
    const struct esp_training_rows *rows = &t->batch.rows;
    const struct esp_parameters *p = &t->network.parameters;
    const float *out = esp_network_forward(&t->network, rows); /* part 3 */
    if (!out)
        return fail_memory(t);
    const struct esp_loss_input in = {
        .rows = rows->count,
        .vocabulary = t->target->desc.vocabulary,
        .weight = t->batch.weight,
        .depth = t->batch.depth,
        .hidden = t->network.shape.hidden,
        .out = out,
        .head = t->o->head ? t->target_head : esp_parameter_value(p, t->network.head),
        .target_hidden = t->target->desc.hidden,
        .feature = t->batch.target_feature,
        .target_head = t->target_head,
        .d_out = learn ? esp_network_output_gradient(&t->network, rows) : NULL,
        .d_head = t->o->head ? NULL : esp_parameter_gradient(p, t->network.head),
    };
    status = esp_loss(t->workers, t->memory, &t->loss.weights, &in, sums); /* part 4 */
    if (status < 0)
        return esp_fail(t->err, t->errlen, status,
                        status == ESP_E_NUMERIC
                            ? "the draft's weights became NaN or infinite: lower --rate"
                            : "not enough memory to train");
    if (learn)
        esp_network_backward(&t->network, rows); /* part 5 */
    return ESP_OK;
}

static int step(struct training *t, const int *order, int64_t each)
{
    const int64_t number = t->state.step, at = number % each * t->texts;
    const int count = (int)(t->learned - at < t->texts ? t->learned - at : t->texts);
    struct esp_rng noise = {.seed = t->o->seed,
                            .stream = ESP_RNG_TRAIN | (uint64_t)(2 * number + 2) << 32};
    struct esp_loss_sums sums = {0};
    double loss = 0;
    int status = run_batch(t, order + at, count, &noise, true, &sums);
    if (status < 0)
        return status;
    t->report.rate = esp_learning_rate(&t->optimizer, number);
    esp_optimizer_step(&t->optimizer, t->workers, &t->network.parameters, number); /* part 6 */
    for (int i = 0; i < ESP_LOSS_DEPTHS; i++)
        if (sums.rows[i] > 0)
            loss += sums.loss[i] / sums.rows[i];
    t->state.loss[t->state.step++] = (float)loss;
    t->report.tokens += (int64_t)count * t->samples.shape.length;
    return ESP_OK;
}

/* Measures the draft on the held-out pieces. */
static int validate(struct training *t, int epoch)
{
    struct esp_loss_sums sums = {0};
    struct esp_train_check *check = &t->report.check;
    const int *pieces = t->order + t->learned;
    int status = ESP_OK;
    for (int i = 0; i < t->apart && status == ESP_OK; i += t->texts) {
        const int count = t->apart - i < t->texts ? t->apart - i : t->texts;
        status = run_batch(t, pieces + i, count, NULL, false, &sums);
        if (status == ESP_OK && !report(t, ESP_TRAIN_VALIDATE, i + count, t->apart))
            status = esp_fail(t->err, t->errlen, ESP_E_CANCELLED, "interrupted");
    }
    *check = (struct esp_train_check){.epoch = status == ESP_OK && t->apart > 0 ? epoch : 0};
    for (int i = 0; i < ESP_LOSS_DEPTHS && sums.rows[i] > 0; i++) {
        check->depths = i + 1;
        check->overlap[i] = sums.overlap[i] / sums.rows[i];
        check->agrees[i] = sums.agrees[i] / sums.rows[i];
        check->gap[i] = sums.gap[i] / sums.rows[i];
    }
    report(t, ESP_TRAIN_VALIDATE, t->apart, t->apart);
    return status;
}

static int write_checkpoint(struct training *t)
{
    const int status =
        esp_checkpoint_write(t->checkpoint_path, t->fingerprint, &t->network.parameters,
                             &t->state, t->err, t->errlen);
    t->written = esp_clock();
    return status;
}

static int learn(struct training *t)
{
    const int64_t each = t->state.steps / t->epochs;
    int *order = calloc((size_t)t->learned, sizeof *order);
    int status = order ? ESP_OK : fail_memory(t), shuffled = -1;
    t->written = esp_clock();
    t->report.first = t->state.step;
    while (status == ESP_OK && t->state.step < t->state.steps) {
        const int epoch = (int)(t->state.step / each);
        t->report.epoch = epoch + 1;
        if (shuffled != epoch) {
            struct esp_rng rng = {.seed = t->o->seed,
                                  .stream = ESP_RNG_TRAIN | (uint64_t)(2 * epoch + 1) << 32};
            memcpy(order, t->order, (size_t)t->learned * sizeof *order);
            esp_rng_shuffle(&rng, order, t->learned);
            shuffled = epoch;
        }
        status = step(t, order, each);
        if (status < 0)
            break;
        if (!report(t, ESP_TRAIN_STEPS, t->state.step, t->state.steps))
            status = esp_fail(t->err, t->errlen, ESP_E_CANCELLED, "interrupted");
        if (status == ESP_OK && t->state.step % each == 0)
            status = validate(t, epoch + 1);
        const bool due = esp_clock() - t->written >= t->o->checkpoint_seconds;
        const int kept =
            status == ESP_E_CANCELLED || (status == ESP_OK && due) ? write_checkpoint(t) : 0;
        status = kept < 0 ? kept : status;
    }
    free(order);
    return status;
}

/* ------------------------------------------------------------------ the folder */

static int name_files(struct training *t)
{
    const struct {
        const char *name;
        char *path;
    } files[] = {{"model.safetensors", t->model_path},
                 {"features.bin", t->features_path},
                 {"checkpoint", t->checkpoint_path}};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (snprintf(files[i].path, sizeof t->model_path, "%s/%s", t->o->output,
                     files[i].name) >= (int)sizeof t->model_path)
            return esp_fail(t->err, t->errlen, ESP_E_FILE, "the name %.60s... is too long",
                            t->o->output);
    return ESP_OK;
}

static int begin_folder(struct training *t)
{
    const bool force = t->o->force, resume = t->o->resume;
    report(t, ESP_TRAIN_READ, 0, 1);
    if (mkdir(t->o->output, 0777) != 0 && errno != EEXIST)
        return esp_fail(t->err, t->errlen, ESP_E_FILE, "cannot create the folder %s: %s",
                        t->o->output, strerror(errno));
    int status = name_files(t);
    if (status < 0)
        return status;
    if (!force && access(t->model_path, F_OK) == 0)
        return esp_fail(t->err, t->errlen, ESP_E_FILE,
                        "%s exists; name a new folder, or add --force", t->model_path);
    const bool interrupted = access(t->checkpoint_path, F_OK) == 0;
    if (resume && !interrupted)
        return esp_fail(t->err, t->errlen, ESP_E_FILE,
                        "there is no checkpoint %s; train without --resume",
                        t->checkpoint_path);
    if (!resume && !force && interrupted)
        return esp_fail(
            t->err, t->errlen, ESP_E_FILE,
            "%s belongs to an interrupted training run; add --resume to continue it, "
            "or --force to start again",
            t->checkpoint_path);
    return ESP_OK;
}

static int end_folder(struct training *t)
{
    const struct esp_model *like = t->draft ? t->draft : t->target;
    const enum esp_dtype dtype = like->desc.layer[0].query.dtype;
    const int status = t->o->head
                           ? esp_head_folder_write(t->o->output, &t->network, t->target, dtype,
                                                   t->err, t->errlen)
                           : esp_draft_folder_write(t->o->output, &t->network, t->o->draft,
                                                    dtype, t->err, t->errlen);
    if (status == ESP_OK) {
        unlink(t->checkpoint_path);
        unlink(t->features_path);
    }
    return status;
}

static int resume(struct training *t)
{
    return t->o->resume
               ? esp_checkpoint_read(t->checkpoint_path, t->fingerprint, &t->network.parameters,
                                     &t->state, t->err, t->errlen)
               : (int)ESP_OK;
}

int esp_train(const struct esp_train_options *options, char *err, size_t errlen)
{
    static int (*const steps[])(struct training *) = {
        begin_folder, open_models, open_samples, open_batch, plan, resume, learn, end_folder};
    struct training t = {.o = options, .err = err, .errlen = errlen, .samples = {.fd = -1}};
    t.epochs = t.report.epochs = options->epochs > 0 ? options->epochs : 1;
    int status = esp_loss_preset(&t.loss, options->loss ? options->loss : "talf", options->head,
                                 err, errlen);
    for (size_t i = 0; i < sizeof steps / sizeof *steps && status == ESP_OK; i++)
        status = steps[i](&t);
    for (int i = 0; t.sample && i < t.texts; i++)
        esp_training_sample_close(&t.sample[i]);
    free(t.sample);
    free(t.order);
    free(t.state.loss);
    esp_learning_batch_close(&t.batch);
    esp_draft_samples_close(&t.samples);
    esp_loss_close(t.memory);
    esp_network_close(&t.network);
    esp_workers_close(t.workers);
    free(t.inverse_frequency);
    esp_cpu_free(t.embedding);
    esp_cpu_free(t.target_head);
    esp_model_close(t.draft);
    esp_model_close(t.target);
    return status;
}
