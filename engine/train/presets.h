/* presets.h - lists the losses by name, with their parameters. */
#ifndef ESP_TRAIN_PRESETS_H
#define ESP_TRAIN_PRESETS_H

#include "engine/train/learning_batch.h"
#include "engine/train/loss.h"

struct esp_loss_preset {
    struct esp_loss_weights weights;
    struct esp_batch_shape batch; /* all members except `sample` and `texts` are set */
    int k;                        /* number of nodes of a tree at each depth */
    char spec[128]; /* "name:k=v,..." with the values that differ from the defaults */
};

/* Parses "name:k=v,..." for a draft head or a draft model. */
int esp_loss_preset(struct esp_loss_preset *preset, const char *spec, bool head, char *err,
                    size_t errlen);

#endif
