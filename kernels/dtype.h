/* dtype.h - describes how the numbers of a tensor are stored: as floats, or as blocks of small
 * integers.
 *
 * A quantised row is a row of blocks. A block of 32 or 256 numbers contains an integer for each
 * number. It also contains the scales (and, in Q4_K and Q5_K, the minima) that turn the
 * integers back into numbers. The layouts are the same as in GGUF files; dtype.c describes
 * them. The number of columns of a quantised tensor is a multiple of the block size. Functions
 * with a dtype argument do not check that it is a type in the list below. Code that reads a
 * type from a file must use esp_dtype_find(), and code that gets a model from elsewhere must
 * use esp_model_desc_check().
 */
#ifndef ESP_DTYPE_H
#define ESP_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Says what a field of a block contains. */
enum esp_field_kind {
    ESP_SCALES,  /* scales, minima, or one bit of each number */
    ESP_JOINED,  /* like ESP_SCALES, but a GPU joins this field with the previous field */
    ESP_WEIGHTS, /* bytes that are unpacked to weights */
};

/* A field of a block: `count` pieces of `size` bytes (1, 2 or 4), which begin at byte `from`.
 */
struct esp_dtype_field {
    uint8_t from, size, count, kind;
};

/* X(name, number of the type in GGUF files, numbers in a block, bytes of a block, fields in
 * the order in which the CPU packs them). No other code says where the fields of a block are;
 * cpu/pack.c, cuda/blocks.h and engine/model/gguf.c use this table. */
// clang-format off
#define ESP_FLOAT_TYPES(X)                                                                     \
    X(F32, 0, 1, 4, {0, 4, 1, ESP_WEIGHTS})                                                    \
    X(F16, 1, 1, 2, {0, 2, 1, ESP_WEIGHTS})                                                    \
    X(BF16, 30, 1, 2, {0, 2, 1, ESP_WEIGHTS})
#define ESP_BLOCK_TYPES(X)                                                                     \
    X(Q8_0, 8, 32, 34, {0, 2, 1, ESP_SCALES}, {2, 4, 8, ESP_WEIGHTS})                          \
    X(Q4_0, 2, 32, 18, {0, 2, 1, ESP_SCALES}, {2, 4, 4, ESP_WEIGHTS})                          \
    X(Q5_0, 6, 32, 22, {0, 2, 1, ESP_SCALES}, {2, 4, 1, ESP_SCALES}, {6, 4, 4, ESP_WEIGHTS})   \
    X(IQ4_NL, 20, 32, 18, {0, 2, 1, ESP_SCALES}, {2, 4, 4, ESP_WEIGHTS})                       \
    X(MXFP4, 39, 32, 17, {0, 1, 1, ESP_SCALES}, {1, 4, 4, ESP_WEIGHTS})                        \
    X(Q4_K, 12, 256, 144, {0, 2, 1, ESP_SCALES}, {2, 2, 1, ESP_JOINED}, {4, 4, 3, ESP_JOINED}, \
      {16, 4, 32, ESP_WEIGHTS})                                                                \
    X(Q5_K, 13, 256, 176, {0, 2, 1, ESP_SCALES}, {2, 2, 1, ESP_JOINED}, {4, 4, 3, ESP_JOINED}, \
      {16, 4, 8, ESP_WEIGHTS}, {48, 4, 32, ESP_WEIGHTS})                                       \
    X(Q6_K, 14, 256, 210, {208, 2, 1, ESP_SCALES}, {192, 4, 4, ESP_SCALES},                    \
      {128, 4, 16, ESP_WEIGHTS}, {0, 4, 32, ESP_WEIGHTS})
// clang-format on
#define ESP_DTYPES(X) ESP_FLOAT_TYPES(X) ESP_BLOCK_TYPES(X)

enum esp_dtype {
#define X(name, ...) ESP_##name,
    ESP_DTYPES(X)
#undef X
        ESP_DTYPE_COUNT
};

union esp_dtype_largest {
#define X(name, gguf, numbers, bytes, ...) char name[bytes];
    ESP_DTYPES(X)
#undef X
};
enum {
    ESP_DTYPE_BLOCK_BYTES = sizeof(union esp_dtype_largest)
}; /* bytes of the largest block */

const char *esp_dtype_name(enum esp_dtype dtype); /* e.g. "Q4_K" */
/* Returns the type with this name, or ESP_DTYPE_COUNT if there is none. */
enum esp_dtype esp_dtype_find(const char *name);
bool esp_dtype_quantised(enum esp_dtype dtype);
int esp_dtype_block(enum esp_dtype dtype); /* numbers in a block; 1 for floats */
size_t esp_dtype_block_bytes(enum esp_dtype dtype);
/* Returns the fields of a block; the list ends with a field whose count is 0. */
const struct esp_dtype_field *esp_dtype_fields(enum esp_dtype dtype);
/* Returns how many bytes a row of `columns` numbers takes. `columns` must be a multiple of the
 * block size. */
size_t esp_dtype_row_bytes(enum esp_dtype dtype, int columns);

float esp_half_to_float(uint16_t half);
uint16_t esp_float_to_half(float x); /* rounds to nearest, ties to even */

/* Converts n numbers from `stored` (unaligned) to floats; n is a multiple of the block size.
 * The results are bit-identical to those of Python's gguf package. */
void esp_dequantise(enum esp_dtype dtype, const void *stored, int n, float *out);

/* Converts n finite numbers from floats to `stored`; n is a multiple of the block size. F16
 * and BF16 round to nearest. For Q8_0, the scale is the largest magnitude of a block divided by
 * 127. For the other quantised types, the scale (and minimum) with the smallest squared error
 * is found by a search. In the sum, the error of a number x has the weight |x| + rms, where rms
 * is the root mean square of all numbers with the same scale. */
void esp_quantise(enum esp_dtype dtype, const float *x, int n, void *stored);
/* Converts like esp_quantise(), but without the search for a scale, which takes most of the
 * time. It rounds with the scale that fits the largest number, and stores the scale that is
 * best for the resulting integers. The error is a little larger. */
void esp_quantise_quickly(enum esp_dtype dtype, const float *x, int n, void *stored);

#ifdef __cplusplus
}
#endif
#endif
