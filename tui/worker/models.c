/* models.c - opens models, and moves settings and the text to them; see models.h. */
#include "tui/worker/models.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/status.h"

/* ------------------------------------------------------------------ opening and closing */

/* Returns a pointer to the text of option `i`, or NULL if its value is not a text. */
static const char **text(struct esp_engine_options *options, int i)
{
    return esp_value_text(esp_engine_option(i), options);
}

/* Copies all texts of the options, so that esp_models_close() can free them, even after a
 * failure. */
static int own_texts(struct esp_engine_options *options)
{
    int status = ESP_OK;
    for (int i = 0; esp_engine_option(i); i++) {
        const char **own = text(options, i);
        if (own && *own && !(*own = strdup(*own)))
            status = ESP_E_MEMORY;
    }
    return status;
}

static int open_engine(struct esp_models *pair, const struct esp_engine_options *options,
                       char *err, size_t errlen)
{
    *pair = (struct esp_models){.options = *options};
    int status = own_texts(&pair->options);
    if (status < 0)
        return esp_fail(err, errlen, status, "not enough memory for the models");
    return esp_engine_open(&pair->engine, &pair->options, err, errlen);
}

int esp_models_open(struct esp_models *pair, const struct esp_engine_options *options,
                    const struct esp_session_options *session, char *err, size_t errlen)
{
    int status = open_engine(pair, options, err, errlen);
    if (status == ESP_OK)
        status = esp_session_open(&pair->session, pair->engine, session, err, errlen);
    if (status < 0) {
        esp_engine_close(pair->engine);
        pair->engine = NULL;
    }
    return status;
}

void esp_models_close(struct esp_models *pair)
{
    esp_session_close(pair->session);
    esp_engine_close(pair->engine);
    for (int i = 0; esp_engine_option(i); i++)
        if (text(&pair->options, i))
            free((char *)*text(&pair->options, i));
    *pair = (struct esp_models){.engine = NULL};
}

/* ------------------------------------------------------------------ another pair */

int esp_models_options(struct esp_engine_options *options, const struct esp_models *pair,
                       const char *key, const char *value, const char *draft, char *err,
                       size_t errlen)
{
    const struct esp_value_info *option = esp_engine_option_find(key);
    *options = pair->options;
    if (!option)
        return esp_fail(err, errlen, ESP_E_ARGUMENT, "an engine has no option '%s'", key);
    if (option == esp_engine_option(ESP_OPTION_OF_target)) {
        options->draft = draft;
        options->context = options->width = options->layers =
            0; /* these values were for the previous model */
    }
    if (option == esp_engine_option(ESP_OPTION_OF_backend))
        options->device = 0; /* the number was for the previous backend */
    return esp_value_read(option, options, key, value, err, errlen);
}

int esp_models_follow(struct esp_models *next, const struct esp_models *pair,
                      const struct esp_engine_options *options,
                      const struct esp_session_options *session, char *note, size_t size,
                      char *err, size_t errlen)
{
    struct esp_session_options settings = *session;
    char why[256];
    snprintf(note, size, "%s", "");
    if (pair->session)
        esp_session_current(pair->session, &settings);
    settings.observer = session->observer;
    settings.user = session->user;
    int status = open_engine(next, options, err, errlen);
    if (status == ESP_OK)
        status = esp_session_open(&next->session, next->engine, &settings, err, errlen);
    if (status < 0 && next->engine && (settings.drafter || settings.verifier)) {
        snprintf(note, size, "; drafter and verifier were reset to the defaults: %s", err);
        settings.drafter = settings.verifier = NULL;
        status = esp_session_open(&next->session, next->engine, &settings, err, errlen);
    }
    if (status == ESP_OK)
        esp_session_score(next->session, true, why, sizeof why);
    if (status < 0)
        esp_models_close(next);
    return status;
}

bool esp_models_shares_tokens(const struct esp_models *from, const struct esp_models *to)
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

/* Returns the bytes of the text without special tokens. The caller frees them. */
static char *text_of(const struct esp_models *pair, size_t *length)
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

static int prompt_anew(const struct esp_models *from, struct esp_models *to, char *err,
                       size_t errlen)
{
    size_t length = 0;
    int status = ESP_E_MEMORY;
    char *text = text_of(from, &length);
    if (!text)
        esp_fail(err, errlen, status, "not enough memory for the text");
    else if (length == 0)
        status = ESP_OK;
    else
        status = esp_session_prompt_text(to->session, text, length, 0, err, errlen);
    free(text);
    return status;
}

int esp_models_hand_over(const struct esp_models *from, struct esp_models *to, char *err,
                         size_t errlen)
{
    int count = 0;
    if (from->session)
        esp_session_tokens(from->session, &count);
    if (count == 0)
        return ESP_OK;
    if (esp_models_shares_tokens(from, to))
        return esp_session_continue(to->session, from->session, err, errlen);
    if (*esp_session_chat(from->session) && *esp_session_chat(to->session))
        return esp_session_retell(to->session, from->session, err, errlen);
    return prompt_anew(from, to, err, errlen);
}
