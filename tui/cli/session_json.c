/* session_json.c - writes results of sessions as JSON; see session_json.h. */
#include "tui/cli/session_json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/support/utf8_stream.h"

/* Returns the text of the tokens as valid UTF-8. The caller frees it. */
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
    cli_add(o, CLI_TEXT("text", text ? text : ""),
            CLI_ITEM("tokens", cJSON_CreateIntArray(tokens, count)),
            CLI_NUMBER("prompt_tokens", s.prompt_tokens),
            CLI_NUMBER("generated_tokens", s.generated_tokens));
    free(text);
}

void cli_json_models(cJSON *o, const struct esp_engine *engine)
{
    struct esp_model_info target, draft;
    esp_engine_target(engine, &target);
    const bool drafts = esp_engine_draft(engine, &draft);
    cli_add(o, CLI_TEXT("target", target.name), CLI_TEXT("draft", drafts ? draft.name : NULL),
            CLI_BOOL("draft_is_copy", drafts && draft.copy),
            CLI_TEXT("backend", esp_engine_backend(engine)));
}

static void add_setting(cJSON *o, const struct esp_session *session, const char *key)
{
    char value[1024];
    if (esp_session_get(session, key, value, sizeof value) == ESP_OK)
        cJSON_AddStringToObject(o, key, value);
}

/* Returns the value of a text setting. Returns NULL if the setting has no value or is not a
 * text. */
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
        /* The number is copied as text, because a seed can have 64 bits. */
        cJSON_AddRawToObject(o, name, text);
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
    cJSON *o = cli_object(CLI_NUMBER("load", esp_engine_load_seconds(engine)),
                          CLI_NUMBER("prefill", s->prefill_seconds),
                          CLI_NUMBER("first_token", s->first_token_seconds));
    for (int i = 0; i < ESP_STAGES; i++)
        cJSON_AddNumberToObject(o, esp_stage_name(i), s->stage_seconds[i]);
    cJSON_AddNumberToObject(o, "decode", s->decode_seconds);
    cJSON_AddNumberToObject(o, "exchange", s->exchange_seconds);
    return o;
}

bool cli_is_expecting(const struct esp_session *session)
{
    struct esp_session_options now;
    esp_session_current(session, &now);
    return now.values.expect != NULL;
}

/* Counts the verified tokens of the expected text: the accepted tokens or, if `accepted` is
 * false, the rejected tokens. */
static double expected_of(const struct esp_stats *s, bool accepted)
{
    const int64_t right = s->source_accepted[ESP_SOURCE_EXPECTED];
    return (double)(accepted ? right : s->source_nodes[ESP_SOURCE_EXPECTED] - right);
}

void cli_json_figures(cJSON *o, const struct esp_engine *engine,
                      const struct esp_session *session, double baseline)
{
    struct esp_stats s;
    esp_session_stats(session, &s);
    cli_add(o, CLI_NUMBER("iterations", s.iterations),
            CLI_NUMBER("drafted_nodes", s.drafted_nodes),
            CLI_NUMBER("accepted_nodes", s.accepted_nodes),
            CLI_NUMBER("acceptance_rate", s.acceptance_rate),
            CLI_NUMBER("tokens_per_iteration", s.tokens_per_iteration),
            CLI_NUMBER("mean_path_length", s.mean_path_length),
            CLI_NUMBER("draft_passes", s.draft_passes),
            CLI_NUMBER("target_passes", s.target_passes),
            CLI_NUMBER("tokens_per_second", cli_speed(&s)));
    if (s.state_copies > 0)
        cli_add(o, CLI_NUMBER("state_steps", s.state_steps),
                CLI_NUMBER("state_bytes_read", s.state_read),
                CLI_NUMBER("state_bytes_written", s.state_written),
                CLI_NUMBER("state_bytes_copies", s.state_copies));
    if (cli_is_expecting(session))
        cli_add(o, CLI_NUMBER("accepted_prediction_tokens", expected_of(&s, true)),
                CLI_NUMBER("rejected_prediction_tokens", expected_of(&s, false)));
    if (s.draft_temp > 0)
        cli_add(o, CLI_NUMBER("draft_temp", s.draft_temp),
                CLI_NUMBER("draft_error_raw", s.calibration_error_raw),
                CLI_NUMBER("draft_error", s.calibration_error));
    cli_add(o, CLI_NUMBER("baseline_tokens_per_second", cli_mean_of(1, baseline)),
            CLI_NUMBER("speedup", cli_mean_of(baseline, baseline > 0 ? s.token_seconds : 0)),
            CLI_ITEM("seconds", seconds_json(engine, &s)),
            CLI_NUMBER("peak_bytes", s.peak_bytes));
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
    cli_add(streamed, CLI_NUMBER("layers", s.layers - s.resident),
            CLI_NUMBER("resident_layers", s.resident),
            CLI_NUMBER("resident_bytes", s.resident_bytes),
            CLI_NUMBER("buffer_bytes", s.buffer_bytes), CLI_NUMBER("pass_bytes", s.pass_bytes),
            CLI_NUMBER("read_bytes", s.bytes), CLI_NUMBER("read_rate", cli_read_rate(&s)));
}

static cJSON *tried_json(const struct esp_trial_counts *t)
{
    return cli_object(CLI_NUMBER("nodes", t->nodes), CLI_NUMBER("tried", t->tried),
                      CLI_NUMBER("accepted", t->accepted),
                      CLI_NUMBER("mean_q", cli_mean_of(t->q, t->with_q)),
                      CLI_NUMBER("mean_p", cli_mean_of(t->p, t->with_p)));
}

static cJSON *depths_json(const struct esp_acceptance *a)
{
    cJSON *all = cJSON_CreateArray();
    for (int i = 0; i < ESP_ACCEPT_DEPTHS && a->depth[i].nodes > 0; i++) {
        cJSON *o = cli_object(
            CLI_NUMBER("nodes", a->depth[i].nodes), CLI_NUMBER("tried", a->depth[i].tried),
            CLI_NUMBER("accepted", a->depth[i].accepted),
            CLI_NUMBER("formula", cli_mean_of(a->depth[i].rate, a->depth[i].rated)),
            CLI_NUMBER("ceiling", cli_mean_of(a->depth[i].ceiling, a->depth[i].rated)));
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
    cJSON *sources = cJSON_CreateObject();
    const double iterations = a->iterations;
    cli_add(o,
            CLI_NUMBER("block_efficiency", cli_mean_of(a->accepted + iterations, iterations)),
            CLI_NUMBER("expected_tokens", cli_mean_of(a->expected, a->known)),
            CLI_NUMBER("path_share", cli_mean_of(a->accepted, a->deepest)),
            CLI_NUMBER("nodes_per_tree", cli_mean_of(a->drafted, iterations)),
            CLI_NUMBER("most_nodes", a->most_nodes),
            CLI_NUMBER("mask_blocks", cli_mean_of(a->mask_blocks, iterations)),
            CLI_NUMBER("calibration_error",
                       cli_mean_of(esp_acceptance_error(a), isfinite(esp_acceptance_error(a)))),
            CLI_ITEM("path_lengths", lengths_json(a)), CLI_ITEM("depths", depths_json(a)));
    for (int i = 0; i < ESP_ACCEPT_RANKS && a->rank[i].tried > 0; i++)
        cJSON_AddItemToArray(ranks, tried_json(&a->rank[i]));
    for (int i = 0; i < ESP_ACCEPT_BINS; i++)
        cJSON_AddItemToArray(shares, tried_json(&a->share[i]));
    for (int i = 0; i < ESP_SOURCES; i++)
        cJSON_AddItemToObject(sources, esp_source_word(i), tried_json(&a->source[i]));
    cli_add(o, CLI_ITEM("ranks", ranks), CLI_ITEM("probabilities", shares),
            CLI_ITEM("sources", sources));
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
