/* Tests the sentences that say why a controller changed a value. The test runs hundreds of
 * iterations with every rule of a controller. The comparison in a sentence must be true for the
 * iteration. The value must have changed in the direction that the rule prescribes. */
#include "viz/gauges.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/check.h"
#include "tests/drafting.h"

/* The values that a controller moves. `success` is 1 if a value rises when drafts do well, or
 * -1 if it rises when they do badly. `up` and `down` describe the trees after the value has
 * risen or fallen. */
static const struct {
    const char *symbol;
    int success;
    const char *up, *down;
} moving[] = {
    {"tauh", -1, "wider", "narrower"},
    {"D0", 1, "deeper", "less deep"},
    {"rhodeep", -1, "fewer paths", "more paths"},
    {"rhostop", -1, "earlier", "longer"},
    {"tau", -1, "more paths", "fewer paths"},
    {"K", 1, "longer", "shorter"},
};
enum { MOVING = sizeof moving / sizeof *moving };

static int moves,
    causes[2][2]; /* changes within iterations, by cause (share, levels) and direction */
static int jumps; /* the number of changes between iterations */
static double before[MOVING];

static const struct esp_gauge *gauge(const struct esp_iteration *it, const char *name)
{
    for (int i = 0; i < it->gauge_count; i++)
        if (strcmp(it->gauges[i].name, name) == 0)
            return &it->gauges[i];
    return NULL;
}

static bool rounds_to(double shown, double value)
{
    return fabs(shown - value) <= 0.0051;
}

/* Checks the cause that a sentence names. Returns 1 if the sentence says that drafts did well,
 * -1 if it says that they did badly. */
static int check_cause(const char *text, const struct esp_iteration *it)
{
    const char *share = strstr(text, "as the accepted share "), *all = strstr(text, "as all "),
               *one = strstr(text, "as 1 drafted level was"), *some = strstr(text, "as ");
    double a, goal;
    int path, deepest;
    char than[16];
    if (share) {
        CHECK(sscanf(share, "as the accepted share %lf is %15s the goal %lf", &a, than,
                     &goal) == 3,
              "%s", text);
        const bool above = strcmp(than, "above") == 0;
        CHECK(rounds_to(a, gauge(it, "acceptance")->after) &&
                  rounds_to(goal, gauge(it, "target")->after),
              "%s", text);
        CHECK((above && a > goal) || (strcmp(than, "below") == 0 && a < goal), "%s", text);
        causes[0][above]++;
        return above ? 1 : -1;
    }
    if (one || all) {
        deepest = one ? 1 : atoi(all + 7);
        CHECK(it->deepest == deepest && it->path_length == deepest, "%s: %d of %d", text,
              it->path_length, it->deepest);
        causes[1][1]++;
        return 1;
    }
    CHECK(some && sscanf(some, "as %d of %d drafted level", &path, &deepest) == 2, "%s", text);
    CHECK(path < deepest && path == it->path_length && deepest == it->deepest, "%s: %d of %d",
          text, it->path_length, it->deepest);
    causes[1][0]++;
    return -1;
}

static void check_gauges(void *user, const struct esp_event *event)
{
    char text[300];
    (void)user;
    if (event->type != ESP_EVENT_ITERATION)
        return;
    const struct esp_iteration *it = event->iteration;
    for (int m = 0; m < MOVING; m++) {
        const struct esp_gauge *g = gauge(it, moving[m].symbol);
        if (!g || gauge(it, "L1")) /* drafter `delayed`: K is a number of paths, not a length */
            continue;
        esp_gauge_why(text, sizeof text, it, (int)(g - it->gauges));
        const bool up = g->after > g->before;
        jumps += isfinite(before[m]) && before[m] != g->before;
        before[m] = g->after;
        if (g->after == g->before) {
            CHECK(*text == '\0', "%s", text);
            continue;
        }
        moves++;
        CHECK(strncmp(text, up ? "It rose, " : "It fell, ", 9) == 0, "%s: %s", g->name, text);
        CHECK(strstr(text, up ? moving[m].up : moving[m].down), "%s: %s", g->name, text);
        CHECK(check_cause(text, it) == (up ? 1 : -1) * moving[m].success,
              "%s moved from %g to %g: %s", g->name, g->before, g->after, text);
    }
}

/* Runs the given number of iterations, in several generations, and checks every change of a
 * value. */
static void run(const char *drafter, int iterations)
{
    struct drafting d;
    moves = jumps = 0;
    memset(causes, 0, sizeof causes);
    for (int seed = 1, count = 0; count < iterations; seed++) {
        const struct drafting_setup setup = {.drafter = drafter,
                                             .sharpness = 1 + seed % 3,
                                             .toy_seed = (unsigned long long)seed,
                                             .temperature = seed % 2 ? 0 : 0.7,
                                             .observer = check_gauges};
        for (int m = 0; m < MOVING; m++)
            before[m] = NAN;
        drafting_open(&d, &setup);
        for (int tokens = 0; tokens < 200; tokens += 20) {
            esp_session_allow(d.session, 20);
            while (drafting_step(&d))
                count++;
        }
        drafting_close(&d);
    }
}

TEST(history_off_moves_no_threshold)
{
    run("dynatree:history=off", 300);
    CHECK(moves == 0 && jumps == 0, "%d, %d", moves, jumps);
}

/* This rule learns from whole generations, so values change between iterations. */
TEST(history_step_moves_thresholds_between_generations)
{
    run("dynatree:history=step", 300);
    CHECK(moves == 0 && jumps > 20, "%d, %d", moves, jumps);
}

TEST(history_proportional_follows_the_acceptance)
{
    run("dynatree:history=proportional,target=0.5,W=4", 600);
    CHECK(causes[0][0] > 100 && causes[0][1] > 100, "%d down, %d up", causes[0][0],
          causes[0][1]);
    CHECK(causes[1][0] + causes[1][1] == 0);
}

/* This rule looks only at the last tree. The mean over the last iterations may be above the
 * goal although the last path was too short. */
TEST(history_price_uses_only_the_last_tree)
{
    run("dynatree:history=price", 600);
    CHECK(causes[1][0] > 100 && causes[1][1] > 100, "%d down, %d up", causes[1][0],
          causes[1][1]);
    CHECK(causes[0][0] + causes[0][1] == 0);
}

TEST(a_chain_grows_when_all_its_nodes_were_accepted)
{
    run("assisted", 300);
    CHECK(causes[1][0] > 50 && causes[1][1] > 20, "%d down, %d up", causes[1][0], causes[1][1]);
}

/* A recording can contain any numbers. The sentence must not name a cause that the numbers
 * contradict. */
TEST(a_sentence_does_not_contradict_the_numbers)
{
    struct esp_iteration it = {.gauges = {{"D0", 4, 4.5, 1, 7},
                                          {"acceptance", 0.5, 0.5, 0, 1},
                                          {"target", 0.7, 0.7, 0, 1}},
                               .gauge_count = 3};
    char text[300];
    esp_gauge_why(text, sizeof text, &it, 0);
    CHECK(strcmp(text, "It rose: trees may get deeper.") == 0, "%s", text);
    it.gauges[1].after = 0.7004;
    esp_gauge_why(text, sizeof text, &it, 0);
    CHECK(strcmp(text,
                 "It rose, as the accepted share .7004 is above the goal .7000: trees may "
                 "get deeper.") == 0,
          "%s", text);
    it.gauges[1].name = "reached";
    it.gauges[2].name = "price";
    it.path_length = 2;
    it.deepest = 5;
    esp_gauge_why(text, sizeof text, &it, 0);
    CHECK(strcmp(text, "It rose: trees may get deeper.") == 0, "%s", text);
}
