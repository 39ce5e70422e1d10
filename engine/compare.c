/* compare.c - two sessions in lock step on one text; see compare.h. */
#include "compare.h"

#include "error.h"
#include "session.h"

int esp_compare_open(struct esp_compare *c, struct esp_session *first,
                     const struct esp_session_options *second, char *err, size_t errlen)
{
    char order[16];
    const struct esp_settings *set = &first->set;
    struct esp_session_options options = {
        .drafter = second->drafter,
        .verifier = second->verifier,
        .order = order,
        .temperature = set->sampling.temperature,
        .top_p = set->sampling.top_p,
        .top_k = set->sampling.top_k,
        .seed = set->seed,
        .observer = second->observer,
        .user = second->user,
    };
    *c = (struct esp_compare){.first = first, .difference = -1};
    esp_session_get(first, "order", order, sizeof order);
    int status = esp_session_open(&c->second, first->engine, &options, err, errlen);
    if (status == ESP_OK)
        status = esp_compare_begin(c, err, errlen);
    if (status < 0)
        esp_compare_close(c);
    return status;
}

void esp_compare_close(struct esp_compare *c)
{
    esp_session_close(c->second);
    *c = (struct esp_compare){.difference = -1};
}

/* Makes the second's context the first `count` tokens of the text. */
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
    int length = c->first->length, most = c->first->engine->context - 1;
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

int esp_compare_step(struct esp_compare *c, char *err, size_t errlen)
{
    const struct esp_session *first = c->first;
    struct esp_session *second = c->second;
    /* Where a sampled text has ended, there is nothing behind its end to be counted. */
    bool ended = *first->end && first->set.sampling.temperature > 0;
    int status = follow(c, second->length, err, errlen);
    if (status < 0)
        return status;
    esp_session_allow(second, (ended ? first->length : c->limit) - second->length);
    status = esp_session_step(second, err, errlen);
    if (status == 0)
        return esp_fail(err, errlen, ESP_E_CONTEXT,
                        "the second choice ended (%s) before the text did",
                        esp_session_end(second));
    return status;
}
