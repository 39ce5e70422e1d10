/* compare.c - runs two sessions in lock step on the same text; see compare.h. */
#include "engine/compare.h"

#include "kernels/status.h"
#include "engine/session_parts.h"

int esp_compare_open(struct esp_compare *c, struct esp_session *first,
                     const struct esp_session_options *second, char *err, size_t errlen)
{
    struct esp_session_options options = *second;
    options.values = first->set.values;
    options.values.baseline = false; /* the first session measures the baseline for both */
    options.repeatable = first->repeatable;
    *c = (struct esp_compare){.first = first, .difference = -1};
    int status = esp_session_open(&c->second, first->engine, &options, err, errlen);
    if (status == ESP_OK)
        status = esp_compare_begin(c, err, errlen);
    if (status < 0)
        esp_compare_close(c);
    return status;
}

int esp_compare_set(struct esp_compare *c, const char *key, const char *value, char *err,
                    size_t errlen)
{
    if (esp_value_find(key) < 0 || esp_value_find(key) == ESP_VALUE_OF_baseline)
        return 0;
    int status = esp_session_set(c->second, key, value, err, errlen);
    return status < 0 ? status : 1;
}

void esp_compare_close(struct esp_compare *c)
{
    esp_session_close(c->second);
    *c = (struct esp_compare){.difference = -1};
}

/* Replaces the second session's text with the first `count` tokens of the first session's
 * text. */
static int follow(struct esp_compare *c, int count, char *err, size_t errlen)
{
    struct esp_session *second = c->second;
    const int32_t *text = c->first->text;
    int same = 0, status = ESP_OK;
    while (same < count && same < second->length && second->text[same] == text[same])
        same++;
    if (same < second->length)
        esp_session_rewind(second, same);
    if (same < count)
        status = esp_session_prompt(second, text + same, count - same, err, errlen);
    c->checked = second->length;
    return status;
}

int esp_compare_begin(struct esp_compare *c, char *err, size_t errlen)
{
    int length = c->first->length, most = c->first->context - 1;
    c->limit = length + c->first->allowed;
    return follow(c, length < most ? length : most, err, errlen);
}

bool esp_compare_turn(struct esp_compare *c)
{
    const struct esp_session *first = c->first, *second = c->second;
    for (; c->checked < first->length && c->checked < second->length; c->checked++)
        if (second->text[c->checked] != first->text[c->checked] && c->difference < 0)
            c->difference = c->checked;
    return second->length < first->length;
}

/* An iteration of at least this many seconds always reads the weights from main memory, so cold
 * processor caches do not make it slower. */
static const double SHORT = 10e-3;

static void warm(struct esp_session *s)
{
    double seconds = 0;
    for (int i = 0; i < ESP_STAGES; i++)
        seconds += s->iteration.seconds[i];
    if (s->stats.iterations > 0 && seconds < SHORT)
        esp_session_warm(s);
}

int esp_compare_step_first(struct esp_compare *c, char *err, size_t errlen)
{
    if (c->second && c->first->allowed > 0)
        warm(c->first);
    return esp_session_step(c->first, err, errlen);
}

int esp_compare_step(struct esp_compare *c, char *err, size_t errlen)
{
    const struct esp_session *first = c->first;
    struct esp_session *second = c->second;
    /* If the first session has reached the end of a sampled text, the second session must not
     * write more tokens than that text has. */
    bool ended = *first->end && first->set.sampling.temperature > 0;
    int status = follow(c, second->length, err, errlen);
    if (status < 0)
        return status;
    esp_session_allow(second, (ended ? first->length : c->limit) - second->length);
    warm(second);
    status = esp_session_step(second, err, errlen);
    if (status == 0)
        return esp_fail(err, errlen, ESP_E_CONTEXT,
                        "the second session ended (%s) before the end of the text",
                        esp_session_end(second));
    return status;
}
