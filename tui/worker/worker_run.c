/* worker_run.c - executes commands in the engine thread; see worker_parts.h.
 *
 * Commands run between iterations, in order. A command that fails reports the error and changes
 * nothing. For example, a setting keeps its value, and the old models stay open until others
 * have been loaded.
 */
#include "tui/worker/worker_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/status.h"

/* Models that were replaced. Their tokens can still be on the screen. */
struct retired {
    struct retired *next;
    struct esp_models pair;
    int serial;
};

/* Returns a prompt in the form in which it is appended to the text. A prompt that does not
 * start with a blank begins a new paragraph. */
static char *joined(struct esp_worker *worker, const char *prompt, size_t prompt_length,
                    size_t *length)
{
    int count;
    const int32_t *tokens = esp_session_tokens(worker->pair.session, &count);
    size_t last_length = 0;
    const char *last =
        count > 0 ? esp_token_bytes(worker->pair.engine, tokens[count - 1], &last_length)
                  : NULL;
    bool starts_blank = prompt_length > 0 && strchr(" \t\r\n", prompt[0]);
    bool ends_line = last && last_length > 0 && last[last_length - 1] == '\n';
    const char *between = count == 0 || starts_blank || ends_line ? "" : "\n\n";
    *length = strlen(between) + prompt_length;
    char *text = malloc(*length + 1);
    if (!text)
        return NULL;
    memcpy(text, between, strlen(between));
    memcpy(text + strlen(between), prompt, prompt_length);
    text[*length] = '\0';
    return text;
}

/* If the context has no room for `tokens` more tokens, drops the oldest turns and reports this.
 * Returns 0 or a negative status. */
static int make_room(struct esp_worker *worker, int tokens, char *err, size_t errlen)
{
    const int dropped = esp_session_make_room(worker->pair.session, tokens, err, errlen);
    if (dropped <= 0)
        return dropped;
    if (dropped == 1)
        ESP_TELL(worker, MESSAGE, "the context was full: the oldest turn was dropped");
    else
        ESP_TELL(worker, MESSAGE, "the context was full: the %d oldest turns were dropped",
                 dropped);
    return ESP_OK;
}

void esp_worker_tell_end(struct esp_worker *worker)
{
    enum { FULL = 75 /* per cent of the context; above it, the next prompt can drop turns */ };
    char limit[120] = "", full[160] = "";
    int count;
    const struct esp_session *session = worker->pair.session;
    esp_session_tokens(session, &count);
    const int context = esp_session_context(session);
    const int share = (int)(100 * (int64_t)count / context);
    if (!*esp_session_chat(session))
        return;
    if (strcmp(esp_session_end(session), "length") == 0)
        snprintf(limit, sizeof limit,
                 "the answer stopped after %d tokens (:n); Enter continues it", worker->limit);
    if (share >= FULL)
        snprintf(full, sizeof full,
                 "%d %% of the context of %d tokens are used: the next prompt drops the oldest "
                 "turns",
                 share, context);
    if (*limit || *full)
        ESP_TELL(worker, MESSAGE, "%s%s%s", limit, *limit && *full ? "; " : "", full);
}

void esp_worker_warn_of_template(struct esp_worker *worker)
{
    char chosen[32] = "";
    esp_session_get(worker->pair.session, "chat", chosen, sizeof chosen);
    if (!esp_engine_chat(worker->pair.engine) && strcmp(chosen, "auto") == 0)
        ESP_TELL(worker, MESSAGE,
                 "the model has an unknown chat template, so prompts have no format; choose "
                 "one with :chat");
}

static int prefill(struct esp_worker *worker, const char *prompt, size_t prompt_length,
                   char *err, size_t errlen)
{
    enum { MARKS = 32 }; /* every turn has fewer control tokens */
    struct esp_session *session = worker->pair.session;
    const bool chat = *esp_session_chat(session);
    size_t length;
    int status = esp_tokenize(worker->pair.engine, prompt, prompt_length, NULL, 0);
    if (status >= 0)
        status = make_room(worker, status + (chat ? MARKS : 3), err, errlen);
    if (status < 0)
        return status;
    if (chat)
        return esp_session_say(session, prompt, prompt_length, err, errlen);
    char *text = joined(worker, prompt, prompt_length, &length);
    if (!text)
        return esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory for the prompt");
    status = esp_session_say(session, text, length, err, errlen);
    free(text);
    return status;
}

/* Returns whether there is room to continue the last turn. Drops older turns if necessary. */
static bool can_go_on(struct esp_worker *worker)
{
    char err[256] = "";
    int count;
    if (make_room(worker, 0, err, sizeof err) < 0) {
        ESP_TELL(worker, ERROR, "%s", err);
        return false;
    }
    esp_session_tokens(worker->pair.session, &count);
    if (count < esp_session_context(worker->pair.session))
        return true;
    ESP_TELL(worker, ERROR,
             "the context is full; :clear starts a new text, :edit takes back the "
             "last prompt; a new prompt drops the oldest turns");
    return false;
}

/* Appends a prompt and continues the text. Returns whether a generation has started. */
static bool run_prompt(struct esp_worker *worker, const char *prompt, size_t length)
{
    char err[256] = "";
    int count;
    esp_session_tokens(worker->pair.session, &count);
    if (length == 0 && count == 0) {
        ESP_TELL(worker, ERROR, "type a prompt first");
        return false;
    }
    if (length > 0) {
        esp_reporter_phase(&worker->report, ESP_PHASE_PREFILL, "", 0);
        if (prefill(worker, prompt, length, err, sizeof err) < 0) {
            ESP_TELL(worker, REFUSED, "%s", *err ? err : "the prompt cannot be tokenized");
            esp_reporter_phase(&worker->report, ESP_PHASE_IDLE, "", 0);
            return false;
        }
    }
    return (length > 0 || can_go_on(worker)) && esp_worker_go_on(worker);
}

/* Reports the value of a parameter of the drafter. */
static void run_ask(struct esp_worker *worker, const char *key)
{
    char now[256];
    if (esp_session_get(worker->pair.session, key, now, sizeof now) == ESP_OK)
        ESP_TELL(worker, MESSAGE, "%s = %s", key, now);
    else
        ESP_TELL(worker, ERROR, "the current drafter has no parameter '%s'", key);
}

static void run_set(struct esp_worker *worker, const char *key, const char *value,
                    const char *origin)
{
    char err[256], now[512], note[300] = "";
    if (esp_session_set(worker->pair.session, key, value, err, sizeof err) < 0) {
        ESP_TELL(worker, ERROR, "%.300s%s", origin ? origin : "", err);
        return;
    }
    if (esp_session_get(worker->pair.session, key, now, sizeof now) < 0)
        snprintf(now, sizeof now, "%.200s", value);
    int count;
    esp_session_tokens(worker->pair.session, &count);
    esp_reporter_loaded(&worker->report, &worker->pair, worker->serial, false);
    esp_session_get(worker->pair.session, "notice", note, sizeof note);
    if (strcmp(key, "system") == 0 && count > 0)
        snprintf(note, sizeof note,
                 "this conversation keeps its system prompt; :clear starts another one");
    if (!origin)
        ESP_TELL(worker, MESSAGE, "%s = %s%s%s", key, now, *note ? "; " : "", note);
    esp_worker_compare_set(worker, key, value);
}

/* ------------------------------------------------------------------ other models */

/* Stores a replaced pair of models until the UI thread has applied the READY snapshot of the
 * new pair. */
static void retire(struct esp_worker *worker, struct esp_models *pair)
{
    struct retired *retired = malloc(sizeof *retired);
    esp_session_close(pair->session);
    pair->session = NULL;
    if (!retired)
        return; /* does not free the pair, because the UI thread can still use it */
    *retired = (struct retired){worker->retired, *pair, worker->serial - 1};
    worker->retired = retired;
}

void esp_worker_close_retired(struct esp_worker *worker, int serial)
{
    for (struct retired **at = &worker->retired; *at;) {
        struct retired *retired = *at;
        if (retired->serial >= serial) {
            at = &retired->next;
            continue;
        }
        *at = retired->next;
        esp_models_close(&retired->pair);
        free(retired);
    }
}

static void show_clear(struct esp_worker *worker)
{
    ESP_TELL(worker, CLEAR, "%s", "");
    esp_worker_keep_event(worker, &(struct esp_event){.type = ESP_EVENT_CLEAR});
}

/* Replaces the current pair by `next`, and moves the text to it. */
static void take_over(struct esp_worker *worker, struct esp_models *next, const char *note)
{
    char err[256] = "";
    struct esp_models before = worker->pair;
    struct esp_model_info target = {.name = ""}, draft = {.name = "none"};
    const bool anew = !esp_models_shares_tokens(&before, next);
    const bool compared = worker->second.compare.second != NULL;
    esp_worker_compare_end(worker);
    esp_worker_stop_recording(worker); /* the header of the recording names the models */
    if (anew)
        show_clear(worker);
    worker->pair = *next;
    worker->serial++;
    esp_worker_keep_models(worker, anew);
    esp_reporter_loaded(&worker->report, &worker->pair, worker->serial, anew);
    esp_reporter_phase(&worker->report, ESP_PHASE_PREFILL, "", 0);
    worker->quiet = !anew;
    int status = esp_models_hand_over(&before, &worker->pair, err, sizeof err);
    worker->quiet = false;
    retire(worker, &before);
    if (status < 0)
        show_clear(worker);
    esp_engine_target(worker->pair.engine, &target);
    esp_engine_draft(worker->pair.engine, &draft);
    esp_reporter_tell(&worker->report, status < 0 ? ESP_SNAPSHOT_ERROR : ESP_SNAPSHOT_MESSAGE,
                      "%.60s, draft%s %.60s, on %.60s%s%s%s", target.name,
                      draft.head ? " head" : "", draft.name,
                      esp_engine_device(worker->pair.engine), note,
                      status < 0 ? "; the text was cleared: "
                      : anew     ? "; the text was kept and tokenized again"
                                 : "",
                      err);
    if (compared)
        esp_worker_compare_again(worker);
}

/* Loads other models. If that fails, the current models remain loaded. `change` has the key,
 * the value and the draft for esp_models_options(). */
static void run_load(struct esp_worker *worker, const char *const change[3])
{
    char err[512] = "", note[300];
    struct esp_models next;
    struct esp_engine_options options;
    const bool had = worker->pair.session != NULL;
    int status = esp_models_options(&options, &worker->pair, change[0], change[1], change[2],
                                    err, sizeof err);
    options.progress = esp_worker_progress;
    options.user = worker;
    worker->progress = 0;
    esp_reporter_phase(&worker->report, ESP_PHASE_LOADING, "the models", 0);
    if (status == ESP_OK)
        status = esp_models_follow(&next, &worker->pair, &options, &worker->session_options,
                                   note, sizeof note, err, sizeof err);
    if (status == ESP_OK) {
        take_over(worker, &next, note);
    } else if (had) {
        ESP_TELL(worker, ERROR, "%s; the loaded models stay in use",
                 status == ESP_E_CANCELLED ? "loading was cancelled" : err);
    }
    esp_reporter_phase(&worker->report, status < 0 && !had ? ESP_PHASE_FAILED : ESP_PHASE_IDLE,
                       err, 1);
}

/* ------------------------------------------------------------------ one command */

bool esp_worker_run(struct esp_worker *worker, const struct esp_message *command,
                    bool generating)
{
    switch (command->type) {
    case ESP_COMMAND_LOAD:
        run_load(worker, command->text);
        return false;
    case ESP_COMMAND_RETIRE:
        esp_worker_close_retired(worker, command->number[0]);
        return generating;
    case ESP_COMMAND_LIMIT:
        worker->limit = command->number[0];
        return generating;
    case ESP_COMMAND_TELL:
        ESP_TELL(worker, ERROR, "%s", command->text[0]);
        return generating;
    case ESP_COMMAND_KEEP:
        if (esp_worker_keep(worker, command))
            esp_worker_resume(worker, command);
        return generating;
    case ESP_COMMAND_JUDGE:
        if (worker->keeping.keeper)
            esp_keeper_branch(worker->keeping.keeper, command->number[0], command->text[0],
                              command->number[1] & 1, command->number[1] & 2);
        return generating;
    case ESP_COMMAND_JOB:
        command->job.run(command->job.user, &worker->pair);
        command->job.release(command->job.user);
        return generating;
    default:
        break;
    }
    if (!worker->pair.session) {
        ESP_TELL(worker, ERROR, "no models are loaded; :model loads some");
        return false;
    }
    switch (command->type) {
    case ESP_COMMAND_PROMPT:
        return run_prompt(worker, command->text[0], command->length);
    case ESP_COMMAND_SET:
        run_set(worker, command->text[0], command->text[1], command->text[2]);
        return generating;
    case ESP_COMMAND_ASK:
        run_ask(worker, command->text[0]);
        return generating;
    case ESP_COMMAND_COMPARE:
        esp_worker_compare(worker, command->text[0], command->text[1]);
        return generating;
    case ESP_COMMAND_RECORD:
        esp_worker_record(worker, command);
        return generating;
    case ESP_COMMAND_MARK:
        esp_worker_note(
            worker, &(struct esp_event){.type = ESP_EVENT_MARKER, .text = command->text[0]});
        ESP_TELL(worker, MESSAGE, "marked");
        return generating;
    case ESP_COMMAND_FORK:
        return esp_worker_fork(worker, command);
    case ESP_COMMAND_CONTINUE:
        return esp_worker_continue(worker, command);
    case ESP_COMMAND_SCORES:
        esp_worker_scores(worker, command->number[0], command->number[1]);
        return generating;
    case ESP_COMMAND_REWIND:
        if (esp_session_rewind(worker->pair.session, command->number[0]) == ESP_OK)
            esp_reporter_phase(&worker->report, ESP_PHASE_IDLE, "", 0);
        return false;
    default: /* ESP_COMMAND_CLEAR */
        esp_session_clear(worker->pair.session);
        esp_worker_note(worker, &(struct esp_event){.type = ESP_EVENT_CLEAR});
        show_clear(worker);
        esp_reporter_phase(&worker->report, ESP_PHASE_IDLE, "", 0);
        return false;
    }
}
