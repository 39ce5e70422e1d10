/* espalier_info.h - describes the models and the device of an open engine.
 *
 * Part of the public interface (espalier.h includes it).
 */
#ifndef ESPALIER_INFO_H
#define ESPALIER_INFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/streamed.h"

#ifdef __cplusplus
extern "C" {
#endif

struct esp_engine;

struct esp_model_info {
    const char *path, *name, *architecture, *dtype;
    /* True for a draft head, whose architecture is "eagle", "eagle3" or "mtp". The fields below
     * then describe the head's own tensors only, not the target's. */
    bool head;
    bool mtp; /* true: the model's files also contain an MTP layer, which can draft for the
                 model (draft "mtp") */
    /* The draft is a quantised copy of the target (draft "self"). It uses the target's KV
     * cache. `bytes` includes only the matrices of the copy. */
    bool copy;
    int64_t parameters;
    int64_t active;                        /* number of parameters that a token uses */
    size_t bytes;                          /* size of the weights */
    int experts, experts_used, expert_ffn; /* number of experts, experts per token, width of an
                                              expert's FFN; or 0 */
    const char *expert_dtype;              /* number format of the experts, or NULL */
    int layers, hidden, heads, kv_heads, head_dim, ffn, vocabulary, context;
    /* recurrent: number of layers that have a state instead of attention. state_bytes: size of
     * all states of a text. checkpoints: number of copies of these states that a session
     * stores, so that a text can be shortened. checkpoint_bytes: size of one copy. */
    int recurrent, checkpoints;
    size_t state_bytes, checkpoint_bytes;
    int outputs; /* number of tokens that can get a probability above 0 */
    /* These fields describe a draft model whose vocabulary differs from the target's.
     * translated: true for such a model. shared: number of tokens that both vocabularies have.
     * text_share: fraction of the tokens of a sample text that are shared. */
    bool translated;
    int shared;
    double text_share;
    /* unused: number of tensors in the folder that the model does not use, such as layers
     * beyond the number in config.json. unused_name: the name of one of them, or NULL. */
    int unused;
    const char *unused_name;
    int ignored; /* number of tensors of other modalities, such as a vision tower */
};

/* These functions describe the target and the draft model. They return false if there is no
 * such model. The strings belong to the engine. */
bool esp_engine_target(const struct esp_engine *engine, struct esp_model_info *info);
bool esp_engine_draft(const struct esp_engine *engine, struct esp_model_info *info);
const char *esp_engine_backend(const struct esp_engine *engine); /* e.g. "cpu" */
/* Returns a description such as "AVX-512, 2 threads" or "AVX-512, 2 threads, 5 of 16 layers in
 * memory". */
const char *esp_engine_device(const struct esp_engine *engine);
/* Reports which part of the target is not in the backend's memory. Every pass reads or copies
 * this part again. The report includes the speed of reading or copying. Returns false if the
 * whole target is in the backend's memory. */
bool esp_engine_streamed(const struct esp_engine *engine, struct esp_streamed *streamed);
/* Returns a sentence for the user, or "". The sentence says why backend "auto" does not use an
 * existing device, or gives the maximum length of texts on a device with little memory. */
const char *esp_engine_notice(const struct esp_engine *engine);

#ifdef __cplusplus
}
#endif
#endif
