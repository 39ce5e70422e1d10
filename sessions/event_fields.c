/* event_fields.c - the tables of a recording's members; see event_fields.h. */
#include "sessions/event_fields.h"

#include <math.h>
#include <string.h>

#include "sessions/layers.h"
#include "sessions/recording.h"

#define LARGEST 1e9 /* of a time, a threshold, ... */
#define ONE 1.01    /* of a probability, with rounding */
#define MOST (1 << 30)

/* The forms of a row. `at`: the offset of the field. */
#define NUMBER(kind, when, name, at, low, high, missing)                                       \
    ESP_FIELD_##kind, when, name, at, low, high, missing, 0, 0, NULL
#define MEMBER(kind, when, name, at) NUMBER(kind, when, name, at, 0, 0, 0)
#define TEXT(name, at, size) ESP_FIELD_TEXT, 0, name, at, 0, 0, 0, size, 0, NULL
#define MODEL(name, at) ESP_FIELD_MODEL, 0, name, at, 0, 0, 0, 0, 0, model
#define LIST(kind, name, at, count) ESP_FIELD_##kind, 0, name, at, 0, 0, 0, 0, count, NULL
#define ARRAY(kind, name, at, count, most, entry, of)                                          \
    ESP_FIELD_##kind, 0, name, at, 0, most, 0, sizeof(struct entry), count, of
#define OPEN(name) MEMBER(OPEN, 0, name, 0)
#define CLOSE MEMBER(CLOSE, 0, NULL, 0)
#define END MEMBER(END, 0, NULL, 0)

enum { ALWAYS = ESP_FIELD_ALWAYS, REQUIRED = ESP_FIELD_REQUIRED, FORMULA = ESP_FIELD_FORMULA };

/* ------------------------------------------------------------------ iterations */

#define AT(field) offsetof(struct esp_node, field)
const struct esp_field esp_fields_node[] = {
    {MEMBER(TOKEN, 0, NULL, AT(token))},
    {MEMBER(PARENT, 0, "parent", 0)},
    {NUMBER(INTEGER, 0, "rank", AT(rank), 0, ESP_RECORDING_NODES, 0)},
    {NUMBER(INTEGER, 0, "copies", AT(copies), 1, MOST, 1)},
    {NUMBER(INTEGER, 0, "copied", AT(copied), 0, MOST, 0)},
    {NUMBER(FLOAT, 0, "q", AT(q), 0, ONE, NAN)},
    {NUMBER(FLOAT, 0, "cumulative_log_q", AT(cumulative_log_q), -LARGEST, ONE, -INFINITY)},
    {NUMBER(FLOAT, 0, "confidence", AT(confidence), 0, ONE, NAN)},
    {NUMBER(FLOAT, 0, "value", AT(value), -LARGEST, LARGEST, NAN)},
    {NUMBER(FLOAT, 0, "p", AT(p), 0, ONE, NAN)},
    {NUMBER(FLOAT, 0, "u", AT(u), 0, ONE, NAN)},
    {NUMBER(FLOAT, 0, "acceptance", AT(acceptance), 0, ONE, NAN)},
    {NUMBER(FLOAT, FORMULA, "branching", AT(branching), 0, ONE, NAN)},
    {NUMBER(FLOAT, FORMULA, "acceptance_rate", AT(acceptance_rate), 0, ONE, NAN)},
    {NUMBER(FLOAT, FORMULA, "ceiling", AT(ceiling), 0, ONE, NAN)},
    {MEMBER(FLAG, 0, "drawn", AT(drawn))},
    {MEMBER(VERDICT, 0, "verdict", AT(verdict))},
    {MEMBER(REASON, 0, "reason", AT(reason))},
    {END},
};
#undef AT

#define AT(field) offsetof(struct esp_change, field)
const struct esp_field esp_fields_change[] = {
    {NUMBER(INTEGER, REQUIRED, "node", AT(node), 0, ESP_RECORDING_NODES, 0)},
    {NUMBER(INTEGER, 0, "copies", AT(was.copies), 1, MOST, 1)},
    {NUMBER(FLOAT, 0, "confidence", AT(was.confidence), 0, ONE, NAN)},
    {MEMBER(FLAG, 0, "cut", AT(was.cut))},
    {MEMBER(REASON, 0, "reason", AT(was.reason))},
    {END},
};
#undef AT

#define AT(field) offsetof(struct esp_tree_layer, field)
const struct esp_field esp_fields_layer[] = {
    {NUMBER(DOUBLE, ALWAYS, "t", AT(time), 0, LARGEST, 0)},
    {NUMBER(INTEGER, REQUIRED, "nodes", AT(nodes), 1, ESP_RECORDING_NODES, 1)},
    {NUMBER(INTEGER, REQUIRED, "passes", AT(passes), 0, MOST, 0)},
    {END},
};
#undef AT

#define AT(field) offsetof(struct esp_gauge, field)
static const struct esp_field gauge[] = {
    {MEMBER(GAUGE, ALWAYS, "name", AT(name))},
    {NUMBER(DOUBLE, 0, "before", AT(before), -LARGEST, LARGEST, NAN)},
    {NUMBER(DOUBLE, 0, "after", AT(after), -LARGEST, LARGEST, NAN)},
    {NUMBER(DOUBLE, 0, "minimum", AT(minimum), -LARGEST, LARGEST, NAN)},
    {NUMBER(DOUBLE, 0, "maximum", AT(maximum), -LARGEST, LARGEST, NAN)},
    {END},
};
#undef AT

#define AT(field) offsetof(struct esp_shape_choice, field)
static const struct esp_field choice[] = {
    {NUMBER(INTEGER, REQUIRED, "K", AT(paths), 1, ESP_MAX_NODES, 1)},
    {NUMBER(INTEGER, REQUIRED, "L1", AT(stem), 0, ESP_MAX_NODES, 0)},
    {NUMBER(INTEGER, REQUIRED, "L2", AT(branch), 0, ESP_MAX_NODES, 0)},
    {NUMBER(DOUBLE, 0, "share", AT(share), 0, ONE, NAN)},
    {NUMBER(DOUBLE, 0, "tokens", AT(tokens), 0, LARGEST, NAN)},
    {NUMBER(DOUBLE, 0, "seconds", AT(seconds), 0, LARGEST, NAN)},
    {END},
};
#undef AT

#define AT(field) offsetof(struct esp_iteration, field)
#define STAGE(name, stage) NUMBER(DOUBLE, ALWAYS, name, AT(seconds[stage]), 0, LARGEST, 0)
const struct esp_field esp_fields_iteration[] = {
    {NUMBER(INTEGER, REQUIRED, "index", AT(index), 0, MOST, 0)},
    {NUMBER(INTEGER, REQUIRED, "position", AT(position), 0, MOST, 0)},
    {MEMBER(KEPT, ALWAYS, "drafter", AT(drafter))},
    {MEMBER(KEPT, ALWAYS, "verifier", AT(verifier))},
    {MEMBER(FLAG, 0, "lossy", AT(lossy))},
    {LIST(TOKENS, "committed", AT(committed), AT(committed_count))},
    {LIST(PLACES, "path", AT(path), AT(path_length))},
    {OPEN("bonus")},
    {MEMBER(TOKEN, 0, NULL, AT(bonus))},
    {NUMBER(FLOAT, 0, "u", AT(bonus_u), 0, ONE, NAN)},
    {CLOSE},
    {NUMBER(INTEGER, ALWAYS, "deepest", AT(deepest), 0, ESP_RECORDING_NODES, 0)},
    {NUMBER(INTEGER, ALWAYS, "draft_passes", AT(draft_passes), 0, MOST, 0)},
    {NUMBER(INTEGER, ALWAYS, "target_passes", AT(target_passes), 0, MOST, 0)},
    {NUMBER(INTEGER, ALWAYS, "mask_blocks", AT(mask_blocks), 0, MOST, 0)},
    {OPEN("seconds")},
    {STAGE("draft", ESP_STAGE_DRAFT)},
    {STAGE("flatten", ESP_STAGE_FLATTEN)},
    {STAGE("verify", ESP_STAGE_VERIFY)},
    {STAGE("select", ESP_STAGE_SELECT)},
    {STAGE("commit", ESP_STAGE_COMMIT)},
    {STAGE("adapt", ESP_STAGE_ADAPT)},
    {CLOSE},
    {MEMBER(FLAG, 0, "ends_turn", AT(ends_turn))},
    {NUMBER(DOUBLE, 0, "baseline", AT(baseline), 0, LARGEST, 0)},
    {ARRAY(ARRAY, "gauges", AT(gauges), AT(gauge_count), ESP_MAX_GAUGES, esp_gauge, gauge)},
    {ARRAY(ARRAY, "choices", AT(choices), AT(choice_count), ESP_MAX_CHOICES, esp_shape_choice,
           choice)},
    {ARRAY(NODES, "nodes", AT(tree.nodes), AT(tree.count), ESP_RECORDING_NODES, esp_node,
           esp_fields_node)},
    {LIST(PLACES, "order", AT(tree.order), AT(tree.verified))},
    {MEMBER(LAYERS, 0, "layers", 0)},
    {END},
};
#undef AT

/* ------------------------------------------------------------------ other events */

#define AT(field) offsetof(struct esp_event, field)
const struct esp_field esp_fields_event[] = {
    {NUMBER(DOUBLE, ALWAYS, "t", AT(time), 0, LARGEST, 0)},
    {END},
};
static const struct esp_field changed[] = {
    {MEMBER(KEPT, ALWAYS, "key", AT(key))},
    {MEMBER(KEPT, ALWAYS, "value", AT(text))},
    {MEMBER(FLAG, 0, "lossy", AT(lossy))},
    {END},
};
static const struct esp_field reason[] = {
    {MEMBER(KEPT, ALWAYS, "text", AT(text))},
    {END},
};
static const struct esp_field rewound[] = {
    {NUMBER(INTEGER, REQUIRED, "count", AT(token_count), 0, MOST, 0)},
    {END},
};
static const struct esp_field dropped[] = {
    {NUMBER(INTEGER, REQUIRED, "start", AT(token_start), 0, MOST, 0)},
    {NUMBER(INTEGER, REQUIRED, "count", AT(token_count), 1, MOST, 1)},
    {END},
};
static const struct esp_field nothing[] = {{END}};
#undef AT

const struct esp_recorded_type *esp_recorded_type(const char *name, int type)
{
    static const struct esp_recorded_type types[] = {
        {ESP_EVENT_ITERATION, "iteration", esp_fields_iteration},
        {ESP_EVENT_PROMPT, "prompt", nothing}, /* it may be divided over several lines */
        {ESP_EVENT_SETTING, "setting", changed},
        {ESP_EVENT_END, "end", reason},
        {ESP_EVENT_REWIND, "rewind", rewound},
        {ESP_EVENT_CLEAR, "clear", nothing},
        {ESP_EVENT_MARKER, "marker", reason},
        {ESP_EVENT_DROP, "drop", dropped},
    };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (name ? strcmp(types[i].name, name) == 0 : types[i].type == type)
            return &types[i];
    return NULL;
}

/* ------------------------------------------------------------------ the header */

#define AT(field) offsetof(struct esp_recording_header, field)
#define NAMED(name, field)                                                                     \
    TEXT(name, AT(field), sizeof((struct esp_recording_header *)0)->field)

#define OF_MODEL(name, field)                                                                  \
    TEXT(name, offsetof(struct esp_recorded_model, field),                                     \
         sizeof((struct esp_recorded_model *)0)->field)
static const struct esp_field model[] = {
    {OF_MODEL("name", name)},
    {OF_MODEL("architecture", architecture)},
    {OF_MODEL("dtype", dtype)},
    {NUMBER(LARGE, ALWAYS, "parameters", offsetof(struct esp_recorded_model, parameters), 0,
            1e15, 0)},
    {END},
};
const struct esp_field esp_fields_header[] = {
    {NAMED("program", program)},
    {NAMED("started", started)},
    {MODEL("target", AT(target))},
    {MODEL("draft", AT(draft))},
    {OPEN("vocabulary")},
    {NUMBER(INTEGER, ALWAYS, "size", AT(vocabulary), 0, MOST, 0)},
    {NAMED("hash", vocabulary_hash)},
    {CLOSE},
    {NUMBER(INTEGER, ALWAYS, "context", AT(context), 0, MOST, 0)},
    {NAMED("drafter", drafter)},
    {NAMED("verifier", verifier)},
    {MEMBER(FLAG, ALWAYS, "lossy", AT(lossy))},
    {NUMBER(SETTING, 0, "order", AT(values), ESP_VALUE_OF_order, 0, 0)},
    {OPEN("sampling")},
    {NUMBER(DOUBLE, ALWAYS, "temperature", AT(values.temperature), 0, LARGEST, 0)},
    {NUMBER(DOUBLE, ALWAYS, "top_p", AT(values.top_p), 0, 1, 1)},
    {NUMBER(INTEGER, ALWAYS, "top_k", AT(values.top_k), 0, INT32_MAX, 0)},
    {CLOSE},
    {NUMBER(SETTING, 0, "seed", AT(values), ESP_VALUE_OF_seed, 0, 0)},
    {MEMBER(FLAG, ALWAYS, "baseline", AT(values.baseline))},
    {MEMBER(SETTINGS, 0, "settings", AT(values))},
    {NAMED("backend", backend)},
    {NAMED("device", device)},
    {NUMBER(DOUBLE, ALWAYS, "load_seconds", AT(load_seconds), 0, LARGEST, 0)},
    {OPEN("terminal")},
    {NUMBER(INTEGER, ALWAYS, "columns", AT(columns), 0, 1 << 16, 0)},
    {NUMBER(INTEGER, ALWAYS, "rows", AT(rows), 0, 1 << 16, 0)},
    {CLOSE},
    {END},
};

bool esp_has_own_place(int setting)
{
    static const int own[] = {ESP_VALUE_OF_temperature, ESP_VALUE_OF_top_p,
                              ESP_VALUE_OF_top_k,       ESP_VALUE_OF_seed,
                              ESP_VALUE_OF_order,       ESP_VALUE_OF_baseline};
    struct esp_value_info info;
    bool found = esp_value_info(setting, &info) && info.kind == ESP_KIND_text;
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        found = found || own[i] == setting;
    return found;
}

/* ------------------------------------------------------------------ names */

const char *const esp_verdict_names[] = {
    [ESP_UNVISITED] = "unvisited",
    [ESP_ACCEPTED] = "accepted",
    [ESP_REJECTED] = "rejected",
    [ESP_CUT] = "cut",
    NULL,
};

const char *const esp_reason_names[] = {
    [ESP_REASON_NONE] = "",
    [ESP_REASON_THRESHOLD] = "threshold",
    [ESP_REASON_DEPTH] = "depth",
    [ESP_REASON_BUDGET] = "budget",
    [ESP_REASON_BEAM] = "beam",
    [ESP_REASON_RERANK] = "rerank",
    [ESP_REASON_GAIN] = "gain",
    [ESP_REASON_CONFIDENCE] = "confidence",
    [ESP_REASON_PRICE] = "price",
    [ESP_REASON_LAYER] = "layer",
    [ESP_REASON_PLAIN] = "plain",
    [ESP_REASON_RETRIEVED] = "retrieved",
    NULL,
};

#define X(name, text) +1
_Static_assert(sizeof esp_reason_names / sizeof *esp_reason_names == 1 ESP_REASON(X),
               "every reason has a name");
#undef X
