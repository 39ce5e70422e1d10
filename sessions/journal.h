/* journal.h - the last records of a session that is open, in a file that is memory.
 *
 * The engine's thread adds its records here, which is a copy in memory: the file is mapped. What
 * was added survives the end of the program, however it ends, because the system has it. Another
 * thread moves the records to the library and empties the journal. It has two areas: one is
 * filled while the other one is moved.
 *
 * The file is PATH-N.journal, beside the library PATH, for session N. It exists while the session
 * is open and claimed (esp_library_claim). If it is there and the session is not claimed, a
 * program has ended early; esp_library_open() moves its records to the library.
 */
#ifndef ESP_JOURNAL_H
#define ESP_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct esp_journal;

enum { ESP_JOURNAL_AREA = 2 << 20 /* bytes of an area */ };

/* Bytes that lie one after the other. */
struct esp_records {
    const unsigned char *at;
    size_t length;
};

/* Makes the journal of a session; its first records become chunk `chunk` of the session's log.
 * Returns 0, or a negative status with a sentence in err. */
int esp_journal_open(struct esp_journal **journal, const char *library, int64_t session,
                     int chunk, char *err, size_t errlen);
/* Closes the journal. `remove`: its records are in the library (or are to be forgotten); they are
 * overwritten, and the file is removed. */
void esp_journal_close(struct esp_journal *journal, bool remove);
/* Adds records. Returns false if the area has no room for them. */
bool esp_journal_add(struct esp_journal *journal, const void *records, size_t length);
/* The number of bytes added since the last call of esp_journal_take(). */
size_t esp_journal_used(const struct esp_journal *journal);
/* Ends an area, and returns its records; the other area is filled from now on. The records are
 * valid, and no other area may be taken, until esp_journal_taken() says that they are stored. */
struct esp_records esp_journal_take(struct esp_journal *journal);
void esp_journal_taken(struct esp_journal *journal);

/* ------------------------------------------------------------------ after a crash */

/* The records of a journal that was left. */
struct esp_left {
    unsigned char *file;        /* (allocated) */
    struct esp_records area[2]; /* whole records, the earlier area first */
    int chunk[2];               /* which chunk of the log each area becomes */
    bool damaged;               /* something else was in an area, too */
};

/* If `name` is that of a journal of the library, returns the session's number, otherwise 0. */
int64_t esp_journal_session(const char *library, const char *name);
/* Reads the journal of a session. Returns 0, or ESP_E_FORMAT if the file is not a journal. Free
 * `left` after success. */
int esp_journal_read(struct esp_left *left, const char *library, int64_t session);
void esp_left_free(struct esp_left *left);
/* Returns whether this process made the journal of a session. */
bool esp_journal_is_ours(const char *library, int64_t session);
/* Overwrites and removes a journal that was left. */
void esp_journal_remove(const char *path);
/* Writes the path of a session's journal. */
void esp_journal_path(char *path, size_t size, const char *library, int64_t session);

#endif
