/* dtype.h - how the numbers of a tensor are stored: floats, and blocks of small integers.
 *
 * A quantised row is a row of blocks. A block of 32 or 256 numbers holds their integers and the
 * scales (and, in Q4_K and Q5_K, the minima) that make them numbers again. The layouts are
 * those of GGUF files; dtype.c describes each. A tensor of a quantised type has a number of
 * columns that is a multiple of the block.
 */
#ifndef ESP_DTYPE_H
#define ESP_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* X(name, numbers in a block, bytes of a block) */
#define ESP_DTYPES(X)                                                                          \
    X(F32, 1, 4)                                                                               \
    X(F16, 1, 2)                                                                               \
    X(BF16, 1, 2)                                                                              \
    X(Q8_0, 32, 34)                                                                            \
    X(Q4_0, 32, 18)                                                                            \
    X(Q5_0, 32, 22)                                                                            \
    X(IQ4_NL, 32, 18)                                                                          \
    X(MXFP4, 32, 17)                                                                           \
    X(Q4_K, 256, 144)                                                                          \
    X(Q5_K, 256, 176)                                                                          \
    X(Q6_K, 256, 210)

enum esp_dtype {
#define X(name, numbers, bytes) ESP_##name,
    ESP_DTYPES(X)
#undef X
        ESP_DTYPE_COUNT
};
enum { ESP_DTYPE_BLOCK_BYTES = 210 }; /* of the largest block */

const char *esp_dtype_name(enum esp_dtype dtype); /* "Q4_K" */
/* ESP_DTYPE_COUNT: there is none of this name. */
enum esp_dtype esp_dtype_find(const char *name);
bool esp_dtype_quantised(enum esp_dtype dtype);
int esp_dtype_block(enum esp_dtype dtype); /* numbers in a block; 1 for floats */
size_t esp_dtype_block_bytes(enum esp_dtype dtype);
/* Bytes of a row of `columns` numbers, a multiple of the block. */
size_t esp_dtype_row_bytes(enum esp_dtype dtype, int columns);

float esp_half_to_float(uint16_t half);
uint16_t esp_float_to_half(float x); /* rounds to nearest, ties to even */

/* n numbers, a multiple of the block, from `stored` (unaligned) to floats. What they become is
 * what the gguf package of Python makes of them, to the bit. */
void esp_dequantise(enum esp_dtype dtype, const void *stored, int n, float *out);

/* n finite numbers, a multiple of the block, from floats to `stored`. F16 and BF16 round to
 * nearest. Q8_0 divides by the largest magnitude of a block; the other quantised types search
 * for the scale (and minimum) whose squared error, in which a number x weighs |x| + rms, is
 * least. */
void esp_quantise(enum esp_dtype dtype, const float *x, int n, void *stored);

#ifdef __cplusplus
}
#endif
#endif
