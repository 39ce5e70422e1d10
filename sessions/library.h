/* library.h - stores kept sessions, each with all its texts as a tree, in one SQLite file.
 *
 * Nothing is stored twice: a branch has only its own tokens, and the text of a token of a
 * vocabulary is stored once for all sessions. man/espalier-session.5 lists the tables. Each
 * change is a transaction, so a program that is killed loses at most the change that it was
 * writing. Several programs may use the file at once, but a session can be open in only one
 * of them (esp_library_claim).
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
    ESP_LIBRARY_READ, /* the file must exist; it is never replaced */
    ESP_LIBRARY_KEEP, /* makes the file if needed; renames a file that is not a library */
};

/* Writes the path of the user's library. Returns 0 or ESP_E_FILE. */
int esp_library_path(char *path, size_t size);
/* Opens a library. Returns 0, or a negative status with a sentence in err that names the
 * file. */
int esp_library_open(struct esp_library **library, const char *path, enum esp_library_mode mode,
                     char *err, size_t errlen);
void esp_library_close(struct esp_library *library);
/* Returns a sentence about a file that was renamed because it is not a library, or "". */
const char *esp_library_note(const struct esp_library *library);

/* ------------------------------------------------------------------ the list */

struct esp_kept_session {
    int64_t id;
    char name[48]; /* given by the user, or "" */
    time_t created, changed;
    char target[96], draft[96]; /* names of its latest models */
    char target_path[1024];     /* "": unknown, as it may be for an imported recording */
    char draft_path[1024];      /* "": no draft model, or unknown */
    char words[128];            /* the beginning of its first text */
    int branches, tokens;
    bool open; /* it is claimed, by another program or through another esp_library */
};

/* Called for each session. A return value other than 0 ends the list. */
typedef int esp_kept_visit(void *user, const struct esp_kept_session *session);
/* Lists all sessions, the most recently changed first. This and the functions below return 0,
 * or a negative status with a sentence in err. */
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
 * of a word), the best match first, until it returns something other than 0. First adds texts
 * that are not in the index yet to it. */
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

/* How a text was continued after its first `place` tokens. Each kept iteration has the number
 * of its generation. A session with this text, these settings and this state of the random
 * number generator writes the same tokens. */
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
    int iterations, generations;  /* numbers for the next ones; earlier ones may be missing */
    struct esp_branches branches; /* `at` is the text that was last on the screen */
};

/* Loads all texts of a session. Free the result even after a failure. */
int esp_library_load(struct esp_library *library, int64_t id, struct esp_kept_text *text,
                     char *err, size_t errlen);
void esp_kept_text_free(struct esp_kept_text *text);
/* Sets *line to the line of a kept iteration, allocated and without a newline. It may lack the
 * texts of tokens (esp_library_piece) and the scores, which are those of the tokens. Returns 0,
 * or ESP_E_FILE if there is none with this number. */
int esp_library_iteration(struct esp_library *library, int64_t id, int number, char **line);
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
/* Stores the current models and settings of a session. The paths are as in struct
 * esp_kept_session. */
void esp_library_put_header(struct esp_library *library, int64_t id, const char *header,
                            size_t length, int vocabulary, const char *vocabulary_hash,
                            const char *target_path, const char *draft_path);
/* Stores which text is on the screen, and when the session last changed. The length
 * ESP_LIBRARY_END is the whole text of the branch, also when it grows later. */
enum { ESP_LIBRARY_END = INT32_MAX };
void esp_library_put_place(struct esp_library *library, int64_t id, struct esp_text_place at,
                           time_t now);
void esp_library_put_branch(struct esp_library *library, int64_t id, int number,
                            const struct esp_branch *branch);
/* Stores the branch's tokens [from, to), counted from its fork. */
void esp_library_put_tokens(struct esp_library *library, int64_t id, int number,
                            const struct esp_branch *branch, int from, int to);
void esp_library_put_piece(struct esp_library *library, const char *vocabulary_hash,
                           int32_t token, const char *bytes, size_t length);
/* Sets a bit of `known` (vocabulary / 8 + 1 bytes) for each token that has a piece. */
void esp_library_pieces(struct esp_library *library, const char *vocabulary_hash,
                        int vocabulary, unsigned char *known);
void esp_library_put_iteration(struct esp_library *library, int64_t id, int number,
                               int generation, const char *line, size_t length);
void esp_library_put_generation(struct esp_library *library, int64_t id,
                                const struct esp_kept_generation *generation);
/* Removes all branches of a session, with their tokens and indexed words. */
void esp_library_drop_branches(struct esp_library *library, int64_t id);
/* Removes the iterations that wrote none of the stored tokens. */
void esp_library_drop_unused(struct esp_library *library, int64_t id);
/* Updates the index of words for branches that have grown. id 0: in all sessions. */
void esp_library_index(struct esp_library *library, int64_t id);

#endif
