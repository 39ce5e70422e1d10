/* kernels.h - the interface that every backend implements and that its callers use.
 *
 * A backend owns weights, key/value caches and matrices of row vectors over the vocabulary
 * ("rows": logits, then probabilities). Callers have only opaque pointers to these.
 * Vocabulary-sized data stays with the backend, and callers read the few numbers that they
 * need. A backend knows nothing about trees or sessions.
 *
 * Invariant (tested bit by bit; see set_exact): the result for one row depends only on the
 * tokens and positions that the row sees. It never depends on the other rows of the batch, on
 * where the cache stores the row's ancestors, or on the number of threads. That is why greedy
 * tree decoding gives exactly the result of plain decoding.
 *
 * Functions return 0 or a negative enum esp_status. If a function with an argument `err` fails,
 * it also writes one sentence to `err`.
 */
#ifndef ESP_KERNELS_H
#define ESP_KERNELS_H

#include <stdint.h>

#include "kernels/dtype.h"
#include "kernels/ranks/rank_options.h"
#include "kernels/ratio.h"
#include "kernels/status.h"
#include "kernels/streamed.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------ a model's description */

/* Describes a file from which tensors are read. If the file has become shorter since it was
 * opened, a read beyond its end gives zeros and sets `failed`. The owner of the file checks
 * `failed` after all reads. */
struct esp_tensor_file {
    int fd;
    bool failed;
    const char *path; /* for error messages; or NULL */
};

/* Describes a matrix or vector in the model file. Row r of the matrix starts at row
 * (r / block) * stride + r % block of `data`, so that a single matrix can be read from a fused
 * matrix (gpt_neox interleaves q, k and v per head). A plain matrix has block = stride = rows.
 * A vector is a matrix with one column: its element r is found by the same rule, so a fused
 * bias is read in the same way. Vectors are never quantised. The number of columns of a
 * quantised matrix is a multiple of the block size of its dtype. If the model does not have a
 * tensor, its `data` is NULL. */
struct esp_tensor {
    /* Row-major, unaligned. If `source` is not NULL, nothing is read from `data`. In this case
     * `data` is non-NULL only to show that the tensor exists. */
    const void *data;
    enum esp_dtype dtype;
    int rows, columns; /* (out, in); a vector has columns = 1 */
    int block, stride;
    int first; /* row 0 of a slice is row `first` of the tensor; see esp_tensor_slice() */
    /* If not 0, the rows that RoPE rotates together are stored next to each other, as in GGUF
     * files of Llama, and `paired` is the number of rows of a head. For i < paired / 2, row i
     * of a head is stored as its row 2 i, and row i + paired / 2 is stored as its row 2 i + 1.
     */
    int paired;
    /* If not 0, the matrix is stored transposed (floats only), with `transposed` numbers in a
     * stored row. Element (r, c) is number c * transposed + r if block = stride = rows, or
     * number c * transposed + r * stride if block = 1. */
    int transposed;
    /* If not NULL, the matrix is MXFP4 as in Hugging Face folders: a block is 16 bytes, with
     * numbers 2 i and 2 i + 1 in the low and high half of byte i. The scales, a byte per block
     * in the same order, are stored separately: at `scales`, or, if there is a source, at
     * scale_offset of scale_source. Functions that read rows return them in GGUF's layout.
     * Such a matrix has block = stride = rows, or block = 1. */
    const void *scales;
    struct esp_tensor_file *scale_source;
    size_t scale_offset;
    float added;    /* added to every number of a vector: Gemma stores norm weights minus 1 */
    bool logarithm; /* if the stored number of a vector is x, reading it returns -e^x */
    struct esp_tensor_file *source; /* NULL if the tensor is in memory, at `data` */
    size_t offset;                  /* where the first row begins in `source` */
    /* If stored_rows is not 0, the tensor is larger than the stored tensor (F32 and BF16 only;
     * engine/model/inflate.h). Row r consists of the stored row r % stored_rows, repeated to
     * `columns` numbers and divided by `divisor`, a power of two. If `divisor` is 0, all
     * numbers are 0.
     */
    int stored_rows, stored_columns, divisor;
    /* If not NULL, this tensor is a copy of the matrix `original`, quantised to `dtype`
     * whenever rows are read; numbers that are not finite become 0. Then block = stride = rows.
     * If there is not enough memory to quantise rows, zeros are read and source->failed is set.
     */
    const struct esp_tensor *original;
    /* (rows), or NULL. If it is not NULL, row r of the tensor is row listed[r] of the matrix
     * that the other fields describe. That matrix can have any number of rows. */
    const int32_t *listed;
};

/* Selects the rotary frequencies of a layer: the model's global frequencies, its local
 * frequencies, or none. */
enum esp_rotation { ESP_ROTATION_GLOBAL, ESP_ROTATION_LOCAL, ESP_ROTATION_NONE };

/* ESP_FIRST_NORM lists the vectors of the norm before the mixer, and ESP_OTHER_VECTORS lists
 * all other vectors of a layer. Backends store them as floats. */
#define ESP_FIRST_NORM(X) X(norm1) X(norm1_bias)
// clang-format off
#define ESP_OTHER_VECTORS(X)                                                                   \
    X(norm2) X(norm2_bias) X(norm_attended) X(norm_mlp) X(query_norm) X(key_norm) X(sink_logit) \
    X(conv_bias) X(decay_bias) X(rate) X(skip) X(mixed_norm) X(choice_bias)
// clang-format on
#define ESP_LAYER_VECTORS(X) ESP_FIRST_NORM(X) ESP_OTHER_VECTORS(X)

/* Says how a layer mixes a token with the tokens before it. A layer with ESP_MIXER_NONE does
 * not mix tokens: it is only an MLP. All mixers except attention are recurrent. A recurrent
 * layer has a state that each token changes, and a causal convolution over the token and the
 * conv_kernel - 1 tokens before it. In the following, c stands for the convolved values. S is
 * the state of a head (key_dim, value_dim), which is zero before the first token. W x is the
 * product of the matrix W and the layer's input x:
 *   ESP_MIXER_CONV (LFM2's short convolution; there is no S): out = (out_gate x) * c, where
 *     (in_gate x) * (conv_in x) is convolved.
 *   ESP_MIXER_DELTA (Yang et al., "Gated Delta Networks", 2024, eq. 10): q, k, v = silu(c) in
 *     this order, q and k of unit length, q divided by sqrt(key_dim); decay = exp(rate *
 *     softplus(decay x + decay_bias)); S = decay S; S += k (sigmoid(write x) (v - S^T k))^T; o
 *     = S^T q; out = RMSNorm of each head of o by mixed_norm, times silu(out_gate x).
 *   ESP_MIXER_SSM (Mamba-2; Dao and Gu, "Transformers are SSMs", 2024, section 7): v, k, q =
 *     silu(c) in this order; t = softplus(decay x + decay_bias), limited to `least_step` and
 *     `most_step`; S = exp(rate t) S + k (t v)^T; o = S^T q + skip v; out = RMSNorm of o *
 *     silu(out_gate x) by mixed_norm, over the heads of a key head together. `mixed` (out, ...)
 *     turns `out` into what is added to the residual stream, as `output` does for attention. */
enum esp_mixer {
    ESP_MIXER_ATTENTION,
    ESP_MIXER_NONE,
    ESP_MIXER_CONV,
    ESP_MIXER_DELTA,
    ESP_MIXER_SSM
};

static inline bool esp_recurs(enum esp_mixer mixer)
{
    return mixer != ESP_MIXER_ATTENTION && mixer != ESP_MIXER_NONE;
}

struct esp_expert {
    struct esp_tensor gate, gate_bias, up, up_bias; /* (expert_ffn, hidden) */
    struct esp_tensor down, down_bias;              /* (hidden, expert_ffn) */
};

struct esp_layer {
    struct esp_tensor norm1,
        norm1_bias; /* (hidden, 1) before the mixer; without a mixer, before the MLP */
    struct esp_tensor query, query_bias; /* (heads * head_dim, hidden) */
    struct esp_tensor key, key_bias;     /* (kv_heads * head_dim, hidden) */
    struct esp_tensor value, value_bias; /* (kv_heads * head_dim, hidden) */
    /* RMSNorm of queries and keys: for each head (head_dim, 1), or for all heads together
     * (heads * head_dim, 1) and (kv_heads * head_dim, 1). */
    struct esp_tensor query_norm, key_norm;
    /* (heads, 1), optional: for each query head, an additional score that takes part in the
     * softmax but has no value (Xiao et al. 2024, section 3.3). */
    struct esp_tensor sink_logit;
    struct esp_tensor output, output_bias; /* (hidden, heads * head_dim) */
    /* (heads * head_dim, hidden), optional. The output of attention is multiplied by
     * sigmoid(matrix * input of the layer), element by element. */
    struct esp_tensor attention_gate;

    /* A recurrent layer has the following members instead of `query` to `output`, and ignores
     * `rotation` and `window`. C is esp_conv_width(), and V is esp_mixed_width(). */
    enum esp_mixer mixer;
    struct esp_tensor conv_in, conv_in_bias;   /* the input of the convolution */
    struct esp_tensor in_gate, in_gate_bias;   /* (C, hidden) CONV only */
    struct esp_tensor out_gate, out_gate_bias; /* (V, hidden) */
    struct esp_tensor write;                   /* (state_heads, hidden) DELTA only */
    struct esp_tensor decay, decay_bias; /* (state_heads, hidden), not for CONV; the bias is
                                                  added after the product */
    struct esp_tensor conv, conv_bias;   /* (C, conv_kernel), last column: the token itself */
    struct esp_tensor rate;              /* (state_heads, 1), negative numbers */
    struct esp_tensor skip;              /* (state_heads, 1), SSM only */
    struct esp_tensor mixed_norm;        /* (value_dim, 1); for SSM: (V, 1) */
    struct esp_tensor mixed, mixed_bias; /* (hidden, V) */

    /* The MLP. A recurrent model may have layers without an MLP, and layers without a mixer.
     * Such layers have no norm2. */
    struct esp_tensor norm2, norm2_bias;            /* (hidden, 1) before the MLP */
    struct esp_tensor gate, gate_bias, up, up_bias; /* (ffn, hidden) */
    struct esp_tensor down, down_bias;              /* (hidden, ffn) */
    /* All biases are (out, 1). */

    /* (hidden, 1), optional: RMSNorms of the outputs of attention and MLP, before these are
     * added to the residual stream. A layer with these norms may lack norm1 and norm2, which
     * are then the identity. */
    struct esp_tensor norm_attended, norm_mlp;

    /* If `router` has data, a mixture of experts replaces gate, up and down. The router
     * (experts, hidden) chooses the `experts_used` experts with the highest probabilities, and
     * their outputs are added with these probabilities as weights. `expert` is an array
     * (experts) with the three matrices of each expert. If the layer has gate, up and down,
     * too, they are the matrices of a shared expert, which all tokens use. The output of the
     * shared expert is multiplied by the sigmoid of shared_gate (1, hidden), if there is
     * one. */
    struct esp_tensor router, router_bias, shared_gate;
    /* (experts, 1), optional: this is added to the experts' weights when experts are chosen,
     * but not when their outputs are added. */
    struct esp_tensor choice_bias;
    struct esp_expert *expert;

    /* In this layer, a row sees only some of the rows that the batch lets it see: the last
     * `window` of them, including the row itself. 0 means no limit. These rows have consecutive
     * positions, so the row at position t sees positions t - window + 1 to t. */
    int window;
    enum esp_rotation rotation;
};

enum esp_norm { ESP_NORM_RMS, ESP_NORM_LAYER };
/* The functions are, in this order: silu(gate) * up; gelu(up), exact (by erf); gelu(up) by
 * tanh; gelu(gate) * up, by tanh; silu(gate) * up with limits (struct esp_clamp); max(0,
 * up)^2. */
enum esp_activation {
    ESP_SWIGLU,
    ESP_GELU,
    ESP_GELU_TANH,
    ESP_GEGLU,
    ESP_SWIGLU_CLAMPED,
    ESP_RELU2
};

static inline bool esp_gated(enum esp_activation activation)
{
    return activation == ESP_SWIGLU || activation == ESP_GEGLU ||
           activation == ESP_SWIGLU_CLAMPED;
}

/* The parameters of ESP_SWIGLU_CLAMPED (gpt-oss): gate is limited to at most `limit`, and up
 * to -limit..limit; the result is gate / (1 + exp(-slope * gate)) * (up + 1). */
struct esp_clamp {
    float limit, slope;
};

/* Selects what the first layer reads. All values except the first are for draft heads, which
 * read hidden states of another model or their own hidden states.
 *   ESP_READS_TOKENS: the embedding of the batch's tokens.
 *   ESP_READS_EAGLE: fc [embedding, input] (Li et al., "EAGLE", 2024, section 4.1). Layer 0 may
 *     lack norm1, and the model may lack norm_final: both are then the identity. With
 *     norm_embedding, both parts are normalised first, as in MTP layers (DeepSeek-AI,
 *     "DeepSeek-V3", 2024, section 2.2); `input_first` swaps them.
 *   ESP_READS_EAGLE3: x = fc input, or the input itself if it has the width `hidden`, is the
 *     residual stream. The attention of layer 0 reads [norm1 embedding, norm_input x], so its
 *     matrices for query, key and value have 2 * hidden columns (Li et al., "EAGLE-3", 2025,
 *     section 3.1). With norm_fc, the input is normalised before fc. Further layers are as in
 *     other models. */
enum esp_reads { ESP_READS_TOKENS, ESP_READS_EAGLE, ESP_READS_EAGLE3 };

/* The largest number of norms before the fc of an EAGLE-3 head. */
enum { ESP_FC_NORMS = 3 };

/* Holds a memory limit for weights. The weights may use `bytes` minus `others`. `others` is
 * reserved for everything else that the caller will open. */
struct esp_memory_limit {
    size_t bytes, others; /* bytes = 0 means no limit */
};

struct esp_model_desc {
    int layers, hidden, heads, kv_heads, head_dim, ffn, vocabulary, context;
    enum esp_reads reads;
    int input;                 /* width of the hidden states that the model reads, or 0 */
    struct esp_tensor fc;      /* (hidden, hidden + input); for EAGLE-3 (hidden, input) */
    struct esp_tensor fc_bias; /* (hidden, 1) */
    /* RMSNorms of the embedding and of the input, for fc: (hidden, 1) each, optional. EAGLE-3
     * has only norm_input. */
    struct esp_tensor norm_embedding, norm_input;
    /* EAGLE-3: the input of fc is divided into `fc_norms` equal parts, and norm_fc[i] is the
     * RMSNorm of part i: (input / fc_norms, 1). fc_norms = 0 means that there are no norms. */
    struct esp_tensor norm_fc[ESP_FC_NORMS];
    int fc_norms;
    bool input_first;     /* fc reads [input, embedding] */
    bool residual_normed; /* EAGLE-3: norm_input x is the residual stream, instead of x */
    enum esp_norm norm;
    enum esp_activation activation;
    struct esp_clamp clamp;
    bool parallel_residual; /* x + attention(norm1 x) + mlp(norm2 x), as in gpt_neox */
    float norm_epsilon;
    /* The dimensions of recurrent layers, see enum esp_mixer; conv_kernel = 0 means that the
     * model has no recurrent layers. Value head h reads key head h / (state_heads / key_heads),
     * or h % key_heads if heads_tiled is true. */
    int conv_kernel, state_heads, key_heads, key_dim, value_dim;
    bool heads_tiled;
    float least_step, most_step;           /* limits of t (enum esp_mixer), SSM only */
    int state_slots;                       /* how many copies of its states a cache can store */
    int experts, experts_used, expert_ffn; /* for layers with a router */
    bool experts_normed; /* the weights of the used experts are divided by their sum */
    /* True if a sigmoid, not a softmax over all experts, turns each expert's logit into its
     * weight. If experts_normed is true, the chosen weights are divided by their sum plus
     * expert_epsilon. */
    bool sigmoid_router;
    float expert_epsilon, expert_scale; /* all weights are multiplied by the scale; 0 means 1 */
    int rotary; /* leading dimensions of a head that RoPE rotates, in pairs (i, i + rotary/2) */
    const float *inverse_frequency; /* (rotary / 2) radians per position, including scaling */
    const float *local_inverse_frequency; /* the same for ESP_ROTATION_LOCAL layers, or NULL */
    float rotary_scale;                   /* multiplies cosine and sine; 0 means 1 */
    /* Factors that multiply the embedding, the outputs of attention and MLP, and the logits; 0
     * means 1. attention_scale multiplies attention's scores; 0 means 1 / sqrt(head_dim). */
    float embedding_scale, residual_scale, logit_scale, attention_scale;
    /* These limit attention's scores and the logits: x becomes cap * tanh(x / cap); 0 means no
     * cap.
     */
    float attention_cap, logit_cap;
    /* (`context` or more, hidden), optional; added to the embedding. */
    struct esp_tensor position_embedding;
    struct esp_tensor embedding; /* (vocabulary, hidden) */
    struct esp_tensor head; /* (outputs, hidden); the same tensor as the embedding if tied */
    /* The tokens that get logits; all other tokens get -1e30. output_token is an array
     * (outputs), ascending: row i of `head` belongs to token output_token[i]. NULL means
     * outputs = vocabulary, and row i belongs to token i. */
    int outputs;
    const int32_t *output_token;
    /* All tokens in `output_token` are below this number; 0 means below `vocabulary`. This
     * number differs from `vocabulary` if the model reads tokens of one vocabulary and gives
     * logits for another. */
    int output_tokens;
    /* NULL, or the weights of the lender, another model on the same backend. If the embedding
     * or the head of the lender is the same tensor as in this model, it is shared, not copied.
     * The lender must outlive the weights of this model. */
    struct esp_weights *lender;
    /* True if the weights are divided among the backend's ranks (kernels/ranks); ignored if
     * there are none. Models that read hidden states cannot be divided. */
    bool divided;
    /* Layers that do not fit into this memory limit are loaded in every pass: from host memory
     * if the backend has separate memory, otherwise from their files, which must not change. */
    struct esp_memory_limit limit;
    /* Device memory for the captured passes of a cache (CUDA graphs), in addition to
     * cache_need; 0 means all memory that is free. A backend captures as many passes as fit. */
    size_t graph_bytes;
    /* True if passes will run in exact mode (set_exact), in which a cache may need more memory.
     * If this flag is wrong, results are still right, but passes may take longer. */
    bool exact;
    struct esp_tensor norm_final, norm_final_bias; /* (hidden, 1) */
    struct esp_layer *layer;                       /* (layers) */
};

/* ------------------------------------------------------------------ one forward pass */

/* A pass can return hidden states, which have these numbers. For 0 <= i < layers, state i of a
 * model is the residual stream before layer i. State `layers` is the residual stream after the
 * last layer, before the final norm. State ESP_STATE_NORMED is the output of the final norm,
 * from which logits are computed. */
enum { ESP_STATE_NORMED = -1, ESP_MAX_STATES = 4 };

struct esp_states {
    int count;
    int state[ESP_MAX_STATES]; /* (count) the states to return, in this order */
    /* (capacity, count * hidden), made by rows_open() with count * hidden as its vocabulary.
     * The caller owns these rows, and reads them with read_row() or passes them to another
     * pass as input. */
    struct esp_rows *to;
    const int32_t *row; /* (rows) row of `to` for batch row i; -1 if none. NULL means row i */
};

/* Describes a window, which limits the tokens that a row sees ("StreamingLLM", Xiao et al.
 * 2024, section 3.2). The row at position t sees the first `sinks` tokens and the last `recent`
 * tokens, including its own: positions 0..sinks-1 and t-recent+1..t. If there is a gap between
 * these two ranges, attention computes as if there were no gap: for the sinks, the row is at
 * position sinks + recent - 1; for the recent tokens, distances do not change. So no distance
 * is larger than in a text of sinks + recent tokens. What a row sees depends only on t, never
 * on other rows of the cache. */
struct esp_window {
    int sinks, recent; /* sinks >= 0, recent >= 1 */
    /* Number of tokens after the sinks that no longer have a cache row: cache row r >= sinks
     * has position r + dropped. A multiple of ESP_WINDOW_STEP. */
    int dropped;
};

enum { ESP_WINDOW_STEP = 16 };

/* Row i of the batch is tokens[i] at positions[i]. Its key and value are written to cache row
 * first + i. It sees the cache rows 0..prefix-1, and row prefix + j if bit j of its mask is
 * set. Each row must see its own cache row, and no later row. If `mask` is NULL, row i sees all
 * cache rows up to and including its own. The cache rows that a row sees must be in ascending
 * order of position. */
struct esp_batch {
    int rows;
    const int32_t *tokens;    /* (rows) */
    const int32_t *positions; /* (rows); with a window, positions in the whole text */
    int first, prefix;        /* cache rows; prefix <= first */
    const uint64_t *mask;     /* (rows, mask_words) */
    int mask_words;
    /* The number of leading rows of the batch that are committed, which means that their tokens
     * will stay in the text. If it is not 0, first = prefix, and every row sees all committed
     * rows that are not after it. Committed rows change the states of recurrent layers; for the
     * other rows, see struct esp_cache. Models without recurrent layers ignore this number. */
    int text;
    /* Limits what the rows see; NULL means no limit. Allowed only if the backend has
     * `windows`. */
    const struct esp_window *window;
    /* Where logits are written, or NULL. If this has more columns than the model has tokens,
     * the other columns get -1e30, which is probability 0. If it has fewer, the logits without
     * a column are dropped. */
    struct esp_rows *logits;
    const int32_t
        *logits_row; /* (rows) row of `logits` for batch row i; -1 if none. NULL means row i */
    /* If not NULL, the call also computes softmax and top-k of the rows with logits, which
     * makes the pass a draft step. */
    const struct esp_step *step;
    /* Hidden states to return, or NULL. If the backend cannot return them, the pass fails with
     * ESP_E_UNSUPPORTED. */
    const struct esp_states *states;
    /* The hidden states that a draft head reads: (capacity, desc->input); for EAGLE-3,
     * (capacity, desc->hidden) is allowed, too. NULL for a model that reads only tokens. This
     * may be the matrix to which states are written, because all input is read first. */
    struct esp_rows *input;
    const int32_t *input_row; /* (rows) row of `input` for batch row i; NULL means row i */
};

/* Describes how logits become probabilities. temperature > 0; top_k = 0 means that there
 * is no top-k limit, and top_p >= 1 that there is no top-p limit. */
struct esp_sampling {
    double temperature, top_p;
    int top_k;
};

/* Says when the results of a call are in the caller's memory.
 *   ESP_NOW: when the call returns.
 *   ESP_LATER: at the latest when the next call with ESP_NOW on this backend returns. That call
 *     also reports failures of the earlier calls. The memory for the results must stay valid
 *     until then; arguments may be reused as soon as the call returns.
 * The results are the same in both cases. If a call fails, all results that are still due are
 * discarded: nothing is written to the callers' memory after the failure. */
enum esp_delivery { ESP_NOW, ESP_LATER };

/* Describes a draft step: the call runs softmax() and then top_k() on the rows that got logits,
 * in batch order. */
struct esp_step {
    struct esp_sampling sampling;
    int k;
    int32_t *ids;           /* (rows with logits, k) */
    float *values;          /* (rows with logits, k) */
    enum esp_delivery when; /* when ids and values are written */
};

struct esp_combination {
    double a, b, c, d;
};

/* Holds the total time of all kernels of one kind in a pass. */
struct esp_kernel_time {
    const char *name; /* what these kernels compute */
    int count;
    double seconds;
    double bytes; /* weights, keys and values read; 0 means unknown */
};

/* Describes the device for which predict() (struct esp_backend_ops) predicts times. */
struct esp_device_speed {
    double read_rate; /* bytes per second */
    double clock;     /* cycles per second; 0 means the clock rate of the device that is open */
};

/* Times of the two ways to compute a product with quantised weights on a processor with a
 * tile unit. A time is in nanoseconds for a block of 32 by 32 weights; 0 means not measured. */
enum { ESP_WAY_SIZES = 13 };
enum esp_way { ESP_WAY_VECTORS, ESP_WAY_TILES, ESP_WAYS };
struct esp_way_times {
    /* The four indices are: the type of the weights; 0 for activations of 16 bits or 1 for 8
     * bits; the index of a number of rows (these numbers are in ascending order); the way. */
    double ns[ESP_DTYPE_COUNT][2][ESP_WAY_SIZES][ESP_WAYS];
};

/* ------------------------------------------------------------------ the backend */

/* A backend extends the following structs: each is the first member of a larger struct. */
struct esp_backend {
    const struct esp_backend_ops *ops;
};
struct esp_weights {
    struct esp_backend *backend;
    const struct esp_model_desc *desc;
    size_t bytes; /* memory that the weights take */
};
/* Counts the updates of the states of recurrent layers in the passes over a cache, and the
 * bytes that these passes read and wrote for the updates. A part of a state stays in the
 * processor's cache during a pass, so it is read from memory at most once in a pass, and
 * written at most once. */
struct esp_state_traffic {
    int64_t steps;         /* number of updates: one for each row and recurrent layer */
    int64_t read, written; /* bytes of states, from and to memory */
};

/* A chunk is this many tokens. The states of recurrent layers are computed only for the start
 * of each chunk (state_plan.h). */
enum { ESP_STATE_CHUNK = 8 };

/* For recurrent layers, a cache contains the state of each layer after the first `folded`
 * tokens of the text. For each later row, it contains the input of the layer, and the update
 * that the row makes to the state. `folded` is a multiple of ESP_STATE_CHUNK. All rows of a
 * pass follow rows folded..prefix-1, which are counted as if a window had not dropped any row.
 * A pass first adds the updates of all complete chunks of rows folded..prefix-1 to the states.
 * After that it adds the updates of the chunks that its committed rows (`text`) complete.
 * `prefix` must not be less than `folded`, except that prefix 0 begins a new text. To go back
 * further in a text, load a copy of the states. Updates are stored for up to twice as many rows
 * as a batch may have; a batch that needs more is refused (ESP_E_ARGUMENT). */
struct esp_cache {
    struct esp_weights *weights;
    size_t bytes;
    int folded; /* -1 after a failed pass: the states are lost */
    struct esp_state_traffic traffic;
};
struct esp_rows {
    struct esp_backend *backend;
    int capacity, vocabulary;
};

enum { ESP_MARKS = 128, ESP_MAX_DRAWS = 16 };

struct esp_rank_plan;  /* ranks/rank_plan.h */
struct esp_rank_costs; /* see rank_plan.h */

struct esp_backend_ops {
    const char *name, *summary;
    /* True if calls only queue work for a device, and every call with ESP_NOW waits for the
     * device. Then few calls that return many values each are faster than many calls. */
    bool asynchronous;
    bool gives_states; /* passes can return hidden states (see esp_batch.states) */
    bool windows;      /* rows of a pass can be limited to a window (see esp_batch.window) */

    /* Opens the backend. threads = 0 means one thread per performance core. Fails with
     * ESP_E_UNSUPPORTED if the machine has no such device, and with ESP_E_DEVICE if it has one
     * that does not work. */
    int (*open)(struct esp_backend **backend, int threads, char *err, size_t errlen);
    /* Opens the backend on one of several devices, numbered from 0; open() uses device 0. Fails
     * with ESP_E_ARGUMENT if other devices exist, but not this one. NULL means the backend has
     * no devices to choose from. */
    int (*open_device)(struct esp_backend **backend, int device, char *err, size_t errlen);
    void (*close)(struct esp_backend *backend);
    const char *(*device)(const struct esp_backend *backend); /* e.g. "AVX-512, 2 threads" */

    /* The following members, up to time_kernels, may be NULL. */

    /* Returns a sentence about the last call that failed on the device, or "". */
    const char *(*failure)(const struct esp_backend *backend);
    /* Must be called before weights are opened. Exact mode has two effects. First, the
     * invariant at the top of this file holds bit for bit. (On the CPU it always holds. On
     * other backends, without exact mode, the order of a sum may depend on the size of the
     * batch.) Second, products are precise: without exact mode, the CPU rounds activations to 8
     * bits instead of 16 if weights have fewer than 8 bits. NULL means there is only one
     * mode. */
    void (*set_exact)(struct esp_backend *backend, bool exact);
    /* A backend with separate memory has these functions. memory_free() returns the number of
     * free bytes. weights_need() returns the number of bytes that weights will take. With a
     * memory limit, that is as much as the limit allows, but at least the minimum that the
     * weights need. */
    size_t (*memory_free)(const struct esp_backend *backend);
    size_t (*weights_need)(const struct esp_model_desc *desc);
    /* These two functions measure times on the device, because the host's clock cannot time
     * asynchronous calls. mark() queues a time stamp of the device in slot 0..ESP_MARKS-1;
     * between() waits for the later of two time stamps and returns the seconds between them. */
    void (*mark)(struct esp_backend *backend, int slot);
    double (*between)(struct esp_backend *backend, int from, int to);
    /* Measures how fast the device reads a block of this size, in bytes per second. Returns 0
     * if there is no memory for the block. */
    double (*read_rate)(struct esp_backend *backend, size_t bytes);
    /* Runs a pass (without a draft step) twice, and times the kernels of the second run on the
     * device: at most `most` kinds, in order of execution. Returns the number of kinds, or a
     * negative status. */
    int (*time_kernels)(struct esp_cache *cache, const struct esp_batch *batch,
                        struct esp_kernel_time *kernel, int most);
    /* Predicts, from a description of the device, what time_kernels() would measure for a pass
     * of up to 64 rows that follow `context` tokens, with logits for all rows. No weights are
     * needed: `data` of the tensors of `desc` only has to be non-NULL. */
    int (*predict)(struct esp_backend *backend, const struct esp_model_desc *desc, int rows,
                   int context, const struct esp_device_speed *speed,
                   struct esp_kernel_time *kernel, int most);
    /* Some products can be computed in two ways, with bit-identical results. way_key() returns
     * a key that identifies the processor and the code that were timed, or "" if there is only
     * one way. If `times` is incomplete for a type of these weights, measure_ways() measures
     * this type; after that, the backend uses the faster way for each type. Returns how many
     * types it measured. */
    const char *(*way_key)(const struct esp_backend *backend);
    int (*measure_ways)(struct esp_weights *weights, struct esp_way_times *times);
    /* Starts ranks: other processes or GPUs. Together with this process, they compute models
     * with `divided` set in their description. Must be called before weights are opened. */
    int (*start_ranks)(struct esp_backend *backend, const struct esp_rank_options *options,
                       char *err, size_t errlen);
    /* The next two members and set_rank_delay() are NULL if ranks are GPUs, not processes. */
    /* Starts the ranks again if the process of a rank has ended, or if it hangs. It does so
     * only once, and only if starting the ranks and loading their models took at most `most`
     * seconds. Caches that were opened before are lost: calls with them fail with ESP_E_DEVICE.
     * Writes to `why` what happened to the old ranks. Returns a negative status if there are no
     * new ranks. */
    int (*restart_ranks)(struct esp_backend *backend, double most, char *why, size_t size);
    /* Sets the function that decides what to do with a rank that does not answer; see
     * esp_rank_patience. NULL means that such a rank is ended. */
    void (*ask_about_ranks)(struct esp_backend *backend, esp_rank_patience *patient,
                            void *user);
    /* Reports the time that exchanges between ranks took so far. Returns false if there are no
     * ranks. */
    bool (*rank_times)(const struct esp_backend *backend, struct esp_rank_times *times);
    /* Simulates a slow network between the ranks; see esp_ranks_set_delay(). */
    int (*set_rank_delay)(struct esp_backend *backend, const char *delay);
    /* Describes in `plan` how the weights of this model are divided, or would be divided, among
     * the ranks. Writes the measured costs to `costs`. */
    int (*plan_ranks)(struct esp_backend *backend, const struct esp_model_desc *desc,
                      struct esp_rank_plan *plan, struct esp_rank_costs *costs, char *err,
                      size_t errlen);
    /* A backend that computes recurrent layers has these functions. state_bytes() returns the
     * size of a model's states, or 0 if it has none. checkpoint_bytes() returns the size of a
     * copy, which also contains the updates of an incomplete chunk. fold() adds the updates of
     * all complete chunks of rows folded..prefix-1 to the states; `dropped` tokens of the text
     * have no row. After fold(), state_save() copies the states after the first `length` =
     * prefix + dropped tokens of the text to slot 0..desc->state_slots-1. state_load() restores
     * this copy, and `folded` with it. */
    size_t (*state_bytes)(const struct esp_model_desc *desc);
    size_t (*checkpoint_bytes)(const struct esp_model_desc *desc);
    int (*fold)(struct esp_cache *cache, int prefix, int dropped);
    int (*state_save)(struct esp_cache *cache, int slot, int length);
    int (*state_load)(struct esp_cache *cache, int slot);

#define X(result, name, ...) result (*name)(__VA_ARGS__);
#include "kernels/model_ops.def"
#define X(name, ...) int (*name)(__VA_ARGS__);
#include "kernels/row_ops.def"
};

/* Operations are called through backend->ops. If a backend is loaded only when it is opened,
 * the table below contains only its name, summary, open and open_device. */
extern const struct esp_backend_ops esp_backend_cpu, esp_backend_cuda;

#ifdef __cplusplus
}
#endif
#endif
