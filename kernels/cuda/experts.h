/* experts.h - finds which rows a block of a product multiplies, and by the matrix of which
 * expert.
 *
 * Without experts, blockIdx.y is the index of a group of `width` rows of the pass. With
 * experts, a row and one of its experts are a pair. experts.cu sorts the pairs by expert and
 * divides them into tiles of at most `width` pairs, so that all pairs of a tile use the same
 * expert. In this case, blockIdx.y is the index of a tile.
 */
#ifndef ESP_CUDA_EXPERTS_H
#define ESP_CUDA_EXPERTS_H

#include "kernels/cuda/cuda.h"

/* Says which rows of the result a block computes: rows first..end-1, with the matrix of expert
 * `expert`. Row i of the result is computed from row row_of[i] of x, or from row i of x if
 * row_of is NULL. */
struct esp_cuda_span {
    int first, end, expert;
    const int32_t *row_of;
};

static __device__ __forceinline__ struct esp_cuda_span
esp_cuda_span_of(const struct esp_cuda_arrays &at, const struct esp_cuda_mixture &m,
                 bool wanted, int width)
{
    struct esp_cuda_span s = {(int)blockIdx.y * width, 0, 0, m.row_of};
    if (!m.tiles) {
        const int rows = wanted ? at.pass->wanted : at.pass->rows;
        s.end = s.first + width < rows ? s.first + width : rows;
    } else if ((int)blockIdx.y < *m.tile_count) {
        const struct esp_cuda_tile tile = m.tiles[blockIdx.y];
        s.first = tile.first;
        s.end = tile.end;
        s.expert = tile.expert;
    }
    return s;
}

/* Returns the row of x from which row `row` of the result is computed. Kernels also multiply
 * rows after the last row, but do not use the results. For such rows, returns the same as for
 * the last row. */
static __device__ __forceinline__ int esp_cuda_row_of(const struct esp_cuda_span &s, int row)
{
    row = row < s.end ? row : s.end - 1;
    return s.row_of ? s.row_of[row] : row;
}

/* Returns the maximum number of tiles in a pass of `rows` rows. */
static inline int esp_cuda_tiles_of(const struct esp_cuda_cache *c, int rows, int width)
{
    const struct esp_model_desc *d = esp_cuda_desc_of(c);
    const int pairs = rows * d->experts_used;
    const int most = (pairs < d->experts ? pairs : d->experts) + pairs / width;
    return most < pairs ? most : pairs;
}

#endif
