/* library_words.c - lists sessions and searches them for words; see library.h.
 *
 * Listing and searching read only the new chunks of a session's log. The row of a session
 * stores what the list shows. Column `seen` says how many chunks were read to make this row.
 * Column `indexed` has a number for each branch: the length of its text in the index, in 4
 * bytes, little-endian. All of this can be rebuilt from the logs.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/status.h"
#include "sessions/grow.h"
#include "sessions/library_parts.h"

/* ------------------------------------------------------------------ texts */

static void read_pieces(struct esp_library *l, const char *hash, struct esp_texts *pieces)
{
    sqlite3_stmt *s = esp_library_next(l, ESP_SQL_PIECES);
    if (!s)
        return;
    sqlite3_bind_text(s, 1, hash, -1, SQLITE_STATIC);
    while (sqlite3_step(s) == SQLITE_ROW) {
        const int64_t token = sqlite3_column_int64(s, 0);
        const int length = sqlite3_column_bytes(s, 1);
        if (token >= 0 && token < INT32_MAX &&
            esp_texts_add(pieces, (int32_t)token, sqlite3_column_blob(s, 1), (size_t)length) <
                0)
            break;
    }
    sqlite3_reset(s);
}

/* Writes the first `count` of a branch's own tokens as text to `to`, without control tokens. */
static void own_words(const struct esp_branch *branch, int count, struct esp_texts *pieces,
                      struct esp_pack *to)
{
    size_t length;
    to->length = 0;
    for (int i = 0; i < count && i < branch->count; i++) {
        const char *bytes = branch->tokens[i].kind == ESP_TEXT_MARK
                                ? NULL
                                : esp_texts_find(pieces, branch->tokens[i].token, &length);
        if (bytes)
            esp_pack_put(to, bytes, length);
    }
}

/* Copies the beginning of a text to `to`, with spaces instead of line breaks. */
static void first_words(const struct esp_pack *words, char *to, size_t size)
{
    size_t used = 0;
    for (size_t i = 0; i < words->length && used + 1 < size; i++) {
        const char byte = (char)words->at[i];
        const bool blank = byte && strchr(" \t\r\n", byte) != NULL;
        if (byte && (!blank || (used > 0 && to[used - 1] != ' ')))
            to[used++] = blank ? ' ' : byte;
    }
    while (used > 0 && used + 1 >= size && ((unsigned char)to[used - 1] & 0x80))
        used--; /* the text must not end within a UTF-8 character */
    to[used] = '\0';
}

/* ------------------------------------------------------------------ one session */

/* Replaces the words of a branch in the index. If `words` is NULL, only removes the old
 * words. */
static void put_words(struct esp_library *l, int64_t row, const struct esp_pack *words,
                      bool was_there)
{
    sqlite3_stmt *s = was_there ? esp_library_next(l, ESP_SQL_REMOVE_WORDS) : NULL;
    if (s)
        sqlite3_bind_int64(s, 1, row);
    esp_library_do(l, s);
    if (!words || !(s = esp_library_next(l, ESP_SQL_ADD_WORDS)))
        return;
    sqlite3_bind_int64(s, 1, row);
    sqlite3_bind_text(s, 2, words->at ? (const char *)words->at : "", (int)words->length,
                      SQLITE_STATIC);
    esp_library_do(l, s);
}

static uint32_t get_end(const struct esp_pack *ends, int branch)
{
    struct esp_from from = {ends->at + 4 * (size_t)branch, ends->at + ends->length, false};
    return 4 * (size_t)branch + 4 <= ends->length ? (uint32_t)esp_from_fixed(&from, 4) : 0;
}

/* Updates the index for the branches that have changed. `before` has the lengths of their texts
 * in the old index. Appends the lengths in the new index to `after`. */
static void index_branches(struct esp_library *l, int64_t id, const struct esp_branches *b,
                           struct esp_texts *pieces, const struct esp_pack *before,
                           struct esp_pack *after)
{
    struct esp_pack words = {.length = 0};
    for (int i = 0; i < b->count; i++) {
        const uint32_t old = get_end(before, i);
        const uint32_t end = b->branch[i].deleted ? 0 : (uint32_t)esp_branches_end(b, i).length;
        esp_pack_fixed(after, end, 4);
        if (old == end)
            continue;
        own_words(&b->branch[i], b->branch[i].count, pieces, &words);
        put_words(l, id << 32 | i, end > 0 ? &words : NULL, old > 0);
    }
    for (int i = b->count; get_end(before, i) > 0; i++)
        put_words(l, id << 32 | i, NULL, true);
    esp_pack_free(&words);
}

static void set_seen(struct esp_library *l, int64_t id, int chunks,
                     const struct esp_branches *b, const char *words,
                     const struct esp_pack *indexed)
{
    int branches = 0;
    int64_t tokens = 0;
    sqlite3_stmt *s = esp_library_next(l, ESP_SQL_SET_SEEN);
    if (!s)
        return;
    for (int i = 0; i < b->count; i++) {
        branches += !b->branch[i].deleted;
        tokens += b->branch[i].count;
    }
    sqlite3_bind_int64(s, 1, id);
    sqlite3_bind_int(s, 2, chunks);
    sqlite3_bind_int(s, 3, branches);
    sqlite3_bind_int64(s, 4, tokens);
    sqlite3_bind_text(s, 5, words, -1, SQLITE_STATIC);
    sqlite3_bind_blob(s, 6, indexed->at ? (const void *)indexed->at : "", (int)indexed->length,
                      SQLITE_STATIC);
    esp_library_do(l, s);
}

static void read_log(struct esp_library *l, int64_t id, int chunks)
{
    struct esp_kept_text text;
    struct esp_texts pieces = {.count = 0};
    struct esp_pack before = {.length = 0}, after = {.length = 0}, words = {.length = 0};
    char first[128] = "", err[256];
    const int status = esp_library_load(l, id, &text, err, sizeof err);
    const struct esp_branches *b = &text.branches;
    sqlite3_stmt *s = status == ESP_OK ? esp_library_next(l, ESP_SQL_INDEXED) : NULL;
    if (s) {
        sqlite3_bind_int64(s, 1, id);
        if (sqlite3_step(s) == SQLITE_ROW)
            esp_pack_put(&before, sqlite3_column_blob(s, 0),
                         (size_t)sqlite3_column_bytes(s, 0));
        sqlite3_reset(s);
        read_pieces(l, text.vocabulary_hash, &pieces);
        index_branches(l, id, b, &pieces, &before, &after);
        for (int i = 0; i < b->count && !*first; i++)
            if (!b->branch[i].deleted) {
                own_words(&b->branch[i], 40, &pieces, &words);
                first_words(&words, first, sizeof first);
            }
        set_seen(l, id, chunks, b, first, &after);
    }
    esp_texts_free(&pieces);
    esp_pack_free(&before);
    esp_pack_free(&after);
    esp_pack_free(&words);
    esp_kept_text_free(&text);
}

/* ------------------------------------------------------------------ all sessions */

struct stale {
    int64_t id;
    int chunks;
};

/* Finds the sessions whose logs have new chunks. Returns the number of these sessions. */
static int find_stale(struct esp_library *l, int64_t id, struct stale **stale)
{
    int count = 0, capacity = 0;
    sqlite3_stmt *s = esp_library_sql(l, ESP_SQL_STALE);
    *stale = NULL;
    if (s)
        sqlite3_bind_int64(s, 1, id);
    while (s && sqlite3_step(s) == SQLITE_ROW &&
           esp_grow(stale, count, &capacity, sizeof **stale) == ESP_OK)
        (*stale)[count++] =
            (struct stale){sqlite3_column_int64(s, 0), sqlite3_column_int(s, 1)};
    sqlite3_reset(s);
    return count;
}

int esp_library_refresh(struct esp_library *l, int64_t id, char *err, size_t errlen)
{
    struct stale *stale;
    int count = find_stale(l, id, &stale), status = ESP_OK;
    for (int i = 0; i < count && status == ESP_OK; i++) {
        esp_library_begin(l);
        read_log(l, stale[i].id, stale[i].chunks);
        status = esp_library_commit(l, err, errlen);
    }
    free(stale);
    return status;
}

/* ------------------------------------------------------------------ damage */

/* Replaces the index by an empty one. FTS5 cannot drop a damaged table. Therefore this function
 * removes the table's entries from the schema; then VACUUM frees its pages. */
static bool make_again(struct esp_library *l)
{
    sqlite3_db_config(l->db, SQLITE_DBCONFIG_DEFENSIVE, 0, NULL);
    bool made = sqlite3_exec(l->db,
                             "PRAGMA writable_schema = ON; BEGIN IMMEDIATE; "
                             "DELETE FROM sqlite_schema WHERE tbl_name = 'words' OR tbl_name "
                             "LIKE 'words#_%' ESCAPE '#'; "
                             "UPDATE session SET seen = 0, indexed = x''; COMMIT",
                             NULL, NULL, NULL) == SQLITE_OK;
    if (!sqlite3_get_autocommit(l->db))
        sqlite3_exec(l->db, "ROLLBACK", NULL, NULL, NULL);
    sqlite3_exec(l->db, "PRAGMA writable_schema = RESET", NULL, NULL, NULL);
    made = made && esp_library_make_tables(l) == SQLITE_OK;
    sqlite3_exec(l->db, "VACUUM", NULL, NULL, NULL);
    sqlite3_db_config(l->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    return made;
}

/* Returns whether a query that uses the index fails because the index is damaged. */
static bool fails(struct esp_library *l, const char *query)
{
    sqlite3_stmt *s = NULL;
    int code = sqlite3_prepare_v2(l->db, query, -1, &s, NULL);
    code = code == SQLITE_OK ? sqlite3_step(s) : code;
    sqlite3_finalize(s);
    return (code & 255) == SQLITE_CORRUPT || code == SQLITE_ERROR;
}

bool esp_library_repair_words(struct esp_library *l, bool damaged)
{
    if (!damaged && !fails(l, "SELECT own FROM words LIMIT 1") &&
        !fails(l, "SELECT rowid FROM words('a') LIMIT 1"))
        return true;
    for (int i = 0; i < ESP_SQL_STATEMENTS; i++) {
        sqlite3_finalize(l->statement[i]);
        l->statement[i] = NULL;
    }
    return make_again(l);
}

/* ------------------------------------------------------------------ the list */

static void name_models(struct esp_kept_session *session, const char *header, int length)
{
    struct esp_recording_header models = {.major = 0};
    char err[256];
    if (header && length > 0 && header[length - 1] == '\n')
        length--;
    if (!header || esp_header_from_json(&models, header, (size_t)length, err, sizeof err) < 0)
        return;
    snprintf(session->target, sizeof session->target, "%s", models.target.name);
    snprintf(session->draft, sizeof session->draft, "%s", models.draft.name);
}

static void read_session(struct esp_library *l, sqlite3_stmt *s, struct esp_kept_session *to)
{
    *to = (struct esp_kept_session){.id = sqlite3_column_int64(s, 0),
                                    .created = (time_t)sqlite3_column_int64(s, 2),
                                    .changed = (time_t)sqlite3_column_int64(s, 3),
                                    .branches = sqlite3_column_int(s, 7),
                                    .tokens = sqlite3_column_int(s, 8)};
    esp_library_copy_text(to->name, sizeof to->name, s, 1);
    esp_library_copy_text(to->target_path, sizeof to->target_path, s, 5);
    esp_library_copy_text(to->draft_path, sizeof to->draft_path, s, 6);
    const char *header = (const char *)sqlite3_column_text(s, 4);
    name_models(to, header, sqlite3_column_bytes(s, 4));
    esp_library_copy_text(to->words, sizeof to->words, s, 9);
    to->open = !esp_library_claim(l, to->id);
    if (!to->open)
        esp_library_release(l, to->id);
}

/* Lists the sessions that have the number `id` (0 means any) and this name ("" means any). */
static int list(struct esp_library *l, int64_t id, const char *name, esp_kept_visit *visit,
                void *user, char *err, size_t errlen)
{
    struct esp_kept_session session;
    int step = SQLITE_ERROR, status = ESP_OK;
    esp_library_refresh(l, id, err, errlen); /* if this fails, the list shows older values */
    sqlite3_stmt *s = esp_library_sql(l, ESP_SQL_LIST);
    if (!s)
        return esp_library_fail(l, err, errlen);
    sqlite3_bind_int64(s, 1, id);
    sqlite3_bind_text(s, 2, name, -1, SQLITE_STATIC);
    while (status == ESP_OK && (step = sqlite3_step(s)) == SQLITE_ROW) {
        read_session(l, s, &session);
        if (visit(user, &session) != 0)
            break;
    }
    if (step != SQLITE_DONE && step != SQLITE_ROW)
        status = esp_library_fail(l, err, errlen);
    sqlite3_reset(s);
    return status;
}

int esp_library_list(struct esp_library *l, esp_kept_visit *visit, void *user, char *err,
                     size_t errlen)
{
    return list(l, 0, "", visit, user, err, errlen);
}

static int take(void *user, const struct esp_kept_session *session)
{
    *(struct esp_kept_session *)user = *session;
    return 1;
}

static int64_t latest(struct esp_library *l)
{
    sqlite3_stmt *s = esp_library_sql(l, ESP_SQL_LATEST);
    const int64_t id = s && sqlite3_step(s) == SQLITE_ROW ? sqlite3_column_int64(s, 0) : 0;
    sqlite3_reset(s);
    return id;
}

int esp_library_find(struct esp_library *l, const char *which, struct esp_kept_session *session,
                     char *err, size_t errlen)
{
    char *end;
    session->id = 0;
    const bool any = !which || !*which;
    const int64_t id = any ? latest(l) : strtoll(which, &end, 10);
    int status = ESP_OK;
    if (id > 0 && (any || !*end))
        status = list(l, id, "", take, session, err, errlen);
    if (status == ESP_OK && session->id == 0 && !any)
        status = list(l, 0, which, take, session, err, errlen);
    if (status < 0 || session->id > 0)
        return status;
    return any ? esp_fail(err, errlen, ESP_E_ARGUMENT, "no sessions are kept in %s", l->path)
               : esp_fail(err, errlen, ESP_E_ARGUMENT,
                          "no session '%.60s' is kept; espalier sessions lists them", which);
}

/* ------------------------------------------------------------------ searching */

/* Returns an allocated FTS5 query for texts that contain all of `words`. The last of `words`
 * can be the beginning of a word. */
static char *query_of(const char *words)
{
    char *query = malloc(4 * strlen(words) + 8), *to = query;
    for (const char *at = words; query && *at;) {
        at += strspn(at, " \t\n");
        const size_t length = strcspn(at, " \t\n");
        if (length == 0)
            break;
        *to++ = '"';
        for (size_t i = 0; i < length; i++) {
            if (at[i] == '"')
                *to++ = '"';
            *to++ = at[i];
        }
        *to++ = '"';
        at += length;
        if (!at[strspn(at, " \t\n")])
            *to++ = '*';
        *to++ = ' ';
    }
    if (query)
        *to = '\0';
    return query;
}

/* Runs an FTS5 query. Returns the SQLite code of its last step. */
static int search(struct esp_library *l, const char *query,
                  int (*visit)(void *user, const struct esp_kept_match *match), void *user)
{
    struct esp_kept_match match;
    int step = SQLITE_ERROR;
    sqlite3_stmt *s = esp_library_sql(l, ESP_SQL_SEARCH);
    if (!s)
        return sqlite3_errcode(l->db);
    sqlite3_bind_text(s, 1, query, -1, SQLITE_STATIC);
    while ((step = sqlite3_step(s)) == SQLITE_ROW) {
        const int64_t row = sqlite3_column_int64(s, 0);
        match = (struct esp_kept_match){.session = row >> 32, .branch = (int)(row & INT32_MAX)};
        esp_library_copy_text(match.words, sizeof match.words, s, 1);
        if (visit(user, &match) != 0)
            break;
    }
    return step;
}

int esp_library_search(struct esp_library *l, const char *words,
                       int (*visit)(void *user, const struct esp_kept_match *match), void *user,
                       char *err, size_t errlen)
{
    int status = ESP_OK;
    char *query = query_of(words);
    esp_library_refresh(l, 0, err, errlen); /* if this fails, the old index is searched */
    int step = query ? search(l, query, visit, user) : SQLITE_NOMEM;
    if (((step & 255) == SQLITE_CORRUPT || step == SQLITE_ERROR) &&
        esp_library_repair_words(l, true)) {
        esp_library_refresh(l, 0, err, errlen);
        step = search(l, query, visit, user);
    }
    if (step != SQLITE_DONE && step != SQLITE_ROW)
        status = esp_library_fail(l, err, errlen);
    sqlite3_reset(l->statement[ESP_SQL_SEARCH]);
    free(query);
    return status;
}
