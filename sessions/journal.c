/* journal.c - writes journals, and reads the journals of killed programs; see journal.h.
 *
 * The file consists of a head and two areas. `used` in the head is the number of valid bytes in
 * an area. It is increased only after a record was copied completely, so after kill -9 it
 * covers only complete records. After a power failure a record can be damaged. Its checksum
 * (log.h) shows this.
 */
#include "sessions/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernels/status.h"
#include "sessions/log.h"

static const char MAGIC[16] = "espalier-log 1\n";

/* The beginning of the file. Its numbers have the machine's byte order, because a journal is
 * read only on the machine that wrote it. */
struct head {
    char magic[sizeof MAGIC];
    int64_t process; /* ID of the process that has the journal open */
    struct {
        uint32_t chunk;
        _Atomic uint32_t used;
    } area[2];
};

enum { HEAD = 4096, SIZE = HEAD + 2 * ESP_JOURNAL_AREA };

struct esp_journal {
    char path[PATH_MAX];
    unsigned char *map; /* (SIZE) */
    int now;            /* index of the area that receives new records */
    size_t most;        /* largest number of bytes ever used in an area */
};

static struct head *head_of(const struct esp_journal *j)
{
    return (struct head *)(void *)j->map;
}

static unsigned char *area_of(const struct esp_journal *j, int area)
{
    return j->map + HEAD + (size_t)area * ESP_JOURNAL_AREA;
}

void esp_journal_path(char *path, size_t size, const char *library, int64_t session)
{
    snprintf(path, size, "%s-%lld.journal", library, (long long)session);
}

/* Overwrites the whole file with zeros. Returns false if this fails. */
static bool write_zeros(int file)
{
    static const char zeros[1 << 16];
    for (size_t at = 0; at < SIZE;) {
        const size_t more = SIZE - at < sizeof zeros ? SIZE - at : sizeof zeros;
        const ssize_t written = write(file, zeros, more);
        if (written <= 0)
            return false;
        at += (size_t)written;
    }
    return true;
}

/* Reserves disk space for the whole file. Otherwise, if the disk is full, a write to the mapped
 * memory would kill the program. Returns 0 or an errno value. */
static int reserve(int file)
{
#ifdef __linux__
    return posix_fallocate(file, 0, SIZE);
#else
    return write_zeros(file) ? 0 : errno;
#endif
}

static unsigned char *map_file(const char *path)
{
    const int file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file < 0)
        return MAP_FAILED;
    const int full = reserve(file);
    unsigned char *map =
        full ? MAP_FAILED : mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    const int reason = full ? full : errno;
    close(file);
    if (map == MAP_FAILED)
        unlink(path);
    errno = reason;
    return map;
}

int esp_journal_open(struct esp_journal **journal, const char *library, int64_t session,
                     int chunk, char *err, size_t errlen)
{
    struct esp_journal *j = calloc(1, sizeof *j);
    *journal = NULL;
    if (!j)
        return esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory for the journal");
    esp_journal_path(j->path, sizeof j->path, library, session);
    if ((j->map = map_file(j->path)) == MAP_FAILED) {
        const int status =
            esp_fail(err, errlen, ESP_E_FILE, "%s: %s", j->path, strerror(errno));
        free(j);
        return status;
    }
    struct head *head = head_of(j);
    head->process = getpid();
    head->area[0].chunk = (uint32_t)chunk;
    head->area[1].chunk = (uint32_t)chunk + 1;
    memcpy(head->magic, MAGIC, sizeof MAGIC);
    *journal = j;
    return ESP_OK;
}

void esp_journal_close(struct esp_journal *j, bool remove)
{
    if (!j)
        return;
    if (remove) {
        memset(j->map, 0, HEAD);
        for (int i = 0; i < 2; i++)
            memset(area_of(j, i), 0, j->most);
    }
    munmap(j->map, SIZE);
    if (remove)
        unlink(j->path);
    free(j);
}

size_t esp_journal_used(const struct esp_journal *j)
{
    return atomic_load_explicit(&head_of(j)->area[j->now].used, memory_order_relaxed);
}

bool esp_journal_add(struct esp_journal *j, const void *records, size_t length)
{
    const size_t used = esp_journal_used(j);
    if (length > ESP_JOURNAL_AREA - used)
        return false;
    memcpy(area_of(j, j->now) + used, records, length);
    atomic_store_explicit(&head_of(j)->area[j->now].used, (uint32_t)(used + length),
                          memory_order_release);
    j->most = used + length > j->most ? used + length : j->most;
    return true;
}

struct esp_records esp_journal_take(struct esp_journal *j)
{
    const struct esp_records taken = {area_of(j, j->now), esp_journal_used(j)};
    struct head *head = head_of(j);
    head->area[!j->now].chunk = head->area[j->now].chunk + 1;
    j->now = !j->now;
    return taken;
}

void esp_journal_taken(struct esp_journal *j)
{
    atomic_store_explicit(&head_of(j)->area[!j->now].used, 0, memory_order_release);
}

/* ------------------------------------------------------------------ after a crash */

int64_t esp_journal_session(const char *library, const char *name)
{
    const char *slash = strrchr(library, '/'), *own = slash ? slash + 1 : library;
    const size_t length = strlen(own);
    long long session = 0;
    int end = 0;
    if (strncmp(name, own, length) != 0 ||
        sscanf(name + length, "-%18lld.journal%n", &session, &end) != 1 || end == 0 ||
        name[length + (size_t)end])
        return 0;
    return session > 0 ? session : 0;
}

/* Returns the records of an area before the first damaged record. Sets *damaged if there is a
 * damaged record. */
static struct esp_records whole(const unsigned char *at, size_t length, bool *damaged)
{
    const unsigned char *from = at, *end = at + length;
    struct esp_from any;
    int kind;
    while ((kind = esp_log_next(&from, end, &any)) > 0)
        continue;
    *damaged |= kind < 0;
    return (struct esp_records){at, (size_t)(from - at)};
}

/* Returns the file's bytes, followed by zeros up to SIZE bytes, or NULL if the file cannot be
 * opened. */
static unsigned char *read_file(const char *path, size_t *length)
{
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    unsigned char *bytes = file >= 0 ? calloc(1, SIZE) : NULL;
    ssize_t more = 1;
    *length = 0;
    while (bytes && *length < SIZE && more > 0)
        if ((more = read(file, bytes + *length, SIZE - *length)) > 0)
            *length += (size_t)more;
    if (file >= 0)
        close(file);
    return bytes;
}

static bool is_zero(const unsigned char *bytes, size_t length)
{
    return length == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, length - 1) == 0);
}

int esp_journal_read(struct esp_left *left, const char *library, int64_t session)
{
    char path[PATH_MAX];
    struct head head;
    size_t length;
    *left = (struct esp_left){.file = NULL};
    esp_journal_path(path, sizeof path, library, session);
    if (!(left->file = read_file(path, &length)))
        return ESP_E_FORMAT;
    if (is_zero(left->file, length)) /* a program was killed while it created or removed
                                        the journal */
        return ESP_OK;
    memcpy(&head, left->file, sizeof head);
    int status = memcmp(head.magic, MAGIC, sizeof MAGIC) != 0 ? (int)ESP_E_FORMAT : (int)ESP_OK;
    const int first = head.area[1].chunk < head.area[0].chunk;
    for (int i = 0; i < 2 && status == ESP_OK; i++) {
        const int area = first ^ i;
        const size_t used = head.area[area].used;
        if (used > ESP_JOURNAL_AREA || head.area[area].chunk > INT32_MAX)
            status = ESP_E_FORMAT;
        else
            left->area[i] = whole(left->file + HEAD + (size_t)area * ESP_JOURNAL_AREA, used,
                                  &left->damaged);
        left->chunk[i] = (int)head.area[area].chunk;
    }
    if (status < 0)
        esp_left_free(left);
    return status;
}

void esp_left_free(struct esp_left *left)
{
    free(left->file);
    *left = (struct esp_left){.file = NULL};
}

bool esp_journal_is_ours(const char *library, int64_t session)
{
    char path[PATH_MAX];
    struct head head = {.process = 0};
    esp_journal_path(path, sizeof path, library, session);
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    const bool whole_head = file >= 0 && read(file, &head, sizeof head) == sizeof head;
    if (file >= 0)
        close(file);
    return whole_head && head.process == getpid();
}

void esp_journal_remove(const char *path)
{
    const int file = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (file >= 0) {
        write_zeros(file); /* the file is removed even if this fails */
        close(file);
    }
    unlink(path);
}
