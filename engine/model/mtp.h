/* mtp.h - finds the MTP layer of a target (draft_head.h). */
#ifndef ESP_MTP_H
#define ESP_MTP_H

#include "engine/model/model.h"

/* Opens the MTP layer of a target and joins it to the target. Looks for the layer in the
 * target's own files. If the target is a GGUF file without an MTP layer, tries the files
 * mtp-*.gguf in the same folder, and uses the first one that fits. Returns ESP_E_FILE if there
 * is no MTP layer. Close *head even after an error. */
int esp_mtp_open(struct esp_model **head, const struct esp_model *target, char *err,
                 size_t errlen);

#endif
