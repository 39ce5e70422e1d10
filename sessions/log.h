/* log.h - the log of a session: all changes to its texts as binary records, in order.
 *
 * The records are prompts, iterations, switches to other texts, and what the user did to
 * branches. Applying them in order gives the tree of texts. Writing a record takes about a
 * microsecond, so the engine's thread does it itself, into a journal (journal.h); later the
 * same bytes are stored in the library.
 *
 * A record consists of its length (4 bytes), a checksum (4), its kind (1) and its values.
 * man/espalier-session.5 lists the kinds. Records are untrusted: every number is checked.
 */
#ifndef ESP_LOG_H
#define ESP_LOG_H

#include "sessions/branches.h"
#include "sessions/event_bytes.h"
#include "sessions/library.h"

enum esp_log_kind {
    ESP_LOG_TIME = 1, /* seconds since 1970, from here on */
    ESP_LOG_PIECE,    /* the bytes of a token */
    ESP_LOG_HEADER,   /* models and settings */
    ESP_LOG_PROMPT,   /* tokens are appended */
    ESP_LOG_FORK,     /* the text is cut, and tokens follow that may have been written before */
    ESP_LOG_CUT,      /* the text is cut */
    ESP_LOG_DROP,     /* tokens in the middle are removed */
    ESP_LOG_SCORES,   /* scores of tokens of the text */
    ESP_LOG_JUDGE,    /* the user named, marked or deleted a branch */
    ESP_LOG_GENERATION, /* a generation begins */
    ESP_LOG_ITERATION,  /* an iteration appends tokens */
    ESP_LOG_TREE,       /* the tree of an iteration, with probabilities and times */
    ESP_LOG_BRANCH,     /* a whole branch, instead of the records that led to it */
    ESP_LOG_PLACE,      /* where the current text ends */
    ESP_LOG_KINDS
};

enum {
    ESP_LOG_FRAME = 8,           /* bytes before the kind of a record */
    ESP_LOG_ITERATIONS = 1 << 24 /* numbers of iterations and generations are smaller */
};

/* ------------------------------------------------------------------ writing */

/* Each function appends a record to `to`. If there is no memory, it sets to->failed. */
void esp_log_time(struct esp_pack *to, time_t now);
void esp_log_piece(struct esp_pack *to, int32_t token, const char *bytes, size_t length);
/* `line`: a header line of a recording. The paths are as in struct esp_kept_session. */
void esp_log_header(struct esp_pack *to, const struct esp_recording_header *header,
                    const char *line, size_t length, const char *target_path,
                    const char *draft_path);
void esp_log_prompt(struct esp_pack *to, const struct esp_event *event);
void esp_log_fork(struct esp_pack *to, int kept, const struct esp_text_token *text, int count);
void esp_log_cut(struct esp_pack *to, int length);
void esp_log_drop(struct esp_pack *to, int start, int count);
void esp_log_scores(struct esp_pack *to, int first, const struct esp_token_score *scores,
                    int count);
void esp_log_judge(struct esp_pack *to, int branch, const char *name, bool marked,
                   bool deleted);
/* place = -1: the end of the current text. */
void esp_log_generation(struct esp_pack *to, const struct esp_kept_generation *generation);
/* The tokens of iteration `number` of the session. */
void esp_log_iteration(struct esp_pack *to, int number, const struct esp_event *event);
/* The tree of an iteration, with probabilities and times; `generation` is its generation. */
void esp_log_tree(struct esp_pack *to, int number, int generation,
                  const struct esp_event *event, const struct esp_layers *layers);
void esp_log_branch(struct esp_pack *to, const struct esp_branch *branch);
void esp_log_place(struct esp_pack *to, struct esp_text_place place);

/* Sets the length and the checksum of a record that has `length` bytes after its frame. */
void esp_log_seal(unsigned char *record, size_t length);

/* ------------------------------------------------------------------ reading */

/* Finds the next record in [*at, end). Sets `from` to the content of the record, and *at to the
 * record after it. Returns the kind of the record, 0 if there are no more records, or -1 if the
 * record at *at is not complete. */
int esp_log_next(const unsigned char **at, const unsigned char *end, struct esp_from *from);

/* A reader of the texts of a log. Zero-initialise it, and set the first two members. */
struct esp_log_texts {
    struct esp_branches *branches;
    int vocabulary;              /* number of tokens */
    int iterations, generations; /* numbers of the next ones */
    time_t now;
    char drafter[32];
    bool no_memory;
    /* Called for each generation; may be NULL. */
    void (*begin)(void *user, const struct esp_kept_generation *generation);
    void *user;
};

/* Applies a record to the branches. Returns false if the record is damaged or
 * there is no memory. */
bool esp_log_apply(struct esp_log_texts *texts, int kind, struct esp_from *from);
/* Reads the beginning of a record of kind TREE. esp_event_from_bytes() reads the rest. */
void esp_log_tree_begin(struct esp_from *from, int *number, int *generation);

#endif
