/* rank.h - combines a value of a row and its index into one integer, the rank of the value.
 * Larger values have smaller ranks.
 *
 * In the order that kernels.h defines, larger values come first, and equal values are ordered
 * by ascending index. The ranks have the same order. A rank has 52 bits: 32 bits that decrease
 * when the value increases, then 20 bits of index. All ranks of a row are different. So one
 * number, the last selected rank, describes a set such as "the k best values" or "the best
 * values, until their weights add up to w". Blocks can search for this rank in any order.
 *
 * esp_select() finds the last selected rank by a radix search. It makes a histogram over the
 * leading 11 bits, finds the bin that contains the rank, and repeats this inside that bin. The
 * search stops at a bin that has only one value or that is completely selected, so it mostly
 * ends after two passes. Weights are integers, because atomic additions of integers give the
 * same sum in any order.
 */
#ifndef ESP_CUDA_RANK_H
#define ESP_CUDA_RANK_H

#include "kernels/cuda/rows.h"

#include <cmath>
#include <cstring>

enum {
    ESP_INDEX_BITS = 20,
    ESP_RANK_BITS = 32 + ESP_INDEX_BITS,
    ESP_DIGIT = 11,
    ESP_BINS = 1 << ESP_DIGIT,
};

static const uint64_t ESP_NO_RANK = ~(uint64_t)0;

/* Returns the rank of a value and its index. Adding 0 turns -0 into 0, so that both count as
 * equal values. */
static __device__ __forceinline__ uint64_t esp_rank(float x, int index)
{
    uint32_t bits = __float_as_uint(x + 0.0f);
    uint32_t order = bits >> 31 ? bits : ~bits & 0x7fffffffu;
    return (uint64_t)order << ESP_INDEX_BITS | (uint32_t)index;
}

static __device__ __forceinline__ int32_t esp_rank_index(uint64_t rank)
{
    return (int32_t)(rank & (ESP_VOCABULARY_MOST - 1));
}

static __device__ __forceinline__ float esp_rank_value(uint64_t rank)
{
    uint32_t order = (uint32_t)(rank >> ESP_INDEX_BITS);
    return __uint_as_float(order >> 31 ? order : ~order & 0x7fffffffu);
}

static __device__ __forceinline__ uint64_t esp_warp_least(uint64_t x)
{
    for (int step = ESP_WARP / 2; step > 0; step /= 2) {
        uint64_t other = __shfl_xor_sync(ESP_ALL_LANES, x, step);
        x = other < x ? other : x;
    }
    return x;
}

/* ------------------------------------------------------------------ walks along a row */

/* A walk is a loop over values begin..end-1 of a row. The first `held` values of the row are in
 * shared memory, with a gap of 16 floats after every 256. Each half of a warp sums 256 values,
 * and because of the gaps the two halves use different banks. A row is padded to a multiple of
 * 4 with arbitrary values. */
struct esp_walk {
    float *row, *kept;
    int begin, end, held; /* `begin` is a multiple of 4, and `held` is a multiple of 256 */
};

enum { ESP_HELD_CHUNK = 256, ESP_HELD_ROOM = 256 + 16 };

static __device__ __forceinline__ int esp_held_place(int i)
{
    return i / ESP_HELD_CHUNK * ESP_HELD_ROOM + i % ESP_HELD_CHUNK;
}

/* Loads values i..i+3. i is a multiple of 4. */
static __device__ __forceinline__ float4 esp_walk_load(const struct esp_walk *w, int i)
{
    if (i < w->held)
        return *reinterpret_cast<const float4 *>(w->kept + esp_held_place(i));
    return *reinterpret_cast<const float4 *>(w->row + i);
}

static __device__ __forceinline__ void esp_walk_store(const struct esp_walk *w, int i, float4 v)
{
    if (i < w->held)
        *reinterpret_cast<float4 *>(w->kept + esp_held_place(i)) = v;
    else
        *reinterpret_cast<float4 *>(w->row + i) = v;
}

/* ------------------------------------------------------------------ the radix search */

struct esp_select_room {
    unsigned count[ESP_BINS], low[ESP_BINS], high[ESP_BINS];
    uint64_t warp[ESP_WARP];
    uint64_t before;
    unsigned bin, values;
    int whole;
};

/* Says which values to select. If `weigh` is 0, selects the `want` best values. Otherwise the
 * values are between 0 and 1, and each has the weight value * weigh. In this case, selects the
 * best values above `least`, until their weights add up to `want`. */
struct esp_selection {
    uint64_t want;
    double weigh;
    float least;
};

static __device__ __forceinline__ uint64_t esp_bin_weight(const struct esp_select_room *room,
                                                          int bin, bool weighted)
{
    if (!weighted)
        return room->count[bin];
    return (uint64_t)room->high[bin] << 32 | room->low[bin];
}

static __device__ __forceinline__ void esp_bin_add(struct esp_select_room *room, unsigned bin,
                                                   uint64_t weight)
{
    atomicAdd(&room->count[bin], 1u);
    esp_add_halves(&room->low[bin], &room->high[bin], weight);
}

/* Finds the bin at which the cumulative weight of the bins reaches `want`. If the sum of all
 * weights is smaller, finds the last bin with a weight other than 0. */
static __device__ inline void esp_find_bin(struct esp_select_room *room, uint64_t want,
                                           bool weighted)
{
    const int per = ESP_BINS / blockDim.x, first = threadIdx.x * per;
    const int lane = threadIdx.x % ESP_WARP, warp = threadIdx.x / ESP_WARP;
    uint64_t own = 0, all = 0, before = 0;
    for (int i = 0; i < per; i++)
        own += esp_bin_weight(room, first + i, weighted);
    uint64_t up_to = own;
    for (int step = 1; step < ESP_WARP; step *= 2) {
        uint64_t other = __shfl_up_sync(ESP_ALL_LANES, up_to, step);
        up_to += lane >= step ? other : 0;
    }
    if (lane == ESP_WARP - 1)
        room->warp[warp] = up_to;
    __syncthreads();
    for (int i = 0; i < (int)blockDim.x / ESP_WARP; i++) {
        before += i < warp ? room->warp[i] : 0;
        all += room->warp[i];
    }
    before += up_to - own;
    want = want < all ? want : all;
    if (before < want && want <= before + own) {
        int bin = first;
        uint64_t weight;
        while (before + (weight = esp_bin_weight(room, bin, weighted)) < want) {
            before += weight;
            bin++;
        }
        room->bin = (unsigned)bin;
        room->values = room->count[bin];
        room->before = before;
        room->whole = before + weight == want;
    }
    __syncthreads();
}

/* Returns the last selected rank. All smaller ranks (of values above `least`) are selected,
 * too. The number of threads in the block must be a power of two and at most 1024. At least one
 * value must be selected. */
static __device__ inline uint64_t esp_select(const struct esp_walk *w, struct esp_selection s,
                                             struct esp_select_room *room)
{
    const bool weighted = s.weigh > 0.0;
    int shift = weighted ? ESP_RANK_BITS - 2 : ESP_RANK_BITS;
    uint64_t prefix = weighted ? 1 : 0; /* the two leading bits that all values 0..1 share */
    for (int next; shift > 0; shift = next) {
        next = shift > ESP_DIGIT ? shift - ESP_DIGIT : 0;
        const unsigned digits = (1u << (shift - next)) - 1;
        for (int i = threadIdx.x; i < ESP_BINS; i += blockDim.x)
            room->count[i] = room->low[i] = room->high[i] = 0;
        __syncthreads();
        for (int i = w->begin + 4 * threadIdx.x; i < w->end; i += 4 * blockDim.x) {
            const float4 four = esp_walk_load(w, i);
            const float value[4] = {four.x, four.y, four.z, four.w};
            for (int j = 0; j < 4 && i + j < w->end; j++) {
                if (weighted && !(value[j] > s.least))
                    continue;
                uint64_t rank = esp_rank(value[j], i + j);
                if (rank >> shift == prefix)
                    esp_bin_add(room, (unsigned)(rank >> next) & digits,
                                weighted ? (uint64_t)((double)value[j] * s.weigh) : 0);
            }
        }
        __syncthreads();
        esp_find_bin(room, s.want, weighted);
        s.want -= room->before;
        prefix = prefix << (shift - next) | room->bin;
        if (room->values == 1 || (room->whole && !weighted))
            return ((prefix + 1) << next) - 1;
        __syncthreads();
    }
    return prefix;
}

#endif
