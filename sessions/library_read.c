/* library_read.c - reads the library, and checks everything that it reads; see library.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/status.h"
#include "sessions/library_parts.h"

/* ------------------------------------------------------------------ columns */

void esp_library_copy_text(char *to, size_t size, sqlite3_stmt *s, int column)
{
    const char *text = (const char *)sqlite3_column_text(s, column);
    snprintf(to, size, "%s", text ? text : "");
}

int64_t esp_library_integer(sqlite3_stmt *s, int column, int64_t least, int64_t most,
                            bool *damaged)
{
    const int64_t value = sqlite3_column_int64(s, column);
    if (sqlite3_column_type(s, column) == SQLITE_INTEGER && value >= least && value <= most)
        return value;
    *damaged = true;
    return least;
}

/* ------------------------------------------------------------------ loading a session */

static int damaged(struct esp_library *l, int64_t id, const char *what, char *err,
                   size_t errlen)
{
    return esp_fail(err, errlen, ESP_E_FORMAT, "%s: session %lld is damaged: %s", l->path,
                    (long long)id, what);
}

static int load_session(struct esp_library *l, int64_t id, struct esp_kept_text *text,
                        char *err, size_t errlen)
{
    bool bad = false;
    sqlite3_stmt *s = esp_library_sql(l, ESP_SQL_SESSION);
    if (s)
        sqlite3_bind_int64(s, 1, id);
    const int step = s ? sqlite3_step(s) : SQLITE_ERROR;
    if (step == SQLITE_DONE)
        return esp_fail(err, errlen, ESP_E_ARGUMENT, "no session %lld is kept", (long long)id);
    if (step != SQLITE_ROW)
        return esp_library_fail(l, err, errlen);
    const char *header = (const char *)sqlite3_column_text(s, 0);
    text->header = header ? strdup(header) : NULL;
    esp_library_copy_text(text->vocabulary_hash, sizeof text->vocabulary_hash, s, 1);
    text->vocabulary = (int)esp_library_integer(s, 2, 1, INT32_MAX, &bad);
    text->created = (time_t)esp_library_integer(s, 3, 0, INT64_MAX, &bad);
    text->iterations = (int)esp_library_integer(s, 4, 0, ESP_LOG_ITERATIONS, &bad);
    text->generations = (int)esp_library_integer(s, 5, 0, ESP_LOG_ITERATIONS, &bad);
    sqlite3_reset(s);
    return bad ? damaged(l, id, "its own row", err, errlen) : (int)ESP_OK;
}

int esp_library_texts(struct esp_library *l, int64_t id, struct esp_pack *to, char *err,
                      size_t errlen)
{
    sqlite3_stmt *s = esp_library_sql(l, ESP_SQL_TEXTS);
    int step = SQLITE_ERROR;
    if (s)
        sqlite3_bind_int64(s, 1, id);
    while (s && (step = sqlite3_step(s)) == SQLITE_ROW)
        esp_pack_put(to, sqlite3_column_blob(s, 0), (size_t)sqlite3_column_bytes(s, 0));
    const int status = step == SQLITE_DONE ? (int)ESP_OK : esp_library_fail(l, err, errlen);
    sqlite3_reset(s);
    return status == ESP_OK && to->failed
               ? esp_fail(err, errlen, ESP_E_MEMORY,
                          "not enough memory for the session's texts")
               : status;
}

/* Reads a session's log, and applies its records to `to`. */
static int load_log(struct esp_library *l, int64_t id, struct esp_log_texts *to, char *err,
                    size_t errlen)
{
    struct esp_pack log = {.length = 0};
    struct esp_from from;
    int status = esp_library_texts(l, id, &log, err, errlen), kind = 0;
    const unsigned char *at = log.at, *end = at ? at + log.length : at;
    if (status == ESP_OK && at)
        while ((kind = esp_log_next(&at, end, &from)) > 0 && esp_log_apply(to, kind, &from))
            continue;
    esp_pack_free(&log);
    if (status == ESP_OK && to->no_memory)
        return esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory for the session's texts");
    return status == ESP_OK && kind != 0 ? damaged(l, id, "its texts", err, errlen) : status;
}

int esp_library_load(struct esp_library *l, int64_t id, struct esp_kept_text *text, char *err,
                     size_t errlen)
{
    *text = (struct esp_kept_text){.vocabulary = 0};
    esp_branches_open(&text->branches);
    int status = load_session(l, id, text, err, errlen);
    struct esp_log_texts log = {.branches = &text->branches,
                                .vocabulary = text->vocabulary,
                                .iterations = text->iterations,
                                .generations = text->generations};
    if (status == ESP_OK)
        status = load_log(l, id, &log, err, errlen);
    text->iterations = log.iterations;
    text->generations = log.generations;
    return status;
}

void esp_kept_text_free(struct esp_kept_text *text)
{
    esp_branches_free(&text->branches);
    free(text->header);
    text->header = NULL;
}

/* ------------------------------------------------------------------ iterations */

/* Searches l->trees for the tree of iteration `number`. If this number is higher than the
 * number of the last tree that was found, the search starts after that tree. */
static bool find_tree(struct esp_library *l, int number, struct esp_from *from)
{
    const unsigned char *at = l->trees.at, *end = at ? at + l->trees.length : at;
    int found, generation;
    if (number > l->tree_number && l->tree_at < l->trees.length)
        at += l->tree_at;
    while (at && esp_log_next(&at, end, from) == ESP_LOG_TREE) {
        esp_log_tree_begin(from, &found, &generation);
        l->tree_at = (size_t)(at - l->trees.at);
        l->tree_number = found;
        if (found == number && !from->bad)
            return true;
    }
    return false;
}

/* Reads the trees of the chunk that contains iteration `number`. */
static void read_trees(struct esp_library *l, int64_t id, int number)
{
    sqlite3_stmt *s = esp_library_sql(l, ESP_SQL_TREES);
    l->trees.length = l->tree_at = 0;
    l->tree_number = -1;
    l->trees_of = id;
    if (!s)
        return;
    sqlite3_bind_int64(s, 1, id);
    sqlite3_bind_int(s, 2, number);
    if (sqlite3_step(s) == SQLITE_ROW)
        esp_pack_put(&l->trees, sqlite3_column_blob(s, 0), (size_t)sqlite3_column_bytes(s, 0));
    sqlite3_reset(s);
}

int esp_library_iteration(struct esp_library *l, int64_t id, int number, int vocabulary,
                          struct esp_recorded_event *event, struct esp_texts *names)
{
    struct esp_from from;
    bool found = l->trees_of == id && find_tree(l, number, &from);
    if (!found) {
        read_trees(l, id, number);
        found = find_tree(l, number, &from);
    }
    if (!found)
        return ESP_E_FILE;
    return esp_event_from_bytes(event, names, &from, vocabulary) ? (int)ESP_OK
                                                                 : (int)ESP_E_FORMAT;
}

const char *esp_library_piece(struct esp_library *l, const char *hash, int32_t token,
                              size_t *length)
{
    sqlite3_stmt *s = esp_library_sql(l, ESP_SQL_PIECE);
    *length = 0;
    if (!s)
        return NULL;
    sqlite3_bind_text(s, 1, hash, -1, SQLITE_STATIC);
    sqlite3_bind_int(s, 2, token);
    if (sqlite3_step(s) != SQLITE_ROW)
        return NULL;
    const char *bytes = sqlite3_column_blob(s, 0);
    *length = (size_t)sqlite3_column_bytes(s, 0);
    return bytes ? bytes : "";
}

struct visits {
    int (*visit)(void *user, const struct esp_kept_generation *generation);
    void *user;
    int status;
};

static void visit_generation(void *user, const struct esp_kept_generation *generation)
{
    struct visits *visits = user;
    if (visits->status >= 0)
        visits->status = visits->visit(visits->user, generation);
}

int esp_library_generations(struct esp_library *l, int64_t id,
                            int (*visit)(void *user, const struct esp_kept_generation *),
                            void *user, char *err, size_t errlen)
{
    struct visits visits = {visit, user, ESP_OK};
    struct esp_kept_text text = {.vocabulary = 0};
    struct esp_log_texts log = {
        .branches = &text.branches, .begin = visit_generation, .user = &visits};
    esp_branches_open(&text.branches);
    int status = load_session(l, id, &text, err, errlen);
    log.vocabulary = text.vocabulary;
    if (status == ESP_OK)
        status = load_log(l, id, &log, err, errlen);
    esp_kept_text_free(&text);
    return visits.status < 0 ? visits.status : status;
}

int esp_library_writers(struct esp_library *l, int64_t id, int iterations, int **writers,
                        char *err, size_t errlen)
{
    sqlite3_stmt *s = esp_library_sql(l, ESP_SQL_ALL_TREES);
    int step = SQLITE_ERROR, kind = 0;
    *writers = iterations > 0 ? malloc((size_t)iterations * sizeof **writers) : NULL;
    if (iterations > 0 && !*writers)
        return esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory for %d iterations",
                        iterations);
    for (int i = 0; i < iterations; i++)
        (*writers)[i] = -1;
    if (s)
        sqlite3_bind_int64(s, 1, id);
    while (s && kind == 0 && (step = sqlite3_step(s)) == SQLITE_ROW) {
        const unsigned char *at = sqlite3_column_blob(s, 0);
        const unsigned char *end = at ? at + sqlite3_column_bytes(s, 0) : at;
        struct esp_from from;
        int number, generation;
        while (at && (kind = esp_log_next(&at, end, &from)) == ESP_LOG_TREE) {
            esp_log_tree_begin(&from, &number, &generation);
            if (number < iterations && !from.bad)
                (*writers)[number] = generation;
        }
    }
    const int status = kind != 0             ? damaged(l, id, "an iteration", err, errlen)
                       : step != SQLITE_DONE ? esp_library_fail(l, err, errlen)
                                             : (int)ESP_OK;
    sqlite3_reset(s);
    return status;
}
