/* states.h - the states of recurrent layers, and the walk of a pass over its rows.
 *
 * A node of a tree needs the state after its parent. Value columns of a state never mix, so a
 * part of the work is 16 columns of a head, and a thread walks the whole tree with them, depth
 * first: it reads the block of the parent, moves it on by one token and writes it to a small
 * stack. Each row thus costs what a token of a chain costs, and its numbers come from the same
 * operations in the same order as in a chain of its ancestors. So results are bit-identical
 * for trees, chains, and any order of rows. The last child of a node, the one with most
 * descendants, takes over the node's block, so the stack has a level for each power of two of
 * rows, whatever the depth is.
 *
 * A pass walks over the rows of the text that the states lack, then over its own text rows;
 * these move the states on in place. The other rows follow, and leave only their inputs
 * behind. The input of row r is in slot (r + dropped) % ring, which does not change when a
 * window drops rows.
 */
#ifndef ESP_CPU_STATES_H
#define ESP_CPU_STATES_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/kernels.h"

enum { ESP_WALK_LEVELS = 32, ESP_MOST_TAPS = 16 };

/* One row of a walk. The first `texts` entries of a walk are a chain of the text. */
struct esp_cpu_entry {
    int32_t slot;   /* slot of the row's input */
    int32_t row;    /* row of the batch; -1: an earlier row */
    int32_t parent; /* entry; -1: the state itself */
};

/* Entry `entry` reads the block of level `from` and writes that of level `to`. Level 0 is the
 * state. */
struct esp_cpu_step {
    int32_t entry;
    int16_t from, to;
};

struct esp_cpu_states {
    int ring;            /* rows that have inputs */
    int dropped;         /* as in the last pass, see struct esp_window */
    size_t width, rates; /* conv values and state heads, padded */
    size_t tail;         /* floats of the last conv_kernel - 1 conv values of a text */
    size_t block;        /* floats of 16 columns of a head's state */
    size_t each;         /* floats of a layer's tail and states */
    size_t out;          /* values that a mixer puts out, padded */
    int layers;          /* number of recurrent layers */

    float *inputs;    /* (layers, ring, width + 2 * rates): conv values, write, decay */
    float *memory;    /* (layers, each): tail (conv_kernel - 1, width), then (state_heads,
                         value_dim / 16, key_dim, 16) */
    float *slots;     /* (state_slots, layers * each) */
    int32_t *saved;   /* (state_slots) `folded` + 1 of each; 0: empty */
    float *convolved; /* (ring, width) of the entries of a walk */
    float *factors;   /* (ring, 2 * rates) of the entries: write, decay */
    float *stack;     /* (threads, ESP_WALK_LEVELS, block) */
    float *in_gate;   /* (max_batch, width) */
    float *out_gate;  /* (max_batch, out) */
    float *o;         /* (max_batch, out) what is read from the states */
    struct esp_state_traffic *moved; /* (threads) of the current pass */

    /* The walk of the current pass. */
    int count, texts, folded;    /* entries, those of the text; `folded` after the pass */
    struct esp_cpu_entry *entry; /* (ring) */
    struct esp_cpu_step *step;   /* (ring) */
    int32_t *batch_slot;         /* (max_batch) slot of each row of the batch */
    int32_t *before,
        *known; /* (ring) by row after the prefix: the row that it follows, its entry */
    int32_t *size, *heavy, *first, *next, *pending, *level; /* (ring + 1) by entry */
};

static inline size_t esp_states_stride(const struct esp_cpu_states *s)
{
    return s->width + 2 * s->rates;
}

/* The input in a slot, of recurrent layer number `place`. */
static inline float *esp_states_input(const struct esp_cpu_states *s, int place, int slot)
{
    return s->inputs + ((size_t)place * (size_t)s->ring + (size_t)slot) * esp_states_stride(s);
}

static inline float *esp_states_of(const struct esp_cpu_states *s, int place)
{
    return s->memory + (size_t)place * s->each;
}

/* Sets all sizes for batches of max_batch rows. */
void esp_states_set_sizes(struct esp_cpu_states *s, const struct esp_model_desc *d,
                          int max_batch);

/* Plans the walk of a batch after the first `folded` tokens; sets states to zero for a text
 * that begins. The batch may have no rows. False: its past is gone, or has no inputs any more.
 */
bool esp_states_plan(struct esp_cpu_states *s, const struct esp_cache *cache,
                     const struct esp_batch *batch);

/* The conv values of an entry and of those before it, oldest first. */
void esp_states_taps(const struct esp_cpu_states *s, int place, int kernel, int entry,
                     const float *taps[ESP_MOST_TAPS]);
/* Keeps the last conv values of the text after the walk. */
void esp_states_move_tail(struct esp_cpu_states *s, int place, int kernel, int folded_before);
/* Moves inputs as keep() of struct esp_backend_ops moves rows. */
void esp_states_keep(struct esp_cpu_states *s, int folded, int first, const int32_t *which,
                     int count);

#endif
