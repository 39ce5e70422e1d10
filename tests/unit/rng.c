/* Tests the generator of random numbers. It must give the published test values, and have the
 * properties that sessions require. */
#include <math.h>
#include <string.h>

#include "tests/check.h"
#include "engine/support/rng.h"

/* Compares numbers with the answers that Random123 publishes for philox4x32-10. */
TEST(philox_gives_the_known_answers)
{
    static const struct {
        uint32_t counter[4], key[2], want[4];
    } known[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (int i = 0; i < 3; i++) {
        uint32_t out[4];
        esp_philox(known[i].counter, known[i].key, out);
        CHECK(memcmp(out, known[i].want, sizeof out) == 0, "case %d: %08x", i, out[0]);
    }
}

TEST(streams_repeat_and_differ)
{
    struct esp_rng a = {.seed = 5, .stream = 0}, b = a, c = {.seed = 5, .stream = 1};
    double sum = 0, square = 0;
    int equal = 0;
    for (int i = 0; i < 100000; i++) {
        double x = esp_rng_uniform(&a), y = esp_rng_uniform(&b), z = esp_rng_uniform(&c);
        CHECK(x == y && x >= 0 && x < 1);
        equal += x == z;
        sum += x;
        square += x * x;
    }
    CHECK(equal == 0);
    CHECK(sum / 1e5 > 0.495 && sum / 1e5 < 0.505 && square / 1e5 > 0.328 &&
          square / 1e5 < 0.339);
}

/* A stream must have no number in common with a stream that is split off from it. */
TEST(streams_that_are_split_off_have_other_numbers)
{
    enum { PARTS = 200, EACH = 50 };
    static double seen[PARTS * EACH + EACH];
    struct esp_rng whole = {.seed = 5, .stream = ESP_RNG_VERIFY}, again = whole;
    double sum = 0;
    int n = 0;
    for (int i = 0; i < EACH; i++)
        seen[n++] = esp_rng_uniform(&whole);
    whole.next = 0;
    for (int part = 0; part < PARTS; part++) {
        struct esp_rng own = esp_rng_split(&whole), same = esp_rng_split(&again);
        for (int i = 0; i < EACH; i++, n++) {
            sum += seen[n] = esp_rng_uniform(&own);
            CHECK(seen[n] == esp_rng_uniform(&same));
        }
    }
    CHECK(whole.next == PARTS);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++)
            CHECK(seen[i] != seen[j], "numbers %d and %d are the same", i, j);
    CHECK(fabs(sum / (PARTS * EACH) - 0.5) < 0.015);
}
