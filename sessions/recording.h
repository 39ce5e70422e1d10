/* recording.h - reads a recorded session (*.esp.jsonl), with random access to its events.
 *
 * Line 1 is a header, and each further line is one event. Opening a recording reads and checks
 * every line once and builds an index. Afterwards any event can be read by its number. An event
 * is returned as the same structs that the session's observer received (struct esp_event with
 * struct esp_iteration), so live and recorded sessions are drawn by the same code.
 * man/espalier-session.5 describes the file.
 *
 * The file is untrusted: an event is returned only if its indices, counts and links are valid.
 * An incomplete last line is ignored, and so are lines of an unknown type.
 */
#ifndef ESP_RECORDING_H
#define ESP_RECORDING_H

#include "engine/espalier.h"
#include "engine/text_token.h"

enum {
    ESP_RECORDING_MAJOR = 1,
    ESP_RECORDING_MINOR = 0,
    ESP_RECORDING_LINE = 1 << 20, /* maximum number of bytes in a line */
    ESP_RECORDING_DEPTH = 64,     /* maximum nesting depth of the JSON in a line */
    ESP_RECORDING_NODES = 4096,   /* maximum number of nodes in a tree */
};

/* Types of events that only recordings have; they continue enum esp_event_type. */
enum {
    ESP_EVENT_MARKER = 50, /* the user set a marker here; `text` is its name, or "" */
    ESP_EVENT_CLEAR,       /* the text was cleared; iterations are numbered from 0 again */
};

/* Describes the target or the draft model. The header of a recording has these values. */
struct esp_recorded_model {
    char name[96]; /* "" if the session has no such model */
    char architecture[32], dtype[16];
    int64_t parameters;
};

struct esp_recording_header {
    int major, minor; /* version of the format */
    char program[64]; /* the program that wrote the file, e.g. "espalier 0.1.0" */
    char started[32]; /* ISO 8601, UTC */
    struct esp_recorded_model target, draft;
    int vocabulary;           /* number of tokens in the vocabulary; 0 means unknown */
    int context;              /* maximum number of tokens in a text; 0 means unknown */
    char vocabulary_hash[32]; /* hash of all token texts */
    char drafter[1024], verifier[1024];
    bool lossy;
    struct esp_session_values values;
    char backend[32], device[96];
    double load_seconds;
    int columns, rows; /* size of the terminal; 0 if the session had no terminal */
};

struct esp_recording;

/* Returns 0 or a negative status with a sentence in err. */
int esp_recording_open(struct esp_recording **recording, const char *path, char *err,
                       size_t errlen);
/* Opens the file of the recording `of` a second time, for use in another thread. This works
 * even if the file's name now belongs to another file. `of` must stay open during the call, and
 * only one thread at a time may make this call. Returns the same as esp_recording_open(). */
int esp_recording_open_again(struct esp_recording **recording, const struct esp_recording *of,
                             char *err, size_t errlen);
void esp_recording_close(struct esp_recording *recording);

const struct esp_recording_header *esp_recording_header(const struct esp_recording *recording);
/* Returns whether the recording is truncated, for example by a crash. In this case its last
 * line is incomplete and was ignored, or no END event follows its last iteration. */
bool esp_recording_is_cut(const struct esp_recording *recording);
/* Returns the text of a recorded token. This function has the type esp_token_text. */
const char *esp_recording_token_text(void *recording, int32_t token, size_t *length);

/* ------------------------------------------------------------------ the index */

int esp_recording_events(const struct esp_recording *recording);
int esp_recording_iterations(const struct esp_recording *recording);

struct esp_recording_entry {
    int type;       /* ESP_EVENT_PROMPT, _ITERATION, _SETTING, _REWIND, _END, _MARKER, _CLEAR */
    double time;    /* seconds since the start of the recording; never decreases */
    int iterations; /* number of iterations in the recording before this event */
    int line;       /* number of the event's line in the file */
};

/* Returns the index entry of event `event`, 0 <= event < esp_recording_events(). */
struct esp_recording_entry esp_recording_entry(const struct esp_recording *recording,
                                               int event);
/* Returns the number of the event that is iteration `iteration` of the recording, counted from
 * 0. This is not the iteration's `index`, which restarts from 0 when the text is cleared. */
int esp_recording_iteration_event(const struct esp_recording *recording, int iteration);

/* Sets *tokens to the text after event `event`. If `event` is -1, this is the empty text before
 * the first event. *tokens is valid until the next call. Returns the number of tokens, or
 * ESP_E_MEMORY. */
int esp_recording_text(struct esp_recording *recording, int event,
                       const struct esp_text_token **tokens);

/* Sets *tokens to the tokens that event `event` added to the text. Returns their number. */
int esp_recording_added(const struct esp_recording *recording, int event,
                        const struct esp_text_token **tokens);

/* Returns how many iterations there were since the text was last cleared, up to and including
 * event `event`. If `event` is -1, returns 0. */
int esp_recording_iterations_of_text(const struct esp_recording *recording, int event);

/* Returns the time of one plain decoding step in seconds, as it was last measured at or before
 * event `event`. Returns 0 if it was not measured yet. Clearing the text does not change it. */
double esp_recording_baseline(const struct esp_recording *recording, int event);

/* ------------------------------------------------------------------ events */

/* Reads an event. *found is valid until the next call with the same recording. The names of
 * gauges in the event are valid until the recording is closed. Returns 0, or a negative status
 * with a sentence in err. This fails only if the file has changed or there is no memory. */
int esp_recording_read(struct esp_recording *recording, int event,
                       const struct esp_event **found, char *err, size_t errlen);

/* If the event that was read last is an iteration, these functions return the LAYER and STAGE
 * events before it, as the observer received them. esp_recording_steps() returns the number of
 * these events: one for each draft pass, then one for each of the six stages.
 * esp_recording_step() returns one of them. It is valid until the next call of this function or
 * of esp_recording_read(). */
int esp_recording_steps(const struct esp_recording *recording);
const struct esp_event *esp_recording_step(struct esp_recording *recording, int step);

/* Returns the line of an event in the file, or NULL if it can no longer be read. The line has
 * no newline and is NUL-terminated. It is valid until this function or esp_recording_read() is
 * called with the same recording. */
const char *esp_recording_line(struct esp_recording *recording, int event, size_t *length);

#endif
