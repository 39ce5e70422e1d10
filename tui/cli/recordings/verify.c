/* verify.c - see verify.h.
 *
 * All generations are repeated in their original order and in one session. Each generation
 * starts with the text, the settings and the random numbers with which it started before.
 * Therefore a drafter that learns sees the same texts as before. At temperature 0 every
 * lossless verifier must give the same tokens. Above temperature 0 the tokens depend on the
 * trees. The trees of some drafters depend on measured times or on what earlier sessions
 * learned.
 */
#include "tui/cli/recordings/verify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/status.h"
#include "sessions/event_json.h"
#include "sessions/recorder.h"
#include "viz/safe.h"

struct verify {
    struct esp_engine *engine;
    struct esp_session *session;
    /* `ours` describes the loaded models. `header` has the current settings of `session`. */
    struct esp_recording_header ours, header;
    struct esp_kept_text text;
    int *writers; /* for each iteration, the number of its generation; -1: unknown */
    struct esp_text_place
        *last;  /* end of the longest text of each generation; length 0: none is kept */
    int same;   /* number of generations that gave the same tokens */
    int others; /* number of generations that other models wrote */
    int differ; /* number of generations that gave different tokens, including `broken` */
    int broken; /* number of generations that should have given the same tokens but did not */
    char *err;
    size_t errlen;
};

/* ------------------------------------------------------------------ the kept text */

static int find_texts(struct verify *v)
{
    const struct esp_branches *b = &v->text.branches;
    v->last = calloc((size_t)v->text.generations + 1, sizeof *v->last);
    if (!v->last)
        return ESP_E_MEMORY;
    for (int i = 0; i < b->count; i++)
        for (int j = 0; j < b->branch[i].count; j++) {
            const int iteration = b->branch[i].tokens[j].iteration;
            const int generation = iteration >= 0 ? v->writers[iteration] : -1;
            const int length = b->branch[i].fork + j + 1;
            if (generation >= 0 && generation < v->text.generations &&
                length > v->last[generation].length)
                v->last[generation] = (struct esp_text_place){i, length};
        }
    return ESP_OK;
}

/* ------------------------------------------------------------------ settings */

static int open_session(struct verify *v, const struct esp_recording_header *header)
{
    const struct esp_session_options options = {.drafter = header->drafter,
                                                .verifier = header->verifier,
                                                .repeatable = true,
                                                .values = header->values};
    return esp_session_open(&v->session, v->engine, &options, v->err, v->errlen);
}

/* Changes a setting from `from` to `to` if they differ. */
static int change(struct verify *v, const char *key, const char *from, const char *to)
{
    return strcmp(from, to) == 0 ? (int)ESP_OK
                                 : esp_session_set(v->session, key, to, v->err, v->errlen);
}

/* Changes the settings that differ. Returns 0 or a negative status. */
static int change_settings(struct verify *v, const struct esp_recording_header *header)
{
    struct esp_value_info info;
    int status = change(v, "drafter", v->header.drafter, header->drafter);
    if (status == ESP_OK)
        status = change(v, "verifier", v->header.verifier, header->verifier);
    for (int i = 0; status == ESP_OK && esp_value_info(i, &info); i++) {
        char before[256], now[256];
        esp_value_print(&v->header.values, i, before, sizeof before);
        esp_value_print(&header->values, i, now, sizeof now);
        if (info.kind != ESP_KIND_text)
            status = change(v, info.name, before, now);
    }
    return status;
}

/* Gives the session the settings of `header`. If these settings cannot be set one after the
 * other, opens another session with them. */
static int take_settings(struct verify *v, const struct esp_recording_header *header)
{
    int status = v->session ? change_settings(v, header) : (int)ESP_E_ARGUMENT;
    if (status < 0) {
        esp_session_close(v->session);
        v->session = NULL;
        status = open_session(v, header);
    }
    v->header = *header;
    return status;
}

/* ------------------------------------------------------------------ repeating generations */

static int fork_to(struct verify *v, const struct esp_written *tokens, int count)
{
    struct esp_text_token *text = malloc(((size_t)count + 1) * sizeof *text);
    if (!text)
        return esp_fail(v->err, v->errlen, ESP_E_MEMORY, "not enough memory for the text");
    for (int i = 0; i < count; i++)
        text[i] = (struct esp_text_token){tokens[i].token, tokens[i].kind};
    const int status = esp_session_fork(v->session, text, count, v->err, v->errlen);
    free(text);
    return status;
}

/* Generates tokens until the text has `length` tokens or ends. Returns the length of the text,
 * or a negative status. */
static int write_again(struct verify *v, const struct esp_kept_generation *g, int length)
{
    int status, count;
    esp_session_set_generator(v->session, &g->generator);
    esp_session_allow(v->session, g->tokens);
    do {
        status = esp_session_step(v->session, v->err, v->errlen);
        esp_session_tokens(v->session, &count);
    } while (status > 0 && count < length);
    return status < 0 ? status : count;
}

static void compare(struct verify *v, const struct esp_kept_generation *g,
                    const struct esp_written *tokens, int length, int written)
{
    int count, at = g->place;
    const int32_t *text = esp_session_tokens(v->session, &count);
    while (at < length && at < written && text[at] == tokens[at].token)
        at++;
    if (at == length) {
        v->same++;
        return;
    }
    const bool must = v->header.values.temperature == 0 && !v->header.lossy;
    v->differ++;
    v->broken += must;
    esp_safe_print(stdout,
                   "generation %d (%.60s, %.40s, temperature %g) differs at token %d%s\n",
                   g->number + 1, v->header.drafter, v->header.verifier,
                   v->header.values.temperature, at, must ? "" : ": its trees were different");
}

/* Returns whether the target that wrote a generation differs from the loaded target in its name
 * or number format. */
static bool is_of_others(const struct verify *v, const struct esp_recording_header *header)
{
    const struct esp_recorded_model *ours = &v->ours.target;
    return strcmp(ours->name, header->target.name) != 0 ||
           strcmp(ours->dtype, header->target.dtype) != 0;
}

static int verify_generation(void *user, const struct esp_kept_generation *g)
{
    struct verify *v = user;
    struct esp_recording_header header;
    if (g->number >= v->text.generations || v->last[g->number].length <= g->place)
        return ESP_OK; /* the session no longer has this generation's text */
    const struct esp_text_place place = v->last[g->number];
    int status =
        esp_header_from_json(&header, g->header, strcspn(g->header, "\n"), v->err, v->errlen);
    if (status < 0)
        return status;
    if (is_of_others(v, &header)) {
        v->others++;
        return ESP_OK;
    }
    struct esp_written *tokens = malloc((size_t)place.length * sizeof *tokens);
    if (!tokens)
        return esp_fail(v->err, v->errlen, ESP_E_MEMORY, "not enough memory for the text");
    esp_branches_text(&v->text.branches, place, 0, tokens);
    status = take_settings(v, &header);
    if (status >= 0)
        status = fork_to(v, tokens, g->place);
    if (status >= 0)
        status = write_again(v, g, place.length);
    if (status >= 0)
        compare(v, g, tokens, place.length, status);
    free(tokens);
    return status < 0 ? status : (int)ESP_OK;
}

/* ------------------------------------------------------------------ opening */

static int check_vocabulary(struct verify *v, const struct esp_kept_session *session)
{
    const struct esp_session_options plain = {.drafter = "ar"};
    struct esp_session *any;
    int status = esp_session_open(&any, v->engine, &plain, v->err, v->errlen);
    if (status < 0)
        return status;
    esp_recording_describe(&v->ours, v->engine, any);
    esp_session_close(any);
    return strcmp(v->ours.vocabulary_hash, v->text.vocabulary_hash) == 0
               ? (int)ESP_OK
               : esp_fail(v->err, v->errlen, ESP_E_MISMATCH,
                          "session %lld has a different vocabulary from these models",
                          (long long)session->id);
}

static int open_models(struct verify *v, const struct cli_options *given,
                       const struct esp_kept_session *session)
{
    struct cli_options o = *given;
    if (!o.given[CLI_FLAG_target]) {
        o.engine.target = session->target_path;
        if (!o.given[CLI_FLAG_draft] && *session->draft_path)
            o.engine.draft = session->draft_path;
    }
    int status = cli_open_engine(&v->engine, &o, v->err, v->errlen);
    return status < 0 ? status : check_vocabulary(v, session);
}

static int report(const struct verify *v, const struct esp_kept_session *session)
{
    printf("session %lld: %d generation%s gave the same tokens", (long long)session->id,
           v->same, v->same == 1 ? "" : "s");
    if (v->differ > 0)
        printf(", %d did not", v->differ);
    if (v->others > 0)
        printf("; %d were written by other models", v->others);
    putchar('\n');
    return v->differ == 0
               ? (int)ESP_OK
               : esp_fail(
                     v->err, v->errlen, ESP_E_FORMAT,
                     v->broken > 0
                         ? "texts differ at temperature 0: the models or the session changed"
                         : "above temperature 0 the text depends on the trees, and a drafter "
                           "that learns may draft other trees each time");
}

int cli_verify_session(const struct cli_options *options, struct esp_library *library,
                       const struct esp_kept_session *session, char *err, size_t errlen)
{
    struct verify v = {.err = err, .errlen = errlen};
    int status = esp_library_load(library, session->id, &v.text, err, errlen);
    if (status == ESP_OK)
        status = esp_library_writers(library, session->id, v.text.iterations, &v.writers, err,
                                     errlen);
    if (status == ESP_OK && find_texts(&v) < 0)
        status = esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory for the texts");
    if (status == ESP_OK)
        status = open_models(&v, options, session);
    if (status == ESP_OK)
        status =
            esp_library_generations(library, session->id, verify_generation, &v, err, errlen);
    if (status == ESP_OK)
        status = report(&v, session);
    esp_session_close(v.session);
    esp_engine_close(v.engine);
    free(v.last);
    free(v.writers);
    esp_kept_text_free(&v.text);
    return status;
}
