/* emu_warp.cpp - functions that the lanes of a warp compute together.
 *
 * Each function is called once, after all lanes of the mask have arrived. It gets the value of
 * every lane, or NULL for a lane that is not in the mask, and writes each lane's result. A lane
 * that shuffles a value from a lane outside the mask gets NaN; on a GPU the result is
 * undefined.
 */
#include "tests/emu/emu_device.h"

enum { lanes = 32 };

static emu_exchange *exchange_of(void *data)
{
    return static_cast<emu_exchange *>(data);
}

void emu_finish_sync(void **, unsigned)
{
}

void emu_finish_shuffle(void **data, unsigned)
{
    for (int lane = 0; lane < lanes; lane++)
        if (data[lane]) {
            emu_exchange *own = exchange_of(data[lane]);
            void *source = data[own->source];
            own->result = source ? exchange_of(source)->value : ~(uint64_t)0;
        }
}

void emu_finish_ballot(void **data, unsigned)
{
    uint64_t yes = 0;
    for (int lane = 0; lane < lanes; lane++)
        if (data[lane] && exchange_of(data[lane])->value)
            yes |= (uint64_t)1 << lane;
    for (int lane = 0; lane < lanes; lane++)
        if (data[lane])
            exchange_of(data[lane])->result = yes;
}

void emu_finish_match(void **data, unsigned)
{
    for (int lane = 0; lane < lanes; lane++)
        for (int other = 0; data[lane] && other < lanes; other++)
            if (data[other] &&
                exchange_of(data[other])->value == exchange_of(data[lane])->value)
                exchange_of(data[lane])->result |= (uint64_t)1 << other;
}

template <typename F> static void reduce(void **data, F combine)
{
    int first = 0;
    while (!data[first])
        first++;
    uint64_t sum = exchange_of(data[first])->value;
    for (int lane = first + 1; lane < lanes; lane++)
        if (data[lane])
            sum = combine(sum, exchange_of(data[lane])->value);
    for (int lane = 0; lane < lanes; lane++)
        if (data[lane])
            exchange_of(data[lane])->result = sum;
}

void emu_finish_add(void **data, unsigned)
{
    reduce(data, [](uint64_t a, uint64_t b) { return a + b; });
}

void emu_finish_and(void **data, unsigned)
{
    reduce(data, [](uint64_t a, uint64_t b) { return a & b; });
}

void emu_finish_or(void **data, unsigned)
{
    reduce(data, [](uint64_t a, uint64_t b) { return a | b; });
}

void emu_finish_xor(void **data, unsigned)
{
    reduce(data, [](uint64_t a, uint64_t b) { return a ^ b; });
}

void emu_finish_min(void **data, unsigned)
{
    reduce(data, [](uint64_t a, uint64_t b) { return (int64_t)b < (int64_t)a ? b : a; });
}

void emu_finish_max(void **data, unsigned)
{
    reduce(data, [](uint64_t a, uint64_t b) { return (int64_t)a < (int64_t)b ? b : a; });
}

/* ------------------------------------------------------------------ tensor cores */

static void load_matrices(void **data, bool turned)
{
    uint16_t matrix[4][8][8];
    for (int lane = 0; lane < lanes; lane++) {
        const void *row = static_cast<emu_matrices *>(data[lane])->row;
        if (reinterpret_cast<uintptr_t>(row) % 16 != 0)
            emu_fail("ldmatrix reads a row that is not aligned to 16 bytes");
        memcpy(matrix[lane / 8][lane % 8], row, sizeof matrix[0][0]);
    }
    for (int lane = 0; lane < lanes; lane++)
        for (int i = 0; i < 4; i++) {
            const int group = lane / 4, t = lane % 4 * 2;
            const uint32_t low = turned ? matrix[i][t][group] : matrix[i][group][t];
            const uint32_t high = turned ? matrix[i][t + 1][group] : matrix[i][group][t + 1];
            static_cast<emu_matrices *>(data[lane])->r[i] = low | high << 16;
        }
}

void emu_finish_matrices(void **data, unsigned)
{
    load_matrices(data, false);
}

void emu_finish_turned_matrices(void **data, unsigned)
{
    load_matrices(data, true);
}

static float widen(uint16_t bits, __nv_bfloat16)
{
    return __bfloat162float(__nv_bfloat16{bits});
}

static float widen(uint16_t bits, __half)
{
    return __half2float(__half{bits});
}

template <typename T> static void unpack(float *to, uint32_t pair)
{
    to[0] = widen((uint16_t)pair, T());
    to[1] = widen((uint16_t)(pair >> 16), T());
}

/* Each sum begins with the old value, to which products 0 to 15 are added in this order. The
 * innermost loops are over columns, because the compiler can vectorise them.
 */
template <typename T> static void multiply(void **data)
{
    float a[16][16], b[16][8], d[16][8];
    for (int lane = 0; lane < lanes; lane++) {
        const emu_mma_operands *own = static_cast<emu_mma_operands *>(data[lane]);
        int group = lane / 4, k = lane % 4 * 2;
        unpack<T>(&a[group][k], own->a[0]);
        unpack<T>(&a[group + 8][k], own->a[1]);
        unpack<T>(&a[group][k + 8], own->a[2]);
        unpack<T>(&a[group + 8][k + 8], own->a[3]);
        for (int i = 0; i < 2; i++) {
            float pair[2];
            unpack<T>(pair, own->b[i]);
            b[k + i * 8][group] = pair[0];
            b[k + i * 8 + 1][group] = pair[1];
        }
        for (int i = 0; i < 4; i++)
            d[group + i / 2 * 8][k + i % 2] = own->d[i];
    }
    for (int row = 0; row < 16; row++)
        for (int k = 0; k < 16; k++)
            for (int column = 0; column < 8; column++)
                d[row][column] += a[row][k] * b[k][column];
    for (int lane = 0; lane < lanes; lane++)
        for (int i = 0; i < 4; i++)
            static_cast<emu_mma_operands *>(data[lane])->d[i] =
                d[lane / 4 + i / 2 * 8][lane % 4 * 2 + i % 2];
}

void emu_finish_mma_bf16(void **data, unsigned)
{
    multiply<__nv_bfloat16>(data);
}

void emu_finish_mma_f16(void **data, unsigned)
{
    multiply<__half>(data);
}

static void unpack_bytes(int *to, uint32_t word)
{
    for (int i = 0; i < 4; i++)
        to[i] = (int8_t)(word >> 8 * i & 0xff);
}

void emu_finish_mma_s8(void **data, unsigned)
{
    int a[16][32], b[32][8], d[16][8];
    for (int lane = 0; lane < lanes; lane++) {
        const emu_mma_integers *own = static_cast<emu_mma_integers *>(data[lane]);
        int group = lane / 4, k = lane % 4 * 4;
        for (int i = 0; i < 4; i++)
            unpack_bytes(&a[group + i % 2 * 8][k + i / 2 * 16], own->a[i]);
        for (int i = 0; i < 2; i++) {
            int four[4];
            unpack_bytes(four, own->b[i]);
            for (int j = 0; j < 4; j++)
                b[k + i * 16 + j][group] = four[j];
        }
        for (int i = 0; i < 4; i++)
            d[group + i / 2 * 8][lane % 4 * 2 + i % 2] = own->d[i];
    }
    for (int row = 0; row < 16; row++)
        for (int k = 0; k < 32; k++)
            for (int column = 0; column < 8; column++)
                d[row][column] += a[row][k] * b[k][column];
    for (int lane = 0; lane < lanes; lane++)
        for (int i = 0; i < 4; i++)
            static_cast<emu_mma_integers *>(data[lane])->d[i] =
                d[lane / 4 + i / 2 * 8][lane % 4 * 2 + i % 2];
}
