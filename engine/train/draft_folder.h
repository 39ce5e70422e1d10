/* draft_folder.h - reads and writes the folders of trained draft heads and draft models. */
#ifndef ESP_TRAIN_DRAFT_FOLDER_H
#define ESP_TRAIN_DRAFT_FOLDER_H

#include "engine/model/model.h"
#include "engine/train/network.h"

/* The shape of a draft model; ESP_E_UNSUPPORTED with a sentence if its architecture cannot be
 * trained. The model owns the rotary table. */
int esp_draft_shape(struct esp_network_shape *shape, const struct esp_model *draft, char *err,
                    size_t errlen);
/* The shape of a new head for a target, with one layer of the target's dimensions. The caller
 * frees *inverse_frequency after the network. */
int esp_head_shape(struct esp_network_shape *shape, const struct esp_model *target,
                   float **inverse_frequency, char *err, size_t errlen);

/* Reads the weights of a folder into a network of its shape. */
int esp_draft_weights_read(struct esp_network *network, const char *folder, char *err,
                           size_t errlen);

/* Writes config.json and model.safetensors, each completely or not at all, and for a draft
 * model copies its tokenizer and settings from folder `from`. Rounds weights to `dtype`. */
int esp_head_folder_write(const char *folder, const struct esp_network *network,
                          const struct esp_model *target, enum esp_dtype dtype, char *err,
                          size_t errlen);
int esp_draft_folder_write(const char *folder, const struct esp_network *network,
                           const char *from, enum esp_dtype dtype, char *err, size_t errlen);

#endif
