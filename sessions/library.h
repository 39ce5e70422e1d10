/* library.h - stores kept sessions, each with all its texts as a tree, in one SQLite file.
 *
 * Nothing is stored twice: a branch has only its own tokens, and the text of a token of a
 * vocabulary is stored once for all sessions. man/espalier-session.5 lists them. Each change
 * is a transaction, so a program that is killed loses at most the change that it was writing.
 * Several programs may use the file at a time; a session is open in one of them
 * (esp_library_claim).
 *
 * The file is untrusted: every number and link is checked when it is loaded.
 */
#ifndef ESP_LIBRARY_H
#define ESP_LIBRARY_H

#include <time.h>

#include "engine/espalier.h"
#include "sessions/branches.h"

struct esp_library;

enum esp_library_mode {
    ESP_LIBRARY_READ, /* the file must be there; it is never replaced */
    ESP_LIBRARY_KEEP, /* makes the file if needed; sets one aside that is no library */
};

/* Writes the path of the user's library. Returns 0 or ESP_E_FILE. */
int esp_library_path(char *path, size_t size);
/* Returns 0 or a negative status with a sentence in err that names the file. */
int esp_library_open(struct esp_library **library, const char *path, enum esp_library_mode mode,
                     char *err, size_t errlen);
void esp_library_close(struct esp_library *library);
/* A sentence about a file that was set aside, or "". */
const char *esp_library_note(const struct esp_library *library);

/* ------------------------------------------------------------------ the list */

struct esp_kept_session {
    int64_t id;
    char name[48]; /* by the user; "": none */
    time_t created, changed;
    char target[96], draft[96];               /* names of the models it was written with last */
    char target_path[1024], draft_path[1024]; /* "": the built-in one; no draft */
    char words[128];                          /* the beginning of its first text */
    int branches, tokens;
    bool open; /* another program has it open */
};

/* Called for each session, the last changed first. A return other than 0 ends the list. */
typedef int esp_kept_visit(void *user, const struct esp_kept_session *session);
/* These return 0 or a negative status with a sentence. */
int esp_library_list(struct esp_library *library, esp_kept_visit *visit, void *user, char *err,
                     size_t errlen);
/* Finds a session by its number or its name; NULL or "": the one that was changed last. */
int esp_library_find(struct esp_library *library, const char *which,
                     struct esp_kept_session *session, char *err, size_t errlen);

struct esp_kept_match {
    int64_t session;
    int branch;
    char words[256]; /* the words around the match, which is in brackets */
};

/* Called for each branch that has all of `words` (the last one may be the beginning of a
 * word), the best match first. Texts that are not in the index yet are added to it. */
int esp_library_search(struct esp_library *library, const char *words,
                       int (*visit)(void *user, const struct esp_kept_match *match), void *user,
                       char *err, size_t errlen);
int esp_library_rename(struct esp_library *library, int64_t id, const char *name, char *err,
                       size_t errlen);
/* Deletes a session; its bytes are overwritten. ESP_E_FILE if a program has it open. */
int esp_library_delete(struct esp_library *library, int64_t id, char *err, size_t errlen);

/* ------------------------------------------------------------------ one session */

/* Claims a session for this program until it is released or the program ends. Returns false if
 * another program has it open. */
bool esp_library_claim(struct esp_library *library, int64_t id);
void esp_library_release(struct esp_library *library, int64_t id);

/* How a text was continued after its first `place` tokens, by iterations that name this
 * generation. A session with this text, these settings and this generator writes the same
 * tokens. */
struct esp_kept_generation {
    int number, place;
    struct esp_generator generator;
    int tokens; /* maximum number of new tokens */
    const char
        *header; /* (header_length) settings and models: the header line of a recording */
    size_t header_length;
};

struct esp_kept_text {
    int vocabulary; /* number of its tokens */
    char vocabulary_hash[32];
    char *header; /* (allocated) the latest header line */
    time_t created;
    int iterations, generations;  /* the numbers of the next ones; some may not be kept */
    struct esp_branches branches; /* `at` is the present text; tokens name kept iterations */
};

/* Loads all texts of a session. Free the result in any case. */
int esp_library_load(struct esp_library *library, int64_t id, struct esp_kept_text *text,
                     char *err, size_t errlen);
void esp_kept_text_free(struct esp_kept_text *text);
/* The line of a kept iteration, without a newline, allocated. Returns 0, or ESP_E_FILE if it
 * is not there. */
int esp_library_iteration(struct esp_library *library, int64_t id, int number, char **line);
/* The text of a token of a vocabulary, valid until the next call. NULL: unknown. */
const char *esp_library_piece(struct esp_library *library, const char *vocabulary_hash,
                              int32_t token, size_t *length);
/* Called for each generation, in the order of their beginning. */
int esp_library_generations(struct esp_library *library, int64_t id,
                            int (*visit)(void *user, const struct esp_kept_generation *),
                            void *user, char *err, size_t errlen);

/* The generation of each iteration, (iterations) of them, allocated; -1: it is not kept.
 * *writers is NULL if there are none. */
int esp_library_writers(struct esp_library *library, int64_t id, int iterations, int **writers,
                        char *err, size_t errlen);

/* ------------------------------------------------------------------ writing */

/* Changes between begin and commit are one transaction. After the first failure, further
 * changes do nothing; commit then reports the failure and changes nothing. */
void esp_library_begin(struct esp_library *library);
int esp_library_commit(struct esp_library *library, char *err, size_t errlen);

/* Adds a session and claims it. Returns its number; 0: failed. */
int64_t esp_library_add(struct esp_library *library, time_t created);
/* Stores the models and settings that the session has now. Paths: as in struct
 * esp_kept_session. */
void esp_library_put_header(struct esp_library *library, int64_t id, const char *header,
                            size_t length, int vocabulary, const char *vocabulary_hash,
                            const char *target_path, const char *draft_path);
/* Stores which text is on the screen. */
void esp_library_put_place(struct esp_library *library, int64_t id, struct esp_text_place at);
void esp_library_put_branch(struct esp_library *library, int64_t id, int number,
                            const struct esp_branch *branch);
/* Stores the branch's tokens from `from` on, counted from its fork. */
void esp_library_put_tokens(struct esp_library *library, int64_t id, int number,
                            const struct esp_branch *branch, int from);
void esp_library_put_piece(struct esp_library *library, const char *vocabulary_hash,
                           int32_t token, const char *bytes, size_t length);
void esp_library_put_iteration(struct esp_library *library, int64_t id, int number,
                               int generation, const char *line, size_t length);
void esp_library_put_generation(struct esp_library *library, int64_t id,
                                const struct esp_kept_generation *generation);
/* The first drops all branches with their tokens and words, so that others can be stored. The
 * second then drops the iterations that wrote none of the stored tokens. */
void esp_library_drop_branches(struct esp_library *library, int64_t id);
void esp_library_drop_unused(struct esp_library *library, int64_t id);
/* Adds the words of branches that are not in the index yet to it; id 0: of all sessions. */
void esp_library_index(struct esp_library *library, int64_t id);

#endif
