/* lossless.h - tests, with the loaded models, whether a session's output follows the target's
 * distribution.
 *
 * A session writes many short continuations of its text. Then a plain pass of the target,
 * without a tree, computes the exact distribution p of every token written, given the tokens
 * before it. Put the vocabulary in any order. Let v be the sum of p over the tokens before the
 * written token in this order, plus a random part of the written token's p. If speculation is
 * exact, v is uniform on [0, 1) and independent from token to token (Rosenblatt 1952).
 * Chi-square tests look for deviations:
 *
 *   ratio   v with the vocabulary in order of p/q. Detects wrong residuals and wrong
 *           acceptance, because they move probability between tokens of small and of large p/q
 *   rank    v in order of falling p. Detects a bias towards likely tokens
 *   serial  the v of test `ratio` for pairs of consecutive tokens. Detects draws that depend on
 *           each other
 *   first   counts of the first token after the text, compared with its exact p
 *
 * At temperature 0 no test is needed: every token must be the likeliest one of the plain pass.
 */
#ifndef ESP_LOSSLESS_H
#define ESP_LOSSLESS_H

#include "engine/espalier.h"
#include "engine/support/statistics.h"

#define ESP_LOSSLESS_TESTS(X) X(ratio) X(rank) X(serial) X(first)

enum esp_lossless_test {
#define X(name) ESP_LOSSLESS_##name,
    ESP_LOSSLESS_TESTS(X)
#undef X
        ESP_LOSSLESS_TEST_COUNT,
};

enum { ESP_LOSSLESS_BINS = 16, ESP_LOSSLESS_SIDE = 4 /* serial: SIDE x SIDE bins */ };

struct esp_lossless_plan {
    int trials;                                        /* number of continuations */
    int tokens;                                        /* number of tokens of each
                                                          continuation */
    bool (*progress)(void *user, int done, int total); /* may be NULL; if it returns false, the
                                                          test stops */
    void *user;
};

struct esp_lossless {
    int tokens, iterations;
    int impossible; /* number of tokens of probability 0; at temperature 0, number of tokens
                       that are not the likeliest */
    struct esp_chi_square test[ESP_LOSSLESS_TEST_COUNT];
    double ratio[ESP_LOSSLESS_BINS]; /* counts of v (test `ratio`) in each bin */
    double distance; /* total variation distance between these counts and the uniform
                        distribution */
    double limit;    /* upper bound of the true distance at 99 % confidence */
};

const char *esp_lossless_test_name(int test);

/* Measures a session that has a prompt. The session's text does not change, but its random
 * numbers and the state of its drafter do. Returns ESP_E_CANCELLED if `progress` returned
 * false. */
int esp_lossless_measure(struct esp_session *session, const struct esp_lossless_plan *plan,
                         struct esp_lossless *result, char *err, size_t errlen);

#endif
