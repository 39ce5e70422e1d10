/* learning_batch.h - rows for one step, made of lessons: texts, and what hangs on their roots.
 *
 * A draft head has a row for each token but the first of a text: it reads that token and the
 * target's feature in front of it, and should give the target's feature and distribution after
 * it. HASS lets the head go on for some tokens of the text with its own features; TALF lets it
 * follow every path of the target's tree. A draft model has a row for each token and each node.
 */
#ifndef ESP_LEARNING_BATCH_H
#define ESP_LEARNING_BATCH_H

#include "engine/support/rng.h"
#include "engine/train/network.h"
#include "engine/train/teacher.h"

enum esp_paths { ESP_PATHS_NONE, ESP_PATHS_TEXT, ESP_PATHS_TREE };

struct esp_batch_shape {
    struct esp_teacher_shape lesson;
    int texts;            /* in a batch, at most */
    bool head;            /* a draft head; else a draft model */
    enum esp_paths paths; /* that rows behind the text follow */
    int depth;            /* passes of a path, the root's included */
    int every;            /* a root at every `every`-th token */
    double noise;         /* width of uniform noise that is added to the features of texts */
};

struct esp_learning_batch {
    struct esp_batch_shape shape;
    int room; /* rows */
    struct esp_training_rows rows;
    int32_t *depth;        /* (room) */
    float *weight;         /* (room) */
    float *feature;        /* (texts * length, hidden) what rows of texts read */
    float *target_feature; /* (room, hidden) what the target has there */
    int32_t *last;         /* (texts, roots, nodes) rows of nodes or paths */
};

int esp_learning_batch_open(struct esp_learning_batch *batch,
                            const struct esp_batch_shape *shape, char *err, size_t errlen);
void esp_learning_batch_close(struct esp_learning_batch *batch);

/* Fills in the batch. rng: of the noise; NULL: none. */
void esp_learning_batch_fill(struct esp_learning_batch *batch,
                             const struct esp_training_sample *lessons, int count,
                             struct esp_rng *rng);

#endif
