/* library.h - stores kept sessions in one SQLite file, each with the tree of all its texts.
 *
 * A session is stored as its log (log.h), divided into chunks. Loading a session applies its
 * log and returns the tree of texts. The text of each token of a vocabulary is stored only once
 * for all sessions. man/espalier-session.5 lists the tables. While a session is open, its
 * newest records are in a journal next to the library (journal.h). If a program was killed,
 * opening the library moves the records from its journals into the library. Several programs
 * can use the file at the same time, but a session can be open in only one of them
 * (esp_library_claim). The other programs see only the records of the session that are already
 * in the library.
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
    ESP_LIBRARY_READ, /* the file must exist; it is never replaced by a new one */
    ESP_LIBRARY_KEEP, /* creates the file if needed; renames a file that is not a library */
};

/* Writes the path of the user's library. Returns 0 or ESP_E_FILE. */
int esp_library_path(char *path, size_t size);
/* Opens a library. Converts a library of an earlier version, and moves the journals of killed
 * programs into the library. Returns 0, or a negative status with a sentence in err that names
 * the file. */
int esp_library_open(struct esp_library **library, const char *path, enum esp_library_mode mode,
                     char *err, size_t errlen);
void esp_library_close(struct esp_library *library);
/* If esp_library_open() has renamed a damaged file, returns a sentence about this; otherwise
 * returns "". */
const char *esp_library_note(const struct esp_library *library);

/* ------------------------------------------------------------------ the list */

struct esp_kept_session {
    int64_t id;
    char name[48]; /* given by the user, or "" */
    time_t created, changed;
    char target[96], draft[96]; /* names of the models that the session used last */
    char target_path[1024];     /* "" means unknown, for example for an imported recording */
    char draft_path[1024];      /* "" means that there is no draft model, or an unknown path */
    char words[128];            /* the beginning of the session's first text */
    int branches, tokens;
    bool open; /* another program or another esp_library has claimed the session */
};

/* Called for each session. A return value other than 0 ends the list. */
typedef int esp_kept_visit(void *user, const struct esp_kept_session *session);
/* Reads the new records of the sessions' logs. Then lists all sessions, the most recently
 * changed first. This function and the functions below return 0, or a negative status with a
 * sentence in err. */
int esp_library_list(struct esp_library *library, esp_kept_visit *visit, void *user, char *err,
                     size_t errlen);
/* Finds a session by its number or its name. If `which` is NULL or "", finds the session that
 * was changed last. */
int esp_library_find(struct esp_library *library, const char *which,
                     struct esp_kept_session *session, char *err, size_t errlen);

/* Describes a branch that a search has found. */
struct esp_kept_match {
    int64_t session;
    int branch;
    char words[256]; /* the matched words in brackets, with words before and after them */
};

/* Searches for branches that contain all of `words`. The last of `words` can be the beginning
 * of a word. Calls `visit` for each branch, the best match first, until it returns a value
 * other than 0. Before the search, new texts are added to the index, and a damaged index is
 * rebuilt. */
int esp_library_search(struct esp_library *library, const char *words,
                       int (*visit)(void *user, const struct esp_kept_match *match), void *user,
                       char *err, size_t errlen);
int esp_library_rename(struct esp_library *library, int64_t id, const char *name, char *err,
                       size_t errlen);
/* Deletes a session and overwrites its bytes. Returns ESP_E_FILE if another program has it
 * open. */
int esp_library_delete(struct esp_library *library, int64_t id, char *err, size_t errlen);

/* ------------------------------------------------------------------ one session */

/* Claims a session, so that no other program can open it. The claim ends when the session is
 * released, the library is closed or the program ends. Returns false if another program, or
 * another esp_library of this program, has claimed the session. */
bool esp_library_claim(struct esp_library *library, int64_t id);
void esp_library_release(struct esp_library *library, int64_t id);

/* Describes a generation, which continued a text after the text's first `place` tokens. Each
 * kept iteration has the number of its generation. To write the same tokens again, start a
 * session with the same text, these settings and this state of the random number generator. */
struct esp_kept_generation {
    int number, place;
    struct esp_generator generator;
    int tokens;         /* maximum number of new tokens */
    const char *header; /* (header_length) models and settings, as a recording's header line */
    size_t header_length;
};

/* Contains all texts of a loaded session. */
struct esp_kept_text {
    int vocabulary; /* number of tokens in the vocabulary */
    char vocabulary_hash[32];
    char *header; /* (allocated) the session's latest header line */
    time_t created;
    int iterations, generations;  /* numbers of the next iteration and generation; some
                                     earlier numbers can be missing */
    struct esp_branches branches; /* branches.at is the text that was last on the screen */
};

/* Loads all texts of a session. Free the result even after a failure. */
int esp_library_load(struct esp_library *library, int64_t id, struct esp_kept_text *text,
                     char *err, size_t errlen);
void esp_kept_text_free(struct esp_kept_text *text);
/* Reads the kept iteration with this number. Its `index` may differ from `number`. It has no
 * scores, because these are stored with the tokens. Adds the names of its gauges to `names`.
 * Returns 0, or a negative status if the iteration is not kept or is damaged. Free `event` in
 * either case. */
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

/* Sets *writers to an allocated array. For each iteration in [0, iterations), it contains the
 * number of the iteration's generation, or -1 if the iteration is not kept. *writers is NULL if
 * there are no iterations. */
int esp_library_writers(struct esp_library *library, int64_t id, int iterations, int **writers,
                        char *err, size_t errlen);

/* ------------------------------------------------------------------ writing */

/* All changes between esp_library_begin() and esp_library_commit() are one transaction. If a
 * change fails, the following changes do nothing. In this case esp_library_commit() undoes the
 * earlier changes and reports the failure. */
void esp_library_begin(struct esp_library *library);
int esp_library_commit(struct esp_library *library, char *err, size_t errlen);

/* Adds a session and claims it. Returns its number, or 0 after a failure. */
int64_t esp_library_add(struct esp_library *library, time_t created);
/* Holds the numbers of the next chunk, iteration and generation of a session. */
struct esp_kept_next {
    int chunk, iterations, generations;
    time_t created; /* when the session was created */
};

int esp_library_next_numbers(struct esp_library *library, int64_t id,
                             struct esp_kept_next *next, char *err, size_t errlen);
/* `known` has a bit for each token of a vocabulary (vocabulary / 8 + 1 bytes). Sets the bit of
 * each token if the library contains the token's bytes (table `piece`). */
void esp_library_pieces(struct esp_library *library, const char *vocabulary_hash,
                        int vocabulary, unsigned char *known);
/* Stores records of a session's log in one transaction, as chunk number `chunk`. Does nothing
 * if the session already has this chunk. A PIECE record must come after a HEADER record, in
 * this chunk or an earlier one. Returns 0, or a negative status with a sentence in err. */
int esp_library_store(struct esp_library *library, int64_t id, int chunk,
                      const struct esp_records *spans, int count, char *err, size_t errlen);
/* Appends the records about the session's texts to `to`, but not the trees of iterations. */
int esp_library_texts(struct esp_library *library, int64_t id, struct esp_pack *to, char *err,
                      size_t errlen);
/* Replaces the session's texts by `text`, which was loaded from this session and then changed.
 * Deletes the iterations that wrote none of the remaining tokens. */
int esp_library_rewrite(struct esp_library *library, int64_t id,
                        const struct esp_kept_text *text, char *err, size_t errlen);
/* Updates the list and the index of words from the new records of a session's log. If `id` is
 * 0, does this for all sessions. */
int esp_library_refresh(struct esp_library *library, int64_t id, char *err, size_t errlen);

#endif
