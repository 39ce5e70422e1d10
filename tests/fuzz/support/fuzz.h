/* fuzz.h - what the fuzzing harnesses share.
 *
 * A harness is one file tests/fuzz/NAME.c with the one function that libFuzzer calls, and
 * one folder tests/fuzz/corpus/NAME with inputs. A harness hands the bytes to the program's
 * own functions and checks what must hold whatever the bytes are. It leaves nothing behind:
 * what one input does must not depend on the inputs before it. */
#ifndef ESP_FUZZ_H
#define ESP_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

/* Ends the process with a sentence if something that must hold does not. */
#define FUZZ_REQUIRE(condition, ...)                                                           \
    do {                                                                                       \
        if (!(condition))                                                                      \
            fuzz_fail(__FILE__, __LINE__, " " __VA_ARGS__);                                    \
    } while (0)

void fuzz_fail(const char *file, int line, const char *format, ...)
    __attribute__((noreturn, format(printf, 3, 4)));

/* ------------------------------------------------------------------ files */

/* A file in memory: its path is valid until it is closed. */
struct fuzz_file {
    int fd;
    char path[64];
};

struct fuzz_file fuzz_file_open(const void *bytes, size_t length);
void fuzz_file_close(struct fuzz_file *file);

/* The path of a folder below $TMPDIR, which is made once and removed when the process ends. It
 * also stands for the user's own folders, so that nothing of the user is read or written. */
const char *fuzz_folder(void);
/* Writes a file of the folder; a plain name. `zeros`: how many NULs follow the bytes. */
void fuzz_folder_write(const char *name, const void *bytes, size_t length, size_t zeros);
/* Removes all files of the folder. */
void fuzz_folder_empty(void);

/* ------------------------------------------------------------------ inputs of several parts */

/* An input may hold several files, so that it can be read and changed by hand:
 *
 *     --- config.json
 *     {"model_type": "llama", ...
 *     --- model.safetensors 4096
 *     {"lm_head.weight": ...
 *
 * What stands before the first such line is left out. */
struct fuzz_part {
    char name[64];     /* no '/'; never "", "." or ".." */
    size_t number;     /* behind the name; 0: none. At most 1 << 24 */
    const char *bytes; /* (length) */
    size_t length;
};

/* The next part at or after *at, which it moves; false: there is none. */
bool fuzz_next_part(const uint8_t *bytes, size_t length, size_t *at, struct fuzz_part *part);
/* The part of this name, copied with a NUL behind it; the caller frees it. An empty text where
 * there is none. */
char *fuzz_part_text(const uint8_t *bytes, size_t length, const char *name, size_t *size);

/* A copy with a NUL behind it, which the caller frees. */
char *fuzz_text(const void *bytes, size_t length);

/* ------------------------------------------------------------------ what must hold */

/* Valid UTF-8 that a terminal only shows: nothing but characters and newlines. */
void fuzz_require_safe(const char *text, size_t length, const char *what);

#endif
