/* pair.c - opening models and handing settings and text over; see pair.h. */
#include "pair.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/prompt.h"
#include "error.h"

/* ------------------------------------------------------------------ opening and closing */

static int own(const char **string)
{
    if (!*string)
        return ESP_OK;
    *string = strdup(*string);
    return *string ? ESP_OK : ESP_E_MEMORY;
}

/* Copies all strings, so that esp_pair_close() can free what there is even after a failure. */
static int own_strings(struct esp_engine_options *options)
{
    int target = own(&options->target), draft = own(&options->draft),
        backend = own(&options->backend);
    return target < 0 || draft < 0 || backend < 0 ? ESP_E_MEMORY : ESP_OK;
}

static int open_engine(struct esp_pair *pair, const struct esp_engine_options *options,
                       char *err, size_t errlen)
{
    *pair = (struct esp_pair){.options = *options};
    int status = own_strings(&pair->options);
    if (status < 0)
        return esp_fail(err, errlen, status, "no memory for the models");
    return esp_engine_open(&pair->engine, &pair->options, err, errlen);
}

static int open_session(struct esp_pair *pair, const struct esp_session_options *options,
                        char *err, size_t errlen)
{
    pair->drafter_chosen = options->drafter != NULL;
    pair->verifier_chosen = options->verifier != NULL;
    return esp_session_open(&pair->session, pair->engine, options, err, errlen);
}

int esp_pair_open(struct esp_pair *pair, const struct esp_engine_options *options,
                  const struct esp_session_options *session, char *err, size_t errlen)
{
    int status = open_engine(pair, options, err, errlen);
    if (status == ESP_OK)
        status = open_session(pair, session, err, errlen);
    if (status < 0) {
        esp_engine_close(pair->engine);
        pair->engine = NULL;
    }
    return status;
}

void esp_pair_close(struct esp_pair *pair)
{
    esp_session_close(pair->session);
    esp_engine_close(pair->engine);
    free((char *)pair->options.target);
    free((char *)pair->options.draft);
    free((char *)pair->options.backend);
    *pair = (struct esp_pair){.engine = NULL};
}

/* ------------------------------------------------------------------ another pair */

void esp_pair_options(struct esp_engine_options *options, const struct esp_pair *pair,
                      const char *key, const char *text)
{
    *options = pair->options;
    if (strcmp(key, "backend") == 0) {
        options->backend = text;
    } else if (strcmp(key, "threads") == 0) {
        options->threads = atoi(text);
    } else {
        const char *draft = text + strlen(text) + 1;
        options->target = *text ? text : NULL;
        options->draft = *draft ? draft : NULL;
        options->context = 0; /* was said of another model */
    }
}

/* Settings as the session of `pair` has them; specifications stand in `drafter`, `verifier`. */
static void read_settings(struct esp_session_options *options, const struct esp_pair *pair,
                          char drafter[256], char verifier[256], char order[8])
{
    char value[64];
    if (!pair->session)
        return;
    if (esp_session_get(pair->session, "temp", value, sizeof value) == ESP_OK)
        options->temperature = strtod(value, NULL);
    if (esp_session_get(pair->session, "top_p", value, sizeof value) == ESP_OK)
        options->top_p = strtod(value, NULL);
    if (esp_session_get(pair->session, "top_k", value, sizeof value) == ESP_OK)
        options->top_k = atoi(value);
    if (esp_session_get(pair->session, "seed", value, sizeof value) == ESP_OK)
        options->seed = strtoull(value, NULL, 10);
    if (esp_session_get(pair->session, "baseline", value, sizeof value) == ESP_OK)
        options->baseline = strcmp(value, "on") == 0;
    if (esp_session_get(pair->session, "order", order, 8) == ESP_OK)
        options->order = order;
    options->drafter = options->verifier = NULL;
    if (pair->drafter_chosen &&
        esp_session_get(pair->session, "drafter", drafter, 256) == ESP_OK)
        options->drafter = drafter;
    if (pair->verifier_chosen &&
        esp_session_get(pair->session, "verifier", verifier, 256) == ESP_OK)
        options->verifier = verifier;
}

int esp_pair_follow(struct esp_pair *next, const struct esp_pair *pair,
                    const struct esp_engine_options *options,
                    const struct esp_session_options *session, char *note, size_t size,
                    char *err, size_t errlen)
{
    struct esp_session_options settings = *session;
    char drafter[256], verifier[256], order[8];
    snprintf(note, size, "%s", "");
    read_settings(&settings, pair, drafter, verifier, order);
    int status = open_engine(next, options, err, errlen);
    if (status == ESP_OK)
        status = open_session(next, &settings, err, errlen);
    if (status < 0 && next->engine && (settings.drafter || settings.verifier)) {
        snprintf(note, size, "; drafter and verifier are its own: %s", err);
        settings.drafter = settings.verifier = NULL;
        status = open_session(next, &settings, err, errlen);
    }
    if (status < 0)
        esp_pair_close(next);
    return status;
}

bool esp_pair_shares_tokens(const struct esp_pair *from, const struct esp_pair *to)
{
    int count = 0;
    const int32_t *tokens = from->session ? esp_session_tokens(from->session, &count) : NULL;
    for (int i = 0; i < count; i++) {
        size_t before, after;
        const char *a = esp_token_bytes(from->engine, tokens[i], &before);
        const char *b = esp_token_bytes(to->engine, tokens[i], &after);
        if (!a || !b || before != after || memcmp(a, b, before) != 0)
            return false;
    }
    return true;
}

/* The bytes of the text, without special tokens; the caller frees them. */
static char *text_of(const struct esp_pair *pair, size_t *length)
{
    int count;
    const int32_t *tokens = esp_session_tokens(pair->session, &count);
    char *text = NULL;
    size_t capacity = 0;
    FILE *stream = open_memstream(&text, &capacity);
    if (!stream)
        return NULL;
    for (int i = 0; i < count; i++) {
        size_t size = 0;
        const char *bytes = esp_token_bytes(pair->engine, tokens[i], &size);
        if (bytes && !esp_token_is_special(pair->engine, tokens[i]))
            fwrite(bytes, 1, size, stream);
    }
    bool failed = ferror(stream);
    if (fclose(stream) != 0 || failed) {
        free(text);
        return NULL;
    }
    *length = capacity;
    return text;
}

static int prompt_anew(const struct esp_pair *from, struct esp_pair *to, char *err,
                       size_t errlen)
{
    size_t length = 0;
    int status = ESP_E_MEMORY;
    char *text = text_of(from, &length);
    if (!text)
        esp_fail(err, errlen, status, "no memory for the text");
    else if (length == 0)
        status = ESP_OK;
    else
        status = cli_prompt_session(to->engine, to->session, text, length, err, errlen);
    free(text);
    return status;
}

int esp_pair_hand_over(const struct esp_pair *from, struct esp_pair *to, char *err,
                       size_t errlen)
{
    int count = 0;
    const int32_t *tokens = from->session ? esp_session_tokens(from->session, &count) : NULL;
    if (count == 0)
        return ESP_OK;
    if (!esp_pair_shares_tokens(from, to))
        return prompt_anew(from, to, err, errlen);
    return esp_session_prompt(to->session, tokens, count, err, errlen);
}
