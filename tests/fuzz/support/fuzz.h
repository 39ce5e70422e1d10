/* fuzz.h - helpers for the fuzzing harnesses.
 *
 * A harness is a file tests/fuzz/NAME.c with the function LLVMFuzzerTestOneInput(). Its inputs
 * are in the folder tests/fuzz/corpus/NAME. The function passes the bytes of an input to
 * functions of the program, and checks properties that must hold for any bytes. It must leave
 * no state behind: the result for an input must not depend on earlier inputs. */
#ifndef ESP_FUZZ_H
#define ESP_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

/* If the condition is false, prints a message and ends the process. */
#define FUZZ_REQUIRE(condition, ...)                                                           \
    do {                                                                                       \
        if (!(condition))                                                                      \
            fuzz_fail(__FILE__, __LINE__, " " __VA_ARGS__);                                    \
    } while (0)

void fuzz_fail(const char *file, int line, const char *format, ...)
    __attribute__((noreturn, format(printf, 3, 4)));

/* ------------------------------------------------------------------ files */

/* A file in memory. Its path is valid until the file is closed. */
struct fuzz_file {
    int fd;
    char path[64];
};

struct fuzz_file fuzz_file_open(const void *bytes, size_t length);
void fuzz_file_close(struct fuzz_file *file);

/* Returns the path of a folder in $TMPDIR. The first call makes the folder, and it is removed
 * when the process ends. The program uses it instead of the user's configuration and state
 * folders. So no file of the user is read or written. */
const char *fuzz_folder(void);
/* Writes a file in the folder. `name` must not contain '/'. `zeros` NULs follow the bytes. */
void fuzz_folder_write(const char *name, const void *bytes, size_t length, size_t zeros);
/* Removes all files in the folder. */
void fuzz_folder_empty(void);

/* ------------------------------------------------------------------ inputs of several parts */

/* An input can contain several files, in a form that people can read and edit:
 *
 *     --- config.json
 *     {"model_type": "llama", ...
 *     --- model.safetensors 4096
 *     {"lm_head.weight": ...
 *
 * Text before the first such line is ignored. */
struct fuzz_part {
    char name[64];     /* contains no '/'; never "", "." or ".." */
    size_t number;     /* the number after the name, at most 1 << 24; 0 if there is none */
    const char *bytes; /* shape (length) */
    size_t length;
};

/* Finds the next part at or after *at, and moves *at to the end of that part. Returns false if
 * there is none. */
bool fuzz_next_part(const uint8_t *bytes, size_t length, size_t *at, struct fuzz_part *part);
/* Returns a copy of the part with this name, with a NUL at the end. The caller must free it. If
 * there is no such part, the copy is empty. */
char *fuzz_part_text(const uint8_t *bytes, size_t length, const char *name, size_t *size);

/* Returns a copy of the bytes with a NUL at the end. The caller must free it. */
char *fuzz_text(const void *bytes, size_t length);

/* ------------------------------------------------------------------ checks */

/* Checks that a text is valid UTF-8 with only printable characters and newlines. */
void fuzz_require_safe(const char *text, size_t length, const char *what);

#endif
