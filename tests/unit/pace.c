/* Tests the estimate of seconds per token. Interruptions by other programs must not change the
 * estimate, but steps with more work must. */
#include <math.h>

#include "tests/check.h"
#include "engine/pace.h"

static unsigned long long state = 9;

/* Returns how long a step of `seconds` seconds takes on a busy machine. In half of the cases,
 * other programs make the step up to 40 times as long. */
static double disturbed(double seconds)
{
    bool hit = check_uniform(&state) < 0.5;
    return hit ? seconds * (1 + 39 * check_uniform(&state)) : seconds;
}

static void add(struct esp_pace *pace, double draft, double verify, int tokens, int work)
{
    const double seconds[ESP_STAGES] = {[ESP_STAGE_DRAFT] = draft, [ESP_STAGE_VERIFY] = verify};
    esp_pace_add(pace, seconds, tokens, work);
}

TEST(plain_decoding_is_as_fast_as_itself)
{
    for (int trial = 0; trial < 50; trial++) {
        struct esp_pace plain = {.most = 9}, ar = {.most = ESP_PACE_STEPS};
        double total = 0;
        for (int i = 0; i < 9; i++)
            add(&plain, 0, i % 3 == 1 ? 2e-3 : 0.1, 1, 1);
        for (int i = 0; i < 500; i++) {
            double seconds = disturbed(2e-3);
            add(&ar, 0, seconds, 1, 1);
            total += seconds;
        }
        double ratio = esp_pace_per_token(&plain) / esp_pace_per_token(&ar);
        CHECK(fabs(ratio - 1) < 1e-9, "%g", ratio);
        /* an estimate from the total time would be much larger */
        CHECK(esp_pace_per_token(&plain) * 500 / total < 0.2);
    }
}

/* There are three small trees for each large tree. The result must be the time without
 * interruptions divided by the number of tokens, whether or not there are interruptions. */
TEST(the_cost_of_a_large_tree_is_not_an_interruption)
{
    for (int hiccups = 0; hiccups < 2; hiccups++) {
        struct esp_pace pace = {.most = ESP_PACE_STEPS};
        for (int i = 0; i < 400; i++) {
            bool large = i % 4 == 0;
            double draft = large ? 3e-3 : 1e-3, verify = large ? 6e-3 : 2e-3;
            add(&pace, hiccups ? disturbed(draft) : draft, hiccups ? disturbed(verify) : verify,
                large ? 4 : 2, large ? 40 : 6);
        }
        double want = (9e-3 + 3 * 3e-3) / (4 + 3 * 2);
        CHECK(fabs(esp_pace_per_token(&pace) - want) < 1e-12, "%g, want %g",
              esp_pace_per_token(&pace), want);
    }
}

TEST(only_the_latest_steps_count)
{
    struct esp_pace pace = {.most = 5};
    CHECK(esp_pace_per_token(&pace) == 0);
    add(&pace, 0, 5, 0, 1);
    CHECK(esp_pace_per_token(&pace) == 0);
    add(&pace, 0, 7, 1, 1);
    CHECK(esp_pace_per_token(&pace) == 10); /* two steps of 5 seconds for a single token */
    for (int i = 1; i <= 6; i++)
        add(&pace, 1, i, 1, 1);
    /* the last five steps took 2, 3, 4, 5 and 6 seconds */
    CHECK(pace.count == 5 && esp_pace_per_token(&pace) == 1 + 3);
}
