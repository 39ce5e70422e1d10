/* recorded.h - shared by tests of recordings: a file, recorded sessions with all their events,
 * and a comparison of iterations.
 */
#ifndef ESP_RECORDED_H
#define ESP_RECORDED_H

#include "sessions/iteration_copy.h"
#include "sessions/recorder.h"

/* Returns the path of the test's recording. The file does not exist at first and is removed
 * when the program ends. */
const char *recorded_path(void);
void recorded_write(const char *bytes, size_t length);
/* Returns the whole file with a NUL at the end; the caller frees it. */
char *recorded_read(size_t *length);

/* A copy of an event that the observer got. */
struct recorded_event {
    int type, stage;
    struct esp_iteration_copy iteration;
    int32_t *tokens;
    int token_count;
    char key[64], text[1024];
};

struct recorded_events {
    struct recorded_event **event; /* (count) */
    int count;
};

void recorded_keep(struct recorded_events *events, const struct esp_event *event);
void recorded_forget(struct recorded_events *events);

/* Returns the text of a token. Tokens have texts of all kinds: plain text, control characters,
 * quotes, wide characters, invalid UTF-8, a NUL, or nothing. */
const char *recorded_token(void *user, int32_t token, size_t *length);

/* Records a marker with this text. */
void recorded_mark(struct esp_recorder *recorder, const char *text);

/* Records `iterations` iterations of a session on the toy models. In between, settings change
 * and a second prompt is added. Stores the events in `events` unless it is NULL. */
void recorded_session(struct recorded_events *events, const char *drafter, double temperature,
                      int iterations);

/* Fails the test if a field of the two iterations differs in a bit. NaN equals NaN. */
void recorded_same(const struct esp_iteration *got, const struct esp_iteration *want,
                   const char *what);

/* Opens the file, which must be a valid recording. */
struct esp_recording *recorded_open(void);

#endif
