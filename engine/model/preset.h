/* preset.h - writes the preset of a pair, as reading a model folder finds it again. */
#ifndef ESP_PRESET_H
#define ESP_PRESET_H

#include "engine/espalier.h"

/* Sets members of espalier.json in the target's folder: "drafter", and "sampling_drafter" for
 * temperatures above 0; NULL leaves one as it is. All other members stay. The file is written
 * as a whole or not at all. Returns 0, or a negative status with a sentence that names the
 * file. */
int esp_preset_write(const char *folder, const char *drafter, const char *sampling_drafter,
                     char *err, size_t errlen);

#endif
