/* architecture.h - the tables that describe an architecture, so that its models can be opened.
 *
 * An architecture is one file arch_NAME.c that fills a struct esp_architecture, and one line
 * X(NAME) in architectures.def, where NAME is the model_type of config.json. The file names its
 * family and lists the config rules that differ from those of the family. A family has three
 * tables: the config key of each field of struct esp_config, the tensors that the model has
 * once, and the tensors of every layer. All architectures share the code for reading, range
 * checks, shapes, errors and the rotary embedding.
 */
#ifndef ESP_ARCHITECTURE_H
#define ESP_ARCHITECTURE_H

#include "engine/model/json.h"
#include "engine/model/model.h"

/* ------------------------------------------------------------------ config.json */

/* Lists the fields of struct esp_config as X(type, field, smallest, largest). A value in a file
 * must be in this range. */
#define ESP_CONFIG_FIELDS(X)                                                                   \
    X(int, layers, 1, 1000)                                                                    \
    X(int, hidden, 1, 65536)                                                                   \
    X(int, heads, 1, 4096)                                                                     \
    X(int, kv_heads, 1, 4096)                                                                  \
    X(int, head_dim, 2, 4096)                                                                  \
    X(int, ffn, 1, 1 << 20)                                                                    \
    X(int, experts, 0, 4096)      /* number of experts in a mixture */                         \
    X(int, experts_used, 1, 4096) /* number of experts that a token uses */                    \
    X(int, expert_ffn, 1, 1 << 20)                                                             \
    X(int, mixed_every, 1, 1000)     /* every n-th layer is a mixture */                       \
    X(int, mixed_from, 0, 1000)      /* the first layer that may be a mixture */               \
    X(int, ffn_multiple, 1, 1 << 20) /* ffn is rounded up to a multiple of this */             \
    X(int, conv_kernel, 2, 16)       /* width of a recurrent layer's convolution, in tokens */ \
    X(int, state_heads, 1, 4096)                                                               \
    X(int, key_heads, 1, 4096) /* number of key heads of a recurrent layer */                  \
    X(int, key_dim, 1, 4096)                                                                   \
    X(int, value_dim, 1, 4096)                                                                 \
    X(int, attention_every, 1, 1000) /* every n-th layer is not recurrent */                   \
    X(int, vocabulary, 1, 2 << 20)                                                             \
    X(int, context, 1, 16 << 20)                                                               \
    X(int, window, 1, 16 << 20)      /* how many positions a token attends to, its own too */  \
    X(int, window_from, 0, 1000)     /* the first layer that may have the window */            \
    X(int, full_every, 1, 1000)      /* every n-th layer has no window */                      \
    X(int, unrotated_every, 1, 1000) /* every n-th layer has no RoPE */                        \
    X(double, norm_epsilon, 0, 1)                                                              \
    X(double, swiglu_limit, 1e-3, 1e6) /* see struct esp_clamp */                              \
    X(double, swiglu_slope, 1e-3, 1e3)                                                         \
    X(double, rope_theta, 1, 1e15)                                                             \
    X(double, rope_theta_local, 1, 1e15) /* theta of layers with a window; 0: rope_theta */    \
    X(double, rotary_fraction, 0, 1)     /* fraction of head_dim that is rotated */            \
    X(double, embedding_scale, 1e-6, 1e6)                                                      \
    X(double, residual_scale, 1e-6, 1e6)                                                       \
    X(double, attention_scale, 1e-6, 1e6)   /* factor of the scores; 0: 1 / sqrt(head_dim) */  \
    X(double, attention_divisor, 1e-6, 1e9) /* scores are divided by sqrt(this number) */      \
    X(double, logit_divisor, 1e-6, 1e6)                                                        \
    X(double, attention_cap, 1e-3, 1e6)                                                        \
    X(double, logit_cap, 1e-3, 1e6)                                                            \
    X(double, ffn_multiplier, 1e-3, 1e3) /* see ffn_adjusted */                                \
    X(bool, ffn_adjusted, 0, 1) /* ffn is ffn_multiplier * 2/3 of the number in the file */    \
    X(bool, conv_bias, 0, 1)                                                                   \
    X(bool, heads_tiled, 0, 1)    /* see struct esp_model_desc */                              \
    X(bool, experts_normed, 0, 1) /* see struct esp_model_desc, also for the next fields */    \
    X(bool, sigmoid_router, 0, 1)                                                              \
    X(bool, choice_bias, 0, 1) /* experts are chosen with a bias */                            \
    X(double, expert_scale, 1e-6, 1e6)                                                         \
    X(double, expert_epsilon, 0, 1)                                                            \
    X(bool, parallel_residual, 0, 1)                                                           \
    X(bool, windowed, 0, 1)                                                                    \
    X(bool, attention_bias, 0, 1) /* query, key and value have biases */                       \
    X(bool, output_bias, 0, 1)    /* the attention's output matrix has a bias */               \
    X(bool, mlp_bias, 0, 1)                                                                    \
    X(bool, head_norm, 0, 1)      /* each head of query and key is normalised */               \
    X(bool, root_embedding, 0, 1) /* embeddings are multiplied by sqrt(their width) */         \
    X(bool, tied, 0, 1)           /* the embedding can be the LM head */

struct esp_config {
#define X(type, name, smallest, largest) type name;
    ESP_CONFIG_FIELDS(X)
#undef X
    /* These fields have no keys in config.json. model.c sets them. For draft heads,
     * draft_head.c sets them. */
    enum esp_reads reads;
    int input, fc;               /* input: width of the hidden states that the model reads; fc:
                                    number of columns of the matrix fc */
    int fc_norms, fc_part;       /* fc_norms: see struct esp_model_desc; fc_part: number of
                                    fc's columns that each norm covers */
    int attended;                /* width of the input of the attention layers */
    int outputs;                 /* number of rows of the LM head */
    bool residual_normed;        /* see struct esp_model_desc */
    int conv_width, mixed_width; /* widths of recurrent layers, see struct esp_layer */
};

enum esp_config_field {
#define X(type, name, smallest, largest) ESP_CONFIG_##name,
    ESP_CONFIG_FIELDS(X)
#undef X
        ESP_CONFIG_FIELD_COUNT,
};

#define ESP_REQUIRED (-1.0) /* a fallback that means: config.json must have the key */

/* Says how one field is read from config.json. A field without a rule is 0. After reading,
 * kv_heads = 0 becomes heads, head_dim = 0 becomes hidden / heads, and ffn = 0 becomes 4 *
 * hidden. Layers have windows only if `windowed` is set (see esp_config_layers). */
struct esp_config_rule {
    const char *keys; /* "a|b.c" means that the first key that the file has is used; "" means
                         that the value is always `fallback` */
    double fallback;  /* the value if the file has none of the keys */
};

/* ------------------------------------------------------------------ tensors */

enum esp_size {
    ESP_ONE,
    ESP_HIDDEN,
    ESP_HEAD,
    ESP_HEADS,
    ESP_QUERIES,
    ESP_KEYS,
    ESP_POSITIONS,
    ESP_CONV,
    ESP_MIXED,
    ESP_TAPS,
    ESP_STATES,
    ESP_STATE_VALUE,
    ESP_EXPERTS,
    ESP_EXPERT_FFN,
    ESP_FFN,
    ESP_VOCABULARY,
    ESP_ATTENDED,
    ESP_FC,
    ESP_FC_PART,
    ESP_OUTPUTS
};
enum esp_presence {
    ESP_ALWAYS,
    ESP_IF_ATTENTION_BIAS,
    ESP_IF_OUTPUT_BIAS,
    ESP_IF_MLP_BIAS,
    ESP_IF_HEAD_NORM,
    ESP_IF_STORED,
    ESP_IF_ATTENTION,
    ESP_IF_RECURRENT,
    ESP_IF_ONLY_MLP,  /* the layer is an MLP without a mixer and without experts */
    ESP_IF_CONV_BIAS, /* the layer is recurrent, and has biases */
    ESP_IF_MIXED,     /* the layer is a mixture of experts */
    ESP_UNLESS_MIXED,
    ESP_IF_CHOICE_BIAS, /* the layer is a mixture whose experts are chosen with a bias */
    ESP_IF_INPUT_NORM,  /* the first layer of an EAGLE-1 head may lack this norm */
    ESP_IF_FC_NORM,     /* the whole input of fc is normalised as one vector */
    ESP_IF_FC_NORMS,    /* each hidden state that fc reads is normalised separately */
    ESP_UNLESS_TIED
};

/* Says which tensor of a file fills one slot of struct esp_layer or struct esp_model_desc. */
struct esp_tensor_rule {
    size_t slot;      /* offset of the struct esp_tensor */
    const char *name; /* NULL ends the table */
    enum esp_size
        rows; /* HEAD: head_dim; HEADS: heads; QUERIES: heads * head_dim; KEYS: kv_heads *
                 head_dim; POSITIONS: context; ATTENDED: hidden, or 2 * hidden in EAGLE-3
                 heads; CONV: number of values that a recurrent layer convolves; MIXED: number
                 of values that it outputs; TAPS: conv_kernel; STATES: state_heads;
                 STATE_VALUE: value_dim */
    enum esp_size columns;  /* ESP_ONE: a vector */
    enum esp_presence when; /* the condition under which the file has the tensor */
    int part, parts; /* if parts > 0: the rows of every head are divided into `parts` parts, and
                        the slot gets part number `part` of each head. In an expert, every
                        group of `parts` rows is divided instead of a head */
    bool stacked;    /* all rules with this name share one stored tensor, with their rows one
                        after the other */
    bool transposed; /* the tensor is stored as (columns, rows); stacked matrices are side by
                        side */
    float added;     /* added to every number of a vector: 1 if the file stores the weights of
                        norms minus one */
    bool kept;       /* with `parts` or `grouped`: GGUF files have the same row order as
                        folders */
    bool logarithm;  /* the file stores the vector's logarithms, see struct esp_tensor */
    bool apart;   /* with `stacked`: GGUF files have one tensor per rule; `part` is its index */
    bool middle;  /* folders have a dimension of 1 between the matrix's rows and columns */
    bool grouped; /* with `stacked`: the rows of all rules with this name are stored together,
                     grouped by key head. In GGUF files this holds if the rule is not `apart` */
};

/* Makes a row of a table of tensors. `condition` may be followed by further members, such as
 * .stacked = true. */
#define ESP_SLOT(type, field, text, count, width, condition, ...)                              \
    {                                                                                          \
        .slot = offsetof(struct type, field), .name = text, .rows = ESP_##count,               \
        .columns = ESP_##width, .when = ESP_##condition, __VA_ARGS__                           \
    }
#define ESP_MODEL(...) ESP_SLOT(esp_model_desc, __VA_ARGS__)
#define ESP_LAYER(...) ESP_SLOT(esp_layer, __VA_ARGS__)
#define ESP_EXPERT(...) ESP_SLOT(esp_expert, __VA_ARGS__)

/* Describes what the architectures of a family have in common. */
struct esp_family {
    const char *prefix;             /* the beginning of tensor names; files that have only the
                                       bare model omit it */
    const char *layer_name;         /* precedes the layer number in a tensor name */
    bool single_layer;              /* there is one layer, and names have no layer number */
    const char *activation_key;     /* key in config.json; NULL means hidden_act */
    const char *hidden_act;         /* the only supported value of that key */
    enum esp_activation activation; /* the activation function that hidden_act names */
    enum esp_norm norm;
    const struct esp_config_rule *config;  /* (ESP_CONFIG_FIELD_COUNT) rules, or NULL */
    const struct esp_tensor_rule *tensors; /* rules for struct esp_model_desc */
    const struct esp_tensor_rule *layer_tensors; /* rules for struct esp_layer; the tensor names
                                                    follow "N." */
    /* The rules for struct esp_expert, or NULL. Tensor names follow "N.", expert_name and "E.",
     * where N and E are the indices of layer and expert. One tensor (experts, rows, columns)
     * can have the matrices of all experts; its name lacks "E.". If experts_stacked is set, all
     * files store the experts in this way. */
    const struct esp_tensor_rule *expert_tensors;
    const char *expert_name;
    bool experts_stacked;
    bool experts_optional; /* config.json may say that there are 0 experts */
    /* NULL, or rules for folders that store all experts of a layer in few tensors. They are
     * used if the file has the tensor of the first rule. */
    const struct esp_tensor_rule *fused_experts;
    /* The kind of the recurrent layers, or ESP_MIXER_ATTENTION if there are none. */
    enum esp_mixer mixer;
    bool one_part; /* each layer is either a mixer or an MLP, not a mixer followed by an MLP */
    /* These members are for MTP layers. `input_first`: in the input of fc, the hidden state
     * comes before the embedding (see struct esp_model_desc). `reads_unnormed`: the layer reads
     * the target's states before the final norm. */
    bool input_first, reads_unnormed;
    /* NULL, or a list of the tensors that have unusual names in GGUF files. Ends with a NULL
     * name. */
    const struct esp_gguf_slot {
        size_t slot;
        const char *name; /* name of a layer's tensor after "blk.N." */
    } * gguf_layer, *gguf_model;
};

/* Names a key of config.json. If the file has the key, its value must be the one given here. */
struct esp_config_flag {
    const char *key;
    bool value;
    const char *text; /* the value if it is a string; NULL if the value is true or false */
};

struct esp_architecture {
    const char *name; /* model_type in config.json */
    const struct esp_family *family;
    /* NULL, or the family of the MTP layer that model files may have (see draft_head.h). The
     * first tensor of that family is fc. */
    const struct esp_family *mtp;
    struct esp_config_flag flags[6]; /* an entry of zeros ends the list */
    /* Indexed by field. A rule that has keys replaces the family's rule. */
    struct esp_config_rule config[ESP_CONFIG_FIELD_COUNT];
};

#define X(name) extern const struct esp_architecture esp_architecture_##name;
#include "engine/model/architectures.def"

extern const struct esp_family esp_family_gemma;
/* Llama and its descendants; see family_llama.c. A family that differs from Llama's in one
 * table uses Llama's other tables. */
extern const struct esp_family esp_family_llama;
extern const struct esp_config_rule esp_llama_config[ESP_CONFIG_FIELD_COUNT];
extern const struct esp_tensor_rule esp_llama_tensors[];
extern const struct esp_tensor_rule esp_llama_layer_tensors[];

/* This table lists the matrices of experts with Qwen's names; see arch_qwen3_moe.c. */
extern const struct esp_tensor_rule esp_qwen_experts[];
/* LFM2; see arch_lfm2.c. */
#define ESP_LFM2_FAMILY                                                                        \
    .prefix = "model.", .layer_name = "model.layers.", .hidden_act = "silu",                   \
    .activation = ESP_SWIGLU, .norm = ESP_NORM_RMS, .config = esp_llama_config,                \
    .tensors = esp_lfm2_tensors, .layer_tensors = esp_lfm2_layer_tensors,                      \
    .mixer = ESP_MIXER_CONV, .gguf_layer = esp_lfm2_gguf_layer,                                \
    .gguf_model = esp_lfm2_gguf_model
extern const struct esp_tensor_rule esp_lfm2_tensors[], esp_lfm2_layer_tensors[];
extern const struct esp_gguf_slot esp_lfm2_gguf_layer[], esp_lfm2_gguf_model[];
/* Qwen3.5 and its relatives; see family_delta.c. */
extern const struct esp_family esp_family_delta;
extern const struct esp_config_rule esp_delta_config[ESP_CONFIG_FIELD_COUNT];
extern const struct esp_tensor_rule esp_delta_tensors[];
extern const struct esp_gguf_slot esp_delta_gguf[];
#define ESP_DELTA_FAMILY                                                                       \
    .prefix = "model.", .layer_name = "model.layers.", .hidden_act = "silu",                   \
    .activation = ESP_SWIGLU, .norm = ESP_NORM_RMS, .config = esp_delta_config,                \
    .tensors = esp_delta_tensors, .mixer = ESP_MIXER_DELTA
/* Each of these macros expands to rows that several tables of this family share. GGUF: names in
 * GGUF files. ATTENTION: attention and the first norm. INPUTS: the mixer's input matrices in
 * Qwen3.5. STATES: the mixer's other tensors. MLP, MIXTURE: an MLP or experts, and the second
 * norm. */
#define ESP_DELTA_GGUF                                                                         \
    {offsetof(struct esp_layer, attention_gate), "attn_q.weight"},                             \
        {offsetof(struct esp_layer, conv_in), "attn_qkv.weight"},                              \
        {offsetof(struct esp_layer, out_gate), "attn_gate.weight"},                            \
        {offsetof(struct esp_layer, conv), "ssm_conv1d.weight"},                               \
        {offsetof(struct esp_layer, decay_bias), "ssm_dt.bias"},                               \
        {offsetof(struct esp_layer, rate), "ssm_a"},                                           \
        {offsetof(struct esp_layer, mixed_norm), "ssm_norm.weight"},                           \
        {offsetof(struct esp_layer, mixed), "ssm_out.weight"},                                 \
    {                                                                                          \
        offsetof(struct esp_layer, norm2), "post_attention_norm.weight"                        \
    }
#define ESP_DELTA_ATTENTION                                                                    \
    ESP_LAYER(norm1, "input_layernorm.weight", HIDDEN, ONE, ALWAYS, .added = 1),               \
        ESP_LAYER(query, "self_attn.q_proj.weight", QUERIES, HIDDEN, IF_ATTENTION, .part = 0,  \
                  .parts = 2, .kept = true),                                                   \
        ESP_LAYER(attention_gate, "self_attn.q_proj.weight", QUERIES, HIDDEN, IF_ATTENTION,    \
                  .part = 1, .parts = 2, .kept = true),                                        \
        ESP_LAYER(key, "self_attn.k_proj.weight", KEYS, HIDDEN, IF_ATTENTION),                 \
        ESP_LAYER(value, "self_attn.v_proj.weight", KEYS, HIDDEN, IF_ATTENTION),               \
        ESP_LAYER(query_norm, "self_attn.q_norm.weight", HEAD, ONE, IF_ATTENTION, .added = 1), \
        ESP_LAYER(key_norm, "self_attn.k_norm.weight", HEAD, ONE, IF_ATTENTION, .added = 1),   \
        ESP_LAYER(output, "self_attn.o_proj.weight", HIDDEN, QUERIES, IF_ATTENTION)
#define ESP_DELTA_INPUTS                                                                       \
    ESP_LAYER(conv_in, "linear_attn.in_proj_qkv.weight", CONV, HIDDEN, IF_RECURRENT),          \
        ESP_LAYER(out_gate, "linear_attn.in_proj_z.weight", MIXED, HIDDEN, IF_RECURRENT),      \
        ESP_LAYER(write, "linear_attn.in_proj_b.weight", STATES, HIDDEN, IF_RECURRENT),        \
        ESP_LAYER(decay, "linear_attn.in_proj_a.weight", STATES, HIDDEN, IF_RECURRENT)
#define ESP_DELTA_STATES                                                                       \
    ESP_LAYER(conv, "linear_attn.conv1d.weight", CONV, TAPS, IF_RECURRENT, .middle = true),    \
        ESP_LAYER(decay_bias, "linear_attn.dt_bias", STATES, ONE, IF_RECURRENT),               \
        ESP_LAYER(rate, "linear_attn.A_log", STATES, ONE, IF_RECURRENT, .logarithm = true),    \
        ESP_LAYER(mixed_norm, "linear_attn.norm.weight", STATE_VALUE, ONE, IF_RECURRENT),      \
        ESP_LAYER(mixed, "linear_attn.out_proj.weight", HIDDEN, MIXED, IF_RECURRENT)
#define ESP_DELTA_MLP                                                                          \
    ESP_LAYER(norm2, "post_attention_layernorm.weight", HIDDEN, ONE, ALWAYS, .added = 1),      \
        ESP_LAYER(gate, "mlp.gate_proj.weight", FFN, HIDDEN, ALWAYS),                          \
        ESP_LAYER(up, "mlp.up_proj.weight", FFN, HIDDEN, ALWAYS),                              \
        ESP_LAYER(down, "mlp.down_proj.weight", HIDDEN, FFN, ALWAYS)
#define ESP_DELTA_MIXTURE                                                                      \
    ESP_LAYER(norm2, "post_attention_layernorm.weight", HIDDEN, ONE, ALWAYS, .added = 1),      \
        ESP_LAYER(router, "mlp.gate.weight", EXPERTS, HIDDEN, ALWAYS),                         \
        ESP_LAYER(shared_gate, "mlp.shared_expert_gate.weight", ONE, HIDDEN, ALWAYS),          \
        ESP_LAYER(gate, "mlp.shared_expert.gate_proj.weight", FFN, HIDDEN, ALWAYS),            \
        ESP_LAYER(up, "mlp.shared_expert.up_proj.weight", FFN, HIDDEN, ALWAYS),                \
        ESP_LAYER(down, "mlp.shared_expert.down_proj.weight", HIDDEN, FFN, ALWAYS)

/* These rows of a layer's table are for state space models (family_ssm.c). Tensor names begin
 * with `name`. esp_ssm_gguf lists the names in GGUF files. */
#define ESP_SSM_LAYER(name)                                                                    \
    ESP_LAYER(out_gate, name "in_proj.weight", MIXED, HIDDEN, IF_RECURRENT, .stacked = true),  \
        ESP_LAYER(conv_in, name "in_proj.weight", CONV, HIDDEN, IF_RECURRENT,                  \
                  .stacked = true),                                                            \
        ESP_LAYER(decay, name "in_proj.weight", STATES, HIDDEN, IF_RECURRENT,                  \
                  .stacked = true),                                                            \
        ESP_LAYER(conv, name "conv1d.weight", CONV, TAPS, IF_RECURRENT, .middle = true),       \
        ESP_LAYER(conv_bias, name "conv1d.bias", CONV, ONE, IF_CONV_BIAS),                     \
        ESP_LAYER(decay_bias, name "dt_bias", STATES, ONE, IF_RECURRENT),                      \
        ESP_LAYER(rate, name "A_log", STATES, ONE, IF_RECURRENT, .logarithm = true),           \
        ESP_LAYER(skip, name "D", STATES, ONE, IF_RECURRENT),                                  \
        ESP_LAYER(mixed_norm, name "norm.weight", MIXED, ONE, IF_RECURRENT),                   \
        ESP_LAYER(mixed, name "out_proj.weight", HIDDEN, MIXED, IF_RECURRENT)
extern const struct esp_gguf_slot esp_ssm_gguf[];
/* Initialises struct esp_family for MTP layers, except the tables of layer tensors and
 * experts. */
#define ESP_DELTA_MTP                                                                          \
    .prefix = "mtp.", .layer_name = "mtp.layers.", .activation = ESP_SWIGLU,                   \
    .norm = ESP_NORM_RMS, .tensors = esp_delta_mtp_tensors, .gguf_layer = esp_delta_gguf,      \
    .gguf_model = esp_delta_mtp_gguf
extern const struct esp_family esp_mtp_delta, esp_mtp_delta_mixture;
extern const struct esp_tensor_rule esp_delta_mtp_tensors[];
extern const struct esp_gguf_slot esp_delta_mtp_gguf[];

/* Initialises struct esp_family for Llama's family, except the tables of layer tensors and
 * experts. */
#define ESP_LLAMA_FAMILY                                                                       \
    .prefix = "model.", .layer_name = "model.layers.", .hidden_act = "silu",                   \
    .norm = ESP_NORM_RMS, .config = esp_llama_config, .tensors = esp_llama_tensors
/* These rows of esp_llama_layer_tensors also occur in the tables of other families. */
#define ESP_LLAMA_QUERY_KEY_VALUE                                                              \
    ESP_LAYER(query, "self_attn.q_proj.weight", QUERIES, ATTENDED, ALWAYS),                    \
        ESP_LAYER(query_bias, "self_attn.q_proj.bias", QUERIES, ONE, IF_ATTENTION_BIAS),       \
        ESP_LAYER(key, "self_attn.k_proj.weight", KEYS, ATTENDED, ALWAYS),                     \
        ESP_LAYER(key_bias, "self_attn.k_proj.bias", KEYS, ONE, IF_ATTENTION_BIAS),            \
        ESP_LAYER(value, "self_attn.v_proj.weight", KEYS, ATTENDED, ALWAYS),                   \
        ESP_LAYER(value_bias, "self_attn.v_proj.bias", KEYS, ONE, IF_ATTENTION_BIAS)
#define ESP_LLAMA_OUTPUT                                                                       \
    ESP_LAYER(output, "self_attn.o_proj.weight", HIDDEN, QUERIES, ALWAYS),                     \
        ESP_LAYER(output_bias, "self_attn.o_proj.bias", HIDDEN, ONE, IF_OUTPUT_BIAS)
#define ESP_LLAMA_THETA "rope_scaling.rope_theta|rope_parameters.rope_theta|rope_theta"

/* ------------------------------------------------------------------ config.c */

/* Returns the rule of one field: the architecture's rule, or if it has none, the family's.
 * Returns NULL if neither has a rule. */
const struct esp_config_rule *esp_config_rule(const struct esp_architecture *architecture,
                                              enum esp_config_field field);

/* Returns the architecture with this model_type, or NULL. */
const struct esp_architecture *esp_architecture_named(const char *type);
/* Finds the architecture that the file names. Returns 0, or a negative status if it is
 * unknown. */
int esp_architecture_read(const struct esp_architecture **architecture,
                          const struct esp_json *json);

/* Returns the tensor that a rule fills in the struct `base`. */
static inline struct esp_tensor *esp_rule_slot(const void *base,
                                               const struct esp_tensor_rule *rule)
{
    return (struct esp_tensor *)((char *)base + rule->slot);
}

/* Returns the first of `rules` that has the same tensor name as `rule`. If no other rule shares
 * the tensor, this is `rule` itself. */
const struct esp_tensor_rule *esp_rule_first(const struct esp_tensor_rule *rules,
                                             const struct esp_tensor_rule *rule);

enum { ESP_TENSOR_NAME = 256, ESP_ALL_EXPERTS = -1, ESP_NO_EXPERT = -2 };

/* Writes the name of a rule's tensor in a folder. `layer` is -1 outside the layers. `expert`
 * is a number, ESP_ALL_EXPERTS for a tensor of all experts, or ESP_NO_EXPERT. */
void esp_rule_name(char name[ESP_TENSOR_NAME], const struct esp_family *family,
                   const struct esp_tensor_rule *rule, int layer, int expert);

/* Reads and checks all fields that have a rule; derives kv_heads and head_dim. */
int esp_config_read(struct esp_config *config, const struct esp_architecture *architecture,
                    const struct esp_json *json);

/* Returns the value of a field as a number; a flag is 0 or 1. */
double esp_config_value(const struct esp_config *config, enum esp_config_field field);

/* Reads the first of `keys` that the file has, and checks its range. If the file has none of
 * the keys, *value does not change, but the function fails if *value is ESP_REQUIRED. */
int esp_config_number(double *value, double smallest, double largest, const char *keys,
                      const struct esp_json *json);

/* ------------------------------------------------------------------ layers.c */

/* Sets *mixed to true if the layer is a mixture of experts. This depends on mixed_from,
 * mixed_every and mlp_only_layers. */
int esp_config_mixed(bool *mixed, int layer, const struct esp_config *config,
                     const struct esp_json *json);

/* Adds layer_types to a configuration that has hybrid_override_pattern (a character for each
 * layer) or layers_block_type instead. If num_hidden_layers is missing, sets it to the number
 * of layers in this list. */
int esp_config_pattern(struct esp_json *json);

/* Sets *mixer to the mixer of the layer. Uses the first of these keys that the file has:
 * layer_types, full_attn_idxs, attention_every. */
int esp_config_mixer(enum esp_mixer *mixer, int layer, const struct esp_family *family,
                     const struct esp_config *config, const struct esp_json *json);

/* Reads the limits of the time steps of ESP_MIXER_SSM: the two numbers of time_step_limit. Each
 * may be infinite. Does nothing if the file has no such key. */
int esp_config_steps(struct esp_model_desc *desc, const struct esp_json *json);

/* Sets the window and the rotation of each layer. The key layer_types says which layers have a
 * window. If the file lacks this key, `window_from` and `full_every` are used. The list
 * no_rope_layers has a 0 for each layer without RoPE. If the file lacks this list,
 * `unrotated_every` is used. */
int esp_config_layers(struct esp_layer *layer, const struct esp_config *config,
                      const struct esp_json *json);

/* ------------------------------------------------------------------ rotation.c */

/* Lists the places where config.json may have a key of RoPE scaling. */
#define ESP_ROPE_KEY(key)                                                                      \
    "rope_scaling." key "|rope_parameters." key "|rope_parameters.full_attention." key

/* Reads the rotary frequencies and the RoPE scaling. The caller frees them, even after a
 * failure. */
int esp_config_rotation(struct esp_rotation_tables *tables, const struct esp_config *config,
                        const struct esp_json *json);

#endif
