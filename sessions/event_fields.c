/* event_fields.c - defines the tables of a recording's members; see event_fields.h. */
#include "sessions/event_fields.h"

#include <math.h>
#include <string.h>

#include "sessions/layers.h"
#include "sessions/recording.h"

#define LARGEST 1e9 /* the largest time, threshold or other value */
#define BYTES 1e18  /* the largest size in bytes */
#define ONE 1.01    /* the largest probability, with some room for rounding */
#define MOST (1 << 30)

/* Each of these macros gives the offset of a field in its struct. */
#define NODE(field) offsetof(struct esp_node, field)
#define SCORE(field) offsetof(struct esp_token_score, field)
#define CHANGE(field) offsetof(struct esp_change, field)
#define LAYER(field) offsetof(struct esp_tree_layer, field)
#define GAUGE(field) offsetof(struct esp_gauge, field)
#define SHAPE(field) offsetof(struct esp_shape_choice, field)
#define LAP(field) offsetof(struct esp_rank_lap, field)
#define ITERATION(field) offsetof(struct esp_iteration, field)
#define EVENT(field) offsetof(struct esp_event, field)
#define HEADER(field) offsetof(struct esp_recording_header, field)

/* Each of these macros writes a row of a table. `at` is the offset of the field. */
#define NUMBER(kind, when, name, at, low, high, missing)                                       \
    ESP_FIELD_##kind, when, name, at, low, high, missing, 0, 0, NULL
#define MEMBER(kind, when, name, at) NUMBER(kind, when, name, at, 0, 0, 0)
#define TEXT(name, of, field)                                                                  \
    ESP_FIELD_TEXT, 0, name, offsetof(struct of, field), 0, 0, 0,                              \
        sizeof((struct of *)0)->field, 0, NULL
#define MODEL(name, at) ESP_FIELD_MODEL, 0, name, at, 0, 0, 0, 0, 0, model
#define LIST(kind, name, at, count) ESP_FIELD_##kind, 0, name, at, 0, 0, 0, 0, count, NULL
#define ARRAY(kind, name, at, count, most, entry, of)                                          \
    ESP_FIELD_##kind, 0, name, at, 0, most, 0, sizeof(struct entry), count, of
#define OPEN(name) MEMBER(OPEN, 0, name, 0)
#define CLOSE MEMBER(CLOSE, 0, NULL, 0)
#define END MEMBER(END, 0, NULL, 0)

enum { ALWAYS = ESP_FIELD_ALWAYS, REQUIRED = ESP_FIELD_REQUIRED, FORMULA = ESP_FIELD_FORMULA };

/* ------------------------------------------------------------------ iterations */

const struct esp_field esp_fields_node[] = {
    {MEMBER(TOKEN, 0, NULL, NODE(token))},
    {MEMBER(PARENT, 0, "parent", 0)},
    {NUMBER(INTEGER, 0, "rank", NODE(rank), 0, ESP_RECORDING_NODES, 0)},
    {NUMBER(INTEGER, 0, "copies", NODE(copies), 1, MOST, 1)},
    {NUMBER(INTEGER, 0, "copied", NODE(copied), 0, MOST, 0)},
    {NUMBER(FLOAT, 0, "q", NODE(q), 0, ONE, NAN)},
    {NUMBER(FLOAT, 0, "cumulative_log_q", NODE(cumulative_log_q), -LARGEST, ONE, -INFINITY)},
    {NUMBER(FLOAT, 0, "confidence", NODE(confidence), 0, ONE, NAN)},
    {NUMBER(FLOAT, 0, "value", NODE(value), -LARGEST, LARGEST, NAN)},
    {NUMBER(FLOAT, 0, "p", NODE(p), 0, ONE, NAN)},
    {NUMBER(FLOAT, 0, "u", NODE(u), 0, ONE, NAN)},
    {NUMBER(FLOAT, 0, "acceptance", NODE(acceptance), 0, ONE, NAN)},
    {NUMBER(FLOAT, FORMULA, "branching", NODE(branching), 0, ONE, NAN)},
    {NUMBER(FLOAT, FORMULA, "acceptance_rate", NODE(acceptance_rate), 0, ONE, NAN)},
    {NUMBER(FLOAT, FORMULA, "ceiling", NODE(ceiling), 0, ONE, NAN)},
    {MEMBER(FLAG, 0, "drawn", NODE(drawn))},
    {MEMBER(VERDICT, 0, "verdict", NODE(verdict))},
    {MEMBER(REASON, 0, "reason", NODE(reason))},
    {MEMBER(SOURCE, 0, "source", NODE(source))},
    {END},
};

/* A score also has a member `likely` (the likeliest tokens), which has no row in this table. */
const struct esp_field esp_fields_score[] = {
    {NUMBER(FLOAT, 0, "p", SCORE(p), 0, ONE, NAN)},
    {NUMBER(FLOAT, 0, "entropy", SCORE(entropy), 0, 64, 0)},
    {NUMBER(INTEGER, 0, "rank", SCORE(rank), 0, ESP_LIKELY, 0)},
    {END},
};

const struct esp_field esp_fields_change[] = {
    {NUMBER(INTEGER, REQUIRED, "node", CHANGE(node), 0, ESP_RECORDING_NODES, 0)},
    {NUMBER(INTEGER, 0, "copies", CHANGE(was.copies), 1, MOST, 1)},
    {NUMBER(FLOAT, 0, "confidence", CHANGE(was.confidence), 0, ONE, NAN)},
    {MEMBER(FLAG, 0, "cut", CHANGE(was.cut))},
    {MEMBER(REASON, 0, "reason", CHANGE(was.reason))},
    {END},
};

const struct esp_field esp_fields_layer[] = {
    {NUMBER(DOUBLE, ALWAYS, "t", LAYER(time), 0, LARGEST, 0)},
    {NUMBER(INTEGER, REQUIRED, "nodes", LAYER(nodes), 1, ESP_RECORDING_NODES, 1)},
    {NUMBER(INTEGER, REQUIRED, "passes", LAYER(passes), 0, MOST, 0)},
    {END},
};

static const struct esp_field gauge[] = {
    {MEMBER(GAUGE, ALWAYS, "name", GAUGE(name))},
    {NUMBER(DOUBLE, 0, "before", GAUGE(before), -LARGEST, LARGEST, NAN)},
    {NUMBER(DOUBLE, 0, "after", GAUGE(after), -LARGEST, LARGEST, NAN)},
    {NUMBER(DOUBLE, 0, "minimum", GAUGE(minimum), -LARGEST, LARGEST, NAN)},
    {NUMBER(DOUBLE, 0, "maximum", GAUGE(maximum), -LARGEST, LARGEST, NAN)},
    {END},
};

static const struct esp_field choice[] = {
    {NUMBER(INTEGER, REQUIRED, "K", SHAPE(paths), 1, ESP_MAX_NODES, 1)},
    {NUMBER(INTEGER, REQUIRED, "L1", SHAPE(stem), 0, ESP_MAX_NODES, 0)},
    {NUMBER(INTEGER, REQUIRED, "L2", SHAPE(branch), 0, ESP_MAX_NODES, 0)},
    {NUMBER(DOUBLE, 0, "share", SHAPE(share), 0, ONE, NAN)},
    {NUMBER(DOUBLE, 0, "tokens", SHAPE(tokens), 0, LARGEST, NAN)},
    {NUMBER(DOUBLE, 0, "seconds", SHAPE(seconds), 0, LARGEST, NAN)},
    {END},
};

static const struct esp_field lap[] = {
    {NUMBER(INTEGER, ALWAYS, "rank", LAP(rank), 0, 63, 0)},
    {NUMBER(FLOAT, 0, "compute", LAP(compute), 0, LARGEST, 0)},
    {NUMBER(FLOAT, 0, "wait", LAP(wait), 0, LARGEST, 0)},
    {NUMBER(FLOAT, 0, "hop", LAP(hop), 0, LARGEST, 0)},
    {END},
};

#define STAGE(name, stage)                                                                     \
    NUMBER(DOUBLE, ALWAYS, name, ITERATION(seconds[stage]), 0, LARGEST, 0)
const struct esp_field esp_fields_iteration[] = {
    {NUMBER(INTEGER, REQUIRED, "index", ITERATION(index), 0, MOST, 0)},
    {NUMBER(INTEGER, REQUIRED, "position", ITERATION(position), 0, MOST, 0)},
    {MEMBER(KEPT, ALWAYS, "drafter", ITERATION(drafter))},
    {MEMBER(KEPT, ALWAYS, "verifier", ITERATION(verifier))},
    {MEMBER(FLAG, 0, "lossy", ITERATION(lossy))},
    {LIST(TOKENS, "committed", ITERATION(committed), ITERATION(committed_count))},
    {LIST(PLACES, "path", ITERATION(path), ITERATION(path_length))},
    {OPEN("bonus")},
    {MEMBER(TOKEN, 0, NULL, ITERATION(bonus))},
    {NUMBER(FLOAT, 0, "u", ITERATION(bonus_u), 0, ONE, NAN)},
    {CLOSE},
    {MEMBER(SCORES, FORMULA, "scores", ITERATION(scores))},
    {NUMBER(INTEGER, ALWAYS, "deepest", ITERATION(deepest), 0, ESP_RECORDING_NODES, 0)},
    {NUMBER(INTEGER, ALWAYS, "draft_passes", ITERATION(draft_passes), 0, MOST, 0)},
    {NUMBER(INTEGER, ALWAYS, "target_passes", ITERATION(target_passes), 0, MOST, 0)},
    {NUMBER(INTEGER, ALWAYS, "mask_blocks", ITERATION(mask_blocks), 0, MOST, 0)},
    {OPEN("seconds")},
    {STAGE("draft", ESP_STAGE_DRAFT)},
    {STAGE("flatten", ESP_STAGE_FLATTEN)},
    {STAGE("verify", ESP_STAGE_VERIFY)},
    {STAGE("select", ESP_STAGE_SELECT)},
    {STAGE("commit", ESP_STAGE_COMMIT)},
    {STAGE("adapt", ESP_STAGE_ADAPT)},
    {CLOSE},
    {MEMBER(FLAG, 0, "ends_turn", ITERATION(ends_turn))},
    {NUMBER(DOUBLE, 0, "exchange", ITERATION(exchange_seconds), 0, LARGEST, 0)},
    {NUMBER(DOUBLE, 0, "baseline", ITERATION(baseline), 0, LARGEST, 0)},
    {ARRAY(ARRAY, "gauges", ITERATION(gauges), ITERATION(gauge_count), ESP_MAX_GAUGES,
           esp_gauge, gauge)},
    {ARRAY(ARRAY, "choices", ITERATION(choices), ITERATION(choice_count), ESP_MAX_CHOICES,
           esp_shape_choice, choice)},
    {ARRAY(NODES, "nodes", ITERATION(tree.nodes), ITERATION(tree.count), ESP_RECORDING_NODES,
           esp_node, esp_fields_node)},
    {LIST(PLACES, "order", ITERATION(tree.order), ITERATION(tree.verified))},
    {MEMBER(LAYERS, 0, "layers", 0)},
    {NUMBER(LARGE, 0, "state_bytes", ITERATION(state_bytes), 0, BYTES, 0)},
    {NUMBER(LARGE, 0, "state_read", ITERATION(state_read), 0, BYTES, 0)},
    {NUMBER(LARGE, 0, "state_written", ITERATION(state_written), 0, BYTES, 0)},
    {ARRAY(ARRAY, "laps", ITERATION(laps), ITERATION(lap_count), ESP_RANK_LAPS, esp_rank_lap,
           lap)},
    {END},
};

/* ------------------------------------------------------------------ other events */

const struct esp_field esp_fields_event[] = {
    {NUMBER(DOUBLE, ALWAYS, "t", EVENT(time), 0, LARGEST, 0)},
    {END},
};
static const struct esp_field changed[] = {
    {MEMBER(KEPT, ALWAYS, "key", EVENT(key))},
    {MEMBER(KEPT, ALWAYS, "value", EVENT(text))},
    {MEMBER(FLAG, 0, "lossy", EVENT(lossy))},
    {END},
};
static const struct esp_field reason[] = {
    {MEMBER(KEPT, ALWAYS, "text", EVENT(text))},
    {END},
};
static const struct esp_field rewound[] = {
    {NUMBER(INTEGER, REQUIRED, "count", EVENT(token_count), 0, MOST, 0)},
    {END},
};
static const struct esp_field dropped[] = {
    {NUMBER(INTEGER, REQUIRED, "start", EVENT(token_start), 0, MOST, 0)},
    {NUMBER(INTEGER, REQUIRED, "count", EVENT(token_count), 1, MOST, 1)},
    {END},
};
static const struct esp_field nothing[] = {{END}};

const struct esp_recorded_type *esp_recorded_type(const char *name, int type)
{
    static const struct esp_recorded_type types[] = {
        {ESP_EVENT_ITERATION, "iteration", esp_fields_iteration},
        {ESP_EVENT_PROMPT, "prompt", nothing}, /* put_prompt() writes its members, because a
                                                  prompt can need several lines */
        {ESP_EVENT_SETTING, "setting", changed},
        {ESP_EVENT_END, "end", reason},
        {ESP_EVENT_REWIND, "rewind", rewound},
        {ESP_EVENT_CLEAR, "clear", nothing},
        {ESP_EVENT_MARKER, "marker", reason},
        {ESP_EVENT_DROP, "drop", dropped},
        {ESP_EVENT_NOTE, "note", reason},
    };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (name ? strcmp(types[i].name, name) == 0 : types[i].type == type)
            return &types[i];
    return NULL;
}

/* ------------------------------------------------------------------ the header */

static const struct esp_field model[] = {
    {TEXT("name", esp_recorded_model, name)},
    {TEXT("architecture", esp_recorded_model, architecture)},
    {TEXT("dtype", esp_recorded_model, dtype)},
    {NUMBER(LARGE, ALWAYS, "parameters", offsetof(struct esp_recorded_model, parameters), 0,
            1e15, 0)},
    {END},
};
const struct esp_field esp_fields_header[] = {
    {TEXT("program", esp_recording_header, program)},
    {TEXT("started", esp_recording_header, started)},
    {MODEL("target", HEADER(target))},
    {MODEL("draft", HEADER(draft))},
    {OPEN("vocabulary")},
    {NUMBER(INTEGER, ALWAYS, "size", HEADER(vocabulary), 0, MOST, 0)},
    {TEXT("hash", esp_recording_header, vocabulary_hash)},
    {CLOSE},
    {NUMBER(INTEGER, ALWAYS, "context", HEADER(context), 0, MOST, 0)},
    {TEXT("drafter", esp_recording_header, drafter)},
    {TEXT("verifier", esp_recording_header, verifier)},
    {MEMBER(FLAG, ALWAYS, "lossy", HEADER(lossy))},
    {NUMBER(SETTING, 0, "order", HEADER(values), ESP_VALUE_OF_order, 0, 0)},
    {OPEN("sampling")},
    {NUMBER(DOUBLE, ALWAYS, "temperature", HEADER(values.temperature), 0, LARGEST, 0)},
    {NUMBER(DOUBLE, ALWAYS, "top_p", HEADER(values.top_p), 0, 1, 1)},
    {NUMBER(INTEGER, ALWAYS, "top_k", HEADER(values.top_k), 0, INT32_MAX, 0)},
    {CLOSE},
    {NUMBER(SETTING, 0, "seed", HEADER(values), ESP_VALUE_OF_seed, 0, 0)},
    {MEMBER(FLAG, ALWAYS, "baseline", HEADER(values.baseline))},
    {MEMBER(SETTINGS, 0, "settings", HEADER(values))},
    {TEXT("backend", esp_recording_header, backend)},
    {TEXT("device", esp_recording_header, device)},
    {NUMBER(DOUBLE, ALWAYS, "load_seconds", HEADER(load_seconds), 0, LARGEST, 0)},
    {OPEN("terminal")},
    {NUMBER(INTEGER, ALWAYS, "columns", HEADER(columns), 0, 1 << 16, 0)},
    {NUMBER(INTEGER, ALWAYS, "rows", HEADER(rows), 0, 1 << 16, 0)},
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

const char *const esp_source_names[] = {
#define X(name, word, text) [ESP_SOURCE_##name] = word,
    ESP_SOURCE(X)
#undef X
        NULL,
};

#define X(name, text) +1
_Static_assert(sizeof esp_reason_names / sizeof *esp_reason_names == 1 ESP_REASON(X),
               "every reason has a name");
#undef X
