/* check.h - a small test harness.
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
/* Ends a test that cannot run because something that it needs was left out on purpose. The test
 * is counted neither as passed nor as failed. */
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

/* Returns a pseudo-random number for test data, computed by splitmix64 from a counter. */
double check_uniform(unsigned long long *state); /* in [0, 1) */

/* Returns whether the test runs in its short form, with fewer repetitions. ESPALIER_QUICK
 * selects this form. `make check` selects it for runs under sanitizers, and without CI=true for
 * all runs. */
bool check_quick(void);

/* Returns the path of a file in the source tree's tests/ folder. ESPALIER_TESTS names this
 * folder; without this variable, the folder is found beside the build. The result is in static
 * storage and valid until the next call. */
const char *check_path(const char *relative);

#ifdef __cplusplus
}
#endif

#endif
