/* mtp.h - finds the MTP layer of a target (draft_head.h). */
#ifndef ESP_MTP_H
#define ESP_MTP_H

#include "engine/model/model.h"

/* Opens the MTP layer of a target and joins it to the target. It is in the target's files
 * or, for a GGUF file, in the first fitting file mtp-*.gguf next to it. Returns ESP_E_FILE if
 * there is none. Close *head even after an error. */
int esp_mtp_open(struct esp_model **head, const struct esp_model *target, char *err,
                 size_t errlen);

#endif
