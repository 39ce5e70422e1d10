/* worker_keep.c - passes events of the engine thread's session to the keeper; see
 * worker_parts.h. */
#include "tui/worker/worker_parts.h"

#include <stdio.h>
#include <string.h>

static const char *token_text(void *engine, int32_t token, size_t *length)
{
    return esp_token_bytes(engine, token, length);
}

/* Posts a sentence to the engine thread, which reports it to the user. Any thread can call
 * this. */
static void tell(void *user, const char *sentence)
{
    struct esp_worker *worker = user;
    esp_mailbox_post(&worker->mailbox,
                     &(struct esp_message){.type = ESP_COMMAND_TELL, .text = {sentence}});
}

void esp_worker_keep_models(struct esp_worker *worker, bool anew)
{
    struct esp_keeping *keeping = &worker->keeping;
    const struct esp_tokens tokens = {token_text, worker->pair.engine};
    struct esp_model_info target = {.path = ""}, draft = {.path = ""};
    if (!keeping->keeper || !worker->pair.session)
        return;
    keeping->header = (struct esp_recording_header){.major = ESP_RECORDING_MAJOR,
                                                    .minor = ESP_RECORDING_MINOR,
                                                    .program = "espalier " ESP_VERSION};
    esp_recording_describe(&keeping->header, worker->pair.engine, worker->pair.session);
    esp_engine_target(worker->pair.engine, &target);
    esp_engine_draft(worker->pair.engine, &draft);
    esp_keeper_models(keeping->keeper, &keeping->header, target.path, draft.path, &tokens,
                      anew);
    keeping->begun = false;
}

/* Returns whether the kept session can be continued with these models. If it cannot, tells the
 * user why. */
static bool fits(struct esp_worker *worker, const struct esp_resume *resume)
{
    struct esp_recording_header header = {.vocabulary = 0};
    if (!worker->pair.session)
        return false;
    esp_recording_describe(&header, worker->pair.engine, worker->pair.session);
    if (strcmp(header.vocabulary_hash, resume->vocabulary_hash) == 0)
        return true;
    ESP_TELL(
        worker, ERROR,
        "session %d has a different vocabulary from these models, so it is not resumed; name "
        "its models, or make a recording of it (espalier sessions export %d)",
        resume->session, resume->session);
    return false;
}

bool esp_worker_keep(struct esp_worker *worker, const struct esp_message *command)
{
    struct esp_keeping *keeping = &worker->keeping;
    const struct esp_resume *resume = (const void *)command->text[0];
    bool goes_on = false;
    if (!keeping->keeper) {
        goes_on = resume->session > 0 && fits(worker, resume);
        if (esp_keeper_open(&keeping->keeper, command->text[1], goes_on ? resume->session : 0,
                            tell, worker) < 0) {
            ESP_TELL(worker, ERROR, "not enough memory to keep the session");
            return false;
        }
        atomic_store(&keeping->settling, keeping->keeper);
        esp_worker_keep_models(worker, false);
    }
    esp_keeper_private(keeping->keeper, command->flag);
    return goes_on;
}

/* Copies the drafter, the verifier and the settings of the session to the header. */
static void describe(struct esp_worker *worker, struct esp_recording_header *header)
{
    const struct esp_session *session = worker->pair.session;
    struct esp_session_options now;
    esp_session_get(session, "drafter", header->drafter, sizeof header->drafter);
    esp_session_get(session, "verifier", header->verifier, sizeof header->verifier);
    esp_session_current(session, &now);
    header->values = now.values;
    esp_values_forget_texts(&header->values);
    header->lossy = esp_session_is_lossy(session);
}

void esp_worker_keep_begin(struct esp_worker *worker)
{
    struct esp_keeping *keeping = &worker->keeping;
    struct esp_generator generator;
    if (!keeping->keeper || keeping->begun)
        return;
    describe(worker, &keeping->header);
    esp_session_generator(worker->pair.session, &generator);
    keeping->generation = keeping->generations++;
    esp_keeper_generation(keeping->keeper, keeping->generation, &keeping->header, &generator,
                          worker->limit);
    keeping->begun = true;
}

void esp_worker_keep_again(struct esp_worker *worker, int generation)
{
    struct esp_keeping *keeping = &worker->keeping;
    const struct esp_generator none = {0};
    keeping->begun = generation >= 0;
    if (!keeping->keeper || generation < 0)
        return;
    keeping->generation = generation;
    esp_keeper_generation(keeping->keeper, generation, &keeping->header, &none, 0);
}

void esp_worker_keep_event(struct esp_worker *worker, const struct esp_event *event)
{
    if (event->type == ESP_EVENT_SETTING)
        worker->keeping.begun = false; /* a change of a setting begins a new generation */
    if (worker->keeping.keeper)
        esp_keeper_event(worker->keeping.keeper, event);
}
