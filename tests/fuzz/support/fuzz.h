/* fuzz.h - shared by the fuzzing harnesses.
 *
 * A harness is a file tests/fuzz/NAME.c with the one function that libFuzzer calls. Its inputs
 * are in the folder tests/fuzz/corpus/NAME. The function passes the bytes of an input to
 * functions of the program and checks properties that must hold for any bytes. It must not
 * leave any state: the result of one input must not depend on earlier inputs. */
#ifndef ESP_FUZZ_H
#define ESP_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

/* Ends the process with a message if the condition is false. */
#define FUZZ_REQUIRE(condition, ...)                                                           \
    do {                                                                                       \
        if (!(condition))                                                                      \
            fuzz_fail(__FILE__, __LINE__, " " __VA_ARGS__);                                    \
    } while (0)

void fuzz_fail(const char *file, int line, const char *format, ...)
    __attribute__((noreturn, format(printf, 3, 4)));

/* ------------------------------------------------------------------ files */

/* A file in memory. Its path is valid until it is closed. */
struct fuzz_file {
    int fd;
    char path[64];
};

struct fuzz_file fuzz_file_open(const void *bytes, size_t length);
void fuzz_file_close(struct fuzz_file *file);

/* Returns the path of a folder below $TMPDIR, which is made once and removed when the
 * process ends. It also replaces the user's own folders, so that nothing of the user is read
 * or written. */
const char *fuzz_folder(void);
/* Writes a file in the folder. name: without '/'. zeros: the number of NULs after the bytes. */
void fuzz_folder_write(const char *name, const void *bytes, size_t length, size_t zeros);
/* Removes all files of the folder. */
void fuzz_folder_empty(void);

/* ------------------------------------------------------------------ inputs of several parts */

/* An input may contain several files, so that people can read and edit it:
 *
 *     --- config.json
 *     {"model_type": "llama", ...
 *     --- model.safetensors 4096
 *     {"lm_head.weight": ...
 *
 * Text before the first such line is ignored. */
struct fuzz_part {
    char name[64];     /* contains no '/'; never "", "." or ".." */
    size_t number;     /* the number after the name, at most 1 << 24; or 0 */
    const char *bytes; /* (length) */
    size_t length;
};

/* Finds the next part at or after *at, and moves *at to the end of that part. Returns false if
 * there is none. */
bool fuzz_next_part(const uint8_t *bytes, size_t length, size_t *at, struct fuzz_part *part);
/* Returns a copy of the part with this name, with a NUL at the end; the caller frees it. It
 * is empty if there is no such part. */
char *fuzz_part_text(const uint8_t *bytes, size_t length, const char *name, size_t *size);

/* Returns a copy with a NUL at the end; the caller frees it. */
char *fuzz_text(const void *bytes, size_t length);

/* ------------------------------------------------------------------ checks */

/* Checks that a text is valid UTF-8 with only printable characters and newlines. */
void fuzz_require_safe(const char *text, size_t length, const char *what);

#endif
