/* states.h - the states of recurrent layers, and the walk of a pass over its rows.
 *
 * A node of a tree needs the state after its parent. The value columns of a state never mix, so
 * the work is divided into blocks of 16 columns of a head. For each block, a thread walks the
 * whole tree, depth first (kernels/walk.h): it reads the block as it was after the parent,
 * applies one token and writes it to a small stack. So a row of a tree takes the time of a
 * token of a chain, and its numbers come from the same operations in the same order as in a
 * chain of its ancestors. Results are bit-identical for trees, chains, and any order of rows.
 */
#ifndef ESP_CPU_STATES_H
#define ESP_CPU_STATES_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/state_plan.h"

enum { ESP_WALK_LEVELS = 32, ESP_MOST_TAPS = 16 };

struct esp_cpu_states {
    struct esp_state_plan plan;
    void *plan_memory;
    size_t width, rates; /* values per token that are convolved; state heads; both padded */
    size_t tail;         /* size of a layer's tail in floats, see `memory` */
    size_t block;        /* size of 16 columns of a head's state in floats */
    size_t each;         /* size of a layer's tail and states in floats */
    size_t out;          /* values per token that a mixer outputs, padded */
    int layers;          /* number of recurrent layers */

    float *inputs; /* (layers, ring, width + 2 * rates): values to convolve, write, decay */
    /* (layers, each): the tail (conv_kernel - 1, width), which is the convolved values of the
     * text's last tokens, then the states (state_heads, value_dim / 16, key_dim, 16). */
    float *memory;
    float *slots;     /* (state_slots, layers * each) saved copies of `memory` */
    int32_t *saved;   /* (state_slots) `folded` + 1 of each copy; 0 means the slot is empty */
    float *convolved; /* (ring, width) by entry: output of the convolution */
    float *factors;   /* (ring, 2 * rates) by entry: write, decay */
    float *stack;     /* (threads, ESP_WALK_LEVELS, block) */
    float *in_gate;   /* (max_batch, width) */
    float *out_gate;  /* (max_batch, out) */
    float *o;         /* (max_batch, out) values read from the states */
    struct esp_state_traffic *moved; /* (threads): counts of the current pass */
};

static inline size_t esp_states_stride(const struct esp_cpu_states *s)
{
    return s->width + 2 * s->rates;
}

/* Returns the input of a slot for recurrent layer number `place`. */
static inline float *esp_states_input(const struct esp_cpu_states *s, int place, int slot)
{
    return s->inputs +
           ((size_t)place * (size_t)s->plan.ring + (size_t)slot) * esp_states_stride(s);
}

static inline float *esp_states_of(const struct esp_cpu_states *s, int place)
{
    return s->memory + (size_t)place * s->each;
}

/* Sets all sizes for batches of max_batch rows. */
void esp_states_set_sizes(struct esp_cpu_states *s, const struct esp_model_desc *d,
                          int max_batch);

/* Sets taps[0..kernel-1] to the values that the convolution of an entry reads: its own and
 * those of the entries before it, oldest first. */
void esp_states_taps(const struct esp_cpu_states *s, int place, int kernel, int entry,
                     const float *taps[ESP_MOST_TAPS]);
/* Updates the tail of a layer after the walk. */
void esp_states_move_tail(struct esp_cpu_states *s, int place, int kernel, int folded_before);
/* Moves inputs as keep() of struct esp_backend_ops moves rows. */
void esp_states_keep(struct esp_cpu_states *s, int folded, int first, const int32_t *which,
                     int count);

#endif
