/* emu_product.cpp - tests the product that replaces cuBLASLt. Its results must agree with sums
 * in double for all types, transpositions, orders, strides, batches and biases, and it must
 * refuse wrong arguments.
 */
#include "tests/emu/unit/emu_test.h"

#include <cmath>

struct shape {
    int m, n, k; /* D (m, n) = A (m, k) B (k, n) */
    bool transpose_a, transpose_b;
    bool row_major; /* true if all matrices are stored by rows */
    int pad;        /* unused elements between lines */
    int batch;
    float alpha, beta;
    bool bias;
};

/* The layout of a matrix in memory. at() returns the index of element (i, j). */
struct stored {
    int rows, columns, leading;
    bool row_major;
    stored(int r, int c, bool transposed, const shape &s)
        : rows(transposed ? c : r), columns(transposed ? r : c), row_major(s.row_major)
    {
        leading = ((row_major ? columns : rows) + s.pad + 7) / 8 * 8;
    }
    size_t size() const
    {
        return (size_t)leading * (size_t)(row_major ? rows : columns);
    }
    size_t at(int batch, int i, int j, bool transposed) const
    {
        int row = transposed ? j : i, column = transposed ? i : j;
        return (size_t)batch * size() +
               (size_t)(row_major ? row * leading + column : column * leading + row);
    }
};

static cublasLtMatrixLayout_t layout_of(const stored &m, cudaDataType type, int batch)
{
    cublasLtMatrixLayout_t layout = nullptr;
    cublasLtOrder_t order = m.row_major ? CUBLASLT_ORDER_ROW : CUBLASLT_ORDER_COL;
    int32_t count = batch;
    int64_t offset = (int64_t)m.size();
    cublasLtMatrixLayoutCreate(&layout, type, (uint64_t)m.rows, (uint64_t)m.columns, m.leading);
    cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_ORDER, &order,
                                     sizeof order);
    cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count,
                                     sizeof count);
    cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                     &offset, sizeof offset);
    return layout;
}

template <typename T> static std::vector<T> random(size_t count, unsigned long long *state)
{
    std::vector<T> values(count);
    for (T &x : values)
        x = esp_from_float<T>((float)(2 * check_uniform(state) - 1));
    return values;
}

template <typename T> static cudaDataType type_of();
template <> cudaDataType type_of<esp_bf16>()
{
    return CUDA_R_16BF;
}
template <> cudaDataType type_of<esp_f16>()
{
    return CUDA_R_16F;
}
template <> cudaDataType type_of<float>()
{
    return CUDA_R_32F;
}

/* The arguments of a product, except the matrices. */
struct parts {
    cublasLtHandle_t handle = nullptr;
    cublasLtMatmulDesc_t desc = nullptr;
    cublasLtMatmulPreference_t preference = nullptr;
    void *workspace = nullptr;
    uint64_t room = 1 << 16;
    parts()
    {
        cublasLtCreate(&handle);
        cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F);
        cublasLtMatmulPreferenceCreate(&preference);
        cudaMalloc(&workspace, room);
        cublasLtMatmulPreferenceSetAttribute(
            preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &room, sizeof room);
    }
    ~parts()
    {
        cudaFree(workspace);
        cublasLtMatmulPreferenceDestroy(preference);
        cublasLtMatmulDescDestroy(desc);
        cublasLtDestroy(handle);
    }
    template <typename T> void set(cublasLtMatmulDescAttributes_t attribute, T value)
    {
        cublasLtMatmulDescSetAttribute(desc, attribute, &value, sizeof value);
    }
};

/* Computes the product. `which` is the index of the algorithm in the list that the heuristic
 * returns. */
template <typename In, typename Out>
static std::vector<Out> multiply(const shape &s, const std::vector<In> &a,
                                 const std::vector<In> &b, const std::vector<Out> &c,
                                 const std::vector<Out> &bias, int which)
{
    parts p;
    stored as(s.m, s.k, s.transpose_a, s), bs(s.k, s.n, s.transpose_b, s),
        ds(s.m, s.n, false, s);
    device_array<In> ad(a), bd(b);
    device_array<Out> cd(c), dd(c.size()), bias_d(bias);
    p.set(CUBLASLT_MATMUL_DESC_TRANSA, s.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
    p.set(CUBLASLT_MATMUL_DESC_TRANSB, s.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
    if (s.bias) {
        p.set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
        p.set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, (const void *)bias_d.data);
    }
    cublasLtMatrixLayout_t al = layout_of(as, type_of<In>(), s.batch);
    cublasLtMatrixLayout_t bl = layout_of(bs, type_of<In>(), s.batch);
    cublasLtMatrixLayout_t dl = layout_of(ds, type_of<Out>(), s.batch);
    cublasLtMatmulHeuristicResult_t results[4];
    int found = 0;
    cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(p.handle, p.desc, al, bl, dl, dl,
                                                           p.preference, 4, results, &found);
    if (status == CUBLAS_STATUS_SUCCESS && found > which)
        status = cublasLtMatmul(p.handle, p.desc, &s.alpha, ad.data, al, bd.data, bl, &s.beta,
                                cd.data, dl, dd.data, dl, &results[which].algo, p.workspace,
                                p.room, nullptr);
    cublasLtMatrixLayoutDestroy(al);
    cublasLtMatrixLayoutDestroy(bl);
    cublasLtMatrixLayoutDestroy(dl);
    std::vector<Out> d = dd.read();
    CHECK(status == CUBLAS_STATUS_SUCCESS && found > which, "%s, %d found",
          cublasLtGetStatusName(status), found);
    return d;
}

template <typename In, typename Out> static void check_shape(const shape &s)
{
    unsigned long long state = 3;
    stored as(s.m, s.k, s.transpose_a, s), bs(s.k, s.n, s.transpose_b, s),
        ds(s.m, s.n, false, s);
    size_t batch = (size_t)s.batch;
    std::vector<In> a = random<In>(as.size() * batch, &state);
    std::vector<In> b = random<In>(bs.size() * batch, &state);
    std::vector<Out> c = random<Out>(ds.size() * batch, &state);
    std::vector<Out> bias = random<Out>((size_t)s.m, &state);
    if (s.beta == 0.0f) /* C must not be read */
        for (Out &x : c)
            x = esp_from_float<Out>(NAN);
    double unit = sizeof(Out) == 4 ? 0x1p-24 : type_of<Out>() == CUDA_R_16F ? 0x1p-11 : 0x1p-8;
    for (int which = 0; which < 2; which++) {
        std::vector<Out> d = multiply<In, Out>(s, a, b, c, bias, which);
        for (int z = 0; z < s.batch; z++)
            for (int i = 0; i < s.m; i++)
                for (int j = 0; j < s.n; j++) {
                    double want = 0, size = 1;
                    for (int k = 0; k < s.k; k++) {
                        double x = (double)esp_to_float(a[as.at(z, i, k, s.transpose_a)]);
                        double y = (double)esp_to_float(b[bs.at(z, k, j, s.transpose_b)]);
                        want += (double)s.alpha * x * y;
                        size += fabs(x * y);
                    }
                    if (s.beta != 0.0f)
                        want += (double)s.beta * (double)esp_to_float(c[ds.at(z, i, j, false)]);
                    if (s.bias)
                        want += (double)esp_to_float(bias[(size_t)i]);
                    double got = (double)esp_to_float(d[ds.at(z, i, j, false)]);
                    CHECK(fabs(got - want) <= size * s.k * 0x1p-24 + (fabs(want) + 1) * unit,
                          "(%d, %d, %d): %g, want %g", z, i, j, got, want);
                }
    }
}

TEST(products_agree_with_double)
{
    for (int kind = 0; kind < 8; kind++) {
        bool ta = kind & 1, tb = kind & 2, row = kind & 4;
        check_shape<esp_bf16, float>({13, 7, 50, ta, tb, row, 3, 1, 1.0f, 0.0f, false});
        check_shape<esp_f16, esp_f16>({8, 17, 33, ta, tb, row, 0, 2, 0.5f, 1.0f, true});
        check_shape<esp_bf16, esp_bf16>({5, 1, 64, ta, tb, row, 0, 3, 1.0f, 2.0f, false});
        check_shape<float, float>({3, 4, 9, ta, tb, row, 1, 1, -1.0f, 1.0f, true});
    }
}

/* The order must depend on the shape, because code that needs bit-identical results for every
 * number of columns must not get them by chance. */
TEST(the_order_of_sums_depends_on_the_shape)
{
    unsigned long long state = 7;
    shape wide = {16, 9, 500, true, false, false, 0, 1, 1.0f, 0.0f, false}, narrow = wide;
    narrow.n = 1;
    std::vector<esp_bf16> a = random<esp_bf16>(16 * 504, &state);
    std::vector<esp_bf16> b = random<esp_bf16>(9 * 504, &state);
    std::vector<esp_bf16> b1(b.begin(), b.begin() + 504);
    std::vector<float> d = multiply<esp_bf16, float>(wide, a, b, std::vector<float>(16 * 9),
                                                     std::vector<float>(16), 0);
    std::vector<float> d1 = multiply<esp_bf16, float>(narrow, a, b1, std::vector<float>(16),
                                                      std::vector<float>(16), 0);
    int different = 0;
    for (size_t i = 0; i < 16; i++)
        different += d[i] != d1[i];
    CHECK(different > 0, "the two shapes give different bits for some sums");
}

TEST(products_are_lazy_and_checked)
{
    parts p;
    shape s = {8, 8, 8, true, false, false, 0, 1, 1.0f, 0.0f, false};
    stored m(8, 8, false, s);
    cublasLtMatrixLayout_t in = layout_of(m, CUDA_R_16BF, 1), out = layout_of(m, CUDA_R_32F, 1);
    device_array<esp_bf16> a(std::vector<esp_bf16>(64, esp_from_float<esp_bf16>(1.0f)));
    device_array<float> d(64);
    std::vector<esp_bf16> host(64);
    cublasLtMatmulAlgo_t second = {{2}};
    float *late;
    cudaStream_t stream;
    OK(cudaMallocHost(&late, 256));
    OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    float alpha = 1.0f, beta = 0.0f;
    auto call = [&](const void *x, const cublasLtMatmulAlgo_t *algo, size_t room) {
        return cublasLtMatmul(p.handle, p.desc, &alpha, x, in, a.data, in, &beta, d.data, out,
                              d.data, out, algo, p.workspace, room, stream);
    };
    cublasStatus_t on_host = call(host.data(), nullptr, p.room);
    cublasStatus_t askew = call((char *)a.data + 2, nullptr, p.room);
    cublasStatus_t cramped = call(a.data, &second, 16);
    cublasStatus_t right = call(a.data, &second, p.room);
    alpha = 100.0f; /* must have no effect, because the call has already read alpha */
    OK(cudaMemcpyAsync(late, d.data, 256, cudaMemcpyDeviceToHost, stream));
    float before = late[0];
    OK(cudaStreamSynchronize(stream));
    float after = late[0];
    emu_fail_at(1, cudaErrorMemoryAllocation, false);
    cublasStatus_t planted = call(a.data, &second, p.room);
    emu_fail_at(0, 0, false);
    cublasLtMatrixLayoutDestroy(in);
    cublasLtMatrixLayoutDestroy(out);
    OK(cudaFreeHost(late));
    OK(cudaStreamDestroy(stream));
    CHECK(on_host == CUBLAS_STATUS_INVALID_VALUE && askew == on_host && cramped == on_host,
          "%d %d %d", (int)on_host, (int)askew, (int)cramped);
    CHECK(right == CUBLAS_STATUS_SUCCESS && std::isnan(before) && after == 8.0f, "%d %g %g",
          (int)right, (double)before, (double)after);
    CHECK(planted == CUBLAS_STATUS_ALLOC_FAILED, "%d", (int)planted);
}
