/* check.h - the smallest test harness that does the job.
 *
 *     TEST(tree_keeps_parents_first) { ... CHECK(a == b, "a is %d, want %d", a, b); }
 *
 * Each TEST registers itself; tests/check.c runs them all, prints one line per failure and ends
 * with "NAME: N passed, N failed". A failed CHECK ends its test. `./program PART` runs the
 * tests whose name contains PART.
 */
#ifndef ESP_CHECK_H
#define ESP_CHECK_H

#include <setjmp.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

struct check_test {
    const char *name;
    void (*run)(void);
    struct check_test *next;
};

void check_register(struct check_test *test);
void check_fail(const char *file, int line, const char *format, ...)
    __attribute__((noreturn, format(printf, 3, 4)));
/* Ends a test that needs something that was left out on purpose; it counts neither as passed
 * nor as failed. */
void check_skip(void) __attribute__((noreturn));

#define TEST(test_name)                                                                        \
    static void test_name(void);                                                               \
    static struct check_test test_name##_entry = {#test_name, test_name, 0};                   \
    __attribute__((constructor)) static void test_name##_register(void)                        \
    {                                                                                          \
        check_register(&test_name##_entry);                                                    \
    }                                                                                          \
    static void test_name(void)

#define CHECK(condition, ...)                                                                  \
    do {                                                                                       \
        if (!(condition))                                                                      \
            check_fail(__FILE__, __LINE__, " " __VA_ARGS__);                                   \
    } while (0)

/* A deterministic random number for test data: splitmix64 of a counter. */
double check_uniform(unsigned long long *state); /* in [0, 1) */

/* Is this the short form (ESPALIER_QUICK), as under sanitizers and without CI=true? Tests that
 * repeat the same thing may do less of it. */
bool check_quick(void);

/* Path of a file below the source tree's tests/ folder, from the environment variable
 * ESPALIER_TESTS or found beside the build; static storage, valid until the next call. */
const char *check_path(const char *relative);

#ifdef __cplusplus
}
#endif

#endif
