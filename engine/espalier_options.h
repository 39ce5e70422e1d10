/* espalier_options.h - defines the table of an engine's options.
 *
 * An option is one line of the table. struct esp_engine_options, the flags of the program,
 * `:set`, the configuration file and the manual are all generated from the table. To add an
 * option, add its line here and use its value where it takes effect.
 *
 * In a zero-initialised struct all options have their defaults.
 */
#ifndef ESPALIER_OPTIONS_H
#define ESPALIER_OPTIONS_H

#include "engine/espalier_event.h"
#include "engine/espalier_value.h"
#include "kernels/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* X(group, kind, field, name, minimum, maximum, default, values, help)
 *
 * group: the group of the option; a command of the program accepts either all options of a
 * group or none. struct esp_value_info explains the other columns. */

/* Models are folders or files. If `target` is NULL, the built-in pair is used. If `draft` is
 * NULL, the built-in target gets the built-in draft, and any other target gets no draft.
 * `draft` can also be "auto", "none", "mtp" or a word that esp_is_own_copy() accepts. */
#define ESP_ENGINE_MODELS(X)                                                                   \
    X(MODELS, text, target, "target", 0, 0, 0, "MODEL",                                        \
      "target: a folder, a GGUF file or a name of `espalier list models` (default: the "       \
      "built-in pair)")                                                                        \
    X(MODELS, text, draft, "draft", 0, 0, 0, "MODEL",                                          \
      "draft, named the same way: a smaller model, or an EAGLE head for the target;"           \
      " mtp: the target's MTP layer; self: a quantised copy of the target (self:q4_k, q4_0, "  \
      "q8_0); none; auto: mtp if there is one, else self if it should save time")

#define ESP_ENGINE_BACKEND(X)                                                                  \
    X(DEVICE, text, backend, "backend", 0, 0, 0, "auto|NAME",                                  \
      "compute backend: auto, or one of `espalier list backends`")

/* memory: limit of the memory that the process uses with one session. The limit is approximate,
 * and works only with the CPU backend. The target's files must not change while the engine
 * exists. gpu-memory: limit of the GPU memory that the models and one session use. Layers of
 * the target that do not fit into this limit, or into the free GPU memory, stay in the
 * computer's memory. If a limit is too small, creating the engine fails with ESP_E_MEMORY, and
 * the message says how much memory is needed.
 *
 * ranks, hosts, launcher, ranks-split, ranks-parts, ranks-whole: see espalier-ranks(7). A
 * program that uses these options must call esp_is_rank() at its start.
 *
 * exact: on a GPU, results are bit-identical for trees of all sizes, as they always are on the
 * CPU. Exact passes are slower.
 *
 * width, layers: enlarge the target in memory, as esp_model_inflate() does with files. Its
 * output stays the same. */
#define ESP_ENGINE_VALUES(X)                                                                   \
    X(MODELS, choice, draft_match, "draft-match", 0, 2, 0, "auto|tokens|text",                 \
      "how a draft with another vocabulary drafts: tokens that both vocabularies have, or "    \
      "text that is encoded again; auto: text if few tokens are shared")                       \
    X(DEVICE, whole, threads, "threads", 1, 1024, 0, "auto|NUMBER",                            \
      "processor threads; auto: one per performance core; at most one per core")               \
    X(DEVICE, whole, ranks, "ranks", 1, 64, 1, "NUMBER",                                       \
      "divide the target among this many processes or, with --backend cuda, GPUs; the output " \
      "stays the same")                                                                        \
    X(DEVICE, text, hosts, "hosts", 0, 0, 0, "A,B,..",                                         \
      "machines on which ranks run, connected by MPI; the first is this machine (localhost); " \
      "empty: only this machine")                                                              \
    X(DEVICE, text, launcher, "launcher", 0, 0, 0, "PROGRAM",                                  \
      "the mpirun that starts the ranks; empty: the first mpirun that is found")               \
    X(DEVICE, text, ranks_split, "ranks-split", 0, 0, 0, "rows|layers",                        \
      "what a rank computes: some rows of every matrix, or whole layers (for slow networks)")  \
    X(DEVICE, text, ranks_parts, "ranks-parts", 0, 0, 0, "A:B:..",                             \
      "ratio of the ranks' parts (3:1); empty: equal parts")                                   \
    X(DEVICE, text, ranks_whole, "ranks-whole", 0, 0, 0, "KIND,..|none",                       \
      "matrices that every rank computes completely: attention, output, mlp, experts, down, "  \
      "head, states, gates; empty: matrices whose results take longer to exchange than to "    \
      "compute")                                                                               \
    X(MEMORY, size, memory, "memory", 0, 0, 0, "SIZE",                                         \
      "limit memory (600M, 2G): layers that do not fit are read from disk on every pass; 0: "  \
      "no limit")                                                                              \
    X(MEMORY, size, gpu_memory, "gpu-memory", 0, 0, 0, "SIZE",                                 \
      "limit a GPU's memory: layers that do not fit are copied to the GPU on every pass; 0: "  \
      "all free memory")                                                                       \
    X(DEVICE, whole, device, "device", 0, 1023, 0, "NUMBER",                                   \
      "number of the GPU, counted from 0")                                                     \
    X(PRECISION, flag, exact, "exact", 0, 1, 0, "on|off",                                      \
      "on a GPU, bit-identical results for trees of all sizes; on the processor, "             \
      "activations of 16 bits instead of 8 for weights of 4 to 6 bits")                        \
    X(NODES, whole, max_nodes, "max-nodes", 1, ESP_MAX_NODES, 256, "NUMBER",                   \
      "reserve memory for trees of up to this many nodes; 256 if not given")                   \
    X(CONTEXT, whole, context, "context", 2, 1 << 24, 0, "auto|NUMBER",                        \
      "tokens of context; auto: as many as the target and the memory allow")                   \
    X(SIZE, whole, width, "width", 1, 64, 0, "auto|NUMBER",                                    \
      "make the target this many times as wide: 1, 2, 4, ... 64; auto: leave it as it is")     \
    X(SIZE, whole, layers, "layers", 1, 1000, 0, "auto|NUMBER",                                \
      "give the target this many layers in total; auto: as many as it has")

#define ESP_ENGINE_OPTIONS(X) ESP_ENGINE_MODELS(X) ESP_ENGINE_BACKEND(X) ESP_ENGINE_VALUES(X)

/* Values of option draft_match. */
enum { ESP_MATCH_AUTO, ESP_MATCH_TOKENS, ESP_MATCH_TEXT };

struct esp_engine_options {
#define X(group, kind, field, name, minimum, maximum, value, values, help)                     \
    ESP_VALUE_##kind field;
    ESP_ENGINE_OPTIONS(X)
#undef X
    esp_progress *progress;
    /* Called repeatedly while a rank does not answer, in the thread that waits for the rank.
     * seconds: how long the rank has not answered. Returns whether to keep waiting. If this
     * function is NULL, the rank is ended. */
    bool (*patient)(void *user, int rank, int ranks, double seconds);
    void *user; /* passed to progress() and patient() */
};

/* Indices of the table's lines. */
enum esp_engine_option {
#define X(group, kind, field, name, minimum, maximum, value, values, help)                     \
    ESP_OPTION_OF_##field,
    ESP_ENGINE_OPTIONS(X)
#undef X
        ESP_OPTIONS /* number of options */
};

/* Returns line `index` of the table, or NULL if `index` is past its end. */
const struct esp_value_info *esp_engine_option(int index);
/* Returns the line of the option with this name, or NULL. */
const struct esp_value_info *esp_engine_option_find(const char *name);

#ifdef __cplusplus
}
#endif
#endif
