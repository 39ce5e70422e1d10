/* preset.h - writes the preset of a pair in the form that opening a model reads. */
#ifndef ESP_PRESET_H
#define ESP_PRESET_H

#include "engine/espalier.h"

#define ESP_PRESET_FILE "espalier.json"

/* Finds the place of a file that belongs to a target: FILE in its folder, or NAME.FILE beside the
 * GGUF file NAME.gguf. Writes folder and name. False if they are too long. */
bool esp_place_beside(const char *target, const char *file, char folder[4096], char name[4096]);

/* Sets members of that file: "drafter", and "sampling_drafter" for temperatures above 0; NULL
 * keeps one. All other members stay. The file is written whole, or the old one stays. Returns 0,
 * or a negative status with a sentence that names the file. */
int esp_preset_write(const char *target, const char *drafter, const char *sampling_drafter,
                     char *err, size_t errlen);

#endif
