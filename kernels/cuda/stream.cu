/* stream.cu - copies layers to the device, for a model that is larger than the device's memory.
 *
 * The layers that do not fit are in pinned memory of the host, in the device's layout. Every
 * pass copies them in order to two buffers in turn, on a separate stream. While a layer is
 * computed, the next layer is copied. The two streams wait for each other only through events,
 * and the host waits for neither of them. After its last layer, a pass requests the first
 * layers of the next pass, which arrive while a tree is drafted. The kernels are the same as
 * for resident layers, so the results are bit-identical.
 *
 * So a pass takes as long as copying the layers, for any number of rows. Therefore large trees
 * save the most time (Xiong et al., "DySpec", 2024, the experiments with CPU offloading).
 */
#include "kernels/cuda/cuda.h"

#include <cstdlib>

enum { BUFFERS = 2 };

struct streamed_layer {
    int number;                   /* index of the layer in the model */
    size_t at, bytes;             /* offset in `host`, and size */
    struct esp_cuda_layer second; /* the layer's matrices and vectors in the second buffer */
};

struct esp_cuda_stream {
    struct esp_cuda_backend *backend;
    int layers, streamed; /* number of all layers, and number of layers in the host's memory */
    struct streamed_layer *layer; /* (streamed) in the order of the model */
    char *host;                   /* pinned memory with these layers */
    size_t host_bytes;
    char *buffer[BUFFERS]; /* on the device, in the allocation of the weights */
    cudaStream_t copies;
    cudaEvent_t arrived[BUFFERS], computed[BUFFERS];
    /* requested: number of layers that have been requested since the last restart. taken:
     * number of these layers that have been computed. The n-th layer is layer[n % streamed],
     * and is copied to buffer n % 2. requested = taken + 2, unless a pass has failed. */
    uint64_t requested, taken;
    double measured_bytes, measured_seconds;
};

/* ------------------------------------------------------------------ requests */

/* Queues the copy of the next layer into its buffer. The copy waits until the previous layer in
 * that buffer has been computed. */
static int request(struct esp_cuda_stream *s)
{
    struct esp_cuda_backend *backend = s->backend;
    const struct streamed_layer *layer = &s->layer[s->requested % (uint64_t)s->streamed];
    const int buffer = (int)(s->requested % BUFFERS);
    ESP_CUDA(backend, cudaStreamWaitEvent(s->copies, s->computed[buffer], 0));
    ESP_CUDA(backend, cudaMemcpyAsync(s->buffer[buffer], s->host + layer->at, layer->bytes,
                                      cudaMemcpyHostToDevice, s->copies));
    ESP_CUDA(backend, cudaEventRecord(s->arrived[buffer], s->copies));
    s->requested++;
    return ESP_OK;
}

/* Forgets all earlier requests, and requests the first layers of a pass. */
static int restart(struct esp_cuda_stream *s)
{
    s->requested = s->taken = 0;
    for (int i = 0; i < BUFFERS; i++) {
        ESP_CUDA(s->backend, cudaEventRecord(s->computed[i], s->backend->stream));
        int status = request(s);
        if (status < 0)
            return status;
    }
    return ESP_OK;
}

int esp_cuda_stream_begin(struct esp_cuda_stream *s)
{
    if (!s || (s->taken % (uint64_t)s->streamed == 0 && s->requested == s->taken + BUFFERS))
        return ESP_OK;
    return restart(s); /* the last pass ended early */
}

static bool is_next(const struct esp_cuda_stream *s, int layer)
{
    return s && s->layer[s->taken % (uint64_t)s->streamed].number == layer;
}

int esp_cuda_stream_hold(struct esp_cuda_weights *w, int layer,
                         const struct esp_cuda_layer **held)
{
    const struct esp_cuda_stream *s = w->stream;
    *held = &w->layer[layer];
    if (!is_next(s, layer))
        return ESP_OK;
    const int buffer = (int)(s->taken % BUFFERS);
    if (buffer == 1)
        *held = &s->layer[s->taken % (uint64_t)s->streamed].second;
    ESP_CUDA(s->backend, cudaStreamWaitEvent(s->backend->stream, s->arrived[buffer], 0));
    return ESP_OK;
}

int esp_cuda_stream_release(struct esp_cuda_weights *w, int layer)
{
    struct esp_cuda_stream *s = w->stream;
    if (!is_next(s, layer))
        return ESP_OK;
    ESP_CUDA(s->backend, cudaEventRecord(s->computed[s->taken % BUFFERS], s->backend->stream));
    s->taken++;
    return request(s);
}

/* ------------------------------------------------------------------ opening */

struct esp_cuda_stream *esp_cuda_stream_open(struct esp_cuda_backend *backend, int layers,
                                             int streamed)
{
    struct esp_cuda_stream *s = (struct esp_cuda_stream *)calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->backend = backend;
    s->layers = layers;
    s->layer = (struct streamed_layer *)calloc((size_t)streamed, sizeof *s->layer);
    if (!s->layer) {
        esp_cuda_stream_close(s);
        return NULL;
    }
    return s;
}

void esp_cuda_stream_close(struct esp_cuda_stream *s)
{
    if (!s)
        return;
    if (s->copies) {
        esp_cuda_fine(cudaStreamSynchronize(s->copies));
        esp_cuda_fine(cudaStreamDestroy(s->copies));
    }
    for (int i = 0; i < BUFFERS; i++) {
        if (s->arrived[i])
            esp_cuda_fine(cudaEventDestroy(s->arrived[i]));
        if (s->computed[i])
            esp_cuda_fine(cudaEventDestroy(s->computed[i]));
    }
    esp_cuda_fine(cudaFreeHost(s->host));
    free(s->layer);
    free(s);
}

void esp_cuda_stream_put(struct esp_cuda_stream *s, int layer, size_t bytes,
                         const struct esp_cuda_layer *second)
{
    s->layer[s->streamed++] = {layer, s->host_bytes, bytes, *second};
    s->host_bytes += bytes;
}

void esp_cuda_stream_set_buffers(struct esp_cuda_stream *s, char *first, char *second)
{
    s->buffer[0] = first;
    s->buffer[1] = second;
}

size_t esp_cuda_stream_host_bytes(const struct esp_cuda_stream *s)
{
    return s ? s->host_bytes : 0;
}

int esp_cuda_stream_pin(struct esp_cuda_stream *s)
{
    ESP_CUDA(s->backend, cudaMallocHost((void **)&s->host, s->host_bytes));
    return ESP_OK;
}

char *esp_cuda_stream_host(const struct esp_cuda_stream *s, int layer, const void *to)
{
    for (int i = 0; s && i < s->streamed; i++)
        if (s->layer[i].number == layer)
            return s->host + s->layer[i].at + ((const char *)to - s->buffer[0]);
    return NULL;
}

/* Times the copies of the first layers, which the first pass needs anyway. */
static int measure(struct esp_cuda_stream *s, cudaEvent_t begin, cudaEvent_t end)
{
    float milliseconds = 0.0f;
    ESP_CUDA(s->backend, cudaStreamSynchronize(s->backend->stream));
    ESP_CUDA(s->backend, cudaEventRecord(begin, s->copies));
    int status = restart(s);
    if (status < 0)
        return status;
    ESP_CUDA(s->backend, cudaEventRecord(end, s->copies));
    ESP_CUDA(s->backend, cudaEventSynchronize(end));
    ESP_CUDA(s->backend, cudaEventElapsedTime(&milliseconds, begin, end));
    s->measured_bytes = (double)s->layer[0].bytes + (double)s->layer[1 % s->streamed].bytes;
    s->measured_seconds = milliseconds * 1e-3;
    return ESP_OK;
}

int esp_cuda_stream_start(struct esp_cuda_stream *s)
{
    struct esp_cuda_backend *backend = s->backend;
    cudaEvent_t begin = NULL, end = NULL;
    ESP_CUDA(backend, cudaStreamCreateWithFlags(&s->copies, cudaStreamNonBlocking));
    for (int i = 0; i < BUFFERS; i++) {
        ESP_CUDA(backend, cudaEventCreateWithFlags(&s->arrived[i], cudaEventDisableTiming));
        ESP_CUDA(backend, cudaEventCreateWithFlags(&s->computed[i], cudaEventDisableTiming));
    }
    ESP_CUDA(backend, cudaEventCreate(&begin));
    cudaError_t made = cudaEventCreate(&end);
    int status = made == cudaSuccess ? measure(s, begin, end)
                                     : esp_cuda_failed(backend, "cudaEventCreate", made);
    esp_cuda_fine(cudaEventDestroy(begin));
    if (made == cudaSuccess)
        esp_cuda_fine(cudaEventDestroy(end));
    return status;
}

void esp_cuda_stream_count(const struct esp_cuda_stream *s, struct esp_streamed *streamed)
{
    size_t most = 0;
    for (int i = 0; i < s->streamed; i++)
        most = s->layer[i].bytes > most ? s->layer[i].bytes : most;
    streamed->layers = s->layers;
    streamed->resident = s->layers - s->streamed;
    streamed->buffer_bytes = BUFFERS * most;
    streamed->pass_bytes = s->host_bytes;
    streamed->bytes = s->measured_bytes;
    streamed->seconds = s->measured_seconds;
}
