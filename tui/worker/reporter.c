/* reporter.c - writes snapshots and wakes their reader; see reporter.h. */
#include "tui/worker/reporter.h"

#include "kernels/clock.h"
#include "kernels/system.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

enum {
    SLOTS = 64,
    WAKE_MS = 30, /* minimum ms between wake-ups for iterations, and between drawn screens */
};

int esp_reporter_open(struct esp_reporter *report)
{
    *report = (struct esp_reporter){.wake = {-1, -1}};
    return esp_pipe(report->wake, false) < 0
               ? ESP_E_MEMORY
               : esp_ring_open(&report->ring, SLOTS, ESP_MAX_NODES + 1);
}

void esp_reporter_close(struct esp_reporter *report)
{
    esp_ring_close(report->ring);
    for (int i = 0; i < 2; i++)
        if (report->wake[i] >= 0)
            close(report->wake[i]);
}

void esp_reporter_wake(struct esp_reporter *report)
{
    if (!atomic_exchange(&report->awake, true) && write(report->wake[1], "", 1) < 0)
        atomic_store(&report->awake, false);
}

void esp_reporter_wake_for_iteration(struct esp_reporter *report)
{
    const double now = esp_clock();
    if ((now - report->woken) * 1e3 < WAKE_MS)
        return;
    report->woken = now;
    esp_reporter_wake(report);
}

void esp_reporter_tell(struct esp_reporter *report, int type, const char *format, ...)
{
    struct esp_snapshot *snapshot = esp_ring_write(report->ring, type);
    if (!snapshot)
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(snapshot->text, sizeof snapshot->text, format, args);
    va_end(args);
    esp_ring_publish(report->ring);
    esp_reporter_wake(report);
}

void esp_reporter_phase(struct esp_reporter *report, int phase, const char *text,
                        double fraction)
{
    struct esp_snapshot *snapshot = esp_ring_write(report->ring, ESP_SNAPSHOT_PHASE);
    report->phase = phase;
    if (!snapshot)
        return;
    snapshot->phase = phase;
    snapshot->fraction = fraction;
    snprintf(snapshot->text, sizeof snapshot->text, "%s", text);
    esp_ring_publish(report->ring);
    esp_reporter_wake(report);
}

static void describe(struct esp_setup *loaded, const struct esp_session *session)
{
    esp_session_get(session, "drafter", loaded->drafter, sizeof loaded->drafter);
    esp_session_get(session, "verifier", loaded->verifier, sizeof loaded->verifier);
    loaded->lossy = esp_session_is_lossy(session);
}

void esp_reporter_compared(struct esp_reporter *report, const struct esp_session *session)
{
    struct esp_snapshot *snapshot = esp_ring_write(report->ring, ESP_SNAPSHOT_COMPARE);
    if (!snapshot)
        return;
    snapshot->loaded = (struct esp_setup){.serial = 0};
    if (session)
        describe(&snapshot->loaded, session);
    esp_ring_publish(report->ring);
    esp_reporter_wake(report);
}

static const char *token_text(void *engine, int32_t token, size_t *length)
{
    return esp_token_bytes(engine, token, length);
}

void esp_reporter_loaded(struct esp_reporter *report, const struct esp_models *pair, int serial,
                         bool anew)
{
    struct esp_snapshot *snapshot = esp_ring_write(report->ring, ESP_SNAPSHOT_READY);
    struct esp_model_info info;
    struct esp_session_options now;
    if (!snapshot)
        return;
    struct esp_setup *loaded = &snapshot->loaded;
    *loaded = (struct esp_setup){
        .serial = serial, .anew = anew, .tokens = {token_text, pair->engine}};
    if (esp_engine_target(pair->engine, &info)) {
        snprintf(loaded->target, sizeof loaded->target, "%s", info.name);
        snprintf(loaded->target_folder, sizeof loaded->target_folder, "%s", info.path);
    }
    if (esp_engine_draft(pair->engine, &info)) {
        snprintf(loaded->draft, sizeof loaded->draft, "%s", info.name);
        snprintf(loaded->draft_folder, sizeof loaded->draft_folder, "%s", info.path);
    }
    snprintf(loaded->backend, sizeof loaded->backend, "%s", esp_engine_backend(pair->engine));
    snprintf(loaded->device, sizeof loaded->device, "%s", esp_engine_device(pair->engine));
    describe(loaded, pair->session);
    snprintf(loaded->chat, sizeof loaded->chat, "%s", esp_session_chat(pair->session));
    esp_session_current(pair->session, &now);
    loaded->values = now.values;
    esp_values_forget_texts(&loaded->values);
    loaded->context = esp_engine_context(pair->engine);
    esp_ring_publish(report->ring);
    esp_reporter_wake(report);
}

void esp_reporter_rest(struct esp_reporter *report)
{
    char byte;
    /* This must be an exchange, not a store. An exchange reads the value that
     * esp_reporter_wake() wrote, so everything that was published before is visible after it.
     * After a store, the following reads could be executed before it. */
    if (read(report->wake[0], &byte, 1) > 0)
        atomic_exchange(&report->awake, false);
}
