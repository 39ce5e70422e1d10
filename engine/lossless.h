/* lossless.h - does a session write what the target says? Measured on the loaded models.
 *
 * A session writes many short continuations of its text. Then a plain pass of the target,
 * without any tree, computes the exact distribution p of every token written, given the tokens
 * before it. If speculation is exact, a token's place in that distribution is uniform: order
 * the vocabulary in some way and let v = sum of p before the token + a random part of its own
 * p; v is uniform on [0, 1) and independent from token to token (Rosenblatt 1952). Chi-square
 * tests look for anything else:
 *
 *   ratio   v with the vocabulary in order of p/q: wrong residuals and wrong acceptance show
 *           there, because they move probability between tokens of small and of large p/q
 *   rank    v in order of falling p: a bias towards likely tokens
 *   serial  v (ratio) of a token against that of the next one: what one draw does to the next
 *   first   the tokens right behind the text, counted one by one, against their exact p
 *
 * At temperature 0 there is nothing to test: every token must be the plain pass's likeliest.
 */
#ifndef ESP_LOSSLESS_H
#define ESP_LOSSLESS_H

#include "session.h"
#include "statistics.h"

#define ESP_LOSSLESS_TESTS(X) X(ratio) X(rank) X(serial) X(first)

enum esp_lossless_test {
#define X(name) ESP_LOSSLESS_##name,
    ESP_LOSSLESS_TESTS(X)
#undef X
    ESP_LOSSLESS_TEST_COUNT,
};

enum { ESP_LOSSLESS_BINS = 16, ESP_LOSSLESS_SIDE = 4 /* serial: SIDE x SIDE bins */ };

struct esp_lossless_plan {
    int trials; /* continuations */
    int tokens; /* of each */
    bool (*progress)(void *user, int done, int total); /* NULL: none; false: stop */
    void *user;
};

struct esp_lossless {
    int tokens, iterations;
    int impossible; /* tokens of probability 0, or at temperature 0 not the likeliest */
    struct esp_chi_square test[ESP_LOSSLESS_TEST_COUNT];
    double ratio[ESP_LOSSLESS_BINS]; /* counts of v in order of p/q */
    double distance; /* total variation between these and the uniform distribution */
    double limit;    /* what the true distance stays below with a confidence of 99 % */
};

const char *esp_lossless_test_name(int test);

/* Measures a session that has a prompt. Its text is the same afterwards, its random numbers and
 * its drafter have moved on. ESP_E_CANCELLED if `progress` said so. */
int esp_lossless_measure(struct esp_session *session, const struct esp_lossless_plan *plan,
                         struct esp_lossless *result, char *err, size_t errlen);

#endif
