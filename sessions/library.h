/* library.h - stores kept sessions, each with all its texts as a tree, in one SQLite file.
 *
 * A session is stored as its log (log.h), in chunks; loading it applies the log and gives the
 * tree of texts. The text of each token of a vocabulary is stored only once for all sessions.
 * man/espalier-session.5 lists the tables. While a session is open, its last records are in a
 * journal next to the library (journal.h); opening the library stores the records that a killed
 * program has left. Several programs may use the file at once, but a session can be open in
 * only one of them (esp_library_claim). The other programs see the stored part of it.
 *
 * The file is untrusted: every number and link is checked when it is loaded.
 */
#ifndef ESP_LIBRARY_H
#define ESP_LIBRARY_H

#include <time.h>

#include "engine/espalier.h"
#include "sessions/branches.h"

struct esp_library;
struct esp_pack;           /* pack.h */
struct esp_records;        /* journal.h */
struct esp_recorded_event; /* event_json.h */
struct esp_texts;          /* texts.h */

enum esp_library_mode {
    ESP_LIBRARY_READ, /* the file must exist; it is never replaced */
    ESP_LIBRARY_KEEP, /* makes the file if needed; renames a file that is not a library */
};

/* Writes the path of the user's library. Returns 0 or ESP_E_FILE. */
int esp_library_path(char *path, size_t size);
/* Opens a library, stores the journals of programs that were killed, and rewrites a library of
 * an earlier version. Returns 0, or a negative status with a sentence in err that names the
 * file. */
int esp_library_open(struct esp_library **library, const char *path, enum esp_library_mode mode,
                     char *err, size_t errlen);
void esp_library_close(struct esp_library *library);
/* Returns a sentence about a file that was renamed because it is damaged, or "". */
const char *esp_library_note(const struct esp_library *library);

/* ------------------------------------------------------------------ the list */

struct esp_kept_session {
    int64_t id;
    char name[48]; /* given by the user, or "" */
    time_t created, changed;
    char target[96], draft[96]; /* names of its latest models */
    char target_path[1024];     /* "" means unknown, as it may be for an imported recording */
    char draft_path[1024];      /* "" means no draft model, or unknown */
    char words[128];            /* the beginning of its first text */
    int branches, tokens;
    bool open; /* the session is claimed by another program or through another esp_library */
};

/* Called for each session. A return value other than 0 ends the list. */
typedef int esp_kept_visit(void *user, const struct esp_kept_session *session);
/* Lists all sessions, the most recently changed first, after reading the logs that have grown.
 * This and the functions below return 0, or a negative status with a sentence in err. */
int esp_library_list(struct esp_library *library, esp_kept_visit *visit, void *user, char *err,
                     size_t errlen);
/* Finds a session by its number or its name. NULL or "": the one that was changed last. */
int esp_library_find(struct esp_library *library, const char *which,
                     struct esp_kept_session *session, char *err, size_t errlen);

struct esp_kept_match {
    int64_t session;
    int branch;
    char words[256]; /* the match, in brackets, with the words around it */
};

/* Calls `visit` for each branch that has all of `words` (the last of them may be the beginning
 * of a word), the best match first, until it returns something other than 0. Before the search,
 * new texts are added to the index; a damaged index is made again. */
int esp_library_search(struct esp_library *library, const char *words,
                       int (*visit)(void *user, const struct esp_kept_match *match), void *user,
                       char *err, size_t errlen);
int esp_library_rename(struct esp_library *library, int64_t id, const char *name, char *err,
                       size_t errlen);
/* Deletes a session and overwrites its bytes. Returns ESP_E_FILE if another program has it
 * open. */
int esp_library_delete(struct esp_library *library, int64_t id, char *err, size_t errlen);

/* ------------------------------------------------------------------ one session */

/* Claims a session until it is released, the library is closed or the program ends. Returns
 * false if another program, or another library of this one, has claimed it. */
bool esp_library_claim(struct esp_library *library, int64_t id);
void esp_library_release(struct esp_library *library, int64_t id);

/* A generation: how a text was continued after its first `place` tokens. Each kept iteration
 * has the number of its generation. A session with this text, these settings and this state of
 * the random number generator writes the same tokens. */
struct esp_kept_generation {
    int number, place;
    struct esp_generator generator;
    int tokens; /* maximum number of new tokens */
    const char
        *header; /* (header_length) settings and models, as the header line of a recording */
    size_t header_length;
};

struct esp_kept_text {
    int vocabulary; /* number of tokens in the vocabulary */
    char vocabulary_hash[32];
    char *header; /* (allocated) the latest header line */
    time_t created;
    int iterations, generations;  /* numbers of the next iteration and generation; earlier ones
                                     may be missing */
    struct esp_branches branches; /* `at` is the text that was last on the screen */
};

/* Loads all texts of a session. Free the result even after a failure. */
int esp_library_load(struct esp_library *library, int64_t id, struct esp_kept_text *text,
                     char *err, size_t errlen);
void esp_kept_text_free(struct esp_kept_text *text);
/* Reads a kept iteration. Its `index` may not be `number`. It has no scores; those are stored
 * with the tokens. Names of gauges are added to `names`. Returns 0, or a negative status if
 * there is none with this number, or it is damaged. Free `event` in either case. */
int esp_library_iteration(struct esp_library *library, int64_t id, int number, int vocabulary,
                          struct esp_recorded_event *event, struct esp_texts *names);
/* Returns the text of a token of a vocabulary, valid until the next call, or NULL if it is
 * unknown. */
const char *esp_library_piece(struct esp_library *library, const char *vocabulary_hash,
                              int32_t token, size_t *length);
/* Calls `visit` for each generation, in the order in which they began. */
int esp_library_generations(struct esp_library *library, int64_t id,
                            int (*visit)(void *user, const struct esp_kept_generation *),
                            void *user, char *err, size_t errlen);

/* Sets *writers to an allocated array with the generation of each iteration in [0, iterations),
 * or -1 if the iteration is not kept. NULL if there are no iterations. */
int esp_library_writers(struct esp_library *library, int64_t id, int iterations, int **writers,
                        char *err, size_t errlen);

/* ------------------------------------------------------------------ writing */

/* Changes between begin and commit are one transaction. After the first failure, further
 * changes do nothing; commit then reports that failure and undoes the earlier changes. */
void esp_library_begin(struct esp_library *library);
int esp_library_commit(struct esp_library *library, char *err, size_t errlen);

/* Adds a session and claims it. Returns its number, or 0 after a failure. */
int64_t esp_library_add(struct esp_library *library, time_t created);
/* The numbers of the next chunk, iteration and generation of a session. */
struct esp_kept_next {
    int chunk, iterations, generations;
    time_t created; /* the session */
};

int esp_library_next_numbers(struct esp_library *library, int64_t id,
                             struct esp_kept_next *next, char *err, size_t errlen);
/* Sets a bit of `known` (vocabulary / 8 + 1 bytes) for each token that has a piece. */
void esp_library_pieces(struct esp_library *library, const char *vocabulary_hash,
                        int vocabulary, unsigned char *known);
/* Stores records of a session's log in one transaction, as its chunk `chunk`. Does nothing if
 * the session has this chunk. Pieces need a header, in these records or before. Returns 0, or a
 * negative status with a sentence in err. */
int esp_library_store(struct esp_library *library, int64_t id, int chunk,
                      const struct esp_records *spans, int count, char *err, size_t errlen);
/* Appends all records of the session's texts to `to`. */
int esp_library_texts(struct esp_library *library, int64_t id, struct esp_pack *to, char *err,
                      size_t errlen);
/* Stores `text`, which was loaded, as the session's texts, and forgets iterations that wrote
 * none of its tokens. */
int esp_library_rewrite(struct esp_library *library, int64_t id,
                        const struct esp_kept_text *text, char *err, size_t errlen);
/* Reads the logs that have grown (id 0: of all sessions), for the list and for the index of
 * words. */
int esp_library_refresh(struct esp_library *library, int64_t id, char *err, size_t errlen);

#endif
