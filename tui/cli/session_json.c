/* session_json.c - sessions as JSON; see session_json.h. */
#include "tui/cli/session_json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tui/cli/cli.h"
#include "engine/support/utf8_stream.h"
#include "viz/safe.h"

/* The tokens' text as valid UTF-8. The caller frees it. */
static char *whole_text(const struct esp_engine *engine, const int32_t *tokens, int count)
{
    struct esp_utf8_stream stream = {.mode = ESP_UTF8_TEXT};
    size_t room = ESP_UTF8_ROOM(0) + 1, used = 0, length;
    for (int i = 0; i < count; i++)
        if (esp_token_bytes(engine, tokens[i], &length))
            room += 3 * length;
    char *text = malloc(room);
    for (int i = 0; text && i < count; i++) {
        const char *bytes = esp_token_bytes(engine, tokens[i], &length);
        if (bytes && !esp_token_is_end(engine, tokens[i]))
            used += esp_utf8_stream_push(&stream, bytes, length, text + used);
    }
    if (text)
        text[used + esp_utf8_stream_flush(&stream, text + used)] = '\0';
    return text;
}

void cli_json_text(cJSON *o, const struct esp_engine *engine, const struct esp_session *session)
{
    struct esp_stats s;
    int count;
    esp_session_stats(session, &s);
    const int32_t *tokens = esp_session_tokens(session, &count) + s.prompt_tokens;
    count -= s.prompt_tokens;
    char *text = whole_text(engine, tokens, count);
    cJSON_AddStringToObject(o, "text", text ? text : "");
    cJSON_AddItemToObject(o, "tokens", cJSON_CreateIntArray(tokens, count));
    cJSON_AddNumberToObject(o, "prompt_tokens", s.prompt_tokens);
    cJSON_AddNumberToObject(o, "generated_tokens", s.generated_tokens);
    free(text);
}

void cli_json_models(cJSON *o, const struct esp_engine *engine)
{
    struct esp_model_info target, draft;
    esp_engine_target(engine, &target);
    cJSON_AddStringToObject(o, "target", target.name);
    if (esp_engine_draft(engine, &draft))
        cJSON_AddStringToObject(o, "draft", draft.name);
    else
        cJSON_AddNullToObject(o, "draft");
    cJSON_AddStringToObject(o, "backend", esp_engine_backend(engine));
}

static void add_setting(cJSON *o, const struct esp_session *session, const char *key)
{
    char value[1024];
    if (esp_session_get(session, key, value, sizeof value) == ESP_OK)
        cJSON_AddStringToObject(o, key, value);
}

/* A text that is given, or NULL. */
static const char *text_of(const struct esp_value_info *info,
                           const struct esp_session_values *values)
{
    struct esp_session_values copy = *values;
    const char **text = esp_value_text(info, &copy);
    return text ? *text : NULL;
}

void cli_json_setting(cJSON *o, const char *name, const struct esp_session_values *values,
                      int index)
{
    struct esp_value_info info;
    char text[64], *end;
    esp_value_info(index, &info);
    const char *given = text_of(&info, values);
    if (given) {
        cJSON_AddStringToObject(o, name, given);
        return;
    }
    esp_value_print(values, index, text, sizeof text);
    const bool is_number = isfinite(strtod(text, &end)) && end != text && !*end;
    if (info.kind == ESP_KIND_flag)
        cJSON_AddBoolToObject(o, name, strcmp(text, "on") == 0);
    else if (is_number)
        cJSON_AddRawToObject(o, name, text); /* as it is: a seed may have 64 bits */
    else
        cJSON_AddStringToObject(o, name, text);
}

void cli_json_settings(cJSON *to, const struct esp_session_values *values)
{
    struct esp_value_info info;
    cJSON *o = cJSON_AddObjectToObject(to, "settings");
    for (int i = 0; esp_value_info(i, &info); i++)
        if (info.kind != ESP_KIND_text || text_of(&info, values))
            cli_json_setting(o, info.name, values, i);
}

void cli_json_choice(cJSON *o, const struct esp_session *session)
{
    add_setting(o, session, "drafter");
    add_setting(o, session, "verifier");
    cJSON_AddBoolToObject(o, "lossy", esp_session_is_lossy(session));
}

double cli_speed(const struct esp_stats *s)
{
    return s->decode_seconds > 0 ? s->generated_tokens / s->decode_seconds : 0;
}

static cJSON *seconds_json(const struct esp_engine *engine, const struct esp_stats *s)
{
    cJSON *o = cJSON_CreateObject();
    cJSON_AddNumberToObject(o, "load", esp_engine_load_seconds(engine));
    cJSON_AddNumberToObject(o, "prefill", s->prefill_seconds);
    cJSON_AddNumberToObject(o, "first_token", s->first_token_seconds);
    for (int i = 0; i < ESP_STAGES; i++)
        cJSON_AddNumberToObject(o, esp_stage_name(i), s->stage_seconds[i]);
    cJSON_AddNumberToObject(o, "decode", s->decode_seconds);
    return o;
}

void cli_json_figures(cJSON *o, const struct esp_engine *engine,
                      const struct esp_session *session, double baseline)
{
    struct esp_stats s;
    esp_session_stats(session, &s);
    cJSON_AddNumberToObject(o, "iterations", s.iterations);
    cJSON_AddNumberToObject(o, "drafted_nodes", (double)s.drafted_nodes);
    cJSON_AddNumberToObject(o, "accepted_nodes", (double)s.accepted_nodes);
    cJSON_AddNumberToObject(o, "acceptance_rate", s.acceptance_rate);
    cJSON_AddNumberToObject(o, "tokens_per_iteration", s.tokens_per_iteration);
    cJSON_AddNumberToObject(o, "mean_path_length", s.mean_path_length);
    cJSON_AddNumberToObject(o, "draft_passes", (double)s.draft_passes);
    cJSON_AddNumberToObject(o, "target_passes", (double)s.target_passes);
    cJSON_AddNumberToObject(o, "tokens_per_second", cli_speed(&s));
    if (s.draft_temp > 0) {
        cJSON_AddNumberToObject(o, "draft_temp", s.draft_temp);
        cJSON_AddNumberToObject(o, "draft_error_raw", s.calibration_error_raw);
        cJSON_AddNumberToObject(o, "draft_error", s.calibration_error);
    }
    if (baseline > 0)
        cJSON_AddNumberToObject(o, "baseline_tokens_per_second", 1 / baseline);
    else
        cJSON_AddNullToObject(o, "baseline_tokens_per_second");
    if (baseline > 0 && s.token_seconds > 0)
        cJSON_AddNumberToObject(o, "speedup", baseline / s.token_seconds);
    else
        cJSON_AddNullToObject(o, "speedup");
    cJSON_AddItemToObject(o, "seconds", seconds_json(engine, &s));
    cJSON_AddNumberToObject(o, "peak_bytes", (double)s.peak_bytes);
    cli_json_streamed(o, engine);
}

double cli_read_rate(const struct esp_streamed *s)
{
    return s->seconds > 0 ? s->bytes / s->seconds : 0;
}

void cli_json_streamed(cJSON *o, const struct esp_engine *engine)
{
    struct esp_streamed s;
    if (!esp_engine_streamed(engine, &s)) {
        cJSON_AddNullToObject(o, "streamed");
        return;
    }
    cJSON *streamed = cJSON_AddObjectToObject(o, "streamed");
    cJSON_AddNumberToObject(streamed, "layers", s.layers - s.resident);
    cJSON_AddNumberToObject(streamed, "resident_layers", s.resident);
    cJSON_AddNumberToObject(streamed, "resident_bytes", (double)s.resident_bytes);
    cJSON_AddNumberToObject(streamed, "buffer_bytes", (double)s.buffer_bytes);
    cJSON_AddNumberToObject(streamed, "pass_bytes", (double)s.pass_bytes);
    cJSON_AddNumberToObject(streamed, "read_bytes", s.bytes);
    cJSON_AddNumberToObject(streamed, "read_rate", cli_read_rate(&s));
}

/* A mean, or null of nothing. */
static void add_mean(cJSON *o, const char *name, double sum, double count)
{
    if (count > 0)
        cJSON_AddNumberToObject(o, name, sum / count);
    else
        cJSON_AddNullToObject(o, name);
}

static cJSON *tried_json(const struct esp_trial_counts *t)
{
    cJSON *o = cJSON_CreateObject();
    cJSON_AddNumberToObject(o, "nodes", (double)t->nodes);
    cJSON_AddNumberToObject(o, "tried", (double)t->tried);
    cJSON_AddNumberToObject(o, "accepted", (double)t->accepted);
    add_mean(o, "mean_q", t->q, (double)t->with_q);
    add_mean(o, "mean_p", t->p, (double)t->with_p);
    return o;
}

static cJSON *depths_json(const struct esp_acceptance *a)
{
    cJSON *all = cJSON_CreateArray();
    for (int i = 0; i < ESP_ACCEPT_DEPTHS && a->depth[i].nodes > 0; i++) {
        cJSON *o = cJSON_CreateObject();
        cJSON_AddNumberToObject(o, "nodes", (double)a->depth[i].nodes);
        cJSON_AddNumberToObject(o, "tried", (double)a->depth[i].tried);
        cJSON_AddNumberToObject(o, "accepted", (double)a->depth[i].accepted);
        add_mean(o, "formula", a->depth[i].rate, (double)a->depth[i].rated);
        add_mean(o, "ceiling", a->depth[i].ceiling, (double)a->depth[i].rated);
        cJSON_AddItemToArray(all, o);
    }
    return all;
}

static cJSON *lengths_json(const struct esp_acceptance *a)
{
    cJSON *all = cJSON_CreateArray();
    int longest = ESP_ACCEPT_DEPTHS;
    while (longest > 0 && a->length[longest] == 0)
        longest--;
    for (int i = 0; i <= longest; i++)
        cJSON_AddItemToArray(all, cJSON_CreateNumber((double)a->length[i]));
    return all;
}

void cli_json_acceptance(cJSON *to, const struct esp_acceptance *a)
{
    cJSON *o = cJSON_AddObjectToObject(to, "acceptance");
    cJSON *ranks = cJSON_CreateArray(), *shares = cJSON_CreateArray();
    const double iterations = a->iterations;
    add_mean(o, "block_efficiency", (double)a->accepted + iterations, iterations);
    add_mean(o, "expected_tokens", a->expected, a->known);
    add_mean(o, "path_share", (double)a->accepted, (double)a->deepest);
    add_mean(o, "nodes_per_tree", (double)a->drafted, iterations);
    cJSON_AddNumberToObject(o, "most_nodes", a->most_nodes);
    add_mean(o, "mask_blocks", (double)a->mask_blocks, iterations);
    add_mean(o, "calibration_error", esp_acceptance_error(a),
             isfinite(esp_acceptance_error(a)));
    cJSON_AddItemToObject(o, "path_lengths", lengths_json(a));
    cJSON_AddItemToObject(o, "depths", depths_json(a));
    for (int i = 0; i < ESP_ACCEPT_RANKS && a->rank[i].tried > 0; i++)
        cJSON_AddItemToArray(ranks, tried_json(&a->rank[i]));
    for (int i = 0; i < ESP_ACCEPT_BINS; i++)
        cJSON_AddItemToArray(shares, tried_json(&a->share[i]));
    cJSON_AddItemToObject(o, "ranks", ranks);
    cJSON_AddItemToObject(o, "probabilities", shares);
}

void cli_print_lengths(FILE *file, const struct esp_acceptance *a)
{
    const char *between = "";
    for (int i = 0; i <= ESP_ACCEPT_DEPTHS; i++) {
        if (a->length[i] == 0)
            continue;
        fprintf(file, "%s %d%s: %lld", between, i, i == ESP_ACCEPT_DEPTHS ? " or more" : "",
                (long long)a->length[i]);
        between = ",";
    }
    fputc('\n', file);
}

int cli_print_json(cJSON *o)
{
    char *json = cJSON_Print(o);
    int code = json ? EXIT_DONE : cli_fail("no memory for the JSON object");
    if (json) {
        esp_safe_json(stdout, json, strlen(json));
        putchar('\n');
    }
    free(json);
    cJSON_Delete(o);
    return code;
}
