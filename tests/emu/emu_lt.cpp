/* emu_lt.cpp - computes a plain matrix product in place of cuBLASLt; see emu_lt.h.
 *
 * It has two algorithms. Algorithm 1 needs no workspace. Algorithm 2 needs one, and overwrites
 * all of it. Both divide a sum into pieces. The number of pieces depends on the algorithm and
 * the shape. The product is queued like a kernel, but descriptions and scalars are copied when
 * the function is called.
 */
#include "tests/emu/emu_lt.h"

#include <cstdio>
#include <vector>

#include "tests/emu/emu_block.h"
#include "tests/emu/emu_control.h"
#include "tests/emu/emu_state.h"

struct cublasLtContext {
    int unused;
};
struct cublasLtMatmulDescOpaque_t {
    cublasOperation_t transpose_a = CUBLAS_OP_N, transpose_b = CUBLAS_OP_N;
    cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    const void *bias = nullptr;
    bool bias_typed = false;
    cudaDataType bias_type = CUDA_R_32F;
};
struct cublasLtMatrixLayoutOpaque_t {
    cudaDataType type;
    uint64_t rows, columns;
    int64_t leading;
    cublasLtOrder_t order = CUBLASLT_ORDER_COL;
    int32_t batch = 1;
    int64_t offset = 0;
};
struct cublasLtMatmulPreferenceOpaque_t {
    uint64_t workspace = 0;
};
typedef cublasLtMatrixLayoutOpaque_t layout;

static const size_t workspace_need = 4096;

#define LT_CALL()                                                                              \
    std::lock_guard<std::recursive_mutex> emu_locked(emu_mutex());                             \
    if (cudaError_t planted = emu_count_call(__func__))                                        \
    return planted == cudaErrorMemoryAllocation ? CUBLAS_STATUS_ALLOC_FAILED                   \
                                                : CUBLAS_STATUS_INTERNAL_ERROR

#define LT_STATUSES(X)                                                                         \
    X(CUBLAS_STATUS_SUCCESS, "success")                                                        \
    X(CUBLAS_STATUS_NOT_INITIALIZED, "the library was not initialized")                        \
    X(CUBLAS_STATUS_ALLOC_FAILED, "the resource allocation failed")                            \
    X(CUBLAS_STATUS_INVALID_VALUE, "an unsupported value or parameter was passed")             \
    X(CUBLAS_STATUS_ARCH_MISMATCH, "the function requires a feature absent from the device")   \
    X(CUBLAS_STATUS_EXECUTION_FAILED, "the GPU program failed to execute")                     \
    X(CUBLAS_STATUS_INTERNAL_ERROR, "an internal operation failed")                            \
    X(CUBLAS_STATUS_NOT_SUPPORTED, "the functionality requested is not supported")

const char *cublasLtGetStatusName(cublasStatus_t status)
{
    switch (status) {
#define X(name, text)                                                                          \
    case name:                                                                                 \
        return #name;
        LT_STATUSES(X)
#undef X
    }
    return "unknown cublas status";
}

const char *cublasLtGetStatusString(cublasStatus_t status)
{
    switch (status) {
#define X(name, text)                                                                          \
    case name:                                                                                 \
        return text;
        LT_STATUSES(X)
#undef X
    }
    return "unknown cublas status";
}

/* ------------------------------------------------------------------ the library */

/* ------------------------------------------------------------------ descriptions */

template <typename T>
static cublasStatus_t give_back(T *handle, const char *kind, const char *name)
{
    std::lock_guard<std::recursive_mutex> locked(emu_mutex());
    cudaError_t planted = emu_count_call(name);
    if (!emu_live_remove(handle, kind))
        return CUBLAS_STATUS_INVALID_VALUE;
    delete handle;
    return planted ? CUBLAS_STATUS_INTERNAL_ERROR : CUBLAS_STATUS_SUCCESS;
}

template <typename T> static bool set(T *field, const void *value, size_t bytes)
{
    if (bytes != sizeof *field)
        return false;
    memcpy(field, value, bytes);
    return true;
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle)
{
    LT_CALL();
    if (emu_device_count() == 0 || emu_driver_version() / 1000 < emu_lt_version())
        return CUBLAS_STATUS_NOT_INITIALIZED;
    *handle = new cublasLtContext();
    emu_live_add(*handle, "cuBLASLt handles", 0);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle)
{
    return give_back(handle, "cuBLASLt handles", __func__);
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *desc, cublasComputeType_t,
                                        cudaDataType_t scale)
{
    LT_CALL();
    if (scale != CUDA_R_32F)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    *desc = new cublasLtMatmulDescOpaque_t();
    emu_live_add(*desc, "cuBLASLt products", 0);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void *value, size_t bytes)
{
    LT_CALL();
    if (!emu_live(desc, "cuBLASLt products"))
        return CUBLAS_STATUS_INVALID_VALUE;
    bool ok = false;
    switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
        ok = set(&desc->transpose_a, value, bytes);
        break;
    case CUBLASLT_MATMUL_DESC_TRANSB:
        ok = set(&desc->transpose_b, value, bytes);
        break;
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
        ok = set(&desc->epilogue, value, bytes);
        break;
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
        ok = set(&desc->bias, value, bytes);
        break;
    case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE:
        ok = desc->bias_typed = set(&desc->bias_type, value, bytes);
        break;
    }
    return ok ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc)
{
    return give_back(desc, "cuBLASLt products", __func__);
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *made, cudaDataType type,
                                          uint64_t rows, uint64_t columns, int64_t leading)
{
    LT_CALL();
    if (rows == 0 || columns == 0 || leading <= 0)
        return CUBLAS_STATUS_INVALID_VALUE;
    *made = new layout();
    (*made)->type = type;
    (*made)->rows = rows;
    (*made)->columns = columns;
    (*made)->leading = leading;
    emu_live_add(*made, "cuBLASLt layouts", 0);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t to,
                                                cublasLtMatrixLayoutAttribute_t attribute,
                                                const void *value, size_t bytes)
{
    LT_CALL();
    if (!emu_live(to, "cuBLASLt layouts"))
        return CUBLAS_STATUS_INVALID_VALUE;
    bool ok = attribute == CUBLASLT_MATRIX_LAYOUT_ORDER ? set(&to->order, value, bytes)
              : attribute == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT
                  ? set(&to->batch, value, bytes)
                  : set(&to->offset, value, bytes);
    return ok ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t made)
{
    return give_back(made, "cuBLASLt layouts", __func__);
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *preference)
{
    LT_CALL();
    *preference = new cublasLtMatmulPreferenceOpaque_t();
    emu_live_add(*preference, "cuBLASLt preferences", 0);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t
cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                     cublasLtMatmulPreferenceAttributes_t attribute,
                                     const void *value, size_t bytes)
{
    LT_CALL();
    if (!emu_live(preference, "cuBLASLt preferences"))
        return CUBLAS_STATUS_INVALID_VALUE;
    uint32_t other;
    bool ok = attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES
                  ? set(&preference->workspace, value, bytes)
                  : set(&other, value, bytes);
    return ok ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference)
{
    return give_back(preference, "cuBLASLt preferences", __func__);
}

/* ------------------------------------------------------------------ shapes */

static size_t size_of(cudaDataType type)
{
    return type == CUDA_R_32F ? 4 : 2;
}

static bool sound(const layout *l)
{
    uint64_t least = l->order == CUBLASLT_ORDER_COL ? l->rows : l->columns;
    bool known = l->type == CUDA_R_32F || l->type == CUDA_R_16F || l->type == CUDA_R_16BF;
    return emu_live(l, "cuBLASLt layouts") && known && (uint64_t)l->leading >= least;
}

static cublasStatus_t check_shapes(const cublasLtMatmulDescOpaque_t &desc, const layout *a,
                                   const layout *b, const layout *c, const layout *d)
{
    if (!sound(a) || !sound(b) || !sound(c) || !sound(d))
        return CUBLAS_STATUS_INVALID_VALUE;
    bool ta = desc.transpose_a != CUBLAS_OP_N, tb = desc.transpose_b != CUBLAS_OP_N;
    uint64_t m = ta ? a->columns : a->rows, ka = ta ? a->rows : a->columns;
    uint64_t n = tb ? b->rows : b->columns, kb = tb ? b->columns : b->rows;
    if (ka != kb || d->rows != m || d->columns != n || c->rows != m || c->columns != n ||
        b->batch != a->batch || d->batch != a->batch || c->batch != a->batch)
        return CUBLAS_STATUS_INVALID_VALUE;
    return a->type == b->type && c->type == d->type ? CUBLAS_STATUS_SUCCESS
                                                    : CUBLAS_STATUS_NOT_SUPPORTED;
}

/* Returns whether a whole matrix is on the device, at an address that is a multiple of 16. Fast
 * algorithms need this alignment. */
static bool reachable(const void *data, const layout *l)
{
    uint64_t lines = l->order == CUBLASLT_ORDER_COL ? l->columns : l->rows;
    uint64_t last = l->order == CUBLASLT_ORDER_COL ? l->rows : l->columns;
    uint64_t elements = (uint64_t)(l->batch - 1) * (uint64_t)l->offset +
                        (lines - 1) * (uint64_t)l->leading + last;
    return emu_find(data, elements * size_of(l->type)) == emu_on_device &&
           reinterpret_cast<uintptr_t>(data) % 16 == 0;
}

cublasStatus_t
cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                               cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                               cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                               cublasLtMatmulPreference_t preference, int wanted,
                               cublasLtMatmulHeuristicResult_t *results, int *found)
{
    LT_CALL();
    *found = 0;
    if (!emu_live(handle, "cuBLASLt handles") || !emu_live(desc, "cuBLASLt products") ||
        !emu_live(preference, "cuBLASLt preferences") || wanted < 1)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (cublasStatus_t wrong = check_shapes(*desc, a, b, c, d))
        return wrong;
    if (emu_heuristic_answer() != EMU_FINDS)
        return emu_heuristic_answer() == EMU_REFUSES ? CUBLAS_STATUS_NOT_SUPPORTED
                                                     : CUBLAS_STATUS_SUCCESS;
    for (uint64_t algorithm = 2; algorithm >= 1 && *found < wanted; algorithm--) {
        size_t need = algorithm == 2 ? workspace_need : 0;
        if (need > preference->workspace)
            continue;
        cublasLtMatmulHeuristicResult_t *result = &results[(*found)++];
        *result = cublasLtMatmulHeuristicResult_t();
        result->algo.data[0] = algorithm;
        result->workspaceSize = need;
        result->wavesCount = 1.0f;
    }
    return CUBLAS_STATUS_SUCCESS;
}

/* ------------------------------------------------------------------ the product */

static float load(const void *data, cudaDataType type, size_t at)
{
    if (type == CUDA_R_32F)
        return static_cast<const float *>(data)[at];
    uint16_t bits = static_cast<const uint16_t *>(data)[at];
    return type == CUDA_R_16F ? __half2float(__half{bits})
                              : __bfloat162float(__nv_bfloat16{bits});
}

static void store(void *data, cudaDataType type, size_t at, float value)
{
    if (type == CUDA_R_32F)
        static_cast<float *>(data)[at] = value;
    else
        static_cast<uint16_t *>(data)[at] = type == CUDA_R_16F
                                                ? __float2half(value).emu_bits
                                                : __float2bfloat16(value).emu_bits;
}

static size_t place(const layout &l, int batch, uint64_t row, uint64_t column)
{
    uint64_t line = l.order == CUBLASLT_ORDER_COL ? column : row;
    uint64_t in_line = l.order == CUBLASLT_ORDER_COL ? row : column;
    return (size_t)((uint64_t)batch * (uint64_t)l.offset + line * (uint64_t)l.leading +
                    in_line);
}

struct product {
    cublasLtMatmulDescOpaque_t desc;
    layout a, b, c, d;
    const void *a_data, *b_data, *c_data;
    void *d_data, *workspace;
    float alpha, beta;
    uint64_t algorithm;
};

/* Copies `count` rows of op(A) or columns of op(B). Each becomes `inner` consecutive floats. */
static std::vector<float> gather(const void *data, const layout &l, int batch, bool by_column,
                                 uint64_t count, uint64_t inner)
{
    std::vector<float> lines(count * inner);
    for (uint64_t i = 0; i < count; i++)
        for (uint64_t k = 0; k < inner; k++)
            lines[i * inner + k] =
                load(data, l.type, by_column ? place(l, batch, k, i) : place(l, batch, i, k));
    return lines;
}

/* Computes a dot product as a sum over `pieces` pieces. The sanitizer need not check it: both
 * arrays are copies that the emulator made, and the sanitizer has checked the copying. */
__attribute__((no_sanitize("address", "undefined"))) static float
dot(const float *a, const float *b, uint64_t count, uint64_t pieces)
{
    float total = 0.0f;
    for (uint64_t piece = 0; piece < pieces; piece++) {
        uint64_t first = count * piece / pieces, end = count * (piece + 1) / pieces, k = first;
        float lanes[8] = {}, sum = 0.0f;
        for (; k + 8 <= end; k += 8)
            for (int lane = 0; lane < 8; lane++)
                lanes[lane] += a[k + (unsigned)lane] * b[k + (unsigned)lane];
        for (; k < end; k++)
            sum += a[k] * b[k];
        for (int lane = 0; lane < 8; lane++)
            sum += lanes[lane];
        total += sum;
    }
    return total;
}

static void run_product(const product &p)
{
    bool ta = p.desc.transpose_a != CUBLAS_OP_N, tb = p.desc.transpose_b != CUBLAS_OP_N;
    uint64_t inner = ta ? p.a.rows : p.a.columns;
    uint64_t pieces = 1 + (p.algorithm + p.d.rows + p.d.columns) % 3;
    if (p.algorithm == 2)
        memset(p.workspace, 0xff, workspace_need);
    for (int batch = 0; batch < p.d.batch; batch++) {
        std::vector<float> a = gather(p.a_data, p.a, batch, ta, p.d.rows, inner);
        std::vector<float> b = gather(p.b_data, p.b, batch, !tb, p.d.columns, inner);
        for (uint64_t column = 0; column < p.d.columns; column++)
            for (uint64_t row = 0; row < p.d.rows; row++) {
                float value = p.alpha * dot(&a[row * inner], &b[column * inner], inner, pieces);
                if (p.beta != 0.0f) /* with beta 0, C is not read */
                    value += p.beta * load(p.c_data, p.c.type, place(p.c, batch, row, column));
                if (p.desc.epilogue == CUBLASLT_EPILOGUE_BIAS)
                    value +=
                        load(p.desc.bias, p.desc.bias_typed ? p.desc.bias_type : p.d.type, row);
                store(p.d_data, p.d.type, place(p.d, batch, row, column), value);
            }
    }
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                              const void *alpha, const void *a, cublasLtMatrixLayout_t a_layout,
                              const void *b, cublasLtMatrixLayout_t b_layout, const void *beta,
                              const void *c, cublasLtMatrixLayout_t c_layout, void *d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t *algo,
                              void *workspace, size_t workspace_bytes, cudaStream_t stream)
{
    LT_CALL();
    if (!emu_live(handle, "cuBLASLt handles") || !emu_live(desc, "cuBLASLt products"))
        return CUBLAS_STATUS_INVALID_VALUE;
    if (cublasStatus_t wrong = check_shapes(*desc, a_layout, b_layout, c_layout, d_layout))
        return wrong;
    product p = {*desc,
                 *a_layout,
                 *b_layout,
                 *c_layout,
                 *d_layout,
                 a,
                 b,
                 c,
                 d,
                 workspace,
                 *static_cast<const float *>(alpha),
                 *static_cast<const float *>(beta),
                 algo ? algo->data[0] : 1};
    bool bias = desc->epilogue == CUBLASLT_EPILOGUE_BIAS;
    size_t bias_bytes = p.d.rows * size_of(desc->bias_typed ? desc->bias_type : p.d.type);
    if (p.algorithm < 1 || p.algorithm > 2 || !reachable(a, a_layout) ||
        !reachable(b, b_layout) || !reachable(d, d_layout) ||
        (p.beta != 0.0f && !reachable(c, c_layout)) ||
        (bias && emu_find(desc->bias, bias_bytes) != emu_on_device))
        return CUBLAS_STATUS_INVALID_VALUE;
    if (p.algorithm == 2 && (workspace_bytes < workspace_need ||
                             emu_find(workspace, workspace_bytes) != emu_on_device))
        return CUBLAS_STATUS_INVALID_VALUE;
    return emu_enqueue(stream, [p] { run_product(p); }) ? CUBLAS_STATUS_EXECUTION_FAILED
                                                        : CUBLAS_STATUS_SUCCESS;
}
