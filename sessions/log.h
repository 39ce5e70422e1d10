/* log.h - writes and reads the log of a session: the changes of its texts, as binary records.
 *
 * There are records for prompts, for iterations, for switches to another text, and for changes
 * to branches (names, marks, deletions). Applying all records in order gives the tree of texts.
 * Writing a record takes about a microsecond, so the engine's thread writes the records
 * directly to a journal (journal.h). Later the same bytes are stored in the library.
 *
 * A record consists of its length (4 bytes), a checksum (4 bytes), its kind (1 byte) and its
 * values. man/espalier-session.5 lists the kinds. Records are untrusted: every number is
 * checked when it is read.
 */
#ifndef ESP_LOG_H
#define ESP_LOG_H

#include "sessions/branches.h"
#include "sessions/event_bytes.h"
#include "sessions/library.h"

enum esp_log_kind {
    ESP_LOG_TIME = 1,   /* the time of the records that follow, in seconds since 1970 */
    ESP_LOG_PIECE,      /* the bytes of a token */
    ESP_LOG_HEADER,     /* models and settings */
    ESP_LOG_PROMPT,     /* appends the tokens of a prompt to the text */
    ESP_LOG_FORK,       /* shortens the text, then appends new tokens or tokens of a branch */
    ESP_LOG_CUT,        /* shortens the text */
    ESP_LOG_DROP,       /* removes tokens from the middle of the text */
    ESP_LOG_SCORES,     /* gives scores to tokens of the text */
    ESP_LOG_JUDGE,      /* the user named, marked or deleted a branch */
    ESP_LOG_GENERATION, /* a generation begins */
    ESP_LOG_ITERATION,  /* an iteration appends tokens */
    ESP_LOG_TREE,       /* the tree of an iteration, with probabilities and times */
    ESP_LOG_BRANCH,     /* a whole branch, stored instead of the records that created it */
    ESP_LOG_PLACE,      /* where the current text ends */
    ESP_LOG_KINDS
};

enum {
    ESP_LOG_FRAME = 8,           /* bytes before a record's kind: length and checksum */
    ESP_LOG_ITERATIONS = 1 << 24 /* numbers of iterations and generations are below this */
};

/* ------------------------------------------------------------------ writing */

/* Each function below appends a record to `to`. If memory runs out, it sets to->failed. */
void esp_log_time(struct esp_pack *to, time_t now);
void esp_log_piece(struct esp_pack *to, int32_t token, const char *bytes, size_t length);
/* `line` is the header line of a recording, `length` bytes long. struct esp_kept_session
 * describes the paths. */
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
/* Appends a record that says where a generation begins. If generation->place is -1, the
 * generation begins at the end of the current text. */
void esp_log_generation(struct esp_pack *to, const struct esp_kept_generation *generation);
/* Writes the tokens that iteration `number` of the session appended to the text. */
void esp_log_iteration(struct esp_pack *to, int number, const struct esp_event *event);
/* Writes the tree of iteration `number`, with probabilities and times. `generation` is the
 * number of the generation that the iteration belongs to. */
void esp_log_tree(struct esp_pack *to, int number, int generation,
                  const struct esp_event *event, const struct esp_layers *layers);
void esp_log_branch(struct esp_pack *to, const struct esp_branch *branch);
void esp_log_place(struct esp_pack *to, struct esp_text_place place);

/* Writes length and checksum into the first 8 bytes of a record. `length` is the number of
 * bytes after these 8. */
void esp_log_seal(unsigned char *record, size_t length);

/* ------------------------------------------------------------------ reading */

/* Finds the next record in [*at, end). Sets `from` to the values of the record, and *at to the
 * end of the record. Returns the kind of the record, 0 if there are no more records, or -1 if
 * the record at *at is incomplete or damaged. */
int esp_log_next(const unsigned char **at, const unsigned char *end, struct esp_from *from);

/* Stores the state while a log is read. Before you apply the first record, set the first two
 * members, and set all other members to 0. */
struct esp_log_texts {
    struct esp_branches *branches; /* the tree of texts that the records change */
    int vocabulary;                /* number of tokens in the vocabulary */
    int iterations, generations;   /* numbers of the next iteration and generation */
    time_t now;                    /* from the latest TIME record */
    char drafter[32];              /* name of the drafter, from the latest HEADER record */
    bool no_memory;
    /* Called for each GENERATION record; may be NULL. */
    void (*begin)(void *user, const struct esp_kept_generation *generation);
    void *user;
};

/* Applies a record to the branches. Returns false if the record is damaged or there is no
 * memory. */
bool esp_log_apply(struct esp_log_texts *texts, int kind, struct esp_from *from);
/* Reads the first two values of a TREE record. After them, esp_event_from_bytes() reads the
 * iteration. */
void esp_log_tree_begin(struct esp_from *from, int *number, int *generation);

#endif
