/* model.h - opens and checks a model: a folder in Hugging Face form, or a GGUF file.
 *
 * config.json names the architecture (architecture.h; architectures.def lists all of them). The
 * weights are in model.safetensors, or in the files that model.safetensors.index.json names.
 * The backend reads the weights. A GGUF file contains all of this (gguf_model.h). A split file
 * can be opened by the name of any of its parts, NAME-00001-of-0000N.gguf. Everything that is
 * read is untrusted: sizes are checked before they are multiplied or used. An error
 * message is one sentence that names the file and the value.
 */
#ifndef ESP_MODEL_H
#define ESP_MODEL_H

#include "kernels/kernels.h"

enum { ESP_MAX_END_TOKENS = 16 };

/* Holds the rotary frequencies: radians per position, for each of the `rotary` / 2 pairs of
 * dimensions. */
struct esp_rotation_tables {
    int rotary;
    float scale;     /* factor of cosine and sine */
    float *global;   /* (rotary / 2) */
    float *local;    /* frequencies of layers with a window; NULL means the same as global */
    float *extended; /* replaces `global` for contexts above `original`, or NULL */
    int original;
};

struct esp_model {
    char *path, *name;        /* path: as given; name: the last component of the path */
    const char *architecture; /* "eagle", "eagle3" or "mtp" for a draft head */
    bool head;                /* true: a draft head (draft_head.h), not a whole model */
    bool reads_unnormed;      /* true: an MTP layer that reads states before the final norm */
    bool feeds_normed;        /* true: a draft head that reads its own normalised states */
    int reads_state
        [3];  /* which states of the target an EAGLE-3 head reads; all 0: the usual states */
    bool mtp; /* the model's files also have an MTP layer, which can draft for the model */
    const char *dtype; /* type of the first layer's query matrix: "F32", "BF16", "Q4_K", ... */
    const char *expert_dtype; /* type of the first expert's matrices, or NULL */
    struct esp_model_desc desc;
    int64_t parameters;              /* number of parameters in all tensors that are used;
                                        tied tensors are counted once */
    int64_t idle;                    /* number of parameters that a token does not use: the
                                        weights of experts that are not chosen */
    size_t bytes;                    /* size in bytes of all tensors that are used */
    int ignored;                     /* number of tensors that are ignored, because they belong
                                        to other modalities (multimodal.h) */
    int32_t end[ESP_MAX_END_TOKENS]; /* end-of-text tokens of generation_config.json or
                                        config.json */
    int end_count;
    /* Drafter specifications "name:k=v,..." from espalier.json, or NULL: `preset` in general,
     * `sampling_preset` for temperatures above 0. */
    char *preset, *sampling_preset;
    char *chat_template; /* Jinja text of a GGUF file (untrusted), or NULL. It is NULL for a
                            folder. */
    struct esp_stored_set *files;
    struct esp_rotation_tables rotation;
    int32_t *output_token; /* the list that desc.output_token points to, or NULL */
    int32_t *conv_rows;    /* the lists of rows to which the member `listed` of the tensors of
                              recurrent layers points, or NULL */
    /* Only a quantised copy (own_copy.h) has these members: the original model, and the file
     * from which the copy's tensors are read. `quantising.failed` is set if memory ran out
     * while rows were quantised. */
    const struct esp_model *original;
    struct esp_tensor_file quantising;
};

/* Opens and checks a folder or a GGUF file; reads no weights yet. Weights that were made from
 * the model must be closed before the model. */
int esp_model_open(struct esp_model **model, const char *path, char *err, size_t errlen);
/* Opens the MTP layer in the files of a model, as a draft head named ESP_MTP. Returns
 * ESP_E_FILE if they have none. */
int esp_model_open_mtp(struct esp_model **head, const char *path, char *err, size_t errlen);
/* Chooses the rotary frequencies for texts of at most `context` tokens (LongRoPE has two sets;
 * Ding et al., 2024). Before this call, the frequencies for the longest texts are used. */
void esp_model_set_context(struct esp_model *model, int context);
/* Changes the LM head of the model, so that it computes the logits of some tokens of another
 * vocabulary, which has `tokens` tokens. Row i of the new LM head is row row[i] of the old one,
 * and gives the logit of token[i]. `token` and `row` have `count` entries and must outlive the
 * model. `token` is ascending. */
void esp_model_set_outputs(struct esp_model *model, const int32_t *token, const int32_t *row,
                           int count, int tokens);
void esp_model_close(struct esp_model *model);

#endif
