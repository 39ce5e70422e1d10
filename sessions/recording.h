/* recording.h - reads a recorded session (*.esp.jsonl), with random access to its events.
 *
 * Line 1 is a header, each further line one event. Opening a recording reads and checks every
 * line once and builds an index; afterwards any event is read by its number. The results are
 * the structs that the session's observer got (struct esp_event with struct esp_iteration), so
 * code that draws or copies them is the same for live and recorded sessions.
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
    ESP_RECORDING_LINE = 1 << 20, /* bytes of a line at most */
    ESP_RECORDING_DEPTH = 64,     /* of its JSON */
    ESP_RECORDING_NODES = 4096,   /* of a tree */
};

/* Types of events that only recordings have; they continue enum esp_event_type. */
enum {
    ESP_EVENT_MARKER = 50, /* the user marked this place; `text` may say why */
    ESP_EVENT_CLEAR,       /* the text was cleared; iterations count from 0 again */
};

struct esp_recorded_model {
    char name[96]; /* "": none */
    char architecture[32], dtype[16];
    int64_t parameters;
};

struct esp_recording_header {
    int major, minor; /* of the format */
    char program[64]; /* that wrote it, e.g. "espalier 0.1.0" */
    char started[32]; /* ISO 8601, UTC */
    struct esp_recorded_model target, draft;
    int vocabulary;           /* tokens; 0: unknown */
    int context;              /* tokens that a text can have; 0: unknown */
    char vocabulary_hash[32]; /* of all token texts */
    char drafter[1024], verifier[1024];
    bool lossy;
    struct esp_session_values values;
    char backend[32], device[96];
    double load_seconds;
    int columns, rows; /* of the terminal; 0: there was none */
};

struct esp_recording;

/* Returns 0 or a negative status with a sentence in err. */
int esp_recording_open(struct esp_recording **recording, const char *path, char *err,
                       size_t errlen);
/* Another reader of the same file for another thread, even if its name has another file by now.
 * `of` must stay open meanwhile; only one reader of it may be opened at a time. Returns as
 * above. */
int esp_recording_open_again(struct esp_recording **recording, const struct esp_recording *of,
                             char *err, size_t errlen);
void esp_recording_close(struct esp_recording *recording);

const struct esp_recording_header *esp_recording_header(const struct esp_recording *recording);
/* Whether it is truncated, for example by a crash: its last line is incomplete (and ignored),
 * or no end follows its last iteration. */
bool esp_recording_is_cut(const struct esp_recording *recording);
/* The text of a recorded token: an esp_token_text whose `user` is the recording. */
const char *esp_recording_token_text(void *recording, int32_t token, size_t *length);

/* ------------------------------------------------------------------ the index */

int esp_recording_events(const struct esp_recording *recording);
int esp_recording_iterations(const struct esp_recording *recording);

struct esp_recording_entry {
    int type;       /* ESP_EVENT_PROMPT, _ITERATION, _SETTING, _REWIND, _END, _MARKER, _CLEAR */
    double time;    /* seconds since the start of the recording; never falls */
    int iterations; /* before it, in the whole recording */
    int line;       /* in the file */
};

/* Entry of event `event`, 0..events - 1. */
struct esp_recording_entry esp_recording_entry(const struct esp_recording *recording,
                                               int event);
/* The event of iteration `iteration`, counted through the whole recording from 0. (Its own
 * `index` restarts from 0 after the text was cleared.) */
int esp_recording_iteration_event(const struct esp_recording *recording, int iteration);

/* The text right after event `event` (-1: before the first). Returns the number of tokens, or
 * ESP_E_MEMORY; they are valid until the next call. */
int esp_recording_text(struct esp_recording *recording, int event,
                       const struct esp_text_token **tokens);

/* The tokens that event `event` added to the text. Returns their number. */
int esp_recording_added(const struct esp_recording *recording, int event,
                        const struct esp_text_token **tokens);

/* The number of iterations since the text was last cleared, up to and including event `event`
 * (-1: before the first). */
int esp_recording_iterations_of_text(const struct esp_recording *recording, int event);

/* Seconds of one plain decoding step, as last measured up to and including event `event`, even
 * before the text was cleared; 0: not measured yet. */
double esp_recording_baseline(const struct esp_recording *recording, int event);

/* ------------------------------------------------------------------ events */

/* Reads an event again. It points into the recording and is valid until the next call with the
 * same recording; names of gauges stay valid until it is closed. Fails only if the file has
 * changed or there is no memory. */
int esp_recording_read(struct esp_recording *recording, int event,
                       const struct esp_event **found, char *err, size_t errlen);

/* If the event read last is an iteration: the LAYER and STAGE events that led to it, as the
 * observer saw them. steps: their number (draft passes, then the six stages); step: one of
 * them, valid until its next call or the next esp_recording_read(). */
int esp_recording_steps(const struct esp_recording *recording);
const struct esp_event *esp_recording_step(struct esp_recording *recording, int step);

/* The line of an event in the file, NUL-terminated without its newline; valid as long as the
 * result of esp_recording_read(). NULL if it cannot be read any more. */
const char *esp_recording_line(struct esp_recording *recording, int event, size_t *length);

#endif
