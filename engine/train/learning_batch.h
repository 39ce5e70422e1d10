/* learning_batch.h - makes the rows of one training step from texts, and from paths that branch
 * off at roots.
 *
 * A draft head has a row for each token of a text except the first. The input of the row is the
 * token, and the target's feature before this token. The head learns to predict the target's
 * feature and distribution after this token. With HASS, the head also reads its own features
 * instead of the target's, for some tokens after each root. With TALF, it has rows for every
 * path of the target's tree. A draft model has a row for each token and each node.
 */
#ifndef ESP_LEARNING_BATCH_H
#define ESP_LEARNING_BATCH_H

#include "engine/support/rng.h"
#include "engine/train/network.h"
#include "engine/train/teacher.h"

enum esp_paths { ESP_PATHS_NONE, ESP_PATHS_TEXT, ESP_PATHS_TREE };

struct esp_batch_shape {
    struct esp_teacher_shape sample;
    int texts;            /* maximum number of texts in a batch */
    bool head;            /* true: a draft head; false: a draft model */
    enum esp_paths paths; /* which paths follow the rows of the texts */
    int depth;            /* number of passes along a path, including the pass of the root */
    int every;            /* every n-th token is a root */
    double noise;         /* width of the uniform noise added to the features of texts */
};

struct esp_learning_batch {
    struct esp_batch_shape shape;
    int room;     /* maximum number of rows */
    void *memory; /* one allocation that contains all arrays below */
    struct esp_training_rows rows;
    int32_t *depth;        /* (room) depth in a tree or path; 0 for a row of a text */
    float *weight;         /* (room) weight in the loss */
    float *feature;        /* (texts * length, hidden) input of the rows of texts */
    float *target_feature; /* (room, hidden) the target's feature of each row */
    int32_t *last;         /* (texts, roots, nodes) row of each node of a tree or path */
};

int esp_learning_batch_open(struct esp_learning_batch *batch,
                            const struct esp_batch_shape *shape, char *err, size_t errlen);
void esp_learning_batch_close(struct esp_learning_batch *batch);

/* Fills the batch with `count` samples. `rng` draws the noise; NULL means no noise. */
void esp_learning_batch_fill(struct esp_learning_batch *batch,
                             const struct esp_training_sample *samples, int count,
                             struct esp_rng *rng);

#endif
