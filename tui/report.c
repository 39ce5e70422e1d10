/* report.c - writes snapshots and wakes their reader; see report.h. */
#include "report.h"

#include <stdint.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum {
    SLOTS = 64,
    WAKE_MS = 30, /* between wake-ups for iterations: the screen is not drawn more often */
};

int esp_report_open(struct esp_report *report)
{
    *report = (struct esp_report){.wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    return report->wake < 0 ? ESP_E_MEMORY
                            : esp_ring_open(&report->ring, SLOTS, ESP_MAX_NODES + 1);
}

void esp_report_close(struct esp_report *report)
{
    esp_ring_close(report->ring);
    if (report->wake >= 0)
        close(report->wake);
}

void esp_report_wake(struct esp_report *report)
{
    const uint64_t one = 1;
    if (!atomic_exchange(&report->awake, true) && write(report->wake, &one, sizeof one) < 0)
        atomic_store(&report->awake, false);
}

void esp_report_wake_for_iteration(struct esp_report *report)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    double ms = (double)(now.tv_sec - report->woken.tv_sec) * 1e3 +
                (double)(now.tv_nsec - report->woken.tv_nsec) * 1e-6;
    if (ms < WAKE_MS)
        return;
    report->woken = now;
    esp_report_wake(report);
}

void esp_report_tell(struct esp_report *report, int type, const char *text)
{
    struct esp_snapshot *snapshot = esp_ring_write(report->ring, type);
    if (!snapshot)
        return;
    snprintf(snapshot->text, sizeof snapshot->text, "%.511s", text);
    esp_ring_publish(report->ring);
    esp_report_wake(report);
}

void esp_report_phase(struct esp_report *report, int phase, const char *text, double fraction)
{
    struct esp_snapshot *snapshot = esp_ring_write(report->ring, ESP_SNAPSHOT_PHASE);
    report->phase = phase;
    if (!snapshot)
        return;
    snapshot->phase = phase;
    snapshot->fraction = fraction;
    snprintf(snapshot->text, sizeof snapshot->text, "%s", text);
    esp_ring_publish(report->ring);
    esp_report_wake(report);
}

static const char *token_text(void *engine, int32_t token, size_t *length)
{
    return esp_token_bytes(engine, token, length);
}

void esp_report_loaded(struct esp_report *report, const struct esp_pair *pair, int serial,
                       bool anew)
{
    struct esp_snapshot *snapshot = esp_ring_write(report->ring, ESP_SNAPSHOT_READY);
    struct esp_model_info info;
    if (!snapshot)
        return;
    struct esp_loaded *loaded = &snapshot->loaded;
    *loaded = (struct esp_loaded){.seconds = esp_engine_load_seconds(pair->engine),
                                  .serial = serial,
                                  .anew = anew,
                                  .tokens = {token_text, pair->engine}};
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
    esp_session_get(pair->session, "drafter", loaded->drafter, sizeof loaded->drafter);
    esp_session_get(pair->session, "verifier", loaded->verifier, sizeof loaded->verifier);
    for (int i = 0; i < ESP_VALUES; i++)
        esp_session_get(pair->session, esp_session_values[i], loaded->value[i],
                        sizeof loaded->value[i]);
    esp_ring_publish(report->ring);
    esp_report_wake(report);
}

void esp_report_rest(struct esp_report *report)
{
    uint64_t count;
    if (read(report->wake, &count, sizeof count) > 0)
        atomic_store(&report->awake, false);
}
