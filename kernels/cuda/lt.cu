/* lt.cu - products of more rows than our own kernel is made for, by cuBLASLt.
 *
 * cuBLASLt thinks in columns: y (rows, outputs) in our order is its (outputs, rows), W is
 * transposed, x is not. Its heuristic is asked once per shape; the answer is kept in a table.
 */
#include "cuda/cuda.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

struct choice {
    bool half, add;
    int outputs, rows;
    size_t columns, y_stride;
    cublasLtMatmulAlgo_t algorithm;
};

struct esp_cuda_lt {
    cublasLtHandle_t handle;
    cublasLtMatmulDesc_t product; /* y = W^T x, 32-bit sums */
    void *workspace; /* (workspace_bytes), once an algorithm asks for some; graphs keep it */
    size_t workspace_bytes;
    struct choice *choices;
    int count, room;
};

static const size_t MOST_WORKSPACE = (size_t)32 << 20;

static int failed(struct esp_cuda_backend *backend, const char *call, cublasStatus_t result)
{
    snprintf(backend->failure, sizeof backend->failure, "%.*s failed: cuBLAS status %d",
             (int)strcspn(call, "("), call, (int)result);
    return result == CUBLAS_STATUS_ALLOC_FAILED ? ESP_E_MEMORY : ESP_E_DEVICE;
}

#define LT(backend, call)                                                                      \
    do {                                                                                       \
        cublasStatus_t lt_result = (call);                                                     \
        if (lt_result != CUBLAS_STATUS_SUCCESS)                                                \
            return failed((backend), #call, lt_result);                                        \
    } while (0)

static int open_parts(struct esp_cuda_backend *backend, struct esp_cuda_lt *lt)
{
    const cublasOperation_t transposed = CUBLAS_OP_T;
    LT(backend, cublasLtCreate(&lt->handle));
    LT(backend, cublasLtMatmulDescCreate(&lt->product, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    LT(backend, cublasLtMatmulDescSetAttribute(lt->product, CUBLASLT_MATMUL_DESC_TRANSA,
                                               &transposed, sizeof transposed));
    return ESP_OK;
}

int esp_cuda_lt_open(struct esp_cuda_backend *backend, char *err, size_t errlen)
{
    backend->lt = (struct esp_cuda_lt *)calloc(1, sizeof *backend->lt);
    if (!backend->lt)
        return esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory for cuBLASLt's table");
    int status = open_parts(backend, backend->lt);
    return status < 0 ? esp_cuda_tell(backend, status, err, errlen) : ESP_OK;
}

void esp_cuda_lt_close(struct esp_cuda_backend *backend)
{
    struct esp_cuda_lt *lt = backend->lt;
    if (!lt)
        return;
    if (lt->workspace)
        cudaFree(lt->workspace);
    if (lt->product)
        cublasLtMatmulDescDestroy(lt->product);
    if (lt->handle)
        cublasLtDestroy(lt->handle);
    free(lt->choices);
    free(lt);
    backend->lt = NULL;
}

/* ------------------------------------------------------------------ shapes */

struct layouts {
    cublasLtMatrixLayout_t w, x, y;
};

static void close_layouts(struct layouts *l)
{
    if (l->w)
        cublasLtMatrixLayoutDestroy(l->w);
    if (l->x)
        cublasLtMatrixLayoutDestroy(l->x);
    if (l->y)
        cublasLtMatrixLayoutDestroy(l->y);
}

static int open_layouts(struct esp_cuda_backend *backend, const struct esp_cuda_lt_product *p,
                        struct layouts *l)
{
    const cudaDataType type = p->half ? CUDA_R_16F : CUDA_R_16BF;
    LT(backend, cublasLtMatrixLayoutCreate(&l->w, type, p->w->stride, (uint64_t)p->outputs,
                                           (int64_t)p->w->stride));
    LT(backend, cublasLtMatrixLayoutCreate(&l->x, type, p->w->stride, (uint64_t)p->rows,
                                           (int64_t)p->x_stride));
    LT(backend, cublasLtMatrixLayoutCreate(&l->y, CUDA_R_32F, (uint64_t)p->outputs,
                                           (uint64_t)p->rows, (int64_t)p->y_stride));
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
    LT(backend, cublasLtMatmulPreferenceSetAttribute(preference,
                                                     CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                     &limit, sizeof limit));
    LT(backend, cublasLtMatmulAlgoGetHeuristic(lt->handle, lt->product, l->w, l->x, l->y, l->y,
                                               preference, 1, &result, &found));
    if (found < 1)
        return failed(backend, "cublasLtMatmulAlgoGetHeuristic", CUBLAS_STATUS_NOT_SUPPORTED);
    if (result.workspaceSize > lt->workspace_bytes) {
        ESP_CUDA(backend, cudaMalloc(&lt->workspace, MOST_WORKSPACE));
        lt->workspace_bytes = MOST_WORKSPACE;
    }
    *choice = {p->half, p->add, p->outputs, p->rows, p->w->stride, p->y_stride, result.algo};
    return ESP_OK;
}

/* limit: bytes of workspace that the algorithm may use. */
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
        cublasStatus_t made = cublasLtMatmulPreferenceCreate(&preference);
        status = made == CUBLAS_STATUS_SUCCESS
                     ? ask(backend, p, &l, preference, limit, &lt->choices[lt->count])
                     : failed(backend, "cublasLtMatmulPreferenceCreate", made);
    }
    if (preference)
        cublasLtMatmulPreferenceDestroy(preference);
    close_layouts(&l);
    lt->count += status == ESP_OK;
    return status;
}

int esp_cuda_lt_choose(struct esp_cuda_backend *backend, const struct esp_cuda_lt_product *p)
{
    return choose(backend, p, MOST_WORKSPACE);
}

/* A shape that was not foreseen makes do with the workspace that is there: nothing is allocated
 * while a text is being written. */
int esp_cuda_lt_run(struct esp_cuda_backend *backend, const struct esp_cuda_lt_product *p)
{
    struct esp_cuda_lt *lt = backend->lt;
    int status = choose(backend, p, lt->workspace_bytes);
    if (status < 0)
        return status;
    const float one = 1.0f, before = p->add ? 1.0f : 0.0f;
    struct layouts l = {};
    status = open_layouts(backend, p, &l);
    if (status == ESP_OK) {
        cublasStatus_t result =
            cublasLtMatmul(lt->handle, lt->product, &one, p->w->data, l.w, p->x, l.x, &before,
                           p->y, l.y, p->y, l.y, &find(lt, p)->algorithm, lt->workspace,
                           lt->workspace_bytes, backend->stream);
        if (result != CUBLAS_STATUS_SUCCESS)
            status = failed(backend, "cublasLtMatmul", result);
    }
    close_layouts(&l);
    return status;
}
