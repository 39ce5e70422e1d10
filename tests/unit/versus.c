/* Tests the sentence that says which of two compared sessions is ahead. */
#include "viz/versus.h"

#include <string.h>

#include "tests/check.h"

static struct esp_contender contender(const char *drafter, int iterations, double seconds)
{
    return (struct esp_contender){.drafter = drafter,
                                  .verifier = "greedy",
                                  .iterations = iterations,
                                  .tokens = 100,
                                  .pace = seconds / 100};
}

static void says(int iterations, double seconds, int others, double other_seconds,
                 const char *want)
{
    char text[256];
    struct esp_contender one = contender("dynatree:N=8", iterations, seconds),
                         other = contender("linear", others, other_seconds);
    esp_versus(text, sizeof text, &one, &other);
    CHECK(strcmp(text, want) == 0, "%s", text);
    esp_versus(text, sizeof text, &other, &one);
    CHECK(strcmp(text, want) == 0, "when the sides are exchanged: %s", text);
}

TEST(the_sentence_says_which_side_is_ahead)
{
    says(40, 1.0, 50, 1.1,
         "dynatree is ahead: 20 % fewer iterations for the same text, 10 % faster.");
    says(50, 4.2, 40, 1,
         "linear is ahead: 20 % fewer iterations for the same text, 4.2 times as fast.");
    says(40, 1.1, 50, 1,
         "dynatree needs 20 % fewer iterations for the same text, but linear is 10 % faster: "
         "its iterations cost less.");
    says(40, 1.0, 50, 1.01,
         "dynatree needs 20 % fewer iterations for the same text, but is not faster.");
    says(40, 1.0, 40, 1.2,
         "Both need the same number of iterations for the same text; dynatree is 20 % faster.");
    says(40, 0, 50, 0, "dynatree is ahead: 20 % fewer iterations for the same text.");
    says(0, 0, 50, 1, "");
}

TEST(equal_sides_give_the_same_sentence_in_either_order)
{
    says(40, 1.0, 40, 1.0,
         "Both need the same number of iterations for the same text and are equally fast.");
    says(40, 0, 40, 0, "Both need the same number of iterations for the same text.");
}

TEST(names_distinguish_both_sides)
{
    char name[64];
    struct esp_contender one = contender("dynatree:N=8", 1, 1),
                         other = contender("dynatree", 1, 1);
    esp_contender_name(name, sizeof name, &one, &other);
    CHECK(strcmp(name, "dynatree:N=8") == 0, "%s", name);
    other.drafter = "dyspec:N=8";
    esp_contender_name(name, sizeof name, &one, &other);
    CHECK(strcmp(name, "dynatree") == 0, "%s", name);
    other.drafter = one.drafter;
    other.verifier = "nss";
    esp_contender_name(name, sizeof name, &one, &other);
    CHECK(strcmp(name, "dynatree:N=8 greedy") == 0, "%s", name);
}
