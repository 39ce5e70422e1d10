/* library_base.c - handles tables, statements, transactions and locks of the file of kept
 * sessions; see library_parts.h.
 *
 * Only a file with exactly the tables below is accepted as a library. Therefore no view,
 * trigger or function in a file can ever run.
 *
 * A session is claimed by a lock on one byte of a second file, PATH.lock. The offset of this
 * byte is the session's number. The operating system releases the lock when the program ends,
 * even after a crash.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "engine/support/paths.h"
#include "kernels/status.h"
#include "sessions/library_parts.h"

/* On systems with F_OFD_SETLK, a lock belongs to the open file description, so two open
 * libraries of one process exclude each other. On other systems a lock belongs to the
 * process. */
#ifdef F_OFD_SETLK
enum { SET_LOCK = F_OFD_SETLK, WAIT_LOCK = F_OFD_SETLKW, GET_LOCK = F_OFD_GETLK };
#else
enum { SET_LOCK = F_SETLK, WAIT_LOCK = F_SETLKW, GET_LOCK = F_GETLK };
#endif

/* The name of each table, and the statement that creates it. */
static esp_library_table schema[] = {
    {"vocabulary", ESP_TABLE_VOCABULARY},
    {"piece", ESP_TABLE_PIECE},
    {"words", ESP_TABLE_WORDS},
    {"session",
     "CREATE TABLE session(id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL "
     "DEFAULT '', created INTEGER NOT NULL, changed INTEGER NOT NULL, vocabulary INTEGER "
     "REFERENCES vocabulary, header TEXT NOT NULL DEFAULT '', target_path TEXT NOT NULL "
     "DEFAULT '', draft_path TEXT NOT NULL DEFAULT '', iterations INTEGER NOT NULL DEFAULT 0, "
     "generations INTEGER NOT NULL DEFAULT 0, seen INTEGER NOT NULL DEFAULT 0, branches "
     "INTEGER "
     "NOT NULL DEFAULT 0, tokens INTEGER NOT NULL DEFAULT 0, words TEXT NOT NULL DEFAULT '', "
     "indexed BLOB NOT NULL DEFAULT x'') STRICT"},
    {"chunk",
     "CREATE TABLE chunk(session INTEGER NOT NULL, number INTEGER NOT NULL, iteration "
     "INTEGER NOT NULL, texts BLOB NOT NULL, trees BLOB NOT NULL, PRIMARY KEY(session, "
     "number)) STRICT"},
};

enum { TABLES = sizeof schema / sizeof *schema };

static const char *const sql[] = {
#define X(name, text) text,
    ESP_LIBRARY_STATEMENTS(X)
#undef X
};

/* ------------------------------------------------------------------ statements */

sqlite3_stmt *esp_library_sql(struct esp_library *l, enum esp_library_statement index)
{
    sqlite3_stmt **statement = &l->statement[index];
    if (*statement) {
        sqlite3_reset(*statement);
        sqlite3_clear_bindings(*statement);
    } else {
        sqlite3_prepare_v3(l->db, sql[index], -1, SQLITE_PREPARE_PERSISTENT, statement, NULL);
    }
    return *statement;
}

/* Runs a statement, ignores its rows, and resets it. Returns SQLITE_OK or an SQLite error
 * code. */
static int run(sqlite3_stmt *statement)
{
    if (!statement)
        return SQLITE_ERROR;
    const int step = sqlite3_step(statement);
    const int reset = sqlite3_reset(statement);
    return step == SQLITE_DONE || step == SQLITE_ROW ? SQLITE_OK : reset;
}

int esp_library_fail(struct esp_library *l, char *err, size_t errlen)
{
    return esp_fail(err, errlen, ESP_E_FILE, "%s: %s", l->path, sqlite3_errmsg(l->db));
}

/* ------------------------------------------------------------------ locks */

/* Locks or unlocks byte `at` of the lock file. Returns whether this succeeded. */
static bool lock(const struct esp_library *l, int how, short type, int64_t at)
{
    struct flock range = {
        .l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)at, .l_len = 1};
    return l->locks >= 0 && fcntl(l->locks, how, &range) == 0;
}

void esp_library_release_file(struct esp_library *l)
{
    lock(l, SET_LOCK, F_UNLCK, 0);
}

bool esp_library_claim_file(struct esp_library *l)
{
    return lock(l, WAIT_LOCK, F_WRLCK, 0);
}

bool esp_library_claims_exclude(void)
{
    return (int)SET_LOCK != (int)F_SETLK;
}

bool esp_library_claim(struct esp_library *l, int64_t id)
{
    return lock(l, SET_LOCK, F_WRLCK, id) || l->locks < 0;
}

void esp_library_release(struct esp_library *l, int64_t id)
{
    lock(l, SET_LOCK, F_UNLCK, id);
}

bool esp_library_is_open_anywhere(const struct esp_library *l)
{
    struct flock range = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 1};
    return l->locks >= 0 && fcntl(l->locks, GET_LOCK, &range) == 0 && range.l_type != F_UNLCK;
}

/* ------------------------------------------------------------------ the schema */

int64_t esp_library_number(struct esp_library *l, const char *query)
{
    sqlite3_stmt *statement = NULL;
    int64_t value = -1;
    if (sqlite3_prepare_v2(l->db, query, -1, &statement, NULL) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW)
        value = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return value;
}

static bool is_of(esp_library_table *tables, int count, const char *name, const char *text)
{
    for (int i = 0; i < count; i++)
        if (strcmp(name, tables[i][0]) == 0)
            return strcmp(text, tables[i][1]) == 0;
    return strncmp(name, "words_", strlen("words_")) == 0 ||
           strncmp(name, "sqlite_", strlen("sqlite_")) == 0;
}

bool esp_library_has_tables(struct esp_library *l, esp_library_table *tables, int count)
{
    sqlite3_stmt *statement = NULL;
    int found = 0, step = SQLITE_ERROR;
    bool ours = true;
    if (sqlite3_prepare_v2(l->db, "SELECT name, type, sql FROM sqlite_schema", -1, &statement,
                           NULL) == SQLITE_OK)
        while ((step = sqlite3_step(statement)) == SQLITE_ROW && ours) {
            const char *name = (const char *)sqlite3_column_text(statement, 0);
            const char *type = (const char *)sqlite3_column_text(statement, 1);
            const char *text = (const char *)sqlite3_column_text(statement, 2);
            ours = name && type && (strcmp(type, "table") == 0 || strcmp(type, "index") == 0) &&
                   is_of(tables, count, name, text ? text : "");
            for (int i = 0; ours && i < count; i++)
                found += strcmp(name, tables[i][0]) == 0;
        }
    sqlite3_finalize(statement);
    return ours && step == SQLITE_DONE && found == count;
}

int esp_library_make_tables(struct esp_library *l)
{
    char set[64];
    int status = SQLITE_OK;
    for (int i = 0; i < TABLES && status == SQLITE_OK; i++) {
        char query[96];
        snprintf(query, sizeof query, "SELECT 1 FROM sqlite_schema WHERE name = '%s'",
                 schema[i][0]);
        if (esp_library_number(l, query) < 0)
            status = sqlite3_exec(l->db, schema[i][1], NULL, NULL, NULL);
    }
    snprintf(set, sizeof set, "PRAGMA user_version = %d", ESP_LIBRARY_VERSION);
    return status == SQLITE_OK ? sqlite3_exec(l->db, set, NULL, NULL, NULL) : status;
}

bool esp_library_has_present_tables(struct esp_library *l)
{
    return esp_library_has_tables(l, schema, TABLES);
}

/* ------------------------------------------------------------------ transactions */

void esp_library_begin(struct esp_library *l)
{
    l->what[0] = '\0';
    l->status = run(esp_library_sql(l, ESP_SQL_BEGIN));
    if (l->status != SQLITE_OK)
        snprintf(l->what, sizeof l->what, "%s", sqlite3_errmsg(l->db));
}

int esp_library_commit(struct esp_library *l, char *err, size_t errlen)
{
    if (l->status == SQLITE_OK)
        l->status = run(esp_library_sql(l, ESP_SQL_COMMIT));
    if (l->status == SQLITE_OK)
        return ESP_OK;
    if (!*l->what)
        snprintf(l->what, sizeof l->what, "%s", sqlite3_errmsg(l->db));
    if (!sqlite3_get_autocommit(l->db))
        run(esp_library_sql(l, ESP_SQL_ROLLBACK));
    return esp_fail(err, errlen, ESP_E_FILE, "%s: %s", l->path, l->what);
}

sqlite3_stmt *esp_library_next(struct esp_library *l, enum esp_library_statement index)
{
    sqlite3_stmt *statement = l->status == SQLITE_OK ? esp_library_sql(l, index) : NULL;
    if (!statement && l->status == SQLITE_OK) {
        l->status = SQLITE_ERROR;
        snprintf(l->what, sizeof l->what, "%s", sqlite3_errmsg(l->db));
    }
    return statement;
}

void esp_library_do(struct esp_library *l, sqlite3_stmt *statement)
{
    if (!statement)
        return;
    l->status = run(statement);
    if (l->status != SQLITE_OK)
        snprintf(l->what, sizeof l->what, "%s", sqlite3_errmsg(l->db));
}

void esp_library_do_of(struct esp_library *l, enum esp_library_statement index, int64_t id)
{
    sqlite3_stmt *s = esp_library_next(l, index);
    if (s)
        sqlite3_bind_int64(s, 1, id);
    esp_library_do(l, s);
}

int esp_library_path(char *path, size_t size)
{
    return esp_user_path(path, size, ESP_USER_STATE, "sessions.db");
}
