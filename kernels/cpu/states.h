/* states.h - stores the states of recurrent layers, and the updates that have not been added to
 * the states yet.
 *
 * kernels/state_plan.h says which rows read which state. The value columns of a state do not
 * depend on each other, so the work is divided into blocks of 16 columns of a head. For each
 * block, a thread runs the groups of the plan in turn. It adds the updates of a chunk to the
 * block and multiplies the block by the keys and queries of the group's rows. Then it computes
 * the updates and outputs of these rows, parents first.
 */
#ifndef ESP_CPU_STATES_H
#define ESP_CPU_STATES_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/state_plan.h"

enum { ESP_WALK_LEVELS = 32, ESP_MOST_TAPS = 16 };

/* Products of a row's key and query with the keys of its ancestors in its chunk, for one
 * state head, the nearest ancestor first. Product i includes the decay since ancestor i. For n
 * ancestors, by_key[n] is the decay since the chunk began, and by_query[n] is the product of
 * the row's own query and key. */
struct esp_state_products {
    float by_key[ESP_STATE_CHUNK], by_query[ESP_STATE_CHUNK];
};

struct esp_cpu_states {
    struct esp_state_plan plan;
    void *plan_memory;
    size_t width, rates; /* convolved values per token; number of state heads; both padded */
    size_t tail;         /* size of a layer's tail in floats, see `memory` */
    size_t block;        /* size of 16 columns of a head's state in floats */
    size_t each;         /* size of a layer's tail and states in floats */
    size_t out;          /* values per token that a mixer outputs, padded */
    size_t keys, values; /* values per token in all keys and in all updates, padded */
    int layers;          /* number of recurrent layers */

    /* (layers, ring, width + 2 * rates + keys + values): the values to convolve; the factors
     * `write` and `decay` of each head, computed from the products with the matrices `write`
     * and `decay`; the keys; the updates (enum esp_mixer calls them u). */
    float *inputs;
    /* For each layer, `each` floats. The first are the tail (conv_kernel - 1, width): the
     * inputs of the convolution for the last tokens of the text. The others are the states
     * (state_heads, value_dim / 16, key_dim, 16). */
    float *memory;
    float *slots; /* (state_slots, checkpoint) copies of `memory` and of an incomplete chunk */
    int32_t *saved;   /* (state_slots) number of tokens before each copy, plus 1; 0: empty */
    float *convolved; /* (max_batch, width) output of the convolution */
    struct esp_state_products *products; /* (max_batch, state_heads) */
    float *stack;                        /* (threads, ESP_WALK_LEVELS, block) */
    float *in_gate;                      /* (max_batch, width) */
    float *out_gate;                     /* (max_batch, out) */
    float *o;                            /* (max_batch, out) values read from the states */
    struct esp_state_traffic *moved;     /* (threads): bytes of states that were moved */
};

static inline size_t esp_states_stride(const struct esp_cpu_states *s)
{
    return s->width + 2 * s->rates + s->keys + s->values;
}

/* Returns the input and update in slot `slot`, for the recurrent layer with index `place`. */
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

/* Returns the number of floats in a copy of the states and of an incomplete chunk. */
size_t esp_states_copy(const struct esp_cpu_states *s);
/* Sets taps[0..kernel-1] to the values that the convolution of an entry reads: the values of
 * the entry and of the entries before it, oldest first. */
void esp_states_taps(const struct esp_cpu_states *s, int place, int kernel, int entry,
                     const float *taps[ESP_MOST_TAPS]);
/* Updates the tail of a layer after a pass. */
void esp_states_move_tail(struct esp_cpu_states *s, int place, int kernel);
/* Moves inputs and updates in the same way as keep() of struct esp_backend_ops moves rows. */
void esp_states_keep(struct esp_cpu_states *s, int folded, int first, const int32_t *which,
                     int count);

#endif
