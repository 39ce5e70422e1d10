/* library.c - opens the file of kept sessions; see library.h.
 *
 * Opening turns an empty file into a library, converts a library of an earlier version, and
 * renames a file that is not a library. Then it moves the records from the journals of killed
 * programs into the library.
 */
#include "sessions/library.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernels/status.h"
#include "sessions/journal.h"
#include "sessions/library_parts.h"

enum { PATIENCE_MS = 5000 };

static int make_tables(struct esp_library *l, char *err, size_t errlen)
{
    int status = sqlite3_exec(l->db, "BEGIN", NULL, NULL, NULL);
    if (status == SQLITE_OK)
        status = esp_library_make_tables(l);
    if (status == SQLITE_OK)
        status = sqlite3_exec(l->db, "COMMIT", NULL, NULL, NULL);
    return status == SQLITE_OK ? (int)ESP_OK : esp_library_fail(l, err, errlen);
}

/* Checks that the file is a library. In mode ESP_LIBRARY_KEEP, turns an empty file into one.
 * Returns ESP_E_FORMAT if the file is not a library. The caller can then rename the file. */
static int check_file(struct esp_library *l, enum esp_library_mode mode, char *err,
                      size_t errlen)
{
    const int64_t version = esp_library_number(l, "PRAGMA user_version");
    const int code = sqlite3_errcode(l->db);
    if (version > ESP_LIBRARY_VERSION)
        return esp_fail(err, errlen, ESP_E_UNSUPPORTED, "%s was written by a newer espalier",
                        l->path);
    if (version < 0 && code != SQLITE_NOTADB && code != SQLITE_CORRUPT)
        return esp_library_fail(l, err, errlen);
    if (version == 0 && esp_library_number(l, "SELECT count(*) FROM sqlite_schema") == 0) {
        if (mode == ESP_LIBRARY_KEEP)
            return make_tables(l, err, errlen);
        return esp_fail(err, errlen, ESP_E_FILE, "%s has no sessions", l->path);
    }
    if (version > 0 && version < ESP_LIBRARY_VERSION && esp_library_is_old(l))
        return esp_library_is_open_anywhere(l)
                   ? esp_fail(
                         err, errlen, ESP_E_UNSUPPORTED,
                         "%s has the format of an earlier espalier, and that program has a "
                         "session open; close that session first",
                         l->path)
                   : esp_library_migrate(l, err, errlen);
    if (version == ESP_LIBRARY_VERSION && esp_library_has_present_tables(l)) {
        esp_library_repair_words(l, false);
        return ESP_OK;
    }
    return esp_fail(err, errlen, ESP_E_FORMAT, "%s is not a library of espalier, or is damaged",
                    l->path);
}

/* ------------------------------------------------------------------ opening and closing */

/* Creates the parent folders of a file, with access for the user only. Failures are ignored,
 * because opening the file will then fail, too. */
static void make_folders(const char *path)
{
    char folder[PATH_MAX];
    snprintf(folder, sizeof folder, "%s", path);
    for (char *slash = strchr(folder + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(folder, 0700);
        *slash = '/';
    }
}

/* Disables triggers, views and functions that the file defines, and makes SQLite overwrite
 * deleted data. */
static void configure(sqlite3 *db, enum esp_library_mode mode)
{
    sqlite3_busy_timeout(db, PATIENCE_MS);
    sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
    sqlite3_exec(db, "PRAGMA cell_size_check = ON; PRAGMA secure_delete = ON", NULL, NULL,
                 NULL);
    if (mode == ESP_LIBRARY_KEEP)
        sqlite3_exec(db,
                     "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; "
                     "PRAGMA cache_size = -512",
                     NULL, NULL, NULL);
}

static int open_file(struct esp_library *l, enum esp_library_mode mode, char *err,
                     size_t errlen)
{
    if (mode == ESP_LIBRARY_KEEP) { /* SQLite would create a file that other users can read */
        const int file = open(l->path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        if (file < 0)
            return esp_fail(err, errlen, ESP_E_FILE, "%s: %s", l->path, strerror(errno));
        close(file);
    } else if (access(l->path, R_OK) < 0) {
        return esp_fail(err, errlen, ESP_E_FILE,
                        errno == ENOENT ? "no sessions are kept: %s does not exist" : "%s: %s",
                        l->path, strerror(errno));
    }
    int status =
        sqlite3_open_v2(l->path, &l->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
    if (!l->db)
        return esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory for %s", l->path);
    if (status != SQLITE_OK)
        return esp_library_fail(l, err, errlen);
    sqlite3_extended_result_codes(l->db, 0);
    configure(l->db, mode);
    return check_file(l, mode, err, errlen);
}

static void close_file(struct esp_library *l)
{
    for (int i = 0; i < ESP_SQL_STATEMENTS; i++) {
        sqlite3_finalize(l->statement[i]);
        l->statement[i] = NULL;
    }
    sqlite3_close(l->db);
    l->db = NULL;
}

/* Renames a file that is not a library, together with its -wal and -shm files. */
static int set_aside(struct esp_library *l, char *err, size_t errlen)
{
    static const char *const parts[] = {"", "-wal", "-shm"};
    char from[PATH_MAX], to[PATH_MAX];
    struct stat there;
    int free_number = 1;
    do
        snprintf(to, sizeof to, "%s.unreadable-%d", l->path, free_number);
    while (lstat(to, &there) == 0 && free_number++ < 1000);
    for (int i = 0; i < 3; i++) {
        snprintf(from, sizeof from, "%s%s", l->path, parts[i]);
        snprintf(to, sizeof to, "%s.unreadable-%d%s", l->path, free_number, parts[i]);
        if (rename(from, to) < 0 && i == 0)
            return esp_fail(err, errlen, ESP_E_FILE, "%s cannot be renamed: %s", l->path,
                            strerror(errno));
    }
    snprintf(to, sizeof to, "%s.unreadable-%d", l->path, free_number);
    esp_fail(l->note, sizeof l->note, 0,
             "%s is not a library of espalier, or is damaged; it was renamed to %s, and "
             "sessions are kept in a new file",
             l->path, strrchr(to, '/') ? strrchr(to, '/') + 1 : to);
    return ESP_OK;
}

/* Renames a damaged journal, and writes a sentence about it to l->note. */
static void set_journal_aside(struct esp_library *l, int64_t id)
{
    char from[PATH_MAX], to[PATH_MAX + 32];
    struct stat there;
    int free_number = 0;
    esp_journal_path(from, sizeof from, l->path, id);
    do
        snprintf(to, sizeof to, "%s.unreadable-%d", from, ++free_number);
    while (lstat(to, &there) == 0 && free_number < 1000);
    if (rename(from, to) == 0)
        esp_fail(
            l->note, sizeof l->note, 0,
            "%s, the last part of session %lld, is damaged; its readable records are kept, "
            "and the file was renamed to %s",
            from, (long long)id, strrchr(to, '/') ? strrchr(to, '/') + 1 : to);
}

/* Moves the records that a killed program has left in a session's journal into the library. If
 * this fails, the journal is not removed, and the next program that opens the library tries
 * again. */
static void recover(struct esp_library *l, enum esp_library_mode mode, int64_t id)
{
    struct esp_left left;
    char path[PATH_MAX], err[256];
    if ((!esp_library_claims_exclude() && esp_journal_is_ours(l->path, id)) ||
        !esp_library_claim(l, id))
        return;
    int status = esp_journal_read(&left, l->path, id);
    bool damaged = status == ESP_E_FORMAT;
    if (status == ESP_OK) {
        damaged = left.damaged;
        for (int i = 0; i < 2 && status == ESP_OK; i++)
            if (left.area[i].length > 0)
                status =
                    esp_library_store(l, id, left.chunk[i], &left.area[i], 1, err, sizeof err);
        damaged |= status == ESP_E_MISMATCH; /* the journal belongs to an earlier library */
        esp_left_free(&left);
    }
    if (damaged && mode == ESP_LIBRARY_KEEP && status != ESP_E_FILE) {
        set_journal_aside(l, id);
    } else if (!damaged && status == ESP_OK) {
        esp_journal_path(path, sizeof path, l->path, id);
        esp_journal_remove(path);
    }
    esp_library_release(l, id);
}

/* Recovers all journals next to the library. */
static void recover_all(struct esp_library *l, enum esp_library_mode mode)
{
    char folder[PATH_MAX];
    int64_t found[64], id;
    int count = 0;
    struct dirent *entry;
    snprintf(folder, sizeof folder, "%s", l->path);
    char *slash = strrchr(folder, '/');
    if (slash)
        slash[slash == folder] = '\0';
    DIR *entries = opendir(slash ? folder : ".");
    while (entries && count < 64 && (entry = readdir(entries)))
        if ((id = esp_journal_session(l->path, entry->d_name)) > 0)
            found[count++] = id;
    if (entries)
        closedir(entries);
    for (int i = 0; i < count; i++)
        recover(l, mode, found[i]);
}

static int open_library(struct esp_library *l, enum esp_library_mode mode, char *err,
                        size_t errlen)
{
    char locks[PATH_MAX];
    if (mode == ESP_LIBRARY_KEEP)
        make_folders(l->path);
    snprintf(locks, sizeof locks, "%s.lock", l->path);
    l->locks = open(locks, O_RDWR | O_CLOEXEC | (mode == ESP_LIBRARY_KEEP ? O_CREAT : 0), 0600);
    /* While this lock is held, no other program creates or renames the library. */
    const bool locked = esp_library_claim_file(l);
    int status = open_file(l, mode, err, errlen);
    if (status == ESP_E_FORMAT && mode == ESP_LIBRARY_KEEP && locked) {
        close_file(l);
        status = set_aside(l, err, errlen);
        if (status == ESP_OK)
            status = open_file(l, mode, err, errlen);
    }
    if (status == ESP_OK && locked)
        recover_all(l, mode);
    esp_library_release_file(l);
    return status;
}

int esp_library_open(struct esp_library **library, const char *path, enum esp_library_mode mode,
                     char *err, size_t errlen)
{
    struct esp_library *l = calloc(1, sizeof *l);
    *library = NULL;
    if (!l || !(l->path = strdup(path))) {
        free(l);
        return esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory for %s", path);
    }
    l->locks = -1;
    const int status = open_library(l, mode, err, errlen);
    if (status < 0)
        esp_library_close(l);
    else
        *library = l;
    return status;
}

void esp_library_close(struct esp_library *l)
{
    if (!l)
        return;
    close_file(l);
    if (l->locks >= 0)
        close(l->locks);
    for (int i = 0; i < 2; i++)
        esp_pack_free(&l->sorted[i]);
    esp_pack_free(&l->trees);
    free(l->path);
    free(l);
}

const char *esp_library_note(const struct esp_library *l)
{
    return l->note;
}
