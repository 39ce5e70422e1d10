/* snapshot.h - a copy of one event, for the UI thread.
 *
 * The engine thread copies events into snapshots. The UI thread applies the snapshots to the
 * state (state.h) that is drawn. In addition to the events of the session, there are snapshots
 * that the engine thread makes itself: loading, ready, phase, answers to commands.
 *
 * If the UI thread is too slow, iterations are merged. Then all trees except the last are lost,
 * but no token and no total is lost.
 */
#ifndef ESP_SNAPSHOT_H
#define ESP_SNAPSHOT_H

#include "sessions/iteration_copy.h"
#include "sessions/written.h"
#include "viz/course.h"

enum esp_snapshot_type {                           /* continues enum esp_event_type */
                         ESP_SNAPSHOT_PHASE = 100, /* `phase` changed; while loading, `text`
                                                      and `fraction` are set */
                         ESP_SNAPSHOT_READY,       /* the models are loaded; see `loaded` */
                         ESP_SNAPSHOT_MESSAGE,     /* a command succeeded; see `text` */
                         ESP_SNAPSHOT_ERROR,   /* a command or generation failed; see `text` */
                         ESP_SNAPSHOT_REFUSED, /* a prompt was refused; see `text` */
                         ESP_SNAPSHOT_CLEAR,   /* the text was cleared */
                         ESP_SNAPSHOT_COMPARE, /* a comparison begins with the drafter and
                                                  verifier in `loaded`, or ends if
                                                  `loaded` has none */
                         ESP_SNAPSHOT_FORK,    /* the text is replaced: `kept` tokens stay,
                                                  and `tokens` follow; `stage`: enum
                                                  esp_fork */
                         ESP_SNAPSHOT_SCORES,  /* `tokens` has tokens of the text from index
                                                  `start`, with their scores */
                         ESP_SNAPSHOT_RECORD,  /* recording to file `text` has begun, or it has
                                                  ended if `text` is "" */
};

/* The reason why a session switched to another text. */
enum esp_fork {
    ESP_FORK_NEW,
    ESP_FORK_UNDO,
    ESP_FORK_REDO,
    ESP_FORK_RESUME, /* a kept session is continued */
    ESP_FORK_TURN, /* the worker turns to the next of several continuations; undo skips this */
};

enum esp_phase {
    ESP_PHASE_LOADING,
    ESP_PHASE_IDLE,
    ESP_PHASE_PREFILL,
    ESP_PHASE_GENERATING,
    ESP_PHASE_WAITING, /* step mode: the engine waits for a step */
    ESP_PHASE_FAILED,  /* loading failed */
};

struct esp_setup {
    char target[96], draft[96], backend[32], device[96], drafter[256], verifier[96];
    char target_folder[512], draft_folder[512];
    int context;                      /* largest length of a text, in tokens; 0: unknown */
    char chat[16];                    /* name of the chat format, or "" */
    bool lossy;                       /* the settings can change the output */
    struct esp_session_values values; /* all settings except strings */
    int serial;                       /* number of the loaded pair, from 1; 0: no pair */
    bool anew;                        /* the text was tokenized again for this pair */
    struct esp_tokens tokens;         /* texts of the tokens; if empty, the old texts stay */
};

struct esp_snapshot {
    int type;
    bool second; /* the event is an iteration of the compared session */
    int stage;   /* in a stage event: the stage */
    int kept;    /* in rewind and fork: number of tokens that stay; in drop: number removed */
    int start;   /* in drop: first removed token; in scores: first token with a score */
    struct esp_iteration_copy iteration; /* in layer, stage and iteration events */
    struct esp_written *tokens;          /* (token_count) to append to the text */
    int token_count, token_capacity;
    struct esp_totals totals; /* to add to the totals of the state */
    int phase;
    double fraction;
    char key[64], text[512];
    bool lossy; /* in a setting event: as in struct esp_event */
    struct esp_setup loaded;
};

/* Empties a snapshot, but does not free its buffers. */
void esp_snapshot_reset(struct esp_snapshot *snapshot, int type);
/* Makes room for `count` more tokens. Returns 0 or ESP_E_MEMORY. */
int esp_snapshot_reserve(struct esp_snapshot *snapshot, int count);
/* Fills a snapshot from an event. Returns 0 or ESP_E_MEMORY. */
int esp_snapshot_take(struct esp_snapshot *snapshot, const struct esp_event *event);
/* Merges a later iteration event into the snapshot of an iteration event. Returns 0 or
 * ESP_E_MEMORY. */
int esp_snapshot_merge(struct esp_snapshot *snapshot, const struct esp_event *event);
void esp_snapshot_free(struct esp_snapshot *snapshot);

#endif
