/* library_parts.h - shared by library.c, library_read.c and library_write.c. SQLite appears
 * only in these files. */
#ifndef ESP_LIBRARY_PARTS_H
#define ESP_LIBRARY_PARTS_H

#include <sqlite3.h>
#include <stdbool.h>

#include "sessions/library.h"

/* All SQL statements. Each is prepared when it is first used, and finalized when the library
 * is closed. */
#define ESP_LIBRARY_STATEMENTS(X)                                                              \
    X(BEGIN, "BEGIN IMMEDIATE")                                                                \
    X(COMMIT, "COMMIT")                                                                        \
    X(ROLLBACK, "ROLLBACK")                                                                    \
    X(ADD_SESSION, "INSERT INTO session(created, changed) VALUES(?1, ?1)")                     \
    X(ADD_VOCABULARY, "INSERT OR IGNORE INTO vocabulary(hash, tokens) VALUES(?1, ?2)")         \
    X(PUT_HEADER, "UPDATE session SET header = ?2, target_path = ?3, draft_path = ?4, "        \
                  "vocabulary = (SELECT id FROM vocabulary WHERE hash = ?5) WHERE id = ?1")    \
    X(PUT_PLACE,                                                                               \
      "UPDATE session SET at_branch = ?2, at_length = ?3, changed = ?4 WHERE id = ?1")         \
    X(PUT_NAME, "UPDATE session SET name = ?2 WHERE id = ?1")                                  \
    X(PUT_BRANCH,                                                                              \
      "INSERT INTO branch(session, number, parent, fork, name, marked, deleted, created, "     \
      "drafter, indexed) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 0) ON CONFLICT DO UPDATE " \
      "SET name = ?5, marked = ?6, deleted = ?7")                                              \
    X(PUT_TOKEN,                                                                               \
      "INSERT OR REPLACE INTO token VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)")          \
    X(PUT_PIECE,                                                                               \
      "INSERT OR IGNORE INTO piece SELECT id, ?2, ?3 FROM vocabulary WHERE hash = ?1")         \
    X(PUT_ITERATION, "INSERT OR REPLACE INTO iteration VALUES(?1, ?2, ?3, ?4)")                \
    X(PUT_GENERATION, "INSERT OR REPLACE INTO generation VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)")  \
    X(STALE, "SELECT session, number FROM branch b WHERE (session = ?1 OR ?1 = 0) AND NOT "    \
             "deleted AND "                                                                    \
             "indexed < (SELECT max(place) + 1 FROM token t WHERE t.session = b.session AND "  \
             "t.branch = "                                                                     \
             "b.number)")                                                                      \
    X(OWN_BYTES,                                                                               \
      "SELECT p.bytes, t.place FROM token t JOIN session s ON s.id = t.session LEFT JOIN "     \
      "piece p ON p.vocabulary = s.vocabulary AND p.token = t.token WHERE t.session = ?1 AND " \
      "t.branch = ?2 AND t.kind <> 3 ORDER BY t.place LIMIT ?3")                               \
    X(REMOVE_WORDS, "DELETE FROM words WHERE rowid = ?1")                                      \
    X(ADD_WORDS, "INSERT INTO words(rowid, own) VALUES(?1, ?2)")                               \
    X(SET_INDEXED, "UPDATE branch SET indexed = ?3 WHERE session = ?1 AND number = ?2")        \
    X(LIST,                                                                                    \
      "SELECT id, name, created, changed, header, target_path, draft_path, (SELECT count(*) "  \
      "FROM branch WHERE session = s.id AND NOT deleted), (SELECT count(*) FROM token WHERE "  \
      "session = s.id), (SELECT min(number) FROM branch WHERE session = s.id AND NOT "         \
      "deleted) FROM session s WHERE (?1 = 0 OR id = ?1) AND (?2 = '' OR name = ?2) "          \
      "ORDER BY changed DESC, id DESC")                                                        \
    X(LATEST, "SELECT id FROM session ORDER BY changed DESC, id DESC")                         \
    X(SEARCH,                                                                                  \
      "SELECT w.rowid, snippet(words, 0, '[', ']', '...', 12) FROM words w JOIN branch b ON "  \
      "b.session = w.rowid >> 32 AND b.number = w.rowid & 4294967295 WHERE words MATCH ?1 "    \
      "AND NOT "                                                                               \
      "b.deleted ORDER BY w.rank LIMIT 200")                                                   \
    X(SESSION, "SELECT header, at_branch, at_length, v.hash, v.tokens, created, (SELECT "      \
               "coalesce(max(number) + 1, 0) FROM iteration WHERE session = s.id), (SELECT "   \
               "coalesce(max(number) + 1, 0) FROM generation WHERE session = s.id) FROM "      \
               "session s LEFT JOIN "                                                          \
               "vocabulary v ON v.id = s.vocabulary WHERE s.id = ?1")                          \
    X(BRANCHES,                                                                                \
      "SELECT number, parent, fork, name, marked, deleted, created, drafter FROM branch "      \
      "WHERE session = ?1 ORDER BY number")                                                    \
    X(TOKENS,                                                                                  \
      "SELECT branch, place, token, kind, iteration, p, entropy, rank, likely FROM token "     \
      "WHERE session = ?1 ORDER BY branch, place")                                             \
    X(ITERATION, "SELECT line FROM iteration WHERE session = ?1 AND number = ?2")              \
    X(PIECES, "SELECT token FROM piece JOIN vocabulary ON id = vocabulary WHERE hash = ?1")    \
    X(PIECE, "SELECT bytes FROM piece JOIN vocabulary ON id = vocabulary WHERE hash = ?1 AND " \
             "token = ?2")                                                                     \
    X(GENERATIONS, "SELECT number, place, draft, verify, tokens, header FROM generation "      \
                   "WHERE session = ?1 "                                                       \
                   "ORDER BY number")                                                          \
    X(WRITERS, "SELECT number, generation FROM iteration WHERE session = ?1 ORDER BY number")  \
    X(DROP_WORDS, "DELETE FROM words WHERE rowid >> 32 = ?1")                                  \
    X(DROP_ITERATIONS, "DELETE FROM iteration WHERE session = ?1")                             \
    X(DROP_GENERATIONS, "DELETE FROM generation WHERE session = ?1")                           \
    X(DROP_UNUSED, "DELETE FROM iteration WHERE session = ?1 AND number NOT IN (SELECT "       \
                   "iteration FROM token WHERE session = ?1 AND iteration IS NOT NULL)")       \
    X(DROP_TOKENS, "DELETE FROM token WHERE session = ?1")                                     \
    X(DROP_BRANCHES, "DELETE FROM branch WHERE session = ?1")                                  \
    X(DROP_SESSION, "DELETE FROM session WHERE id = ?1")                                       \
    X(DROP_PIECES,                                                                             \
      "DELETE FROM piece WHERE vocabulary NOT IN (SELECT vocabulary FROM session WHERE "       \
      "vocabulary IS NOT NULL)")                                                               \
    X(OPTIMIZE, "INSERT INTO words(words) VALUES('optimize')")

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
    sqlite3_stmt *statement[ESP_SQL_STATEMENTS]; /* NULL: not prepared yet */
    int status;     /* SQLITE_OK, or the first failure of the transaction */
    char what[256]; /* SQLite's message about this failure */
};

/* Returns the row id of a branch in the index of words. */
static inline int64_t esp_library_row(int64_t session, int branch)
{
    return session << 32 | branch;
}

/* Returns a statement, reset and without bound values, or NULL if it cannot be prepared;
 * esp_library_fail() then says why. */
sqlite3_stmt *esp_library_sql(struct esp_library *library, enum esp_library_statement index);
/* Runs a statement whose rows are not needed, and resets it. Returns SQLITE_OK or an SQLite
 * error code. */
int esp_library_run(sqlite3_stmt *statement);
/* Writes the last failure of SQLite to err, with the file's name. Returns ESP_E_FILE. */
int esp_library_fail(struct esp_library *library, char *err, size_t errlen);

#endif
