/* find_models.h - finds the models on this machine, and the drafts that fit a target.
 *
 * It searches the models that come with the program, the folders of ESPALIER_MODELS (separated
 * by colons), and the stores of Hugging Face, LM Studio and ollama. A model is a folder with
 * config.json and weights, or a GGUF file. Nothing in these places is trusted. The depth of
 * folders is limited, and each folder is visited only once, even if links form cycles. Only
 * regular files are opened, and unreadable files are skipped.
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
    char name[160]; /* short name, such as "fairytale-target", "Qwen/Qwen2.5-0.5B" or
                       "llama3.2:1b"; it may have any bytes, so it must be escaped before it is
                       printed */
    char path[PATH_MAX];
    const char
        *source;     /* "built-in", "ESPALIER_MODELS", "Hugging Face", "LM Studio", "ollama" */
    bool gguf;       /* true: a GGUF file; false: a folder */
    int64_t bytes;   /* size of the weights */
    char family[32]; /* model_type of config.json; "" if unknown */
    char dtype[16];  /* type of most numbers in a GGUF file; "" if unknown */
    char problem[200];   /* why a GGUF file cannot be used, or "" */
    int tokens;          /* size of the vocabulary; 0 means not read yet */
    uint64_t vocabulary; /* hash of the vocabulary */
    /* esp_draft_fits() sets these members for a draft with another vocabulary; otherwise both
     * are 0. `shared`: how many of the target's tokens the draft has. `text_share`: the
     * fraction of a sample text that consists of these tokens. */
    int shared;
    double text_share;
};

struct esp_found_models {
    struct esp_found_model *models; /* (count) sorted by `source`, in the order listed at
                                       that member, then by name */
    int count;
    bool more; /* there are more than ESP_MODELS_MOST models, the maximum in a list */
};

/* Searches for models. Returns 0 or ESP_E_MEMORY. The caller frees the list in both cases. */
int esp_find_models(struct esp_found_models *found);
void esp_found_models_free(struct esp_found_models *found);

/* Describes the model at this path. Returns 0, or ESP_E_FILE if there is none. */
int esp_found_model_at(struct esp_found_model *model, const char *path);

/* Finds a model by its path, by its name in a list of models, or by the part of that name after
 * the last slash; case is ignored in names. Writes its path. Returns ESP_E_FILE if
 * there is none, and ESP_E_MISMATCH if several models have this name. */
int esp_model_path(char *path, size_t size, const char *name, char *err, size_t errlen);

/* Returns whether the draft is "self" or "self:TYPE", a quantised copy of the target. */
bool esp_is_own_copy(const char *draft);
/* As the name of a draft, this word means the MTP layer in the target's files
 * (model/draft_head.h). */
#define ESP_MTP "mtp"
bool esp_is_mtp(const char *draft);
/* Works like esp_model_path(), for a draft. Words that do not name a model are copied to
 * `path`. They are the words of esp_is_own_copy() and esp_is_mtp(), "none", and "auto". "auto"
 * means the MTP layer if there is one, and otherwise a quantised copy of the target if that is
 * expected to save time. */
int esp_draft_path(char *path, size_t size, const char *name, char *err, size_t errlen);
/* Describes a quantised copy of the target as a draft model for lists. */
void esp_found_copy(struct esp_found_model *copy, const struct esp_found_model *target);
/* Describes the target's MTP layer as a draft model for lists. Returns false if the target has
 * no such layer. */
bool esp_found_mtp(struct esp_found_model *head, const struct esp_found_model *target);
/* Returns whether the target's MTP layer can draft; if not, writes the reason to `why`. */
bool esp_mtp_fits(const struct esp_found_model *target, char *why, size_t size);
/* Returns whether a quantised copy of the target can draft. Writes the reason to `why` if it
 * cannot draft, or if it can but is not expected to save time; otherwise writes "". */
bool esp_copy_fits(const struct esp_found_model *target, char *why, size_t size);

/* Reads the members that only the header of a GGUF file gives: family, dtype, and the size of
 * all parts of a split file. Reports a family that is not supported in `problem`. Does nothing
 * if the model is a folder. */
void esp_found_model_look(struct esp_found_model *model);

/* Returns whether `draft` can be the draft model of `target`: it must be smaller. If it cannot,
 * writes the reason to `why`. If it can, but has another vocabulary (model/translation.h),
 * writes how well it is expected to draft. If it is a draft head, it must have been made for a
 * target of the same sizes, and its kind is written to `why`. Reads each tokenizer once.
 * For each draft with another vocabulary, reads the target's tokenizer once more. */
bool esp_draft_fits(struct esp_found_model *target, struct esp_found_model *draft, char *why,
                    size_t size);

#ifdef __cplusplus
}
#endif
#endif
