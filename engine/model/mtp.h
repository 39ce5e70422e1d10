/* mtp.h - finds the MTP layer of a target (draft_head.h). */
#ifndef ESP_MTP_H
#define ESP_MTP_H

#include "engine/model/model.h"

/* Opens the MTP layer of a target and joins it to the target. The MTP layer is in the target's
 * own files. If the target is a GGUF file without one, the first file mtp-*.gguf next to it
 * that fits is used. Returns ESP_E_FILE if there is no MTP layer. Close *head even after an
 * error. */
int esp_mtp_open(struct esp_model **head, const struct esp_model *target, char *err,
                 size_t errlen);

#endif
