/* library_old.c - converts libraries of versions 1 and 2 to the current version.
 *
 * In these versions each branch, token and iteration had its own row in a table. Iterations
 * were stored as lines of a recording. In version 1 these lines also had the texts of their
 * tokens.
 *
 * A damaged session is left out. In this case a copy of the old file is kept.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/status.h"
#include "sessions/event_json.h"
#include "sessions/grow.h"
#include "sessions/library_parts.h"

enum {
    MOST = 1 << 28, /* maximum number of tokens in a text */
    END = INT32_MAX /* length that stands for the end of a branch */
};

static esp_library_table old_tables[] = {
    {"vocabulary", ESP_TABLE_VOCABULARY},
    {"piece", ESP_TABLE_PIECE},
    {"words", ESP_TABLE_WORDS},
    {"session",
     "CREATE TABLE session(id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL "
     "DEFAULT '', created INTEGER NOT NULL, changed INTEGER NOT NULL, vocabulary INTEGER "
     "REFERENCES vocabulary, header TEXT NOT NULL DEFAULT '', target_path TEXT NOT NULL "
     "DEFAULT '', draft_path TEXT NOT NULL DEFAULT '', at_branch INTEGER NOT NULL DEFAULT "
     "-1, at_length INTEGER NOT NULL DEFAULT 0) STRICT"},
    {"branch",
     "CREATE TABLE branch(session INTEGER NOT NULL REFERENCES session, number INTEGER NOT "
     "NULL, parent INTEGER NOT NULL, fork INTEGER NOT NULL, name TEXT NOT NULL, marked "
     "INTEGER NOT NULL, deleted INTEGER NOT NULL, created INTEGER NOT NULL, drafter TEXT "
     "NOT NULL, indexed INTEGER NOT NULL, PRIMARY KEY(session, number)) STRICT, WITHOUT "
     "ROWID"},
    {"token",
     "CREATE TABLE token(session INTEGER NOT NULL REFERENCES session, branch INTEGER NOT "
     "NULL, place INTEGER NOT NULL, token INTEGER NOT NULL, kind INTEGER NOT NULL, "
     "iteration INTEGER, p REAL, entropy REAL, rank INTEGER, likely BLOB, PRIMARY "
     "KEY(session, branch, place)) STRICT, WITHOUT ROWID"},
    {"iteration", "CREATE TABLE iteration(session INTEGER NOT NULL REFERENCES session, number "
                  "INTEGER NOT NULL, generation INTEGER NOT NULL, line TEXT NOT NULL, PRIMARY "
                  "KEY(session, number)) STRICT"},
    {"generation",
     "CREATE TABLE generation(session INTEGER NOT NULL REFERENCES session, number "
     "INTEGER NOT NULL, place INTEGER NOT NULL, draft INTEGER NOT NULL, verify INTEGER "
     "NOT NULL, tokens INTEGER NOT NULL, header TEXT NOT NULL, PRIMARY KEY(session, "
     "number)) STRICT, WITHOUT ROWID"},
};

bool esp_library_is_old(struct esp_library *l)
{
    return esp_library_has_tables(l, old_tables, sizeof old_tables / sizeof *old_tables);
}

/* ------------------------------------------------------------------ columns */

/* Prepares a query, and binds the number of a session to its first parameter. */
static sqlite3_stmt *query(struct esp_library *l, const char *sql, int64_t id)
{
    sqlite3_stmt *s = NULL;
    if (sqlite3_prepare_v2(l->db, sql, -1, &s, NULL) == SQLITE_OK)
        sqlite3_bind_int64(s, 1, id);
    return s;
}

/* Returns the number in a column, or NaN for NULL. Sets *damaged if the number is outside the
 * limits. */
static float real(sqlite3_stmt *s, int column, double least, double most, bool *damaged)
{
    const double value = sqlite3_column_double(s, column);
    const int type = sqlite3_column_type(s, column);
    if (type == SQLITE_NULL)
        return NAN;
    if ((type == SQLITE_FLOAT || type == SQLITE_INTEGER) && value >= least && value <= most)
        return (float)value;
    *damaged = true;
    return NAN;
}

/* ------------------------------------------------------------------ texts */

static uint32_t little(const unsigned char *bytes)
{
    return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
           (uint32_t)bytes[3] << 24;
}

static void read_score(sqlite3_stmt *s, int vocabulary, struct esp_token_score *score,
                       bool *bad)
{
    const unsigned char *bytes = sqlite3_column_blob(s, 8);
    const int size = sqlite3_column_bytes(s, 8);
    if (sqlite3_column_type(s, 8) == SQLITE_NULL)
        return;
    if (!bytes || size < 8 || size > 8 * ESP_LIKELY || size % 8 != 0) {
        *bad = true;
        return;
    }
    score->count = size / 8;
    score->p = real(s, 5, 0, 1.001, bad);
    score->entropy = real(s, 6, 0, 64, bad);
    score->rank = (int32_t)esp_library_integer(s, 7, 0, score->count, bad);
    for (int i = 0; i < score->count; i++) {
        const uint32_t token = little(bytes + 8 * i), bits = little(bytes + 8 * i + 4);
        memcpy(&score->likely_p[i], &bits, sizeof bits);
        *bad |= token >= (uint32_t)vocabulary ||
                !(score->likely_p[i] >= 0 && score->likely_p[i] <= 1.001f);
        score->likely[i] = *bad ? 0 : (int32_t)token;
    }
}

static int load_token(sqlite3_stmt *s, struct esp_kept_text *text, bool *bad)
{
    const struct esp_branches *b = &text->branches;
    struct esp_branch *branch =
        b->count > 0 ? &b->branch[esp_library_integer(s, 0, 0, b->count - 1, bad)] : NULL;
    struct esp_written token = {.iteration = ESP_BY_NO_ITERATION};
    if (!branch) {
        *bad = true;
        return ESP_OK;
    }
    esp_library_integer(s, 1, branch->fork + branch->count, branch->fork + branch->count, bad);
    token.token = (int32_t)esp_library_integer(s, 2, 0, text->vocabulary - 1, bad);
    token.kind = (uint8_t)esp_library_integer(s, 3, 0, ESP_TEXT_CHOSEN, bad);
    if (sqlite3_column_type(s, 4) != SQLITE_NULL)
        token.iteration = (int32_t)esp_library_integer(s, 4, 0, ESP_LOG_ITERATIONS - 1, bad);
    if (token.iteration >= text->iterations) /* the iteration was not kept */
        text->iterations = token.iteration + 1;
    read_score(s, text->vocabulary, &token.score, bad);
    if (esp_grow(&branch->tokens, branch->count, &branch->capacity, sizeof *branch->tokens) < 0)
        return ESP_E_MEMORY;
    branch->tokens[branch->count++] = token;
    return ESP_OK;
}

static bool load_branches(struct esp_library *l, int64_t id, struct esp_branches *b)
{
    sqlite3_stmt *s =
        query(l,
              "SELECT number, parent, fork, name, marked, deleted, created, drafter "
              "FROM branch WHERE session = ?1 ORDER BY number",
              id);
    bool bad = !s;
    while (!bad && sqlite3_step(s) == SQLITE_ROW) {
        if (esp_grow(&b->branch, b->count, &b->capacity, sizeof *b->branch) < 0)
            break;
        struct esp_branch *branch = &b->branch[b->count];
        esp_library_integer(s, 0, b->count, b->count, &bad);
        *branch = (struct esp_branch){
            .parent = (int)esp_library_integer(s, 1, -1, b->count - 1, &bad),
            .fork = (int)esp_library_integer(s, 2, 0, MOST, &bad),
            .marked = esp_library_integer(s, 4, 0, 1, &bad),
            .deleted = esp_library_integer(s, 5, 0, 1, &bad),
            .created = (time_t)esp_library_integer(s, 6, 0, INT64_MAX, &bad)};
        esp_library_copy_text(branch->name, sizeof branch->name, s, 3);
        esp_library_copy_text(branch->drafter, sizeof branch->drafter, s, 7);
        b->count++;
    }
    return sqlite3_finalize(s) == SQLITE_OK && !bad;
}

static bool load_tokens(struct esp_library *l, int64_t id, struct esp_kept_text *text)
{
    struct esp_branches *b = &text->branches;
    sqlite3_stmt *s = query(l,
                            "SELECT branch, place, token, kind, iteration, p, entropy, rank, "
                            "likely FROM token WHERE session = ?1 ORDER BY branch, place",
                            id);
    bool bad = !s;
    while (!bad && sqlite3_step(s) == SQLITE_ROW)
        bad |= load_token(s, text, &bad) < 0;
    bad |= sqlite3_finalize(s) != SQLITE_OK;
    for (int i = 0; i < b->count && !bad; i++) {
        bad = b->branch[i].count == 0 || !esp_branches_fit(b, &b->branch[i]);
        esp_branches_link(b, i);
    }
    return !bad;
}

/* If the current text ends at the END of a branch, replaces END by the branch's length. Returns
 * whether the place of the current text is valid. */
static bool check_place(struct esp_branches *b)
{
    const struct esp_text_place at = b->at;
    if (at.branch >= b->count || (at.branch < 0) != (at.length == 0))
        return false;
    if (at.branch >= 0 && at.length == END)
        b->at = esp_branches_end(b, at.branch);
    return at.branch < 0 || (b->at.length > b->branch[at.branch].fork &&
                             b->at.length <= esp_branches_end(b, at.branch).length);
}

/* ------------------------------------------------------------------ the rest of a log */

static void put_header(struct esp_pack *to, const struct esp_kept_text *text,
                       const char *target_path, const char *draft_path, int64_t changed)
{
    struct esp_recording_header header = {.vocabulary = 0};
    char err[256];
    const size_t length = strlen(text->header), newline = strcspn(text->header, "\n");
    esp_header_from_json(&header, text->header, newline, err, sizeof err);
    header.vocabulary = text->vocabulary;
    snprintf(header.vocabulary_hash, sizeof header.vocabulary_hash, "%s",
             text->vocabulary_hash);
    esp_log_time(to, (time_t)changed);
    esp_log_header(to, &header, text->header, length, target_path, draft_path);
}

static void put_generations(struct esp_library *l, int64_t id, struct esp_pack *to)
{
    sqlite3_stmt *s =
        query(l,
              "SELECT number, place, draft, verify, tokens, header FROM generation "
              "WHERE session = ?1 ORDER BY number",
              id);
    while (s && sqlite3_step(s) == SQLITE_ROW) {
        bool bad = false;
        const char *header = (const char *)sqlite3_column_text(s, 5);
        const struct esp_kept_generation generation = {
            .number = (int)esp_library_integer(s, 0, 0, ESP_LOG_ITERATIONS - 1, &bad),
            .place = (int)esp_library_integer(s, 1, 0, MOST - 1, &bad),
            .generator = {(uint64_t)esp_library_integer(s, 2, INT64_MIN, INT64_MAX, &bad),
                          (uint64_t)esp_library_integer(s, 3, INT64_MIN, INT64_MAX, &bad)},
            .tokens = (int)esp_library_integer(s, 4, 1, INT32_MAX, &bad),
            .header = header ? header : "",
            .header_length = (size_t)sqlite3_column_bytes(s, 5)};
        if (!bad)
            esp_log_generation(to, &generation);
    }
    sqlite3_finalize(s);
}

static void put_trees(struct esp_library *l, int64_t id, int vocabulary, struct esp_pack *to)
{
    struct esp_recorded_event event = {.event = {.type = 0}};
    struct esp_texts names = {.count = 0};
    char err[256];
    sqlite3_stmt *s = query(l,
                            "SELECT number, generation, line FROM iteration WHERE session = ?1 "
                            "ORDER BY number",
                            id);
    while (s && sqlite3_step(s) == SQLITE_ROW) {
        bool bad = false;
        const int number = (int)esp_library_integer(s, 0, 0, ESP_LOG_ITERATIONS - 1, &bad);
        const int generation = (int)esp_library_integer(s, 1, 0, ESP_LOG_ITERATIONS - 1, &bad);
        const char *line = (const char *)sqlite3_column_text(s, 2);
        const size_t length = line ? strcspn(line, "\n") : 0;
        if (!bad && line &&
            esp_event_from_json(&event, &names, line, length, vocabulary, err, sizeof err) ==
                1 &&
            event.event.type == ESP_EVENT_ITERATION)
            esp_log_tree(to, number, generation, &event.event, &event.layers);
    }
    sqlite3_finalize(s);
    esp_recorded_event_free(&event);
    esp_texts_free(&names);
}

/* ------------------------------------------------------------------ a session */

/* Reads the row of a session from an old library. */
static bool load_row(sqlite3_stmt *s, struct esp_kept_text *text)
{
    bool bad = false;
    const char *header = (const char *)sqlite3_column_text(s, 1);
    text->header = strdup(header ? header : "");
    text->branches.at.branch = (int)esp_library_integer(s, 2, -1, INT32_MAX, &bad);
    text->branches.at.length = (int)esp_library_integer(s, 3, 0, INT32_MAX, &bad);
    esp_library_copy_text(text->vocabulary_hash, sizeof text->vocabulary_hash, s, 4);
    text->vocabulary = (int)esp_library_integer(s, 5, 1, INT32_MAX, &bad);
    text->iterations = (int)esp_library_integer(s, 9, 0, ESP_LOG_ITERATIONS, &bad);
    return !bad && text->header;
}

/* Stores a session as a log. Returns false if it is damaged. */
static bool convert(struct esp_library *l, sqlite3_stmt *row)
{
    const int64_t id = sqlite3_column_int64(row, 0);
    char target_path[1024], draft_path[1024];
    struct esp_kept_text text = {.vocabulary = 0};
    struct esp_pack before = {.length = 0}, trees = {.length = 0};
    esp_branches_open(&text.branches);
    const bool good = load_row(row, &text) && load_branches(l, id, &text.branches) &&
                      load_tokens(l, id, &text) && check_place(&text.branches);
    esp_library_copy_text(target_path, sizeof target_path, row, 6);
    esp_library_copy_text(draft_path, sizeof draft_path, row, 7);
    if (good) {
        put_header(&before, &text, target_path, draft_path, sqlite3_column_int64(row, 8));
        put_generations(l, id, &before);
        put_trees(l, id, text.vocabulary, &trees);
        esp_library_put_texts(l, id, &text, &before, &trees);
    }
    esp_pack_free(&before);
    esp_pack_free(&trees);
    esp_kept_text_free(&text);
    return good;
}

/* ------------------------------------------------------------------ the file */

/* SQL for the beginning, the middle and the end of the conversion. The rows of the old table
 * `session` are copied to a temporary table first. The old tables are dropped at the end. */
static const char begin[] =
    "BEGIN IMMEDIATE; "
    "CREATE TEMP TABLE was AS SELECT s.id, header, at_branch, at_length, v.hash, v.tokens, "
    "target_path, draft_path, changed, (SELECT coalesce(max(number) + 1, 0) FROM "
    "main.iteration "
    "WHERE session = s.id), name, created FROM main.session s LEFT JOIN main.vocabulary v ON "
    "v.id = s.vocabulary; "
    "DROP TABLE words; DROP TABLE session";
static const char middle[] =
    "INSERT INTO session(id, name, created, changed) SELECT id, name, created, changed FROM "
    "temp.was";
static const char end[] =
    "DROP TABLE branch; DROP TABLE token; DROP TABLE iteration; DROP TABLE generation; "
    "DROP TABLE temp.was";

static int execute(struct esp_library *l, const char *sql)
{
    return sqlite3_exec(l->db, sql, NULL, NULL, NULL);
}

/* Converts all sessions in one transaction. With `all`, a damaged session is an error. Sets
 * *damaged to the number of damaged sessions, and returns an SQLite code. */
static int convert_all(struct esp_library *l, bool all, int *damaged)
{
    sqlite3_stmt *s = NULL;
    int status = execute(l, begin);
    *damaged = 0;
    if (status == SQLITE_OK)
        status = esp_library_make_tables(l);
    if (status == SQLITE_OK)
        status = execute(l, middle);
    if (status == SQLITE_OK)
        status = sqlite3_prepare_v2(l->db, "SELECT * FROM temp.was ORDER BY id", -1, &s, NULL);
    l->status = SQLITE_OK;
    while (status == SQLITE_OK && sqlite3_step(s) == SQLITE_ROW)
        *damaged += !convert(l, s);
    sqlite3_finalize(s);
    if (status == SQLITE_OK)
        status = l->status != SQLITE_OK ? l->status
                 : all && *damaged      ? SQLITE_CORRUPT
                                        : SQLITE_OK;
    if (status == SQLITE_OK)
        status = execute(l, end);
    return status == SQLITE_OK ? execute(l, "COMMIT") : status;
}

static void roll_back(struct esp_library *l)
{
    if (!sqlite3_get_autocommit(l->db))
        execute(l, "ROLLBACK");
}

/* Copies the unchanged file PATH to PATH.damaged. If PATH.damaged exists, keeps it instead.
 * Returns whether PATH.damaged exists now. */
static bool keep_copy(struct esp_library *l)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s.damaged", l->path);
    const int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0)
        return errno == EEXIST;
    close(file);
    char *sql = sqlite3_mprintf("VACUUM INTO %Q", path);
    const bool copied = sql && execute(l, sql) == SQLITE_OK;
    sqlite3_free(sql);
    if (!copied)
        unlink(path);
    return copied;
}

int esp_library_migrate(struct esp_library *l, char *err, size_t errlen)
{
    int damaged, status = convert_all(l, true, &damaged);
    if (damaged > 0) {
        roll_back(l);
        if (keep_copy(l))
            status = convert_all(l, false, &damaged);
        esp_fail(l->note, sizeof l->note, 0,
                 "%d of the sessions in %s %s damaged; a copy of the old file is %s.damaged",
                 damaged, l->path, damaged == 1 ? "is" : "are", l->path);
    }
    if (status == SQLITE_OK)
        return ESP_OK;
    status = esp_library_fail(l, err, errlen);
    roll_back(l);
    return status;
}
