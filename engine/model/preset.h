/* preset.h - writes espalier.json, the file with a target's preset drafters. esp_model_open()
 * reads it. */
#ifndef ESP_PRESET_H
#define ESP_PRESET_H

#include "engine/espalier.h"

#define ESP_PRESET_FILE "espalier.json"

/* Writes the folder and the name of a file that belongs to a target. The file is FILE in the
 * target's folder, or NAME.FILE next to the GGUF file NAME.gguf. Returns false if the folder or
 * the name is too long. */
bool esp_place_beside(const char *target, const char *file, char folder[4096], char name[4096]);

/* Sets members of the target's espalier.json: "drafter", and "sampling_drafter" for
 * temperatures above 0. A member that is given as NULL does not change, and neither do other
 * members. If writing fails, the old file stays. Returns 0, or a negative status with a
 * sentence that names the file. */
int esp_preset_write(const char *target, const char *drafter, const char *sampling_drafter,
                     char *err, size_t errlen);

#endif
