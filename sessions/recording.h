/* recording.h - reads a recorded session (*.esp.jsonl), with random access to its events.
 *
 * Line 1 is a header, each further line one event. Opening a recording reads and checks every
 * line once and builds an index; afterwards any event can be read by its number. The results
 * are the structs that the session's observer got (struct esp_event with struct
 * esp_iteration), so code that draws or copies them is the same for live and recorded
 * sessions. man/espalier-session.5 describes the file.
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
    ESP_RECORDING_DEPTH = 64,     /* maximum nesting depth of its JSON */
    ESP_RECORDING_NODES = 4096,   /* maximum number of nodes in a tree */
};

/* Types of events that only recordings have; they continue enum esp_event_type. */
enum {
    ESP_EVENT_MARKER = 50, /* the user marked this place; `text` is its name, or "" */
    ESP_EVENT_CLEAR,       /* the text was cleared; iterations count from 0 again */
};

struct esp_recorded_model {
    char name[96]; /* "" if there is no such model */
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
    int columns, rows; /* size of the terminal; 0 means there was none */
};

struct esp_recording;

/* Returns 0 or a negative status with a sentence in err. */
int esp_recording_open(struct esp_recording **recording, const char *path, char *err,
                       size_t errlen);
/* Opens the recording `of` again, for use in another thread. This works even if another file
 * now has its name. `of` must stay open during the call, and only one thread at a time may
 * make this call. Returns as esp_recording_open(). */
int esp_recording_open_again(struct esp_recording **recording, const struct esp_recording *of,
                             char *err, size_t errlen);
void esp_recording_close(struct esp_recording *recording);

const struct esp_recording_header *esp_recording_header(const struct esp_recording *recording);
/* Whether the recording is truncated, for example by a crash: its last line is incomplete (and
 * ignored), or no END event follows its last iteration. */
bool esp_recording_is_cut(const struct esp_recording *recording);
/* Returns the text of a recorded token. It is an esp_token_text; its `user` is the recording.
 */
const char *esp_recording_token_text(void *recording, int32_t token, size_t *length);

/* ------------------------------------------------------------------ the index */

int esp_recording_events(const struct esp_recording *recording);
int esp_recording_iterations(const struct esp_recording *recording);

struct esp_recording_entry {
    int type;       /* ESP_EVENT_PROMPT, _ITERATION, _SETTING, _REWIND, _END, _MARKER, _CLEAR */
    double time;    /* seconds since the start of the recording; never falls */
    int iterations; /* number of iterations before the event, in the whole recording */
    int line;       /* number of the event's line in the file */
};

/* The index entry of event `event`, 0..events - 1. */
struct esp_recording_entry esp_recording_entry(const struct esp_recording *recording,
                                               int event);
/* The number of the event that is iteration `iteration`, counted from 0 through the whole
 * recording. (The iteration's own `index` restarts from 0 after the text was cleared.) */
int esp_recording_iteration_event(const struct esp_recording *recording, int iteration);

/* The text right after event `event` (-1 means before the first event). Returns the number of
 * tokens, or ESP_E_MEMORY; the tokens are valid until the next call. */
int esp_recording_text(struct esp_recording *recording, int event,
                       const struct esp_text_token **tokens);

/* The tokens that event `event` added to the text. Returns their number. */
int esp_recording_added(const struct esp_recording *recording, int event,
                        const struct esp_text_token **tokens);

/* The number of iterations since the text was last cleared, up to and including event `event`
 * (-1 means before the first event). */
int esp_recording_iterations_of_text(const struct esp_recording *recording, int event);

/* Seconds of one plain decoding step, as last measured up to and including event `event`; a
 * measurement stays valid when the text is cleared. 0 means not measured yet. */
double esp_recording_baseline(const struct esp_recording *recording, int event);

/* ------------------------------------------------------------------ events */

/* Reads an event. *found is valid until the next call with the same recording; names of gauges
 * stay valid until the recording is closed. Returns 0, or a negative status with a sentence in
 * err; this fails only if the file has changed or there is no memory. */
int esp_recording_read(struct esp_recording *recording, int event,
                       const struct esp_event **found, char *err, size_t errlen);

/* If the event read last is an iteration, these functions give the LAYER and STAGE events that
 * led to it, as the observer saw them. esp_recording_steps() returns how many there are (draft
 * passes, then the six stages). esp_recording_step() returns one of them; it is valid until the
 * next call of this function or of esp_recording_read(). */
int esp_recording_steps(const struct esp_recording *recording);
const struct esp_event *esp_recording_step(struct esp_recording *recording, int step);

/* The line of an event in the file, NUL-terminated without its newline; valid as long as the
 * result of esp_recording_read(). NULL if it can no longer be read. */
const char *esp_recording_line(struct esp_recording *recording, int event, size_t *length);

#endif
