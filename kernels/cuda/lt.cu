/* lt.cu - computes products of many rows with cuBLASLt.
 *
 * cuBLASLt stores matrices by columns. For cuBLASLt, our y (rows, outputs) has the shape
 * (outputs, rows), and W is transposed, but x is not. A table contains the algorithm that
 * cuBLASLt's heuristic chose for each shape. If the heuristic failed or found no algorithm, the
 * table says so, and matmul.cu computes products of that shape.
 */
#include "kernels/cuda/cuda.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "kernels/cuda/lt_library.h"

struct choice {
    bool half, add;
    int outputs, rows;
    size_t columns, y_stride;
    bool found;
    cublasLtMatmulAlgo_t algorithm;
};

struct esp_cuda_lt {
    struct esp_lt_library call;
    cublasLtHandle_t handle;
    cublasLtMatmulDesc_t product; /* y = W^T x, 32-bit sums */
    void *workspace; /* (workspace_bytes) allocated when needed; captured graphs use it */
    size_t workspace_bytes;
    struct choice *choices;
    int count, room;
};

static const size_t MOST_WORKSPACE = (size_t)32 << 20;

/* Stores a message that says which function of cuBLASLt has failed. `function`: its name
 * without "cublasLt". Returns a status. */
static int failed(struct esp_cuda_backend *backend, const char *function, cublasStatus_t result)
{
    backend = esp_cuda_program(backend);
    snprintf(backend->failure, sizeof backend->failure, "cublasLt%s failed: cuBLAS status %d",
             function, (int)result);
    backend->answers = 0;
    return result == CUBLAS_STATUS_ALLOC_FAILED ? ESP_E_MEMORY : ESP_E_DEVICE;
}

#define LT(backend, function, ...)                                                             \
    do {                                                                                       \
        cublasStatus_t lt_result = (backend)->lt->call.function(__VA_ARGS__);                  \
        if (lt_result != CUBLAS_STATUS_SUCCESS)                                                \
            return failed((backend), #function, lt_result);                                    \
    } while (0)

/* Loads the newest version of cuBLASLt that works with this driver. If there is none, the
 * handle stays NULL. */
static int find_library(struct esp_cuda_backend *backend)
{
    struct esp_cuda_lt *lt = backend->lt;
    for (int version = ESP_LT_NEWEST; version >= ESP_LT_OLDEST && !lt->handle; version--) {
        if (!esp_lt_load(&lt->call, version))
            continue;
        cublasStatus_t made = lt->call.Create(&lt->handle);
        if (made == CUBLAS_STATUS_NOT_INITIALIZED || made == CUBLAS_STATUS_ARCH_MISMATCH)
            lt->handle = NULL; /* this version needs a newer driver or another device */
        else if (made != CUBLAS_STATUS_SUCCESS)
            return failed(backend, "Create", made);
    }
    return ESP_OK;
}

static int open_parts(struct esp_cuda_backend *backend)
{
    struct esp_cuda_lt *lt = backend->lt;
    const cublasOperation_t transposed = CUBLAS_OP_T;
    LT(backend, MatmulDescCreate, &lt->product, CUBLAS_COMPUTE_32F, CUDA_R_32F);
    LT(backend, MatmulDescSetAttribute, lt->product, CUBLASLT_MATMUL_DESC_TRANSA, &transposed,
       sizeof transposed);
    return ESP_OK;
}

int esp_cuda_lt_open(struct esp_cuda_backend *backend)
{
    if (backend->lt_asked)
        return ESP_OK;
    backend->lt = (struct esp_cuda_lt *)calloc(1, sizeof *backend->lt);
    if (!backend->lt)
        return ESP_E_MEMORY;
    int status = find_library(backend);
    const bool found = backend->lt->handle;
    if (status == ESP_OK && found)
        status = open_parts(backend);
    if (status < 0 || !found)
        esp_cuda_lt_close(backend);
    backend->lt_asked = status == ESP_OK;
    const size_t length = strlen(backend->device);
    if (status == ESP_OK && !found)
        snprintf(backend->device + length, sizeof backend->device - length, ", no cuBLASLt");
    return status;
}

void esp_cuda_lt_close(struct esp_cuda_backend *backend)
{
    struct esp_cuda_lt *lt = backend->lt;
    if (!lt)
        return;
    if (lt->workspace)
        esp_cuda_fine(cudaFree(lt->workspace));
    if (lt->product)
        lt->call.MatmulDescDestroy(lt->product);
    if (lt->handle)
        lt->call.Destroy(lt->handle);
    free(lt->choices);
    free(lt);
    backend->lt = NULL;
}

/* ------------------------------------------------------------------ shapes */

struct layouts {
    cublasLtMatrixLayout_t w, x, y;
};

static void close_layouts(const struct esp_cuda_lt *lt, struct layouts *l)
{
    const cublasLtMatrixLayout_t layouts[] = {l->w, l->x, l->y};
    for (cublasLtMatrixLayout_t layout : layouts)
        if (layout)
            lt->call.MatrixLayoutDestroy(layout);
}

static int open_layouts(struct esp_cuda_backend *backend, const struct esp_cuda_lt_product *p,
                        struct layouts *l)
{
    const cudaDataType type = p->half ? CUDA_R_16F : CUDA_R_16BF;
    LT(backend, MatrixLayoutCreate, &l->w, type, p->w->stride, (uint64_t)p->outputs,
       (int64_t)p->w->stride);
    LT(backend, MatrixLayoutCreate, &l->x, type, p->w->stride, (uint64_t)p->rows,
       (int64_t)p->x_stride);
    LT(backend, MatrixLayoutCreate, &l->y, CUDA_R_32F, (uint64_t)p->outputs, (uint64_t)p->rows,
       (int64_t)p->y_stride);
    return ESP_OK;
}

static struct choice *find(struct esp_cuda_lt *lt, const struct esp_cuda_lt_product *p)
{
    for (int i = 0; i < lt->count; i++) {
        struct choice *c = &lt->choices[i];
        if (c->half == p->half && c->add == p->add && c->outputs == p->outputs &&
            c->rows == p->rows && c->columns == p->w->stride && c->y_stride == p->y_stride)
            return c;
    }
    return NULL;
}

static int ask(struct esp_cuda_backend *backend, const struct esp_cuda_lt_product *p,
               const struct layouts *l, cublasLtMatmulPreference_t preference, size_t limit,
               struct choice *choice)
{
    struct esp_cuda_lt *lt = backend->lt;
    cublasLtMatmulHeuristicResult_t result;
    int found = 0;
    LT(backend, MatmulPreferenceSetAttribute, preference,
       CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &limit, sizeof limit);
    *choice = {p->half, p->add, p->outputs, p->rows, p->w->stride, p->y_stride, false, {}};
    const cublasStatus_t asked = lt->call.MatmulAlgoGetHeuristic(
        lt->handle, lt->product, l->w, l->x, l->y, l->y, preference, 1, &result, &found);
    if (asked != CUBLAS_STATUS_SUCCESS || found < 1 || result.state != CUBLAS_STATUS_SUCCESS)
        return ESP_OK;
    if (result.workspaceSize > lt->workspace_bytes) {
        ESP_CUDA(backend, cudaMalloc(&lt->workspace, MOST_WORKSPACE));
        lt->workspace_bytes = MOST_WORKSPACE;
    }
    choice->found = true;
    choice->algorithm = result.algo;
    return ESP_OK;
}

/* Chooses an algorithm for the shape of a product, unless one has been chosen. limit: how many
 * bytes of workspace the algorithm may use. */
static int choose(struct esp_cuda_backend *backend, const struct esp_cuda_lt_product *p,
                  size_t limit)
{
    struct esp_cuda_lt *lt = backend->lt;
    if (find(lt, p))
        return ESP_OK;
    if (lt->count == lt->room) {
        const int room = lt->room ? 2 * lt->room : 64;
        struct choice *more =
            (struct choice *)realloc(lt->choices, (size_t)room * sizeof *lt->choices);
        if (!more)
            return ESP_E_MEMORY;
        lt->choices = more;
        lt->room = room;
    }
    struct layouts l = {};
    cublasLtMatmulPreference_t preference = NULL;
    int status = open_layouts(backend, p, &l);
    if (status == ESP_OK) {
        cublasStatus_t made = lt->call.MatmulPreferenceCreate(&preference);
        status = made == CUBLAS_STATUS_SUCCESS
                     ? ask(backend, p, &l, preference, limit, &lt->choices[lt->count])
                     : failed(backend, "MatmulPreferenceCreate", made);
    }
    if (preference)
        lt->call.MatmulPreferenceDestroy(preference);
    close_layouts(lt, &l);
    lt->count += status == ESP_OK;
    return status;
}

int esp_cuda_lt_choose(struct esp_cuda_backend *backend, const struct esp_cuda_lt_product *p)
{
    return choose(backend, p, MOST_WORKSPACE);
}

/* If no algorithm has been chosen for the shape, this function chooses one. The existing
 * workspace must be large enough for the algorithm, because nothing is allocated while text is
 * generated. */
int esp_cuda_lt_run(struct esp_cuda_backend *backend, const struct esp_cuda_lt_product *p,
                    bool *done)
{
    struct esp_cuda_lt *lt = backend->lt;
    int status = choose(backend, p, lt->workspace_bytes);
    *done = status == ESP_OK && find(lt, p)->found;
    if (!*done)
        return status;
    const float one = 1.0f, before = p->add ? 1.0f : 0.0f;
    struct layouts l = {};
    status = open_layouts(backend, p, &l);
    if (status == ESP_OK) {
        cublasStatus_t result = lt->call.Matmul(
            lt->handle, lt->product, &one, p->w->data, l.w, p->x, l.x, &before, p->y, l.y, p->y,
            l.y, &find(lt, p)->algorithm, lt->workspace, lt->workspace_bytes, backend->stream);
        if (result != CUBLAS_STATUS_SUCCESS)
            status = failed(backend, "Matmul", result);
    }
    close_layouts(lt, &l);
    return status;
}
