/* generate.c - `espalier generate`: streams a continuation to standard output.
 *
 * If the output is a pipe or a file, the model's bytes are written unchanged, in complete UTF-8
 * sequences. On a terminal, viz/safe.h replaces control characters. The output is flushed after
 * each iteration. Ctrl-C ends the generation cleanly: the program prints the text so far and
 * the statistics, and the exit code is 130.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "tui/cli/cli.h"
#include "engine/find_models.h"
#include "engine/support/utf8_stream.h"
#include "tui/cli/prompt.h"
#include "sessions/recorder.h"
#include "tui/cli/session_json.h"
#include "viz/safe.h"

struct output {
    const struct esp_engine *engine;
    const struct esp_session *session;
    bool print;    /* print the text while it is generated */
    bool terminal; /* standard output is a terminal, so safe.h is used */
    struct esp_utf8_stream stream;
    struct esp_acceptance acceptance;
    struct esp_recorder *recorder; /* NULL: nothing is recorded */
    bool suspended;                /* the user has been told that the recording is suspended */
};

static void write_text(struct output *out, const char *text, size_t length)
{
    if (out->terminal)
        esp_safe_write(stdout, text, length);
    else
        fwrite(text, 1, length, stdout);
}

static const char *token_text(void *user, int32_t token, size_t *length)
{
    const struct output *out = user;
    return esp_token_bytes(out->engine, token, length);
}

static void record(struct output *out, const struct esp_event *event)
{
    if (!out->recorder)
        return;
    esp_recorder_event(out->recorder, event);
    const char *trouble = esp_recorder_trouble(out->recorder);
    if (*trouble && !out->suspended) {
        fputs(out->terminal ? "\n" : "", stderr);
        esp_complain("%s", trouble);
        out->suspended = true;
    }
}

/* Called for every event of the session. Records the event. Counts and prints the committed
 * tokens of each iteration. */
static void on_event(void *user, const struct esp_event *event)
{
    struct output *out = user;
    record(out, event);
    if (event->type == ESP_EVENT_ITERATION)
        esp_acceptance_add(&out->acceptance, event->iteration);
    if (event->type == ESP_EVENT_NOTE)
        esp_complain("%s", event->text);
    if (!out->print || event->type != ESP_EVENT_ITERATION)
        return;
    for (int i = 0; i < event->iteration->committed_count; i++) {
        int32_t token = event->iteration->committed[i];
        size_t length;
        const char *bytes = esp_token_bytes(out->engine, token, &length);
        char text[ESP_UTF8_ROOM(256)];
        while (bytes && length > 0 && !esp_session_is_end(out->session, token)) {
            size_t part = length < 256 ? length : 256;
            write_text(out, text, esp_utf8_stream_push(&out->stream, bytes, part, text));
            bytes += part;
            length -= part;
        }
    }
    fflush(stdout);
}

static int print_json(const struct output *out, const struct esp_session *session)
{
    const struct esp_engine *engine = out->engine;
    struct esp_session_options now;
    struct esp_stats s;
    cJSON *o = cJSON_CreateObject();
    esp_session_current(session, &now);
    esp_session_stats(session, &s);
    const char *chat = esp_session_chat(session);
    cli_json_text(o, engine, session);
    cli_add(o, CLI_TEXT("end", cli_interrupted ? "interrupted" : esp_session_end(session)));
    cli_json_models(o, engine);
    cli_json_choice(o, session);
    cli_add(o, CLI_TEXT("chat", *chat ? chat : NULL));
    cli_json_setting(o, "temperature", &now.values, ESP_VALUE_OF_temperature);
    cli_json_setting(o, "top_p", &now.values, ESP_VALUE_OF_top_p);
    cli_json_setting(o, "top_k", &now.values, ESP_VALUE_OF_top_k);
    cli_json_setting(o, "seed", &now.values, ESP_VALUE_OF_seed);
    cli_json_settings(o, &now.values);
    cli_json_figures(o, engine, session, s.baseline);
    cli_json_acceptance(o, &out->acceptance);
    return cli_print_json(o);
}

/* ------------------------------------------------------------------ statistics */

/* Prints how many bytes of states were read and written, if the target has recurrent layers. */
static void print_states(const struct esp_stats *s)
{
    const double passes = (double)s->iterations;
    if (s->state_copies > 0 && passes > 0)
        fprintf(
            stderr,
            "states               a pass read %.2f MB and wrote %.2f MB; a copy for each node "
            "would be %.2f MB\n",
            1e-6 * (double)s->state_read / passes, 1e-6 * (double)s->state_written / passes,
            1e-6 * (double)s->state_copies / passes);
}

/* Prints accepted and drafted nodes by source, such as "copied 40 of 52, recycled 12 of 30
 * accepted". */
static void print_sources(const struct esp_stats *s)
{
    const char *between = "sources              ";
    for (int i = 0; i < ESP_SOURCES; i++) {
        if (s->source_nodes[i] == 0)
            continue;
        fprintf(stderr, "%s%s %lld of %lld", between, esp_source_word(i),
                (long long)s->source_accepted[i], (long long)s->source_nodes[i]);
        between = ", ";
    }
    if (s->drafted_nodes > 0)
        fputs(" accepted\n", stderr);
}

static void print_draft(const struct esp_engine *engine)
{
    struct esp_model_info draft;
    if (!esp_engine_draft(engine, &draft))
        return;
    esp_safe_print(stderr, "draft                %s", draft.name);
    if (draft.copy)
        fprintf(stderr, ", the target's own copy: %.1f MB of %s", 1e-6 * (double)draft.bytes,
                draft.dtype);
    if (esp_is_mtp(draft.path))
        fprintf(stderr, ", the target's MTP layer: %.1f MB of %s", 1e-6 * (double)draft.bytes,
                draft.dtype);
    fputc('\n', stderr);
}

static void print_stats(const struct output *out, const struct esp_session *session)
{
    const struct esp_acceptance *a = &out->acceptance;
    struct esp_stats s;
    char drafter[1024], verifier[1024];
    esp_session_stats(session, &s);
    esp_session_get(session, "drafter", drafter, sizeof drafter);
    esp_session_get(session, "verifier", verifier, sizeof verifier);
    int window, sinks;
    struct esp_session_options now;
    esp_session_current(session, &now);
    esp_window_of(&now.values, esp_engine_context(out->engine), &window, &sinks);
    double speed = cli_speed(&s);
    esp_safe_print(stderr, "seed                 %llu\n", (unsigned long long)now.values.seed);
    print_draft(out->engine);
    esp_safe_print(stderr, "drafter              %s\n", drafter);
    esp_safe_print(stderr, "verifier             %s%s\n", verifier,
                   esp_session_rule_is_lossy(session) ? "  LOSSY" : "");
    if (window > 0)
        fprintf(
            stderr,
            "window               the first %d tokens and the last %d, which changes what the "
            "model says\n",
            sinks, window);
    fprintf(stderr, "prompt               %d tokens in %.1f ms\n", s.prompt_tokens,
            1e3 * s.prefill_seconds);
    fprintf(stderr, "generated            %d tokens in %.1f ms, %.1f tokens/s\n",
            s.generated_tokens, 1e3 * s.decode_seconds, speed);
    fprintf(stderr, "first token after    %.1f ms, then %.2f ms each\n",
            1e3 * s.first_token_seconds,
            s.generated_tokens > 0 ? 1e3 * s.decode_seconds / s.generated_tokens : 0);
    fprintf(stderr, "iterations           %d, %.2f tokens each\n", s.iterations,
            s.tokens_per_iteration);
    fprintf(stderr, "drafted nodes        %lld, accepted %lld (%.1f %%), path length %.2f",
            (long long)s.drafted_nodes, (long long)s.accepted_nodes, 100 * s.acceptance_rate,
            s.mean_path_length);
    if (a->deepest > 0)
        fprintf(stderr, " (%.1f %% of the depth)",
                100 * (double)a->accepted / (double)a->deepest);
    fprintf(stderr, "\npath lengths        ");
    cli_print_lengths(stderr, a);
    print_sources(&s);
    if (cli_is_expecting(session))
        fprintf(stderr, "expected text        %lld tokens accepted, %lld rejected\n",
                (long long)s.source_accepted[ESP_SOURCE_EXPECTED],
                (long long)(s.source_nodes[ESP_SOURCE_EXPECTED] -
                            s.source_accepted[ESP_SOURCE_EXPECTED]));
    fprintf(stderr, "passes               draft %lld, target %lld\n", (long long)s.draft_passes,
            (long long)s.target_passes);
    print_states(&s);
    fprintf(stderr, "time by stage       ");
    for (int i = 0; i < ESP_STAGES; i++)
        fprintf(stderr, " %s %.1f %%", esp_stage_name(i),
                s.decode_seconds > 0 ? 100 * s.stage_seconds[i] / s.decode_seconds : 0);
    fputc('\n', stderr);
    if (s.exchange_seconds > 0)
        fprintf(stderr, "exchange             %.1f %% of the time, between ranks\n",
                100 * s.exchange_seconds / s.decode_seconds);
    struct esp_streamed streamed;
    if (esp_engine_streamed(out->engine, &streamed))
        fprintf(stderr,
                "memory               %d of %d layers; the other layers, %.1f MB a pass, were "
                "%s at %.1f MB/s\n",
                streamed.resident, streamed.layers, 1e-6 * (double)streamed.pass_bytes,
                s.device_bytes > 0 ? "copied" : "read", 1e-6 * cli_read_rate(&streamed));
    if (s.draft_temp > 0 && isfinite(s.calibration_error))
        fprintf(stderr, "draft temperature    %.3g; calibration error %.3f (%.3f without it)\n",
                s.draft_temp, s.calibration_error, s.calibration_error_raw);
    if (s.baseline > 0)
        fprintf(stderr,
                "plain decoding       %.1f tokens/s; this run %.1f: %.2fx (pauses of the "
                "machine are not counted)\n",
                1 / s.baseline, 1 / s.token_seconds, s.baseline / s.token_seconds);
}

/* ------------------------------------------------------------------ the command */

static int generate(struct esp_session *session, int tokens, char *err, size_t errlen)
{
    int status;
    esp_session_allow(session, tokens);
    do
        status = esp_session_step(session, err, errlen);
    while (status > 0 && !cli_interrupted);
    return status;
}

static int start_recording(const struct cli_options *o, struct output *out,
                           const struct esp_session *session, char *err, size_t errlen)
{
    struct esp_recorder_options options = {
        .path = o->record, .force = o->force, .tokens = {token_text, out}};
    struct esp_recording_header header = {.columns = 0};
    struct winsize size;
    if (!o->record)
        return ESP_OK;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) {
        header.columns = size.ws_col;
        header.rows = size.ws_row;
    }
    esp_recording_describe(&header, out->engine, session);
    return esp_recorder_open(&out->recorder, &options, &header, err, errlen);
}

/* Ends the recording. Reports an error of the recorder that has not been reported yet. */
static int stop_recording(struct output *out)
{
    char err[512];
    if (out->recorder)
        esp_recorder_end(out->recorder, "interrupted");
    int status = esp_recorder_close(out->recorder, err, sizeof err);
    out->recorder = NULL;
    if (status == ESP_OK)
        return EXIT_DONE;
    return out->suspended ? EXIT_BAD : cli_fail(err);
}

static int run(struct cli_options *o)
{
    char *text, err[512] = "";
    size_t length;
    int code = cli_read_prompt(o, &text, &length);
    if (code != 0)
        return code;
    struct esp_engine *engine = NULL;
    struct esp_session *session = NULL;
    struct output out = {.print = !o->json, .terminal = isatty(STDOUT_FILENO)};
    o->session.observer = on_event;
    o->session.user = &out;
    cli_choose_draft(o);
    int status = cli_open_engine(&engine, o, err, sizeof err);
    out.engine = engine;
    if (status == ESP_OK)
        status = esp_session_open(&session, engine, &o->session, err, sizeof err);
    out.session = session;
    if (status == ESP_OK) {
        cli_note(session);
        cli_note_chat(engine, session);
        status = start_recording(o, &out, session, err, sizeof err);
    }
    if (status == ESP_OK)
        status = esp_session_say(session, text, length, err, sizeof err);
    bool started = status == ESP_OK;
    if (started) {
        esp_session_explain(session, o->explain);
        cli_catch_interrupt();
        status = generate(session, o->tokens, err, sizeof err);
        if (out.print) {
            char rest[ESP_UTF8_ROOM(0)];
            write_text(&out, rest, esp_utf8_stream_flush(&out.stream, rest));
            if (out.terminal)
                putchar('\n');
        }
    }
    code = cli_code(status, err);
    if (status >= 0 && o->json)
        code = print_json(&out, session);
    if (started && o->stats)
        print_stats(&out, session);
    int recorded = stop_recording(&out);
    code = code == EXIT_DONE ? recorded : code;
    esp_session_close(session);
    esp_engine_close(engine);
    free(text);
    return code == EXIT_DONE && cli_interrupted ? EXIT_INTERRUPTED : code;
}

const struct cli_command cli_generate = {
    .name = "generate",
    .arguments = "[TARGET [DRAFT]] -p TEXT | -f FILE | -",
    .summary = "stream a continuation to standard output",
    .flags = CLI(PROMPT) | CLI(FILE) | CLI(TOKENS) | CLI(DRAFTER) | CLI(VERIFIER) |
             CLI_SESSION | CLI(SIZE) | CLI(JSON) | CLI(STATS) | CLI(RECORD) | CLI(FORCE),
    .most = 3,
    .names_models = true,
    .draws_seed = true,
    .run = run,
};
