/* library_parts.h - declares what the files library*.c share. Only these files use SQLite. */
#ifndef ESP_LIBRARY_PARTS_H
#define ESP_LIBRARY_PARTS_H

#include <sqlite3.h>
#include <stdbool.h>

#include "sessions/library.h"
#include "sessions/log.h"

/* All SQL statements. A statement is prepared when it is first used, and finalized when the
 * library is closed. */
#define ESP_LIBRARY_STATEMENTS(X)                                                              \
    X(BEGIN, "BEGIN IMMEDIATE")                                                                \
    X(COMMIT, "COMMIT")                                                                        \
    X(ROLLBACK, "ROLLBACK")                                                                    \
    X(ADD_SESSION, "INSERT INTO session(created, changed) VALUES(?1, ?1)")                     \
    X(ADD_VOCABULARY, "INSERT OR IGNORE INTO vocabulary(hash, tokens) VALUES(?1, ?2)")         \
    X(PUT_HEADER, "UPDATE session SET header = ?2, target_path = ?3, draft_path = ?4, "        \
                  "vocabulary = (SELECT id FROM vocabulary WHERE hash = ?5) WHERE id = ?1")    \
    X(PUT_CHANGED,                                                                             \
      "UPDATE session SET changed = coalesce(?2, changed), iterations = max(iterations, ?3), " \
      "generations = max(generations, ?4) WHERE id = ?1")                                      \
    X(PUT_NAME, "UPDATE session SET name = ?2 WHERE id = ?1")                                  \
    X(PUT_CHUNK, "INSERT INTO chunk VALUES(?1, ?2, ?3, ?4, ?5)")                               \
    X(PUT_PIECE, "INSERT OR IGNORE INTO piece SELECT vocabulary, ?2, ?3 FROM session WHERE "   \
                 "id = ?1 AND vocabulary IS NOT NULL")                                         \
    X(NEXT, "SELECT iterations, generations, (SELECT coalesce(max(number) + 1, 0) FROM chunk " \
            "WHERE session = s.id), created FROM session s WHERE id = ?1")                     \
    X(TEXTS, "SELECT texts FROM chunk WHERE session = ?1 ORDER BY number")                     \
    X(ALL_TREES, "SELECT trees FROM chunk WHERE session = ?1 ORDER BY number")                 \
    X(TREES, "SELECT trees FROM chunk WHERE session = ?1 AND iteration <= ?2 AND "             \
             "length(trees) > 0 ORDER BY number DESC LIMIT 1")                                 \
    X(STALE, "SELECT id, (SELECT max(number) + 1 FROM chunk WHERE session = s.id) AS chunks "  \
             "FROM session s WHERE (id = ?1 OR ?1 = 0) AND seen < chunks")                     \
    X(INDEXED, "SELECT indexed FROM session WHERE id = ?1")                                    \
    X(SET_SEEN, "UPDATE session SET seen = ?2, branches = ?3, tokens = ?4, words = ?5, "       \
                "indexed = ?6 WHERE id = ?1")                                                  \
    X(REMOVE_WORDS, "DELETE FROM words WHERE rowid = ?1")                                      \
    X(ADD_WORDS, "INSERT INTO words(rowid, own) VALUES(?1, ?2)")                               \
    X(LIST, "SELECT id, name, created, changed, header, target_path, draft_path, branches, "   \
            "tokens, words FROM session s WHERE (?1 = 0 OR id = ?1) AND (?2 = '' OR name = "   \
            "?2) AND EXISTS(SELECT 1 FROM chunk WHERE session = s.id) ORDER BY changed DESC, " \
            "id DESC")                                                                         \
    X(LATEST, "SELECT id FROM session s WHERE EXISTS(SELECT 1 FROM chunk WHERE session = "     \
              "s.id) ORDER BY changed DESC, id DESC")                                          \
    X(SEARCH, "SELECT rowid, snippet(words, 0, '[', ']', '...', 12) FROM words WHERE words "   \
              "MATCH ?1 ORDER BY rank LIMIT 200")                                              \
    X(SESSION, "SELECT header, v.hash, v.tokens, created, iterations, generations FROM "       \
               "session s LEFT JOIN vocabulary v ON v.id = s.vocabulary WHERE s.id = ?1")      \
    X(PIECES, "SELECT token, bytes FROM piece JOIN vocabulary ON id = vocabulary WHERE "       \
              "hash = ?1")                                                                     \
    X(PIECE, "SELECT bytes FROM piece JOIN vocabulary ON id = vocabulary WHERE hash = ?1 AND " \
             "token = ?2")                                                                     \
    X(DROP_WORDS, "DELETE FROM words WHERE rowid >= ?1 << 32 AND rowid < (?1 + 1) << 32")      \
    X(DROP_CHUNKS, "DELETE FROM chunk WHERE session = ?1")                                     \
    X(DROP_SESSION, "DELETE FROM session WHERE id = ?1")                                       \
    X(DROP_PIECES,                                                                             \
      "DELETE FROM piece WHERE vocabulary NOT IN (SELECT vocabulary FROM session WHERE "       \
      "vocabulary IS NOT NULL)")                                                               \
    X(FORGET_SEEN, "UPDATE session SET seen = 0, indexed = x'' WHERE id = ?1 OR ?1 = 0")       \
    X(OPTIMIZE, "INSERT INTO words(words) VALUES('optimize')")

/* Holds the name of a table and the SQL statement that creates the table. */
typedef const char *const esp_library_table[2];

/* Tables that old and new libraries have in common. */
#define ESP_TABLE_VOCABULARY                                                                   \
    "CREATE TABLE vocabulary(id INTEGER PRIMARY KEY, hash TEXT NOT NULL UNIQUE, tokens "       \
    "INTEGER NOT NULL) STRICT"
#define ESP_TABLE_PIECE                                                                        \
    "CREATE TABLE piece(vocabulary INTEGER NOT NULL REFERENCES vocabulary, token INTEGER NOT " \
    "NULL, bytes BLOB NOT NULL, PRIMARY KEY(vocabulary, token)) STRICT, WITHOUT ROWID"
#define ESP_TABLE_WORDS "CREATE VIRTUAL TABLE words USING fts5(own)"

enum esp_library_statement {
#define X(name, sql) ESP_SQL_##name,
    ESP_LIBRARY_STATEMENTS(X)
#undef X
        ESP_SQL_STATEMENTS
};

struct esp_library {
    sqlite3 *db;
    char *path;
    int locks; /* descriptor of the lock file, or -1 */
    char note[512];
    sqlite3_stmt *statement[ESP_SQL_STATEMENTS]; /* NULL means not prepared yet */
    int status;                /* SQLITE_OK, or the first failure of the transaction */
    char what[256];            /* SQLite's message about this failure */
    struct esp_pack sorted[2]; /* buffers of put_records(), reused by each call */
    struct esp_pack trees;     /* trees of the chunk that was read last */
    int64_t trees_of;          /* the session that this chunk belongs to */
    size_t tree_at;            /* offset of the record after the tree that was found last */
    int tree_number;           /* number of the tree that was found last */
};

/* ---- library_base.c */

/* The version of the file's format. Versions 1 and 2 had a row for each token, branch and
 * iteration; library_old.c converts such files. */
enum { ESP_LIBRARY_VERSION = 3 };

/* Returns a statement, reset and without bound values. Returns NULL if it cannot be prepared;
 * then esp_library_fail() says why. */
sqlite3_stmt *esp_library_sql(struct esp_library *library, enum esp_library_statement index);
/* Writes the last failure of SQLite to err, with the file's name. Returns ESP_E_FILE. */
int esp_library_fail(struct esp_library *library, char *err, size_t errlen);
/* Returns the number that a query returns, or -1 if it returns no number. */
int64_t esp_library_number(struct esp_library *library, const char *query);
/* Creates the tables that the file lacks, and sets its version. Returns an SQLite code. */
int esp_library_make_tables(struct esp_library *library);
/* esp_library_has_tables() returns whether the file has exactly the `count` tables in `tables`.
 * esp_library_has_present_tables() returns whether it has exactly the tables of the current
 * version. */
bool esp_library_has_tables(struct esp_library *library, esp_library_table *tables, int count);
bool esp_library_has_present_tables(struct esp_library *library);
/* Locks the file, so that no other program creates, renames or rewrites it. Waits if another
 * program has the lock. Returns false if there is no lock file. */
bool esp_library_claim_file(struct esp_library *library);
void esp_library_release_file(struct esp_library *library);
/* Returns whether another program has claimed any session. */
bool esp_library_is_open_anywhere(const struct esp_library *library);
/* Returns whether a claim of a session also excludes other esp_libraries of this process. */
bool esp_library_claims_exclude(void);

/* These functions are used within a transaction, and do nothing after a failure.
 * esp_library_next() returns a statement, or NULL after a failure. esp_library_do() runs the
 * statement. esp_library_do_of() runs a statement that needs only the number of a session. */
sqlite3_stmt *esp_library_next(struct esp_library *library, enum esp_library_statement index);
void esp_library_do(struct esp_library *library, sqlite3_stmt *statement);
void esp_library_do_of(struct esp_library *library, enum esp_library_statement index,
                       int64_t id);

/* ---- library_write.c: parts of a transaction */

/* Replaces all chunks of a session. The new chunks contain the records `before`, the texts and
 * trees from `trees`. The tree of an iteration that wrote no token of the texts is left out. */
void esp_library_put_texts(struct esp_library *library, int64_t id,
                           const struct esp_kept_text *text, const struct esp_pack *before,
                           const struct esp_pack *trees);

/* ---- library_words.c */

/* Replaces a damaged index of words by an empty one. Returns whether the index can be used. */
bool esp_library_repair_words(struct esp_library *library, bool damaged);

/* ---- library_old.c */

/* Returns whether the file has exactly the tables of versions 1 and 2. */
bool esp_library_is_old(struct esp_library *library);
/* Converts a library of an earlier version. Returns 0, or a negative status with a sentence in
 * err. */
int esp_library_migrate(struct esp_library *library, char *err, size_t errlen);

/* ---- library_read.c */

/* Copies the text in a column of a row to `to`. NULL becomes "". */
void esp_library_copy_text(char *to, size_t size, sqlite3_stmt *s, int column);
/* Returns the integer in a column of a row. Sets *damaged if the value is not an integer within
 * the limits. */
int64_t esp_library_integer(sqlite3_stmt *s, int column, int64_t least, int64_t most,
                            bool *damaged);

#endif
