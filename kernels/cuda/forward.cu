/* forward.cu - runs one batch through the model: sends the input of the pass to the device, and
 * captures and launches CUDA graphs. model_layers.cu launches the kernels.
 *
 * The host writes the numbers that change from pass to pass to a pinned block. Before the pass
 * this block is copied to the device, where the kernels read it. There are four such blocks,
 * used in turn, so the host does not wait for a copy in progress. No other arguments of the
 * kernels change, so a pass of few rows can be captured once as a CUDA graph and replayed with
 * one call. There are graphs for 1, 4, 16 and 64 rows, and for texts of 1, 2, 4, ... chunks of
 * keys. A pass may have fewer rows than its graph, because the kernels stop at the last row of
 * the pass. Larger passes are launched kernel by kernel.
 *
 * If several GPUs compute a model (gpus.h), each GPU has its own graph, which contains the
 * GPU's exchanges.
 */
#include "kernels/cuda/blocks.h"
#include "kernels/cuda/gpus.h"
#include "kernels/cuda/model_layers.h"
#include "kernels/cuda/rows.h"

#include <cstring>

static const int bucket_rows[ESP_CUDA_BUCKETS] = {1, 4, 16, 64};
/* If a model has more bytes of weights than this, a pass of 64 rows takes the device longer
 * than the host needs to launch its kernels. */
static const size_t LAUNCH_BOUND_BYTES = (size_t)1 << 30;

/* ------------------------------------------------------------------ the input of a pass */

int esp_cuda_take_slot(struct esp_cuda_cache *c, char **slot)
{
    c->slot = (c->slot + 1) % ESP_CUDA_SLOTS;
    ESP_CUDA(esp_cuda_backend_of(c), cudaEventSynchronize(c->copied[c->slot]));
    *slot = c->pass_host[c->slot];
    return ESP_OK;
}

int esp_cuda_send_slot(struct esp_cuda_cache *c, size_t at, size_t bytes)
{
    struct esp_cuda_backend *backend = esp_cuda_backend_of(c);
    ESP_CUDA(backend, cudaMemcpyAsync(c->pass_device + at, c->pass_host[c->slot] + at, bytes,
                                      cudaMemcpyHostToDevice, backend->stream));
    ESP_CUDA(backend, cudaEventRecord(c->copied[c->slot], backend->stream));
    return ESP_OK;
}

template <typename V>
static V *in_slot(const struct esp_cuda_cache *c, char *slot, const V *on_device)
{
    return (V *)(slot + ((const char *)on_device - c->pass_device));
}

/* Sets to[i] to row[i], or to i if `row` is NULL, for each of `count` rows. */
static void list_rows(int32_t *to, const int32_t *row, int count)
{
    for (int i = 0; i < count; i++)
        to[i] = row ? row[i] : i;
}

/* Fills in the part of the pinned block `slot` that says where the pass reads and writes hidden
 * states. */
static void send_states(struct esp_cuda_cache *c, const struct esp_batch *b, char *slot,
                        struct esp_cuda_pass *pass)
{
    const struct esp_cuda_rows *input = (const struct esp_cuda_rows *)b->input;
    if (b->states) {
        const struct esp_cuda_rows *to = (const struct esp_cuda_rows *)b->states->to;
        pass->states = b->states->count;
        memcpy(pass->state, b->states->state, sizeof pass->state);
        pass->states_to = to->data;
        pass->states_stride = to->stride;
        list_rows((int32_t *)in_slot(c, slot, c->at.states_row), b->states->row, b->rows);
    }
    if (input) {
        pass->input = input->data;
        pass->input_stride = input->stride;
        list_rows((int32_t *)in_slot(c, slot, c->at.input_row), b->input_row, b->rows);
    }
}

/* Returns whether this is the GPU of rank 0, which outputs logits and hidden states. */
static bool is_first(const struct esp_cuda_cache *c)
{
    const struct esp_cuda_part *part = esp_cuda_weights_of(c)->part;
    return !part || part->rank == 0;
}

/* Sends the numbers of a pass to the device. `step`: arguments for a graph that ends with a
 * draft step, see struct esp_cuda_step. */
static int send_pass(struct esp_cuda_cache *c, const struct esp_batch *b,
                     const struct esp_cuda_step *step)
{
    char *slot = NULL;
    int status = esp_cuda_take_slot(c, &slot);
    if (status < 0)
        return status;
    const struct esp_cuda_rows *logits = (const struct esp_cuda_rows *)b->logits;
    const size_t count = (size_t)b->rows;
    struct esp_cuda_pass pass = {};
    int visits = 0;
    if (count > 0) { /* count is 0 if the pass only changes states */
        memcpy((void *)in_slot(c, slot, c->at.tokens), b->tokens, count * sizeof(int32_t));
        memcpy((void *)in_slot(c, slot, c->at.positions), b->positions,
               count * sizeof(int32_t));
    }
    pass.rows = b->rows;
    pass.first = b->first;
    pass.prefix = b->prefix;
    pass.words = b->mask ? b->mask_words : 0;
    if (b->window) {
        pass.sinks = b->window->sinks;
        pass.recent = b->window->recent;
        pass.dropped = b->window->dropped;
        pass.shift = pass.dropped % ESP_CUDA_CHUNK;
    }
    pass.wanted = esp_batch_wanted(b, (int32_t *)in_slot(c, slot, c->at.wanted),
                                   (int32_t *)in_slot(c, slot, c->at.wanted_at));
    pass.step = *step;
    if (logits && is_first(c)) {
        pass.logits = logits->data;
        pass.logits_stride = logits->stride;
        pass.logits_vocabulary = logits->base.vocabulary;
    }
    if (is_first(c)) {
        send_states(c, b, slot, &pass);
    } else if (c->own_logits) {
        pass.logits = c->own_logits;
        pass.logits_stride = c->own_logits_width;
        pass.logits_vocabulary = esp_cuda_weights_of(c)->head.rows;
        list_rows((int32_t *)in_slot(c, slot, c->at.wanted_at), NULL, pass.wanted);
    }
    if (c->states.layers > 0) {
        pass.entries = c->states.plan.entries;
        pass.steps = c->states.plan.groups;
        pass.folded = c->states.plan.start;
        visits =
            esp_cuda_states_write(c, (struct esp_cuda_visit *)in_slot(c, slot, c->at.visit));
    }
    memcpy(slot, &pass, sizeof pass);
    const size_t masks = count * (size_t)pass.words * sizeof(uint64_t);
    if (masks > 0)
        memcpy((void *)in_slot(c, slot, c->at.mask), b->mask, masks);
    status = esp_cuda_send_slot(c, 0, ((const char *)c->at.mask - c->pass_device) + masks);
    if (status == ESP_OK && visits > 0)
        status = esp_cuda_send_slot(c, (const char *)c->at.visit - c->pass_device,
                                    (size_t)visits * sizeof *c->at.visit);
    return status;
}

/* ------------------------------------------------------------------ graphs */

/* Graphs are captured for 1, 2, 4, ... chunks and for a full cache. Sets *captured to the
 * smallest of these numbers of chunks that is at least `chunks`, and returns its index. */
static int length_of(const struct esp_cuda_cache *c, int chunks, int *captured)
{
    int i = 0;
    for (*captured = 1; *captured < chunks && i < ESP_CUDA_LENGTHS - 1; i++)
        *captured *= 2;
    if (*captured < chunks || *captured > c->chunks)
        *captured = c->chunks;
    return i;
}

/* Returns whether graphs contain the product with fc of a draft head. EAGLE uses fc in every
 * pass. EAGLE-3 uses it only in passes that read hidden states of the target. Its draft steps
 * are more frequent and read the head's own hidden states, without fc. */
static bool graphs_use_fc(const struct esp_cuda_cache *c)
{
    return esp_cuda_desc_of(c)->reads == ESP_READS_EAGLE;
}

/* Loads the kernels of a pass, see esp_loading_kernels. */
static int load_kernels(struct esp_cuda_cache *c, const struct esp_cuda_shape *s)
{
    esp_loading_kernels = true;
    const int status = esp_cuda_run_layers(c, s);
    esp_loading_kernels = false;
    return status;
}

/* Makes an executable graph, *exec, from `graph`, and allocates its memory on the device. *exec
 * stays NULL if there is not enough memory. */
static int instantiate(struct esp_cuda_backend *backend, cudaGraph_t graph,
                       cudaGraphExec_t *exec)
{
    cudaError_t made = cudaGraphInstantiate(exec, graph, 0);
    if (made == cudaSuccess) {
        made = cudaGraphUpload(*exec, backend->stream);
        if (made != cudaSuccess)
            esp_cuda_fine(cudaGraphExecDestroy(*exec));
    }
    if (made == cudaSuccess)
        return ESP_OK;
    *exec = NULL;
    return made == cudaErrorMemoryAllocation && !esp_cuda_fine(made)
               ? ESP_OK
               : esp_cuda_failed(backend, "cudaGraphInstantiate", made);
}

int esp_cuda_walk(struct esp_cuda_cache *c, int rows, int context)
{
    struct esp_cuda_shape s = {};
    s.rows = s.head_rows = rows;
    s.keys = context + rows;
    s.chunks = (s.keys + ESP_CUDA_CHUNK - 1) / ESP_CUDA_CHUNK;
    s.fc = graphs_use_fc(c);
    return load_kernels(c, &s);
}

/* Ends the capture on one GPU, and makes the executable graph if `status` is ESP_OK. */
static int end_capture(struct esp_cuda_cache *c, int status, cudaGraphExec_t *exec)
{
    struct esp_cuda_backend *backend = esp_cuda_backend_of(c);
    cudaGraph_t graph = NULL;
    cudaError_t ended = cudaStreamEndCapture(backend->stream, &graph);
    if (!esp_cuda_fine(ended) && status == ESP_OK)
        status = esp_cuda_failed(backend, "cudaStreamEndCapture", ended);
    if (status == ESP_OK)
        status = instantiate(backend, graph, exec);
    if (graph)
        esp_cuda_fine(cudaGraphDestroy(graph));
    return status;
}

/* Captures a pass on each GPU, as graph[step][i][j] of the GPU's cache. */
static int capture(struct esp_cuda_cache *c, const struct esp_cuda_shape *s, int i, int j)
{
    int captures = 0, status = load_kernels(c, s);
    for (struct esp_cuda_cache *r = c; esp_cuda_enter_rank(r); r = r->next) {
        const cudaError_t begun =
            status < 0 ? cudaSuccess
                       : cudaStreamBeginCapture(esp_cuda_backend_of(r)->stream,
                                                cudaStreamCaptureModeThreadLocal);
        if (begun != cudaSuccess)
            status = esp_cuda_failed(esp_cuda_backend_of(r), "cudaStreamBeginCapture", begun);
        captures += status == ESP_OK;
    }
    if (status == ESP_OK)
        status = esp_cuda_run_layers(c, s);
    for (struct esp_cuda_cache *r = c; esp_cuda_enter_rank(r); r = r->next) {
        if (captures-- > 0)
            status = end_capture(r, status, &r->graph[s->step][i][j]);
    }
    return status;
}

/* Returns whether passes of `rows` rows should have a graph. They should if a batch can have
 * that many rows, and if the host would need more time to launch their kernels one by one than
 * the device needs to run them. */
static bool launch_bound(const struct esp_cuda_cache *c, int rows, bool step)
{
    const bool small = c->base.weights->bytes < LAUNCH_BOUND_BYTES;
    return rows <= c->max_batch && (small || (rows <= ESP_CUDA_OWN_ROWS && !step));
}

/* Captures the graph for passes of up to bucket_rows[i] rows and texts of up to 2^j chunks.
 * *room becomes false if there is not enough memory for the graph, or if the graph leaves less
 * than `least` bytes of the device's memory free. */
static int capture_one(struct esp_cuda_cache *c, bool step, int i, int j, size_t least,
                       bool *room)
{
    struct esp_cuda_shape s = {};
    size_t left, total;
    s.rows = s.head_rows = bucket_rows[i];
    s.step = step;
    s.fc = graphs_use_fc(c);
    length_of(c, 1 << j, &s.chunks);
    const int status = capture(c, &s, i, j);
    if (status < 0)
        return status;
    *room = true;
    for (struct esp_cuda_cache *r = c; esp_cuda_enter_rank(r); r = r->next)
        *room = *room && r->graph[step][i][j];
    /* Either all GPUs have the graph, or none has it. */
    for (struct esp_cuda_cache *r = c; esp_cuda_enter_rank(r); r = r->next) {
        if (!*room && r->graph[step][i][j])
            esp_cuda_fine(cudaGraphExecDestroy(r->graph[step][i][j]));
        if (!*room)
            r->graph[step][i][j] = NULL;
    }
    esp_cuda_enter_rank(c);
    ESP_CUDA(esp_cuda_backend_of(c), cudaMemGetInfo(&left, &total));
    *room = *room && left >= least;
    return ESP_OK;
}

/* Captures graphs for short texts first, because their passes gain most. The memory of a graph
 * is known only after the capture, so the last graph may exceed the limit. Passes over streamed
 * layers get no graph. They wait for the copies of layers anyway, and the buffers of these
 * layers change from pass to pass. A pass without a graph launches its kernels one by one. */
static int capture_graphs(struct esp_cuda_cache *c)
{
    const struct esp_cuda_weights *w = esp_cuda_weights_of(c);
    const size_t limit = w->base.desc->graph_bytes;
    size_t before, total;
    bool room = !w->stream;
    int last, status = ESP_OK;
    const int lengths = length_of(c, c->chunks, &last) + 1;
    ESP_CUDA(esp_cuda_backend_of(c), cudaMemGetInfo(&before, &total));
    const size_t least = limit > 0 && limit < before ? before - limit : 0;
    for (int j = 0; j < lengths; j++)
        for (int step = 0; step < 2; step++)
            for (int i = 0; i < ESP_CUDA_BUCKETS && status == ESP_OK && room; i++)
                if (launch_bound(c, bucket_rows[i], step))
                    status = capture_one(c, step, i, j, least, &room);
    return status;
}

int esp_cuda_prepare(struct esp_cuda_cache *c)
{
    int status = ESP_OK;
    for (struct esp_cuda_cache *r = c; esp_cuda_enter_rank(r); r = r->next) {
        struct esp_cuda_backend *backend = esp_cuda_backend_of(r);
        const bool own = backend->exact || esp_cuda_weights_of(r)->blocks;
        if (status == ESP_OK && !own)
            status = esp_cuda_lt_open(backend);
        if (status == ESP_OK && !own && backend->lt)
            status = esp_cuda_choose_algorithms(r);
    }
    esp_cuda_enter_rank(c);
    return status == ESP_OK ? capture_graphs(c) : status;
}

/* ------------------------------------------------------------------ the batch */

/* Returns the graph for a pass, or NULL if there is none. The graph ends with logits or with a
 * draft step. */
static cudaGraphExec_t find_graph(const struct esp_cuda_cache *c,
                                  const struct esp_cuda_shape *s, const struct esp_batch *b)
{
    const struct esp_model_desc *d = esp_cuda_desc_of(c);
    int captured;
    if (esp_cuda_backend_of(c)->times)
        return NULL;
    for (int i = 0; s->head_rows > 0 && s->fc == graphs_use_fc(c) && i < ESP_CUDA_BUCKETS; i++)
        if (s->rows <= bucket_rows[i])
            return s->step && !esp_cuda_step_fits(b->logits, d, b->step, bucket_rows[i])
                       ? NULL
                       : c->graph[s->step][i][length_of(c, s->chunks, &captured)];
    return NULL;
}

/* Returns whether the rows of the wanted logits are adjacent and in order. */
static bool adjacent(const struct esp_batch *b)
{
    for (int i = 0; b->logits_row && i < b->rows; i++)
        if (b->logits_row[i] != b->logits_row[0] + i || b->logits_row[0] < 0)
            return false;
    return true;
}

/* Sends the numbers of a pass to all GPUs. If there is a graph for the pass, launches it on all
 * GPUs. Sets *launched to whether there is such a graph. */
static int launch(struct esp_cuda_cache *c, const struct esp_cuda_shape *s,
                  const struct esp_batch *b, const struct esp_cuda_step *step, bool *launched)
{
    *launched = false;
    for (struct esp_cuda_cache *r = c; esp_cuda_enter_rank(r); r = r->next) {
        const int status = send_pass(r, b, step);
        if (status < 0)
            return status;
        cudaGraphExec_t graph = find_graph(r, s, b);
        *launched = graph != NULL;
        if (graph)
            ESP_CUDA(esp_cuda_backend_of(r),
                     cudaGraphLaunch(graph, esp_cuda_backend_of(r)->stream));
    }
    return ESP_OK;
}

/* Runs any pass except a draft step that is captured as one graph. run_step() runs such a draft
 * step. */
static int run_batch(struct esp_cuda_cache *c, const struct esp_batch *b,
                     struct esp_cuda_shape *s)
{
    const struct esp_cuda_step none = {};
    const struct esp_cuda_rows *logits = (const struct esp_cuda_rows *)b->logits;
    bool launched;
    s->step = false;
    const int status = launch(c, s, b, &none, &launched);
    if (status < 0 || launched)
        return status;
    if (s->head_rows > 0) {
        s->stride = logits->stride;
        s->vocabulary = logits->base.vocabulary;
        if (adjacent(b))
            s->logits = logits->data + (b->logits_row ? b->logits_row[0] : 0) * logits->stride;
    }
    return esp_cuda_run_layers(c, s);
}

/* Runs a draft step as one graph: the pass, softmax and top-k. */
static int run_step(struct esp_cuda_cache *c, const struct esp_batch *b,
                    const struct esp_cuda_shape *s)
{
    struct esp_cuda_step step = {};
    bool launched;
    int status = esp_cuda_step_begin(b->logits, b->step, s->head_rows, &step);
    if (status == ESP_OK)
        status = launch(c, s, b, &step, &launched);
    esp_cuda_enter_rank(c);
    if (status < 0)
        return status;
    return esp_cuda_finish(b->logits, ESP_OK, b->step->when);
}

static int forward(struct esp_cache *cache, const struct esp_batch *batch)
{
    struct esp_cuda_cache *c = (struct esp_cuda_cache *)cache;
    const struct esp_model_desc *d = cache->weights->desc;
    if (!esp_batch_fits(batch, cache, c->rows, c->max_batch) ||
        (batch->mask && batch->mask_words > c->at.seen_stride / 64))
        return ESP_E_ARGUMENT;
    struct esp_cuda_shape s = {};
    s.rows = batch->rows;
    s.states = batch->states != NULL;
    s.fc =
        batch->input && (d->reads == ESP_READS_EAGLE || batch->input->vocabulary == d->input);
    const int shift = batch->window ? batch->window->dropped % ESP_CUDA_CHUNK : 0;
    s.chunks = (batch->first + batch->rows + shift + ESP_CUDA_CHUNK - 1) / ESP_CUDA_CHUNK;
    s.keys = batch->first + batch->rows;
    s.step = batch->step != NULL;
    s.head_rows = esp_batch_wanted(batch, NULL, NULL);
    int status = c->states.layers > 0 ? esp_cuda_states_begin(c, batch) : ESP_OK;
    if (status < 0)
        return status;
    const bool whole_step = s.step && find_graph(c, &s, batch);
    status = whole_step ? run_step(c, batch, &s) : run_batch(c, batch, &s);
    if (status == ESP_OK && c->states.layers > 0)
        esp_cuda_states_end(c);
    if (status < 0 || whole_step || !batch->step)
        return status;
    return esp_batch_step(batch, in_slot(c, c->pass_host[c->slot], c->at.wanted_at),
                          s.head_rows);
}

int esp_cuda_run_fold(struct esp_cuda_cache *c, const struct esp_batch *none)
{
    const struct esp_cuda_step step = {};
    const int status = send_pass(c, none, &step);
    if (status < 0)
        return status;
    return esp_cuda_run_states(c);
}

int esp_cuda_forward(struct esp_cache *cache, const struct esp_batch *batch)
{
    esp_cuda_enter(cache->weights->backend);
    return esp_cuda_end((struct esp_cuda_backend *)cache->weights->backend,
                        forward(cache, batch));
}
