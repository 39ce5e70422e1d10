/* check.c - runs the registered tests; see check.h. */
#include "tests/check.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/serve.h"

enum { PASSED, FAILED, SKIPPED }; /* the result of a test */

static struct check_test *first, **last = &first;
static jmp_buf out;

void check_register(struct check_test *test)
{
    *last = test;
    last = &test->next;
}

void check_fail(const char *file, int line, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stdout, "    %s:%d:", file, line);
    vfprintf(stdout, format[1] ? format : " check failed", args);
    fputc('\n', stdout);
    va_end(args);
    longjmp(out, FAILED);
}

double check_uniform(unsigned long long *state)
{
    unsigned long long z = (*state += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

bool check_quick(void)
{
    return getenv("ESPALIER_QUICK") != NULL;
}

const char *check_path(const char *relative)
{
    static char path[PATH_MAX];
    const char *base = getenv("ESPALIER_TESTS");
    snprintf(path, sizeof path, "%s/%s", base ? base : "tests", relative);
    return path;
}

void check_skip(void)
{
    longjmp(out, SKIPPED);
}

static int run(const struct check_test *test)
{
    int ended = setjmp(out);
    if (ended == PASSED)
        test->run();
    return ended;
}

/* The tests of the emulator are linked without the engine, so they lack these functions. */
#pragma weak esp_is_rank
#pragma weak esp_serve_rank

int main(int argc, char **argv)
{
    /* A test that opens an engine with ranks starts this program once more for each rank. */
    if (esp_is_rank && esp_is_rank(argc, argv))
        return esp_serve_rank(argc, argv);
    int count[SKIPPED + 1] = {0};
    const char *name = strrchr(argv[0], '/');
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (struct check_test *test = first; test; test = test->next) {
        if (argc > 1 && !strstr(test->name, argv[1]))
            continue;
        const int ended = run(test);
        if (ended != PASSED)
            printf("  %s %s\n", ended == FAILED ? "FAILED" : "skipped", test->name);
        count[ended]++;
    }
    printf("%s: %d passed, %d failed\n", name ? name + 1 : argv[0], count[PASSED],
           count[FAILED]);
    return count[FAILED] > 0 || count[PASSED] == 0;
}
