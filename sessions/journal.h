/* journal.h - stores the newest records of an open session in a memory-mapped file.
 *
 * The engine's thread adds records to the journal. This only copies bytes in memory. The
 * records survive even if the program is killed, because the operating system writes mapped
 * memory to the file. Another thread moves the records to the library and empties the journal.
 * There are two areas: one receives new records while the records of the other are moved.
 *
 * The journal of session N is the file PATH-N.journal, next to the library PATH. It exists
 * while the session is open and claimed (esp_library_claim). If it exists but the session is
 * not claimed, the program was killed. Then esp_library_open() moves the records to the
 * library.
 */
#ifndef ESP_JOURNAL_H
#define ESP_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct esp_journal;

enum { ESP_JOURNAL_AREA = 2 << 20 /* size of an area in bytes */ };

/* A block of memory that contains records of a log, one after the other. */
struct esp_records {
    const unsigned char *at;
    size_t length;
};

/* Creates the journal of a session. Its first records will be stored as chunk `chunk` of the
 * session's log. Returns 0, or a negative status with a sentence in err. */
int esp_journal_open(struct esp_journal **journal, const char *library, int64_t session,
                     int chunk, char *err, size_t errlen);
/* Closes the journal. If `remove` is true, overwrites its records and removes the file. If the
 * records are still needed, store them in the library first. */
void esp_journal_close(struct esp_journal *journal, bool remove);
/* Adds records to the current area. Returns false if the area has no room for them. */
bool esp_journal_add(struct esp_journal *journal, const void *records, size_t length);
/* Returns the number of bytes added since the last call of esp_journal_take(). */
size_t esp_journal_used(const struct esp_journal *journal);
/* Returns the records of the current area, and makes the other area the current one. The result
 * is valid until esp_journal_taken(). Call esp_journal_taken() when the records are stored, and
 * before the next esp_journal_take(). */
struct esp_records esp_journal_take(struct esp_journal *journal);
void esp_journal_taken(struct esp_journal *journal);

/* ------------------------------------------------------------------ after a crash */

/* Contains the records that a killed program has left in a journal. */
struct esp_left {
    unsigned char *file;        /* (allocated) the bytes of the journal */
    struct esp_records area[2]; /* the complete records of both areas, the earlier area first */
    int chunk[2];               /* for each area, the number of the chunk of the session's log
                                   in which its records will be stored */
    bool damaged;               /* an area has bytes after its last complete record */
};

/* If `name` is the file name of a journal of the library, returns the session's number.
 * Otherwise returns 0. */
int64_t esp_journal_session(const char *library, const char *name);
/* Reads the journal of a session. Returns 0, or ESP_E_FORMAT if the file is not a journal. Free
 * `left` after success. */
int esp_journal_read(struct esp_left *left, const char *library, int64_t session);
void esp_left_free(struct esp_left *left);
/* Returns whether this process created the journal of a session. */
bool esp_journal_is_ours(const char *library, int64_t session);
/* Overwrites and removes the journal of a program that was killed. */
void esp_journal_remove(const char *path);
/* Writes the path of a session's journal. */
void esp_journal_path(char *path, size_t size, const char *library, int64_t session);

#endif
