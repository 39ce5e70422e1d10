/* find_models.h - the models that are on this machine, and which drafts fit a target.
 *
 * Looked through are the models that come with the program, the folders of ESPALIER_MODELS
 * (separated by colons), and the stores of Hugging Face, LM Studio and ollama. A model is a
 * folder with config.json and weights, or a GGUF file. Nothing in these places is trusted:
 * folders are looked through to a certain depth and once each, whatever links they hold, only
 * regular files are opened, and what cannot be read is left out.
 */
#ifndef ESP_FIND_MODELS_H
#define ESP_FIND_MODELS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { ESP_MODELS_MOST = 1000 };

struct esp_found_model {
    char name[160]; /* short: "fairytale-target", "Qwen/Qwen2.5-0.5B", "llama3.2:1b"; bytes of
                       a folder's name or a file, so not safe to print as they are */
    char path[PATH_MAX];
    const char
        *source;     /* "built-in", "ESPALIER_MODELS", "Hugging Face", "LM Studio", "ollama" */
    bool gguf;       /* a GGUF file; else a folder */
    int64_t bytes;   /* of its weights */
    char family[32]; /* model_type of config.json; "" if not known */
    char dtype[16];  /* that most numbers of a GGUF file have; "" if not known */
    char problem[200];   /* why the header of a GGUF file cannot be read, or "" */
    int tokens;          /* of its vocabulary; 0: esp_draft_fits() has not read it */
    uint64_t vocabulary; /* its hash */
};

struct esp_found_models {
    struct esp_found_model *models; /* (count) by source, in the order above, and by name */
    int count;
    bool more; /* than ESP_MODELS_MOST, which are left out */
};

/* Looks for models. Returns 0 or ESP_E_MEMORY; free the list either way. */
int esp_find_models(struct esp_found_models *found);
void esp_found_models_free(struct esp_found_models *found);

/* Describes the model at this path. Returns 0, or ESP_E_FILE if there is none. */
int esp_found_model_at(struct esp_found_model *model, const char *path);

/* Writes the path of a model that is named by its path, or by its name as a list of them has
 * it, or by the part of it behind the last slash, upper and lower case alike. Returns 0, or a
 * negative status with a sentence: ESP_E_FILE if there is none, ESP_E_MISMATCH if several
 * models have this name. */
int esp_model_path(char *path, size_t size, const char *name, char *err, size_t errlen);

/* Looks into a GGUF file for what its name and size do not tell: family, dtype, and the bytes
 * of all parts of a split one. A family that this program does not know is that of the file.
 * Nothing happens to a folder. */
void esp_found_model_look(struct esp_found_model *model);

/* Can `draft` draft for `target`, and is it worth it? If not, writes why: its vocabulary, its
 * size or its kind of file. This reads both tokenizers, each once. */
bool esp_draft_fits(struct esp_found_model *target, struct esp_found_model *draft, char *why,
                    size_t size);

#ifdef __cplusplus
}
#endif
#endif
