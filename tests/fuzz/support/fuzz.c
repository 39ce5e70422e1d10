/* fuzz.c - makes files, splits inputs into parts, and checks texts; see fuzz.h. */
#include "tests/fuzz/support/fuzz.h"

#include <dirent.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <utf8proc.h>

/* AddressSanitizer calls this function before main() to get its options. With one of them,
 * passing a string without a NUL to the C library is an error, even if the call happens to
 * work. */
const char *__asan_default_options(void);

const char *__asan_default_options(void)
{
    return "strict_string_checks=1:detect_stack_use_after_return=1:quarantine_size_mb=8:"
           "print_suppressions=0";
}

/* LeakSanitizer calls this function to get a list of libraries in which it ignores leaks.
 * Readline does not free its memory for searches. Graphviz and its libraries keep memory for
 * the next picture. */
const char *__lsan_default_suppressions(void);

const char *__lsan_default_suppressions(void)
{
    return "leak:libreadline\nleak:libgvc\nleak:libgvplugin\nleak:libfontconfig\n"
           "leak:libpango\nleak:libglib\n";
}

void fuzz_fail(const char *file, int line, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "%s:%d: does not hold:", file, line);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    abort();
}

/* ------------------------------------------------------------------ files */

static void write_all(int fd, const void *bytes, size_t length)
{
    const char *from = bytes;
    for (ssize_t n; length > 0; from += n, length -= (size_t)n) {
        n = write(fd, from, length);
        FUZZ_REQUIRE(n > 0, "a file of %zu bytes can be written", length);
    }
}

struct fuzz_file fuzz_file_open(const void *bytes, size_t length)
{
    struct fuzz_file file = {.fd = memfd_create("fuzz", MFD_CLOEXEC)};
    FUZZ_REQUIRE(file.fd >= 0, "a file in memory can be made");
    snprintf(file.path, sizeof file.path, "/proc/self/fd/%d", file.fd);
    write_all(file.fd, bytes, length);
    return file;
}

void fuzz_file_close(struct fuzz_file *file)
{
    close(file->fd);
}

static char folder[PATH_MAX]; /* "" until the folder exists */
static pid_t maker;           /* the process that made the folder */

static const char *path_of(const char *name)
{
    static char path[PATH_MAX + 300];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

void fuzz_folder_empty(void)
{
    DIR *dir = opendir(fuzz_folder());
    for (struct dirent *entry; dir && (entry = readdir(dir));)
        if (*entry->d_name != '.')
            unlink(path_of(entry->d_name));
    if (dir)
        closedir(dir);
}

static void remove_folder(void)
{
    if (getpid() != maker)
        return;
    fuzz_folder_empty();
    rmdir(folder);
}

const char *fuzz_folder(void)
{
    const char *base = getenv("TMPDIR");
    if (*folder)
        return folder;
    snprintf(folder, sizeof folder, "%s/espalier-fuzz-XXXXXX", base ? base : P_tmpdir);
    FUZZ_REQUIRE(mkdtemp(folder), "%s can be made", folder);
    maker = getpid();
    atexit(remove_folder);
    static const char *const of_the_user[] = {"HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"};
    for (size_t i = 0; i < sizeof of_the_user / sizeof *of_the_user; i++)
        setenv(of_the_user[i], "/dev/null", 1);
    return folder;
}

void fuzz_folder_write(const char *name, const void *bytes, size_t length, size_t zeros)
{
    fuzz_folder();
    FILE *file = fopen(path_of(name), "we");
    FUZZ_REQUIRE(file, "%s can be written", name);
    FUZZ_REQUIRE(fwrite(bytes, 1, length, file) == length && fflush(file) == 0 &&
                     ftruncate(fileno(file), (off_t)(length + zeros)) == 0,
                 "%s can be written", name);
    fclose(file);
}

/* ------------------------------------------------------------------ parts */

/* Returns the offset of the first line "--- ..." at or after `at`, or `length` if there is
 * none. */
static size_t find_mark(const char *bytes, size_t length, size_t at)
{
    while (at < length) {
        if (length - at >= 4 && memcmp(bytes + at, "--- ", 4) == 0)
            return at;
        const char *newline = memchr(bytes + at, '\n', length - at);
        at = newline ? (size_t)(newline - bytes) + 1 : length;
    }
    return length;
}

bool fuzz_next_part(const uint8_t *bytes, size_t length, size_t *at, struct fuzz_part *part)
{
    const char *text = (const char *)bytes;
    for (;;) {
        size_t mark = find_mark(text, length, *at);
        if (mark == length)
            return false;
        const char *newline = memchr(text + mark, '\n', length - mark);
        size_t end = newline ? (size_t)(newline - text) : length;
        size_t start = end < length ? end + 1 : length;
        char line[96];
        snprintf(line, sizeof line, "%.*s", (int)(end - mark - 4), text + mark + 4);
        *part = (struct fuzz_part){.bytes = text + start};
        char *blank = strchr(line, ' ');
        if (blank) {
            *blank = '\0';
            unsigned long number = strtoul(blank + 1, NULL, 10);
            part->number = number < 1 << 24 ? number : 1 << 24;
        }
        *at = find_mark(text, length, start);
        part->length = *at - start;
        snprintf(part->name, sizeof part->name, "%.63s", line);
        if (*part->name && *part->name != '.' && !strchr(part->name, '/'))
            return true;
    }
}

char *fuzz_text(const void *bytes, size_t length)
{
    char *text = malloc(length + 1);
    FUZZ_REQUIRE(text, "there is memory");
    if (length > 0)
        memcpy(text, bytes, length);
    text[length] = '\0';
    return text;
}

char *fuzz_part_text(const uint8_t *bytes, size_t length, const char *name, size_t *size)
{
    struct fuzz_part part = {.length = 0};
    bool found = false;
    for (size_t at = 0; !found && fuzz_next_part(bytes, length, &at, &part);)
        found = strcmp(part.name, name) == 0;
    *size = found ? part.length : 0;
    return fuzz_text(part.bytes, *size);
}

/* ------------------------------------------------------------------ checks */

void fuzz_require_safe(const char *text, size_t length, const char *what)
{
    for (size_t at = 0; at < length;) {
        utf8proc_int32_t c;
        utf8proc_ssize_t n = utf8proc_iterate((const utf8proc_uint8_t *)text + at,
                                              (utf8proc_ssize_t)(length - at), &c);
        FUZZ_REQUIRE(n > 0, "%s must be UTF-8, but byte %zu is %02x", what, at,
                     (unsigned char)text[at]);
        utf8proc_category_t category = utf8proc_category(c);
        FUZZ_REQUIRE(
            c == '\n' ||
                (category != UTF8PROC_CATEGORY_CC && category != UTF8PROC_CATEGORY_CF &&
                 category != UTF8PROC_CATEGORY_ZL && category != UTF8PROC_CATEGORY_ZP &&
                 category != UTF8PROC_CATEGORY_CS && category != UTF8PROC_CATEGORY_CN),
            "%s must be safe to show, but has U+%04X at byte %zu", what, (unsigned)c, at);
        at += (size_t)n;
    }
}
