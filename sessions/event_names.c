/* event_names.c - see event_names.h. */
#include "sessions/event_names.h"

#include <string.h>

#include "sessions/recording.h"

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

static const struct {
    int type;
    const char *name;
} types[] = {
    {ESP_EVENT_ITERATION, "iteration"}, {ESP_EVENT_PROMPT, "prompt"},
    {ESP_EVENT_SETTING, "setting"},     {ESP_EVENT_END, "end"},
    {ESP_EVENT_REWIND, "rewind"},       {ESP_EVENT_CLEAR, "clear"},
    {ESP_EVENT_MARKER, "marker"},       {ESP_EVENT_DROP, "drop"},
};

const char *esp_event_type_name(int type)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].type == type)
            return types[i].name;
    return NULL;
}

int esp_event_type_of(const char *name)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i].name, name) == 0)
            return types[i].type;
    return -1;
}

bool esp_has_own_place(int setting)
{
    struct esp_value_info info;
    if (esp_value_info(setting, &info) && info.kind == ESP_KIND_text)
        return true;
    switch (setting) {
    case ESP_VALUE_OF_temperature:
    case ESP_VALUE_OF_top_p:
    case ESP_VALUE_OF_top_k:
    case ESP_VALUE_OF_seed:
    case ESP_VALUE_OF_order:
    case ESP_VALUE_OF_baseline:
        return true;
    default:
        return false;
    }
}
