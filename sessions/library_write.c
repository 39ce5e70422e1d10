/* library_write.c - adds, changes and deletes sessions in the library; see library.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/status.h"
#include "sessions/journal.h"
#include "sessions/library_parts.h"

enum { CHUNK = 1 << 20 /* size of a chunk in bytes, when a log is rewritten */ };

/* Binds `count` integers to the first `count` parameters of a statement. */
static void bind_integers(sqlite3_stmt *s, int count, const int64_t *values)
{
    for (int i = 0; i < count; i++)
        sqlite3_bind_int64(s, i + 1, values[i]);
}

static void bind_text(sqlite3_stmt *s, int at, const char *text, size_t length)
{
    sqlite3_bind_text(s, at, text, (int)length, SQLITE_STATIC);
}

/* ------------------------------------------------------------------ a session */

int64_t esp_library_add(struct esp_library *l, time_t created)
{
    esp_library_do_of(l, ESP_SQL_ADD_SESSION, created);
    const int64_t id = l->status == SQLITE_OK ? sqlite3_last_insert_rowid(l->db) : 0;
    if (id > 0)
        esp_library_claim(l, id);
    return id;
}

int esp_library_next_numbers(struct esp_library *l, int64_t id, struct esp_kept_next *next,
                             char *err, size_t errlen)
{
    sqlite3_stmt *s = esp_library_sql(l, ESP_SQL_NEXT);
    if (s)
        sqlite3_bind_int64(s, 1, id);
    const int step = s ? sqlite3_step(s) : SQLITE_ERROR;
    int status = ESP_OK;
    if (step == SQLITE_ROW) {
        *next = (struct esp_kept_next){.iterations = sqlite3_column_int(s, 0),
                                       .generations = sqlite3_column_int(s, 1),
                                       .chunk = sqlite3_column_int(s, 2),
                                       .created = (time_t)sqlite3_column_int64(s, 3)};
    } else if (step == SQLITE_DONE) {
        status =
            esp_fail(err, errlen, ESP_E_MISMATCH, "no session %lld is kept", (long long)id);
    } else {
        status = esp_library_fail(l, err, errlen);
    }
    sqlite3_reset(s);
    return status;
}

void esp_library_pieces(struct esp_library *l, const char *hash, int vocabulary,
                        unsigned char *known)
{
    sqlite3_stmt *s = esp_library_sql(l, ESP_SQL_PIECES);
    if (!s)
        return;
    bind_text(s, 1, hash, strlen(hash));
    while (sqlite3_step(s) == SQLITE_ROW) {
        const int64_t token = sqlite3_column_int64(s, 0);
        if (token >= 0 && token < vocabulary)
            known[token / 8] |= (unsigned char)(1 << token % 8);
    }
    sqlite3_reset(s);
}

/* ------------------------------------------------------------------ chunks */

/* Collects records of a log. Each pack is stored in one column of the table of chunks. */
struct sorted {
    struct esp_pack *texts, *trees;
    int iteration; /* number of the first iteration in `trees`, or 0 */
    int iterations, generations;
    int64_t time; /* value of the last TIME record, or 0 if there is none */
};

static void put_header(struct esp_library *l, int64_t id, struct esp_from from)
{
    char drafter[64], hash[64];
    size_t target_length, draft_length, length;
    esp_from_copy(&from, drafter, sizeof drafter);
    const int64_t vocabulary = (int64_t)esp_from_number(&from, INT32_MAX);
    esp_from_copy(&from, hash, sizeof hash);
    const char *target = esp_from_text(&from, &target_length);
    const char *draft = esp_from_text(&from, &draft_length);
    const char *line = esp_from_text(&from, &length);
    sqlite3_stmt *s = from.bad ? NULL : esp_library_next(l, ESP_SQL_ADD_VOCABULARY);
    if (s) {
        bind_text(s, 1, hash, strlen(hash));
        sqlite3_bind_int64(s, 2, vocabulary);
    }
    esp_library_do(l, s);
    if (!s || !(s = esp_library_next(l, ESP_SQL_PUT_HEADER)))
        return;
    sqlite3_bind_int64(s, 1, id);
    bind_text(s, 2, line, length);
    bind_text(s, 3, target, target_length);
    bind_text(s, 4, draft, draft_length);
    bind_text(s, 5, hash, strlen(hash));
    esp_library_do(l, s);
}

static void put_piece(struct esp_library *l, int64_t id, struct esp_from from)
{
    size_t length;
    const int64_t token = (int64_t)esp_from_number(&from, INT32_MAX);
    const char *bytes = esp_from_text(&from, &length);
    sqlite3_stmt *s = from.bad ? NULL : esp_library_next(l, ESP_SQL_PUT_PIECE);
    if (!s)
        return;
    bind_integers(s, 2, (const int64_t[]){id, token});
    sqlite3_bind_blob(s, 3, bytes, (int)length, SQLITE_STATIC);
    esp_library_do(l, s);
}

/* Stores a record, or appends it to the buffer for its column. The record is [at, end). */
static void sort(struct esp_library *l, int64_t id, struct sorted *to, int kind,
                 const unsigned char *at, const unsigned char *end, struct esp_from from)
{
    const bool tree = kind == ESP_LOG_TREE;
    if (kind == ESP_LOG_PIECE) {
        put_piece(l, id, from);
        return;
    }
    if (kind == ESP_LOG_HEADER)
        put_header(l, id, from);
    if (kind == ESP_LOG_TIME)
        to->time = (int64_t)esp_from_number(&from, INT64_MAX);
    if (kind == ESP_LOG_ITERATION || kind == ESP_LOG_GENERATION || tree) {
        int *next = kind == ESP_LOG_GENERATION ? &to->generations : &to->iterations;
        const int number = (int)esp_from_number(&from, ESP_LOG_ITERATIONS - 1);
        *next = number >= *next ? number + 1 : *next;
        if (tree && to->trees->length == 0)
            to->iteration = number;
    }
    esp_pack_put(tree ? to->trees : to->texts, at, (size_t)(end - at));
}

/* Stores records as chunk number `chunk` of a session. */
static void put_records(struct esp_library *l, int64_t id, int chunk,
                        const struct esp_records *spans, int count)
{
    struct esp_pack *texts = &l->sorted[0], *trees = &l->sorted[1];
    struct sorted sorted = {.texts = texts, .trees = trees};
    struct esp_from from;
    int kind;
    texts->length = trees->length = 0;
    texts->failed = trees->failed = false;
    for (int i = 0; i < count; i++) {
        const unsigned char *at = spans[i].at, *end = at + spans[i].length, *start = at;
        for (; (kind = esp_log_next(&at, end, &from)) > 0; start = at)
            sort(l, id, &sorted, kind, start, at, from);
    }
    if ((texts->failed || trees->failed) && l->status == SQLITE_OK) {
        l->status = SQLITE_NOMEM;
        snprintf(l->what, sizeof l->what, "there is not enough memory");
    }
    sqlite3_stmt *s = esp_library_next(l, ESP_SQL_PUT_CHUNK);
    if (s) {
        bind_integers(s, 3, (const int64_t[]){id, chunk, sorted.iteration});
        sqlite3_bind_blob(s, 4, texts->at ? (const void *)texts->at : "", (int)texts->length,
                          SQLITE_STATIC);
        sqlite3_bind_blob(s, 5, trees->at ? (const void *)trees->at : "", (int)trees->length,
                          SQLITE_STATIC);
    }
    esp_library_do(l, s);
    if ((s = esp_library_next(l, ESP_SQL_PUT_CHANGED))) {
        bind_integers(
            s, 4, (const int64_t[]){id, sorted.time, sorted.iterations, sorted.generations});
        if (sorted.time == 0)
            sqlite3_bind_null(s, 2);
    }
    esp_library_do(l, s);
}

int esp_library_store(struct esp_library *l, int64_t id, int chunk,
                      const struct esp_records *spans, int count, char *err, size_t errlen)
{
    struct esp_kept_next next;
    esp_library_begin(l);
    int status = l->status != SQLITE_OK ? (int)ESP_OK /* the commit reports the reason */
                                        : esp_library_next_numbers(l, id, &next, err, errlen);
    if (status == ESP_OK && l->status == SQLITE_OK && chunk >= next.chunk)
        put_records(l, id, chunk, spans, count);
    const int committed = esp_library_commit(l, err, errlen);
    return status < 0 ? status : committed;
}

/* ------------------------------------------------------------------ rewriting */

/* If there are at least CHUNK bytes of records, or if `all` is true, stores the records as a
 * chunk and empties the buffer. */
static void flush(struct esp_library *l, int64_t id, int *chunk, struct esp_pack *records,
                  bool all)
{
    if (records->failed && l->status == SQLITE_OK) {
        l->status = SQLITE_NOMEM;
        snprintf(l->what, sizeof l->what, "there is not enough memory");
    }
    if (records->length == 0 || (!all && records->length < CHUNK))
        return;
    put_records(l, id, (*chunk)++, &(struct esp_records){records->at, records->length}, 1);
    records->length = 0;
}

/* `used` has a bit for each iteration. Sets the bits of the iterations that wrote a token of
 * the branches. */
static void note_used(const struct esp_branches *b, unsigned char *used)
{
    for (int i = 0; i < b->count; i++)
        for (int j = 0; j < b->branch[i].count; j++) {
            const int number = b->branch[i].tokens[j].iteration;
            if (number >= 0)
                used[number / 8] |= (unsigned char)(1 << number % 8);
        }
}

static void put_trees(struct esp_library *l, int64_t id, int *chunk,
                      const struct esp_pack *trees, const unsigned char *used, int iterations)
{
    const unsigned char *at = trees->at, *end = at ? at + trees->length : at, *start = at;
    struct esp_pack some = {.length = 0};
    struct esp_from from;
    int number, generation;
    for (; at && esp_log_next(&at, end, &from) == ESP_LOG_TREE; start = at) {
        esp_log_tree_begin(&from, &number, &generation);
        if (number < iterations && used[number / 8] >> number % 8 & 1)
            esp_pack_put(&some, start, (size_t)(at - start));
        flush(l, id, chunk, &some, false);
    }
    flush(l, id, chunk, &some, true);
    esp_pack_free(&some);
}

void esp_library_put_texts(struct esp_library *l, int64_t id, const struct esp_kept_text *text,
                           const struct esp_pack *before, const struct esp_pack *trees)
{
    unsigned char *used = calloc((size_t)text->iterations / 8 + 1, 1);
    struct esp_pack records = {.failed = !used};
    int chunk = 0;
    esp_library_do_of(l, ESP_SQL_DROP_WORDS, id);
    esp_library_do_of(l, ESP_SQL_FORGET_SEEN, id);
    esp_library_do_of(l, ESP_SQL_DROP_CHUNKS, id);
    esp_pack_put(&records, before->at, before->length);
    for (int i = 0; i < text->branches.count; i++) {
        esp_log_branch(&records, &text->branches.branch[i]);
        flush(l, id, &chunk, &records, false);
    }
    esp_log_place(&records, text->branches.at);
    flush(l, id, &chunk, &records, true);
    if (used) {
        note_used(&text->branches, used);
        put_trees(l, id, &chunk, trees, used, text->iterations);
    }
    esp_pack_free(&records);
    free(used);
}

static void put_generation(void *user, const struct esp_kept_generation *generation)
{
    esp_log_generation(user, generation);
}

/* Copies the HEADER records, the last TIME record and the generations of a log to `to`. */
static void copy_rest(const struct esp_pack *log, int vocabulary, struct esp_pack *to)
{
    struct esp_branches branches;
    struct esp_log_texts texts = {
        .branches = &branches, .vocabulary = vocabulary, .begin = put_generation, .user = to};
    const unsigned char *at = log->at, *end = at ? at + log->length : at, *start = at;
    struct esp_from from;
    int kind;
    esp_branches_open(&branches);
    for (; at && (kind = esp_log_next(&at, end, &from)) > 0; start = at) {
        if (kind == ESP_LOG_HEADER)
            esp_pack_put(to, start, (size_t)(at - start));
        if (!esp_log_apply(&texts, kind, &from))
            break;
    }
    esp_log_time(to, texts.now);
    to->failed |= texts.no_memory;
    esp_branches_free(&branches);
}

int esp_library_rewrite(struct esp_library *l, int64_t id, const struct esp_kept_text *text,
                        char *err, size_t errlen)
{
    struct esp_pack log = {.length = 0}, trees = {.length = 0}, rest = {.length = 0};
    int status = esp_library_texts(l, id, &log, err, errlen);
    sqlite3_stmt *s = status == ESP_OK ? esp_library_sql(l, ESP_SQL_ALL_TREES) : NULL;
    if (s)
        sqlite3_bind_int64(s, 1, id);
    while (s && sqlite3_step(s) == SQLITE_ROW)
        esp_pack_put(&trees, sqlite3_column_blob(s, 0), (size_t)sqlite3_column_bytes(s, 0));
    sqlite3_reset(s);
    if (status == ESP_OK) {
        copy_rest(&log, text->vocabulary, &rest);
        if (log.failed || trees.failed || rest.failed)
            status = esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory for session %lld",
                              (long long)id);
    }
    if (status == ESP_OK) {
        esp_library_begin(l);
        esp_library_put_texts(l, id, text, &rest, &trees);
        esp_library_do(l, esp_library_next(l, ESP_SQL_OPTIMIZE));
        status = esp_library_commit(l, err, errlen);
    }
    esp_pack_free(&log);
    esp_pack_free(&trees);
    esp_pack_free(&rest);
    return status;
}

/* ------------------------------------------------------------------ renaming, deleting */

static int report(struct esp_library *l, int64_t id, char *err, size_t errlen)
{
    const bool there = sqlite3_changes(l->db) > 0;
    const int status = esp_library_commit(l, err, errlen);
    return status < 0 || there ? status
                               : esp_fail(err, errlen, ESP_E_ARGUMENT,
                                          "no session %lld is kept", (long long)id);
}

int esp_library_rename(struct esp_library *l, int64_t id, const char *name, char *err,
                       size_t errlen)
{
    esp_library_begin(l);
    sqlite3_stmt *s = esp_library_next(l, ESP_SQL_PUT_NAME);
    if (s) {
        sqlite3_bind_int64(s, 1, id);
        bind_text(s, 2, name, strlen(name));
    }
    esp_library_do(l, s);
    return report(l, id, err, errlen);
}

int esp_library_delete(struct esp_library *l, int64_t id, char *err, size_t errlen)
{
    if (!esp_library_claim(l, id))
        return esp_fail(err, errlen, ESP_E_FILE, "session %lld is open in another program",
                        (long long)id);
    esp_library_repair_words(l, false);
    esp_library_begin(l);
    esp_library_do_of(l, ESP_SQL_DROP_WORDS, id);
    esp_library_do_of(l, ESP_SQL_DROP_CHUNKS, id);
    esp_library_do_of(l, ESP_SQL_DROP_SESSION, id);
    const bool there = sqlite3_changes(l->db) > 0;
    esp_library_do(l, esp_library_next(l, ESP_SQL_DROP_PIECES));
    /* This removes the deleted words from the file immediately. */
    esp_library_do(l, esp_library_next(l, ESP_SQL_OPTIMIZE));
    int status = esp_library_commit(l, err, errlen);
    esp_library_release(l, id);
    if (status < 0)
        return status;
    if (!there)
        return esp_fail(err, errlen, ESP_E_ARGUMENT, "no session %lld is kept", (long long)id);
    sqlite3_exec(l->db, "PRAGMA wal_checkpoint(TRUNCATE)", NULL, NULL, NULL);
    return ESP_OK;
}
