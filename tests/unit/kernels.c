/* kernels.c - tests each function of the CPU backend's arithmetic. Results are compared with
 * double precision, and every instruction set must give the same bits as portable C.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/check.h"
#include "kernels/cpu/cpu.h"

enum { ISAS = 4, MAX_ROWS = 20, MAX_COLUMNS = 100, MAX_OUTPUTS = 160, LONG = 5000 };

/* Lists the instruction sets of this computer, portable C first. */
static int find_isas(const struct esp_cpu_isa *found[ISAS])
{
    static const char *const names[ISAS] = {"generic", "avx2", "avx512", "neon"};
    int count = 0;
    for (int i = 0; i < ISAS; i++) {
        struct esp_backend *backend;
        if (esp_cpu_open(&backend, names[i], 1, NULL, 0) < 0)
            continue;
        found[count++] = ((struct esp_cpu_backend *)backend)->isa;
        esp_backend_cpu.close(backend);
    }
    CHECK(count >= 1);
    return count;
}

static float around(unsigned long long *state, double spread)
{
    return (float)(spread * (2 * check_uniform(state) - 1));
}

/* ------------------------------------------------------------------ products */

struct example {
    struct esp_packed w;
    uint32_t *packed;
    double weight[MAX_OUTPUTS][MAX_COLUMNS];
    float bias[MAX_OUTPUTS], x[MAX_ROWS * MAX_COLUMNS];
};

/* Makes random weights and packs them as struct esp_packed describes. The weights are multiples
 * of 1/8, which every dtype represents exactly. */
static void make_example(struct example *e, enum esp_dtype dtype, int rows, int columns,
                         unsigned long long seed)
{
    int panels = (rows + ESP_PANEL - 1) / ESP_PANEL;
    memset(e, 0, sizeof *e);
    e->packed = esp_cpu_alloc((size_t)(panels * columns * ESP_PANEL), 4);
    e->w = (struct esp_packed){.dtype = dtype,
                               .rows = rows,
                               .columns = columns,
                               .panels = panels,
                               .data = e->packed,
                               .bias = e->bias};
    for (int i = 0; i < rows; i++) {
        e->bias[i] = around(&seed, 1);
        for (int c = 0; c < columns; c++) {
            int eighths = (int)(check_uniform(&seed) * 32) - 16, j = i % ESP_PANEL;
            e->weight[i][c] = eighths / 8.0;
            size_t start = ((size_t)(i / ESP_PANEL) * (size_t)columns + (size_t)c) * ESP_PANEL;
            float value = (float)eighths / 8;
            uint32_t bits;
            memcpy(&bits, &value, sizeof bits);
            if (dtype == ESP_F32) {
                e->packed[start + (size_t)j] = bits;
            } else if (dtype == ESP_BF16) {
                int shift = j < 16 ? 0 : 16;
                e->packed[start / 2 + (size_t)(j % 16)] |= bits >> 16 << shift;
            } else {
                int size = abs(eighths), power = 0;
                while (size >> (power + 1))
                    power++;
                uint16_t half = (uint16_t)(eighths < 0 ? 0x8000 : 0);
                if (size)
                    half |= (uint16_t)((power - 3 + 15) << 10 | (size << (10 - power) & 1023));
                ((uint16_t *)e->packed)[start + (size_t)j] = half;
            }
        }
    }
    for (int i = 0; i < MAX_ROWS * MAX_COLUMNS; i++)
        e->x[i] = around(&seed, 1);
}

static void run_example(struct example *e, const struct esp_cpu_isa *isa, int rows, bool add,
                        const int32_t *order, float *y)
{
    struct esp_matmul p = {.in = {.x = e->x, .stride = MAX_COLUMNS},
                           .y = y,
                           .y_stride = MAX_OUTPUTS,
                           .y_row = order,
                           .rows = rows,
                           .add = add};
    int middle = e->w.panels / 2;
    isa->matmul(&e->w, 0, middle, &p);
    isa->matmul(&e->w, middle, e->w.panels, &p);
}

static void check_example(const struct example *e, int rows, const float *y,
                          const int32_t *order, double before)
{
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < e->w.rows; j++) {
            double want = before + e->bias[j];
            for (int c = 0; c < e->w.columns; c++)
                want += e->weight[j][c] * e->x[i * MAX_COLUMNS + c];
            float got = y[(order ? order[i] : i) * MAX_OUTPUTS + j];
            CHECK(fabs(got - want) < 1e-4,
                  "dtype %d, %d x %d, row %d of %d, output %d: %g, not %g", e->w.dtype,
                  e->w.rows, e->w.columns, i, rows, j, got, want);
        }
}

TEST(products_of_every_dtype_and_size_agree_with_double_precision)
{
    static const int outputs[] = {1, 16, 31, 32, 33, 64, 100, 129, 160};
    static const int columns[] = {1, 2, 15, 16, 17, 64, 100};
    static float first[MAX_ROWS * MAX_OUTPUTS], y[MAX_ROWS * MAX_OUTPUTS];
    const struct esp_cpu_isa *isas[ISAS];
    int count = find_isas(isas), runs = 0;
    int32_t order[MAX_ROWS];
    for (int i = 0; i < MAX_ROWS; i++)
        order[i] = (i * 7 + 3) % MAX_ROWS;
    for (int dtype = ESP_F32; dtype <= ESP_BF16; dtype++)
        for (size_t o = 0; o < sizeof outputs / sizeof *outputs; o++)
            for (size_t c = 0; c < sizeof columns / sizeof *columns; c++) {
                struct example e;
                make_example(&e, (enum esp_dtype)dtype, outputs[o], columns[c], (unsigned)runs);
                int rows = 1 + runs++ % MAX_ROWS;
                const int32_t *places = runs % 2 ? order : NULL;
                for (int isa = 0; isa < count; isa++) {
                    float *to = isa == 0 ? first : y;
                    memset(to, 0, sizeof first);
                    run_example(&e, isas[isa], rows, false, places, to);
                    check_example(&e, rows, to, places, 0);
                    for (int i = 0; i < MAX_ROWS * MAX_OUTPUTS; i++)
                        to[i] = 3;
                    run_example(&e, isas[isa], rows, true, places, to);
                    check_example(&e, rows, to, places, 3);
                    CHECK(isa == 0 || memcmp(first, y, sizeof y) == 0, "%s differs",
                          isas[isa]->name);
                }
                esp_cpu_free(e.packed);
            }
}

/* Checks every F16 number with a product that has 1 as its only input. */
TEST(all_halves_expand_exactly)
{
    const struct esp_cpu_isa *isas[ISAS];
    int count = find_isas(isas);
    static float bias[ESP_PANEL];
    float one = 1;
    for (int isa = 0; isa < count; isa++)
        for (int start = 0; start < 0x10000; start += ESP_PANEL) {
            uint16_t halves[ESP_PANEL];
            float y[ESP_PANEL];
            for (int j = 0; j < ESP_PANEL; j++)
                halves[j] = (uint16_t)(start + j);
            struct esp_packed w = {.dtype = ESP_F16,
                                   .rows = ESP_PANEL,
                                   .columns = 1,
                                   .panels = 1,
                                   .data = halves,
                                   .bias = bias};
            struct esp_matmul p = {
                .in = {.x = &one, .stride = 1}, .y = y, .y_stride = 32, .rows = 1};
            isas[isa]->matmul(&w, 0, 1, &p);
            for (int j = 0; j < ESP_PANEL; j++) {
                int exponent = halves[j] >> 10 & 31, fraction = halves[j] & 1023;
                double want = exponent == 0    ? ldexp(fraction, -24)
                              : exponent == 31 ? (fraction ? NAN : INFINITY)
                                               : ldexp(fraction + 1024, exponent - 25);
                want = halves[j] & 0x8000 ? -want : want;
                CHECK(isnan(want) ? isnan(y[j]) : y[j] == want, "%s: 0x%04x is %g, not %g",
                      isas[isa]->name, halves[j], y[j], want);
            }
        }
}

/* ------------------------------------------------------------------ vectors */

TEST(norms_agree_with_double_precision)
{
    const struct esp_cpu_isa *isas[ISAS];
    int count = find_isas(isas);
    unsigned long long state = 5;
    for (int n = 1; n < 130; n += 1 + n / 9)
        for (int kind = ESP_NORM_RMS; kind <= ESP_NORM_LAYER; kind++) {
            float x[160] = {0}, weight[160] = {0}, bias[160] = {0}, out[ISAS][160];
            double mean = 0, variance = 0;
            for (int i = 0; i < n; i++) {
                x[i] = around(&state, 3) + 1;
                weight[i] = around(&state, 2);
                bias[i] = around(&state, 1);
                mean += kind == ESP_NORM_LAYER ? x[i] / (double)n : 0;
            }
            for (int i = 0; i < n; i++)
                variance += (x[i] - mean) * (x[i] - mean) / n;
            for (int isa = 0; isa < count; isa++) {
                memset(out[isa], 0, sizeof *out);
                isas[isa]->norm(out[isa], x, n, weight, kind == ESP_NORM_LAYER ? bias : NULL,
                                (enum esp_norm)kind, 1e-5f);
                CHECK(memcmp(out[isa], out[0], sizeof *out) == 0, "%s differs",
                      isas[isa]->name);
            }
            for (int i = 0; i < n; i++) {
                double want = (x[i] - mean) / sqrt(variance + 1e-5) * weight[i] +
                              (kind == ESP_NORM_LAYER ? bias[i] : 0);
                CHECK(fabs(out[0][i] - want) < 1e-5, "%d of %d is %g, not %g", i, n, out[0][i],
                      want);
            }
        }
}

/* silu is tested with up = 1, which tests e^x over its whole range. gelu tests the error
 * function. */
TEST(activations_agree_with_double_precision)
{
    const struct esp_cpu_isa *isas[ISAS];
    int count = find_isas(isas);
    for (int block = -13000; block < 13000; block += 16) {
        float x[16], one[16], silu[ISAS][16], gelu[ISAS][16];
        for (int i = 0; i < 16; i++) {
            x[i] = (float)(block + i) / 128;
            one[i] = 1;
        }
        for (int isa = 0; isa < count; isa++) {
            isas[isa]->activation(silu[isa], x, one, 16, ESP_SWIGLU, NULL);
            isas[isa]->activation(gelu[isa], NULL, x, 16, ESP_GELU, NULL);
            CHECK(memcmp(silu[isa], silu[0], 64) == 0 && memcmp(gelu[isa], gelu[0], 64) == 0,
                  "%s differs", isas[isa]->name);
        }
        for (int i = 0; i < 16; i++) {
            double v = x[i], s = v / (1 + exp(-v)), g = 0.5 * v * (1 + erf(v / sqrt(2)));
            CHECK(fabs(silu[0][i] - s) <= 4e-7 * fabs(s) || v < -86,
                  "silu(%g) is %.9g, not %.9g", v, silu[0][i], s);
            CHECK(fabs(gelu[0][i] - g) <= 3e-7 * (v < 0 ? -v : v), "gelu(%g) is %.9g, not %.9g",
                  v, gelu[0][i], g);
        }
    }
    float odd[16] = {INFINITY, -INFINITY, NAN, 0, -0.0f, 1e30f, -1e30f, 1e-40f}, out[16];
    for (int isa = 0; isa < count; isa++) {
        isas[isa]->activation(out, NULL, odd, 16, ESP_GELU, NULL);
        CHECK(out[0] == INFINITY && isnan(out[2]) && out[3] == 0 && out[5] == 1e30f &&
              out[6] == 0);
    }
}

TEST(gelu_by_tanh_and_caps_agree_with_double_precision)
{
    const struct esp_cpu_isa *isas[ISAS];
    int count = find_isas(isas);
    for (int block = -13000; block < 13000; block += 16) {
        float x[16], two[16], alone[ISAS][16], gate[ISAS][16], cap[ISAS][19];
        for (int i = 0; i < 16; i++) {
            x[i] = (float)(block + i) / 128;
            two[i] = 2;
        }
        for (int isa = 0; isa < count; isa++) {
            isas[isa]->activation(alone[isa], NULL, x, 16, ESP_GELU_TANH, NULL);
            isas[isa]->activation(gate[isa], x, two, 16, ESP_GEGLU, NULL);
            memcpy(cap[isa], x, sizeof x);
            cap[isa][13] = 77;
            isas[isa]->cap(cap[isa], 13, 5);
            CHECK(cap[isa][13] == 77);
            CHECK(memcmp(alone[isa], alone[0], 64) == 0 &&
                      memcmp(gate[isa], gate[0], 64) == 0 && memcmp(cap[isa], cap[0], 52) == 0,
                  "%s differs", isas[isa]->name);
        }
        for (int i = 0; i < 16; i++) {
            double v = x[i], u = sqrt(2 / M_PI) * (v + 0.044715 * v * v * v);
            double g = 0.5 * v * (1 + tanh(u));
            CHECK(fabs(alone[0][i] - g) <= 6e-7 * fabs(v) && gate[0][i] == 2 * alone[0][i],
                  "gelu(%g) is %.9g, not %.9g", v, alone[0][i], g);
            CHECK(i >= 13 || fabs(cap[0][i] - 5 * tanh(v / 5)) <= 2e-6, "cap of %g is %.9g", v,
                  cap[0][i]);
        }
    }
}

TEST(squared_relu_is_exact)
{
    const struct esp_cpu_isa *isas[ISAS];
    const int count = find_isas(isas);
    float x[16], out[16];
    for (int isa = 0; isa < count; isa++)
        for (int block = -640; block < 640; block += 16) {
            for (int i = 0; i < 16; i++)
                x[i] = (float)(block + i) / 64;
            isas[isa]->activation(out, NULL, x, 16, ESP_RELU2, NULL);
            for (int i = 0; i < 16; i++)
                CHECK(out[i] == (x[i] > 0 ? x[i] * x[i] : 0), "%s: %g", isas[isa]->name,
                      (double)x[i]);
        }
}

TEST(swiglu_with_limits_agrees_with_double_precision)
{
    const struct esp_clamp clamp = {7, 1.702f};
    const struct esp_cpu_isa *isas[ISAS];
    int count = find_isas(isas);
    for (int block = -1300; block < 1300; block += 16) {
        float gate[16], up[16], out[ISAS][16];
        for (int i = 0; i < 16; i++) {
            gate[i] = (float)(block + i) / 64;
            up[i] = (float)(i * i - 128) / 12;
        }
        for (int isa = 0; isa < count; isa++) {
            isas[isa]->activation(out[isa], gate, up, 16, ESP_SWIGLU_CLAMPED, &clamp);
            CHECK(memcmp(out[isa], out[0], 64) == 0, "%s differs", isas[isa]->name);
        }
        for (int i = 0; i < 16; i++) {
            const double g = fmin(gate[i], 7), u = fmax(-7, fmin(up[i], 7));
            const double want = g / (1 + exp(-(double)clamp.slope * g)) * (u + 1);
            CHECK(fabs(out[0][i] - want) <= 2e-6 * fabs(want) + 1e-12, "%g, %g: %.9g, not %.9g",
                  (double)gate[i], (double)up[i], (double)out[0][i], want);
        }
    }
}

TEST(rotation_changes_only_the_rotary_dimensions)
{
    const struct esp_cpu_isa *isas[ISAS];
    int count = find_isas(isas);
    unsigned long long state = 9;
    for (int half = 0; half <= 40; half++) {
        float x[100], cosine[40], sine[40], out[ISAS][100];
        for (int i = 0; i < 100; i++)
            x[i] = around(&state, 2);
        for (int i = 0; i < half; i++) {
            cosine[i] = cosf((float)i);
            sine[i] = sinf((float)i);
        }
        for (int isa = 0; isa < count; isa++) {
            memcpy(out[isa], x, sizeof x);
            isas[isa]->rope(out[isa] + 5, half, cosine, sine);
            CHECK(memcmp(out[isa], out[0], sizeof x) == 0, "%s differs", isas[isa]->name);
        }
        for (int i = 0; i < 100; i++) {
            double want = x[i];
            if (i >= 5 && i < 5 + half)
                want = x[i] * cos(i - 5) - x[i + half] * sin(i - 5);
            else if (i >= 5 + half && i < 5 + 2 * half)
                want = x[i] * cos(i - 5 - half) + x[i - half] * sin(i - 5 - half);
            CHECK(fabs(out[0][i] - want) < 1e-5, "half %d: %d is %g, not %g", half, i,
                  out[0][i], want);
        }
    }
}

/* ------------------------------------------------------------------ recurrent layers */

TEST(convolutions_agree_with_double_precision)
{
    enum { CHANNELS = 48, STRIDE = 64 };
    const struct esp_cpu_isa *isas[ISAS];
    const int count = find_isas(isas);
    for (int round = 0; round < 8; round++) {
        unsigned long long state = 60 + (unsigned)round;
        const int kernel = 2 + round, silu = round % 2;
        float weight[9 * STRIDE], values[9 * STRIDE], bias[CHANNELS], first[CHANNELS];
        const float *taps[9];
        for (int i = 0; i < 9 * STRIDE; i++) {
            weight[i] = around(&state, 1);
            values[i] = around(&state, 2);
        }
        for (int i = 0; i < CHANNELS; i++)
            bias[i] = around(&state, 1);
        for (int t = 0; t < kernel; t++)
            taps[t] = values + t * STRIDE;
        for (int i = 0; i < count; i++) {
            float out[CHANNELS];
            isas[i]->convolve(out, taps, weight, round < 4 ? bias : NULL, CHANNELS, kernel,
                              STRIDE, silu);
            for (int c = 0; c < CHANNELS && i == 0; c++) {
                double want = round < 4 ? bias[c] : 0;
                for (int t = 0; t < kernel; t++)
                    want += (double)weight[t * STRIDE + c] * taps[t][c];
                want = silu ? want / (1 + exp(-want)) : want;
                CHECK(fabs(out[c] - want) < 1e-5, "channel %d: %g, not %g", c, out[c], want);
            }
            memcpy(i == 0 ? first : out, out, sizeof out);
            CHECK(memcmp(out, first, sizeof out) == 0, "%s", isas[i]->name);
        }
    }
}

enum { STATE_KEYS = 20, CHUNK = ESP_STATE_CHUNK };

/* Holds a recurrent state, and the inputs of CHUNK tokens that read and update the state. */
struct chunk {
    bool delta;
    float state[STATE_KEYS * ESP_LANES];
    float query[CHUNK][STATE_KEYS], key[CHUNK][STATE_KEYS], value[CHUNK][ESP_LANES];
    float write[CHUNK], decay[CHUNK], skip;
};

/* Holds what an instruction set computes for a chunk: the outputs of the tokens, and the state
 * after them. */
struct chunk_result {
    float state[STATE_KEYS * ESP_LANES], out[CHUNK][ESP_LANES], update[CHUNK][ESP_LANES];
};

static void make_chunk(struct chunk *c, bool delta)
{
    unsigned long long random = 70 + delta;
    c->delta = delta;
    c->skip = delta ? 0 : 0.3f;
    for (int i = 0; i < STATE_KEYS * ESP_LANES; i++)
        c->state[i] = around(&random, 1);
    for (int t = 0; t < CHUNK; t++) {
        c->write[t] = 0.3f + 0.05f * (float)t;
        c->decay[t] = 0.95f - 0.04f * (float)t;
        for (int k = 0; k < STATE_KEYS; k++) {
            c->query[t][k] = around(&random, 0.5);
            c->key[t][k] = around(&random, 0.5);
        }
        for (int i = 0; i < ESP_LANES; i++)
            c->value[t][i] = around(&random, 2);
    }
}

/* Multiplies the state by the queries and keys of all tokens, `together` tokens at a time. */
static void read_chunk(const struct esp_cpu_isa *isa, const struct chunk *c, int together,
                       struct chunk_result *r)
{
    for (int first = 0; first < CHUNK; first += together) {
        const float *with[2 * CHUNK];
        float *out[2 * CHUNK];
        struct esp_state_read read = {
            .keys = STATE_KEYS, .state = c->state, .with = with, .out = out};
        for (int t = first; t < CHUNK && t < first + together; t++) {
            with[read.count] = c->query[t];
            out[read.count++] = r->out[t];
            with[read.count] = c->key[t];
            out[read.count] = r->update[t];
            read.count += c->delta;
        }
        isa->state_read(&read);
    }
}

/* Computes the update and the output of token `t`. */
static void update_token(const struct esp_cpu_isa *isa, const struct chunk *c, int t,
                         struct chunk_result *r)
{
    float by_key[CHUNK], by_query[CHUNK], left = c->decay[t];
    const float *before[CHUNK], *key[CHUNK];
    for (int i = 0; i <= t; i++) {
        before[i] = i < t ? r->update[t - 1 - i] : NULL;
        key[i] = i < t ? c->key[t - 1 - i] : c->key[t];
    }
    isa->products(by_key, c->key[t], key, t, STATE_KEYS);
    isa->products(by_query, c->query[t], key, t + 1, STATE_KEYS);
    for (int i = 0; i < t; i++) {
        by_key[i] *= left;
        by_query[i] *= left;
        left *= c->decay[t - 1 - i];
    }
    isa->state_update(&(struct esp_state_update){.ancestors = t,
                                                 .before = before,
                                                 .by_key = c->delta ? by_key : NULL,
                                                 .by_query = by_query,
                                                 .left = left,
                                                 .write = c->write[t],
                                                 .own = by_query[t],
                                                 .skip = c->skip,
                                                 .value = c->value[t],
                                                 .update = r->update[t],
                                                 .out = r->out[t]});
}

static void run_chunk(const struct esp_cpu_isa *isa, const struct chunk *c, int together,
                      struct chunk_result *r)
{
    struct esp_state_fold fold = {
        .keys = STATE_KEYS, .from = c->state, .to = r->state, .left = 1};
    read_chunk(isa, c, together, r);
    for (int t = 0; t < CHUNK; t++)
        update_token(isa, c, t, r);
    for (int t = CHUNK - 1; t >= 0; t--) {
        fold.key[t] = c->key[t];
        fold.update[t] = r->update[t];
        fold.weight[t] = fold.left;
        fold.left *= c->decay[t];
    }
    isa->state_fold(&fold);
    float in_place[STATE_KEYS * ESP_LANES];
    memcpy(in_place, c->state, sizeof in_place);
    fold.from = fold.to = in_place;
    isa->state_fold(&fold);
    CHECK(memcmp(in_place, r->state, sizeof in_place) == 0, "%s in place", isa->name);
}

/* Compares a result with the definition in enum esp_mixer, computed token by token. */
static void check_steps(const struct chunk *c, const struct chunk_result *r)
{
    for (int lane = 0; lane < ESP_LANES; lane++) {
        double state[STATE_KEYS];
        for (int k = 0; k < STATE_KEYS; k++)
            state[k] = (double)c->state[k * ESP_LANES + lane];
        for (int t = 0; t < CHUNK; t++) {
            double recalled = 0, read = (double)c->skip * (double)c->value[t][lane];
            for (int k = 0; k < STATE_KEYS; k++) {
                state[k] *= (double)c->decay[t];
                recalled += c->delta ? state[k] * (double)c->key[t][k] : 0;
            }
            const double u = (double)c->write[t] * ((double)c->value[t][lane] - recalled);
            for (int k = 0; k < STATE_KEYS; k++) {
                state[k] += u * (double)c->key[t][k];
                read += state[k] * (double)c->query[t][k];
            }
            CHECK(fabs((double)r->update[t][lane] - u) < 1e-5, "token %d: update", t);
            CHECK(fabs((double)r->out[t][lane] - read) < 1e-5, "token %d: %g, not %g", t,
                  (double)r->out[t][lane], read);
        }
        for (int k = 0; k < STATE_KEYS; k++)
            CHECK(fabs((double)r->state[k * ESP_LANES + lane] - state[k]) < 1e-5);
    }
}

TEST(a_chunk_agrees_with_its_tokens_one_by_one_in_double_precision)
{
    const struct esp_cpu_isa *isas[ISAS];
    const int count = find_isas(isas);
    for (int delta = 0; delta < 2; delta++) {
        struct chunk chunk;
        struct chunk_result first, other;
        make_chunk(&chunk, delta);
        run_chunk(isas[0], &chunk, CHUNK, &first);
        check_steps(&chunk, &first);
        for (int i = 0; i < count; i++)
            for (int together = 1; together <= CHUNK; together++) {
                run_chunk(isas[i], &chunk, together, &other);
                CHECK(memcmp(&first, &other, sizeof first) == 0, "%s, %d rows together",
                      isas[i]->name, together);
            }
    }
}

TEST(heads_of_unit_length_and_gates_agree_with_double_precision)
{
    const struct esp_cpu_isa *isas[ISAS];
    const int count = find_isas(isas);
    for (int n = 4; n <= 40; n += 12) {
        unsigned long long state = 80 + (unsigned)n;
        float x[40], gate[40], unit[41], gated[41];
        double square = 0;
        for (int i = 0; i < n; i++) {
            x[i] = around(&state, 3);
            gate[i] = around(&state, 6);
            square += (double)x[i] * x[i];
        }
        for (int i = 0; i < count; i++) {
            float a[41], b[41];
            memcpy(a, x, sizeof x);
            memcpy(b, x, sizeof x);
            a[n] = b[n] = 5;
            isas[i]->unit(a, n, 1e-6f, 0.5f);
            isas[i]->sigmoid(b, gate, n);
            CHECK(a[n] == 5 && b[n] == 5);
            for (int k = 0; k < n && i == 0; k++) {
                CHECK(fabs(a[k] - 0.5 * x[k] / sqrt(square + 1e-6)) < 1e-6);
                CHECK(fabs(b[k] - x[k] / (1 + exp(-(double)gate[k]))) < 1e-5);
            }
            const size_t bytes = (size_t)n * sizeof *a;
            memcpy(i == 0 ? unit : a, a, bytes);
            memcpy(i == 0 ? gated : b, b, bytes);
            CHECK(memcmp(a, unit, bytes) == 0 && memcmp(b, gated, bytes) == 0, "%s",
                  isas[i]->name);
        }
    }
}

/* ------------------------------------------------------------------ rows */

TEST(rows_give_the_same_bits_everywhere)
{
    const struct esp_cpu_isa *isas[ISAS];
    int count = find_isas(isas);
    unsigned long long state = 13;
    static float x[LONG], q[LONG], out[ISAS][LONG], mixed[ISAS][LONG];
    static int32_t ids[ISAS][LONG], scratch[2 * LONG];
    static float values[ISAS][LONG];
    for (int n = 1; n <= LONG; n += 1 + n / 3) {
        struct esp_sampling sampling = {0.3 + check_uniform(&state),
                                        0.5 + check_uniform(&state), n % 3 ? 0 : 1 + n / 2};
        struct esp_combination f = {1, -0.7, 0.2, 1.3};
        double sums[ISAS], left[ISAS], drawn[ISAS], u = check_uniform(&state);
        int32_t best[ISAS], tokens[ISAS], excluded[2] = {n / 2, -1};
        int k = 1 + n / 7;
        for (int i = 0; i < n; i++) {
            x[i] = n % 2 ? (float)(int)around(&state, 5) : around(&state, 8);
            q[i] = (float)check_uniform(&state);
        }
        for (int isa = 0; isa < count; isa++) {
            const struct esp_cpu_isa *f_isa = isas[isa];
            memcpy(out[isa], x, sizeof x);
            CHECK(f_isa->argmax(x, n, &best[isa]) == 0 && best[isa] == best[0]);
            CHECK(f_isa->top_k(x, n, k, ids[isa], values[isa]) == 0);
            CHECK(f_isa->softmax(out[isa], n, &sampling, scratch) == 0);
            sums[isa] = f_isa->combine(mixed[isa], out[isa], q, n, &f);
            f_isa->sample(out[isa], n, u, excluded, 2, &tokens[isa], &drawn[isa], scratch);
            left[isa] = f_isa->remove(out[isa], n, n / 3);
            CHECK(memcmp(ids[isa], ids[0], (size_t)k * 4) == 0 &&
                      memcmp(values[isa], values[0], (size_t)k * 4) == 0 &&
                      memcmp(out[isa], out[0], (size_t)n * 4) == 0 &&
                      memcmp(mixed[isa], mixed[0], (size_t)n * 4) == 0 &&
                      sums[isa] == sums[0] && left[isa] == left[0] &&
                      tokens[isa] == tokens[0] && drawn[isa] == drawn[0],
                  "%s differs over %d values", f_isa->name, n);
        }
    }
}
