/* mtp.h - the MTP layer of a target (draft_head.h), where it may be. */
#ifndef ESP_MTP_H
#define ESP_MTP_H

#include "engine/model/model.h"

/* Opens the MTP layer of a target and joins it: the one in its files, or, beside a GGUF file,
 * the first of the files mtp-*.gguf that fits. ESP_E_FILE: there is none. Close *head even after
 * a failure. */
int esp_mtp_open(struct esp_model **head, const struct esp_model *target, char *err,
                 size_t errlen);

#endif
