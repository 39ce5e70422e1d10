/* snapshot.h - one thing that happened, copied so that another thread can look at it.
 *
 * The engine's thread turns every event it wants to be seen into a snapshot; the interface's
 * thread applies it to the state (state.h) that is drawn. Besides the session's own events
 * there are those of the thread that runs it: loading, ready, what it is doing now, and answers
 * to commands.
 *
 * If the interface falls behind, iterations are merged: of several, the last tree stays, while
 * the tokens they committed and their sums are all kept, so that no text and no total is ever
 * lost.
 */
#ifndef ESP_SNAPSHOT_H
#define ESP_SNAPSHOT_H

#include "sessions/iteration_copy.h"
#include "sessions/text_token.h"
#include "viz/tree_view.h"

enum esp_snapshot_type {                           /* continues enum esp_event_type */
                         ESP_SNAPSHOT_PHASE = 100, /* `phase` changed; while loading, `text` and
                                                      `fraction` say more */
                         ESP_SNAPSHOT_READY,       /* the models are loaded: `loaded` */
                         ESP_SNAPSHOT_MESSAGE,     /* a command succeeded: `text` */
                         ESP_SNAPSHOT_ERROR,   /* a command or the generation failed: `text` */
                         ESP_SNAPSHOT_REFUSED, /* a prompt was not taken: `text` */
                         ESP_SNAPSHOT_CLEAR,   /* the text was forgotten */
                         ESP_SNAPSHOT_COMPARE, /* a comparison with the choices in `loaded`
                                                  begins; without a drafter there: it ended */
                         ESP_SNAPSHOT_RECORD, /* the session is recorded to the file `text`; "":
                                                 it is not */
};

enum esp_phase {
    ESP_PHASE_LOADING,
    ESP_PHASE_IDLE,
    ESP_PHASE_PREFILL,
    ESP_PHASE_GENERATING,
    ESP_PHASE_WAITING, /* step mode: the engine waits in the middle of an iteration or before
                          one */
    ESP_PHASE_FAILED,  /* the models could not be loaded */
};

/* Sums over iterations. */
struct esp_totals {
    int iterations;
    int64_t committed;         /* tokens */
    int64_t drafted, accepted; /* nodes the target saw, without roots; accepted among them */
    double seconds[ESP_STAGES];
};

struct esp_setup {
    char target[96], draft[96], backend[32], device[96], drafter[256], verifier[96];
    char target_folder[512], draft_folder[512];
    int context;                /* tokens that a text can have; 0: not known */
    char chat[16];              /* format of conversations or "" */
    bool lossy;                 /* the settings may change what the model says */
    struct esp_session_values values; /* without texts */
    int serial;               /* counts the pairs that were loaded; 0: none, or a recording */
    bool anew;                /* the text was tokenized again for them */
    struct esp_tokens tokens; /* texts of their tokens; none: keep those from before */
};

struct esp_snapshot {
    int type;
    bool second; /* an iteration of the session that is compared with */
    int stage;   /* stage events */
    int kept;    /* rewind: tokens of the text that stay; drop: that go */
    int start;   /* drop: the first of them */
    struct esp_iteration_copy iteration; /* layer, stage and iteration events */
    struct esp_text_token *tokens;       /* (token_count) appended to the text */
    int token_count, token_capacity;
    struct esp_totals totals; /* what this snapshot adds to the totals */
    int phase;
    double fraction;
    char key[64], text[512];
    bool lossy; /* setting: as of struct esp_event */
    struct esp_setup loaded;
};

/* Empties a snapshot, keeping its buffers. */
void esp_snapshot_reset(struct esp_snapshot *snapshot, int type);
/* Fills a snapshot from an event. Returns 0 or ESP_E_MEMORY. */
int esp_snapshot_take(struct esp_snapshot *snapshot, const struct esp_event *event);
/* Adds a later iteration event to a snapshot that holds an iteration event. */
int esp_snapshot_merge(struct esp_snapshot *snapshot, const struct esp_event *event);
void esp_snapshot_free(struct esp_snapshot *snapshot);

void esp_totals_add(struct esp_totals *totals, const struct esp_totals *more);

#endif
