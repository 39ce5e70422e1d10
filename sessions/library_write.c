/* library_write.c - changes the library; see library.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/status.h"
#include "sessions/library_parts.h"

/* ------------------------------------------------------------------ values */

/* Returns a statement, or NULL if the transaction has failed. */
static sqlite3_stmt *next(struct esp_library *l, enum esp_library_statement index)
{
    sqlite3_stmt *statement = l->status == SQLITE_OK ? esp_library_sql(l, index) : NULL;
    if (!statement && l->status == SQLITE_OK) {
        l->status = SQLITE_ERROR;
        snprintf(l->what, sizeof l->what, "%s", sqlite3_errmsg(l->db));
    }
    return statement;
}

static void run(struct esp_library *l, sqlite3_stmt *statement)
{
    if (!statement)
        return;
    l->status = esp_library_run(statement);
    if (l->status != SQLITE_OK)
        snprintf(l->what, sizeof l->what, "%s", sqlite3_errmsg(l->db));
}

static void bind_text(sqlite3_stmt *s, int at, const char *text)
{
    sqlite3_bind_text(s, at, text, -1, SQLITE_STATIC);
}

/* NaN leaves the value NULL. */
static void bind_real(sqlite3_stmt *s, int at, float value)
{
    if (!isnan(value))
        sqlite3_bind_double(s, at, (double)value);
}

static void bind_integers(sqlite3_stmt *s, int count, const int64_t *values)
{
    for (int i = 0; i < count; i++)
        sqlite3_bind_int64(s, i + 1, values[i]);
}

#define BIND(statement, ...)                                                                   \
    bind_integers(statement, sizeof(int64_t[]){__VA_ARGS__} / sizeof(int64_t),                 \
                  (const int64_t[]){__VA_ARGS__})

/* ------------------------------------------------------------------ a session */

int64_t esp_library_add(struct esp_library *l, time_t created)
{
    sqlite3_stmt *s = next(l, ESP_SQL_ADD_SESSION);
    if (s)
        BIND(s, created);
    run(l, s);
    const int64_t id = l->status == SQLITE_OK ? sqlite3_last_insert_rowid(l->db) : 0;
    if (id > 0)
        esp_library_claim(l, id);
    return id;
}

void esp_library_put_header(struct esp_library *l, int64_t id, const char *header,
                            size_t length, int vocabulary, const char *hash,
                            const char *target_path, const char *draft_path)
{
    sqlite3_stmt *s = next(l, ESP_SQL_ADD_VOCABULARY);
    if (s) {
        bind_text(s, 1, hash);
        sqlite3_bind_int(s, 2, vocabulary);
    }
    run(l, s);
    if (!(s = next(l, ESP_SQL_PUT_HEADER)))
        return;
    BIND(s, id);
    sqlite3_bind_text(s, 2, header, (int)length, SQLITE_STATIC);
    bind_text(s, 3, target_path);
    bind_text(s, 4, draft_path);
    bind_text(s, 5, hash);
    run(l, s);
}

void esp_library_put_place(struct esp_library *l, int64_t id, struct esp_text_place at,
                           time_t now)
{
    sqlite3_stmt *s = next(l, ESP_SQL_PUT_PLACE);
    if (s)
        BIND(s, id, at.branch, at.length, now);
    run(l, s);
}

void esp_library_put_branch(struct esp_library *l, int64_t id, int number,
                            const struct esp_branch *b)
{
    sqlite3_stmt *s = next(l, ESP_SQL_PUT_BRANCH);
    if (!s)
        return;
    BIND(s, id, number, b->parent, b->fork);
    bind_text(s, 5, b->name);
    sqlite3_bind_int(s, 6, b->marked);
    sqlite3_bind_int(s, 7, b->deleted);
    sqlite3_bind_int64(s, 8, b->created);
    bind_text(s, 9, b->drafter);
    run(l, s);
}

/* Binds a score to the values from `at` on. The likeliest tokens and their probabilities become
 * one blob in `bytes`: pairs of little-endian 32-bit numbers. */
static void bind_score(sqlite3_stmt *s, int at, const struct esp_token_score *score,
                       unsigned char bytes[8 * ESP_LIKELY])
{
    for (int i = 0; i < score->count; i++)
        for (int half = 0; half < 2; half++) {
            uint32_t bits = (uint32_t)score->likely[i];
            if (half == 1)
                memcpy(&bits, &score->likely_p[i], sizeof bits);
            for (int byte = 0; byte < 4; byte++)
                bytes[8 * i + 4 * half + byte] = (unsigned char)(bits >> 8 * byte);
        }
    if (score->count == 0)
        return;
    bind_real(s, at, score->p);
    bind_real(s, at + 1, score->entropy);
    sqlite3_bind_int(s, at + 2, score->rank);
    sqlite3_bind_blob(s, at + 3, bytes, 8 * score->count, SQLITE_STATIC);
}

void esp_library_put_tokens(struct esp_library *l, int64_t id, int number,
                            const struct esp_branch *b, int from, int to)
{
    unsigned char bytes[8 * ESP_LIKELY];
    sqlite3_stmt *s;
    for (int i = from; i < to && (s = next(l, ESP_SQL_PUT_TOKEN)); i++) {
        const struct esp_written *token = &b->tokens[i];
        BIND(s, id, number, b->fork + i, token->token, token->kind);
        if (token->iteration >= 0)
            sqlite3_bind_int(s, 6, token->iteration);
        bind_score(s, 7, &token->score, bytes);
        run(l, s);
    }
}

void esp_library_put_piece(struct esp_library *l, const char *hash, int32_t token,
                           const char *bytes, size_t length)
{
    sqlite3_stmt *s = next(l, ESP_SQL_PUT_PIECE);
    if (!s)
        return;
    bind_text(s, 1, hash);
    sqlite3_bind_int(s, 2, token);
    sqlite3_bind_blob(s, 3, bytes ? bytes : "", (int)length, SQLITE_STATIC);
    run(l, s);
}

void esp_library_pieces(struct esp_library *l, const char *hash, int vocabulary,
                        unsigned char *known)
{
    sqlite3_stmt *s = next(l, ESP_SQL_PIECES);
    if (!s)
        return;
    bind_text(s, 1, hash);
    while (sqlite3_step(s) == SQLITE_ROW) {
        const int64_t token = sqlite3_column_int64(s, 0);
        if (token >= 0 && token < vocabulary)
            known[token / 8] |= (unsigned char)(1 << token % 8);
    }
    sqlite3_reset(s);
}

void esp_library_put_iteration(struct esp_library *l, int64_t id, int number, int generation,
                               const char *line, size_t length)
{
    sqlite3_stmt *s = next(l, ESP_SQL_PUT_ITERATION);
    if (!s)
        return;
    BIND(s, id, number, generation);
    sqlite3_bind_text(s, 4, line, (int)length, SQLITE_STATIC);
    run(l, s);
}

void esp_library_put_generation(struct esp_library *l, int64_t id,
                                const struct esp_kept_generation *g)
{
    sqlite3_stmt *s = next(l, ESP_SQL_PUT_GENERATION);
    if (!s)
        return;
    BIND(s, id, g->number, g->place, (int64_t)g->generator.draft, (int64_t)g->generator.verify,
         g->tokens);
    sqlite3_bind_text(s, 7, g->header, (int)g->header_length, SQLITE_STATIC);
    run(l, s);
}

static void drop(struct esp_library *l, int64_t id, enum esp_library_statement index)
{
    sqlite3_stmt *s = next(l, index);
    if (s)
        BIND(s, id);
    run(l, s);
}

void esp_library_drop_branches(struct esp_library *l, int64_t id)
{
    drop(l, id, ESP_SQL_DROP_WORDS);
    drop(l, id, ESP_SQL_DROP_TOKENS);
    drop(l, id, ESP_SQL_DROP_BRANCHES);
}

void esp_library_drop_unused(struct esp_library *l, int64_t id)
{
    drop(l, id, ESP_SQL_DROP_UNUSED);
    run(l, next(l, ESP_SQL_OPTIMIZE));
}

/* ------------------------------------------------------------------ the index of words */

/* Returns the text of a branch's own tokens, allocated, and sets *end to the place after the
 * last one. Returns NULL if there is no memory or the transaction has failed. */
static char *own_words(struct esp_library *l, int64_t id, int branch, size_t *length, int *end)
{
    sqlite3_stmt *s = next(l, ESP_SQL_OWN_BYTES);
    size_t capacity = 4096;
    char *words = s ? malloc(capacity) : NULL;
    *length = 0;
    if (!words)
        return NULL;
    BIND(s, id, branch, -1);
    while (words && sqlite3_step(s) == SQLITE_ROW) {
        const void *bytes = sqlite3_column_blob(s, 0);
        const size_t count = (size_t)sqlite3_column_bytes(s, 0);
        *end = sqlite3_column_int(s, 1) + 1;
        if (*length + count + 1 > capacity) {
            capacity = 2 * (*length + count + 1);
            char *grown = realloc(words, capacity);
            if (!grown)
                free(words);
            words = grown;
        }
        if (words && count > 0)
            memcpy(words + *length, bytes, count);
        *length += count;
    }
    sqlite3_reset(s);
    return words;
}

static void index_branch(struct esp_library *l, int64_t id, int branch)
{
    size_t length;
    int end = 0;
    char *words = own_words(l, id, branch, &length, &end);
    sqlite3_stmt *s = next(l, ESP_SQL_REMOVE_WORDS);
    if (s)
        BIND(s, esp_library_row(id, branch));
    run(l, s);
    if (words && (s = next(l, ESP_SQL_ADD_WORDS))) {
        BIND(s, esp_library_row(id, branch));
        sqlite3_bind_text(s, 2, words, (int)length, SQLITE_STATIC);
        run(l, s);
    }
    if (words && (s = next(l, ESP_SQL_SET_INDEXED))) {
        BIND(s, id, branch, end);
        run(l, s);
    }
    free(words);
}

void esp_library_index(struct esp_library *l, int64_t id)
{
    int64_t *stale = NULL;
    int count = 0, capacity = 0;
    sqlite3_stmt *s = next(l, ESP_SQL_STALE);
    if (!s)
        return;
    BIND(s, id);
    while (sqlite3_step(s) == SQLITE_ROW) {
        if (count == capacity) {
            capacity = capacity ? 2 * capacity : 64;
            int64_t *grown = realloc(stale, (size_t)capacity * 2 * sizeof *stale);
            if (!grown)
                break;
            stale = grown;
        }
        stale[2 * count] = sqlite3_column_int64(s, 0);
        stale[2 * count++ + 1] = sqlite3_column_int64(s, 1);
    }
    sqlite3_reset(s);
    for (int i = 0; i < count; i++)
        index_branch(l, stale[2 * i], (int)stale[2 * i + 1]);
    free(stale);
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
    sqlite3_stmt *s = next(l, ESP_SQL_PUT_NAME);
    if (s) {
        BIND(s, id);
        bind_text(s, 2, name);
    }
    run(l, s);
    return report(l, id, err, errlen);
}

int esp_library_delete(struct esp_library *l, int64_t id, char *err, size_t errlen)
{
    if (!esp_library_claim(l, id))
        return esp_fail(err, errlen, ESP_E_FILE, "session %lld is open in another program",
                        (long long)id);
    esp_library_begin(l);
    esp_library_drop_branches(l, id);
    drop(l, id, ESP_SQL_DROP_ITERATIONS);
    drop(l, id, ESP_SQL_DROP_GENERATIONS);
    drop(l, id, ESP_SQL_DROP_SESSION);
    const bool there = sqlite3_changes(l->db) > 0;
    run(l, next(l, ESP_SQL_DROP_PIECES));
    run(l, next(l, ESP_SQL_OPTIMIZE)); /* otherwise deleted words stay there a while */
    int status = esp_library_commit(l, err, errlen);
    esp_library_release(l, id);
    if (status < 0)
        return status;
    if (!there)
        return esp_fail(err, errlen, ESP_E_ARGUMENT, "no session %lld is kept", (long long)id);
    sqlite3_exec(l->db, "PRAGMA wal_checkpoint(TRUNCATE)", NULL, NULL, NULL);
    return ESP_OK;
}
