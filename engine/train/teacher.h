/* teacher.h - runs a target over a text and grows its trees, to make training samples.
 *
 * A draft learns from the target's hidden states after the final norm ("features"), from which
 * the LM head computes the logits. Each token of a text has one feature. TALF also needs trees
 * at some tokens, the roots. There, the target itself expands the likeliest paths with a beam
 * search ("SALF & TALF", section 3.2: EAGLE-2's search, with the target's probabilities). A
 * tree has `k` nodes at each of the depths 1..depth - 1, so a draft needs `depth` passes to
 * follow a path through it, including the pass of the root.
 *
 * Features are stored as float16 in one file, which has a record for each text. Every epoch
 * reads the features again, because together they can be larger than memory.
 */
#ifndef ESP_TRAIN_TEACHER_H
#define ESP_TRAIN_TEACHER_H

#include "engine/model/model.h"

struct esp_teacher_shape {
    int length; /* number of tokens in a text */
    int hidden; /* hidden size of the target */
    int vocabulary;
    int every; /* every n-th token is a root; 0 means no trees */
    int k;     /* number of nodes of a tree at each depth */
    int depth; /* number of draft passes along a path, including the pass of the root */
};

/* Holds one text with its trees. Node j of root r has the index r * nodes + j. */
struct esp_training_sample {
    int32_t *token;    /* (length) */
    uint16_t *feature; /* (length, hidden) float16 */
    int roots, nodes;
    int32_t *node_token;    /* (roots, nodes) */
    int32_t *node_parent;   /* (roots, nodes) an earlier node of the same tree; -1: the root */
    uint16_t *node_feature; /* (roots, nodes, hidden) float16 */
    void *memory;
    size_t bytes;
};

static inline int esp_teacher_roots(const struct esp_teacher_shape *shape)
{
    return shape->every > 0 ? (shape->length + shape->every - 1) / shape->every : 0;
}

static inline int esp_teacher_nodes(const struct esp_teacher_shape *shape)
{
    return shape->every > 0 ? shape->k * (shape->depth - 1) : 0;
}

/* Returns the size in bytes of a sample's memory. Its record in a file has the same size. */
size_t esp_training_sample_bytes(const struct esp_teacher_shape *shape);
/* Allocates memory for a sample. */
int esp_training_sample_open(struct esp_training_sample *sample,
                             const struct esp_teacher_shape *shape);
void esp_training_sample_close(struct esp_training_sample *sample);

struct esp_teacher;

/* Loads the target's weights. `target` must outlive the teacher. */
int esp_teacher_open(struct esp_teacher **teacher, const struct esp_model *target,
                     const struct esp_teacher_shape *shape, int threads, char *err,
                     size_t errlen);
void esp_teacher_close(struct esp_teacher *teacher);

/* Fills in the features and trees of a sample. Its tokens must be set already. */
int esp_teacher_teach(struct esp_teacher *teacher, struct esp_training_sample *sample,
                      char *err, size_t errlen);

/* Converts to float16, rounding to nearest even. Numbers out of range become the largest
 * float16. */
uint16_t esp_half(float value);

#endif
