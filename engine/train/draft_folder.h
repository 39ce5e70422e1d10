/* draft_folder.h - reads and writes the folders of trained draft heads and draft models. */
#ifndef ESP_TRAIN_DRAFT_FOLDER_H
#define ESP_TRAIN_DRAFT_FOLDER_H

#include "engine/model/model.h"
#include "engine/train/network.h"

/* Finds the shape of a draft model. Returns ESP_E_UNSUPPORTED if it cannot be trained.
 * The model owns the rotary table. */
int esp_draft_shape(struct esp_network_shape *shape, const struct esp_model *draft, char *err,
                    size_t errlen);
/* Makes the shape of a new head for a target: one layer with the target's dimensions. The
 * caller frees *inverse_frequency after closing the network. */
int esp_head_shape(struct esp_network_shape *shape, const struct esp_model *target,
                   float **inverse_frequency, char *err, size_t errlen);

/* Reads the weights in a folder into a network of the same shape. */
int esp_draft_weights_read(struct esp_network *network, const char *folder, char *err,
                           size_t errlen);

/* These functions write config.json and model.safetensors, with weights rounded to `dtype`. No
 * incomplete file is left if writing fails. For a draft model, the tokenizer and the settings
 * are copied from folder `from`. */
int esp_head_folder_write(const char *folder, const struct esp_network *network,
                          const struct esp_model *target, enum esp_dtype dtype, char *err,
                          size_t errlen);
int esp_draft_folder_write(const char *folder, const struct esp_network *network,
                           const char *from, enum esp_dtype dtype, char *err, size_t errlen);

#endif
