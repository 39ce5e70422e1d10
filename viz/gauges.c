/* gauges.c - contains the table of names and sentences; see gauges.h. */
#include "viz/gauges.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "viz/chart.h"
#include "viz/say.h"

static const struct entry {
    const char *symbol, *name, *meaning;
    const char *up, *down; /* the effect of a rise and of a fall; or NULL */
    const char *goal;      /* symbol of the value that is its goal; or NULL */
    int success; /* 1: accepted drafts raise the value; -1: they lower it; 0: neither */
} entries[] = {
    {"tauh", "upper confidence",
     "A node whose best guess is at least this likely gets the fewest children.",
     "fewer nodes count as sure, so trees get wider",
     "more nodes count as sure, so trees get narrower", NULL, -1},
    {"taul", "lower confidence",
     "A node whose best guess is less likely than this gets the most children.",
     "more nodes count as unsure, so trees get wider",
     "fewer nodes count as unsure, so trees get narrower", NULL, 0},
    {"D0", "base depth", "Every path may be this deep; only likely paths get deeper.",
     "trees may get deeper", "trees get less deep", NULL, 1},
    {"rhodeep", "deepening bound", "A path at least this likely can exceed the base depth.",
     "fewer paths go deep", "more paths go deep", NULL, -1},
    {"rhostop", "stopping bound", "A path less likely than this is not continued.",
     "paths stop earlier", "paths get longer", NULL, -1},
    {"tau", "pruning bound", "A path less likely than this is cut, or is not continued.",
     "more paths are cut", "fewer paths are cut", NULL, -1},
    {"acceptance", "accepted share",
     "The share of the drafted depth that was accepted recently.", NULL, NULL, "target", 0},
    {"target", "goal", "The accepted share that the controller aims for.", NULL, NULL, NULL, 0},
    {"reached", "reached share", "The share of recent paths that reached the deepest layer.",
     NULL, NULL, "price", 0},
    {"row", "cost of a row", "The cost of one more node in the target's pass, in tokens.", NULL,
     NULL, NULL, 0},
    {"layer", "cost of a pass", "The cost of one more draft pass, in tokens.", NULL, NULL, NULL,
     0},
    {"expected", "expected tokens", "The tokens that the drafter expects from this tree.", NULL,
     NULL, NULL, 0},
    {"obtained", "obtained tokens", "The tokens that this tree gave.", NULL, NULL, "expected",
     0},
    {"account", "savings",
     "Plain decoding steps that trees have saved. A tree must not cost more than this.", NULL,
     NULL, NULL, 0},
    {"wait", "wait", "Tokens of plain decoding before the next draft.", NULL, NULL, NULL, 0},
    {"match", "longest match", "Tokens at the end of the text that occur earlier in it.", NULL,
     NULL, NULL, 0},
    {"retrieved", "copied length", "Accepted tokens per copied passage.", NULL, NULL, NULL, 0},
    {"model", "drafted length", "Accepted tokens per tree of the draft model.", NULL, NULL,
     NULL, 0},
    {"K", "chain length", "Tokens of the next chain.", "the next chain is longer",
     "the next chain is shorter", NULL, 1},
    {"L1", "stem length", "Tokens of this tree before it branches.", NULL, NULL, NULL, 0},
    {"L2", "branch length", "Tokens of each path after the stem.", NULL, NULL, NULL, 0},
    {"threshold", "threshold", "A node is drafted if its acceptance is at least this likely.",
     "fewer nodes are drafted", "more nodes are drafted", NULL, 0},
    {"r1", "first child", "How often a first child was accepted.", NULL, NULL, NULL, 0},
    {"r2", "second child", "How often a second child was accepted.", NULL, NULL, NULL, 0},
    {"r3", "third child", "How often a third child was accepted.", NULL, NULL, NULL, 0},
    {"r4", "fourth child", "How often a fourth child was accepted.", NULL, NULL, NULL, 0},
    {"draft_temp", "draft temperature",
     "The draft's logits are divided by this, so that its probabilities match acceptance.",
     NULL, NULL, NULL, 0},
    {"error_raw", "error, untempered", "Calibration error of the draft's own probabilities.",
     NULL, NULL, NULL, 0},
    {"error", "error, tempered", "Calibration error at the draft temperature.", NULL, NULL,
     NULL, 0},
};

static const struct entry price_of_layer = {
    .name = "goal", .meaning = "A layer pays if at least this share of paths reaches it."};
static const struct entry price_of_time = {
    .name = "price of time", .meaning = "Recent tokens per second: what a second is worth."};
static const struct entry paths_of_shape = {.name = "paths",
                                            .meaning = "Paths of this tree after its stem."};

static const struct entry *find(const char *symbol)
{
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++)
        if (strcmp(entries[i].symbol, symbol) == 0)
            return &entries[i];
    return NULL;
}

const struct esp_gauge *esp_gauge_find(const struct esp_iteration *it, const char *symbol)
{
    for (int i = 0; i < it->gauge_count && i < ESP_MAX_GAUGES; i++)
        if (strcmp(it->gauges[i].name, symbol) == 0)
            return &it->gauges[i];
    return NULL;
}

/* Returns the table entry of a symbol. The symbols "price" and "K" have different meanings in
 * different drafters. The other values of the iteration show which meaning applies. */
static const struct entry *entry_of(const struct esp_iteration *it, const char *symbol)
{
    if (strcmp(symbol, "price") == 0)
        return esp_gauge_find(it, "reached") ? &price_of_layer : &price_of_time;
    if (strcmp(symbol, "K") == 0 && esp_gauge_find(it, "L1"))
        return &paths_of_shape;
    return find(symbol);
}

const char *esp_gauge_name(const struct esp_iteration *it, const char *symbol)
{
    const struct entry *entry = entry_of(it, symbol);
    return entry ? entry->name : symbol;
}

const char *esp_gauge_full_name(char text[64], const struct esp_iteration *it,
                                const char *symbol)
{
    const char *name = esp_gauge_name(it, symbol);
    if (strcmp(name, symbol) == 0)
        snprintf(text, 64, "%.60s", symbol);
    else
        snprintf(text, 64, "%.30s (%.28s)", name, symbol);
    return text;
}

const char *esp_gauge_meaning(const struct esp_iteration *it, const char *symbol)
{
    const struct entry *entry = entry_of(it, symbol);
    return entry ? entry->meaning : "";
}

const char *esp_gauge_owner(const struct esp_iteration *it, const char *symbol)
{
    static const char *const of_session[] = {"draft_temp", "error_raw", "error"};
    for (size_t i = 0; i < sizeof of_session / sizeof *of_session; i++)
        if (strcmp(of_session[i], symbol) == 0)
            return "";
    return it->drafter ? it->drafter : "";
}

const struct esp_gauge *esp_gauge_goal(const struct esp_iteration *it, const char *symbol)
{
    const struct entry *entry = entry_of(it, symbol);
    return entry && entry->goal ? esp_gauge_find(it, entry->goal) : NULL;
}

/* If the controller has a goal, adds ", as the accepted share .74 is above the goal .70". */
static void say_share(char *text, size_t size, const struct esp_iteration *it, int direction)
{
    const struct esp_gauge *share = esp_gauge_find(it, "acceptance");
    const struct esp_gauge *goal = share ? esp_gauge_goal(it, "acceptance") : NULL;
    char a[16], b[16];
    if (!goal || !((share->after - goal->after) * direction > 0))
        return;
    esp_probabilities_apart(a, share->after, b, goal->after);
    esp_say(text, size, ", as the %s %s is %s the goal %s", esp_gauge_name(it, "acceptance"), a,
            direction > 0 ? "above" : "below", b);
}

/* For a value that changes after every tree, adds how many levels of the tree were accepted. */
static void say_levels(char *text, size_t size, const struct esp_iteration *it, int direction)
{
    if (direction > 0 && it->path_length == it->deepest)
        esp_say(text, size, ", as %s%d drafted level%s accepted",
                it->deepest == 1 ? "" : "all ", it->deepest,
                it->deepest == 1 ? " was" : "s were");
    else if (direction < 0 && it->path_length < it->deepest)
        esp_say(text, size, ", as %d of %d drafted level%s accepted", it->path_length,
                it->deepest, it->deepest == 1 ? " was" : "s were");
}

/* Writes why a value changed. The drafter's values show which controller rule has run: dynatree
 * has a reached share with history=price, and an accepted share otherwise. `direction` is 1 if
 * accepted drafts change the value in this direction, and -1 otherwise. Writes nothing if the
 * values in a recording fit no rule. */
static void say_cause(char *text, size_t size, const struct esp_iteration *it, int direction)
{
    if (esp_gauge_find(it, "acceptance"))
        say_share(text, size, it, direction);
    else
        say_levels(text, size, it, direction);
}

void esp_gauge_why(char *text, size_t size, const struct esp_iteration *it, int gauge)
{
    const struct esp_gauge *g = &it->gauges[gauge];
    const struct entry *entry = entry_of(it, g->name);
    const bool up = g->after > g->before;
    text[0] = '\0';
    if (!isfinite(g->before) || !isfinite(g->after) || g->after == g->before)
        return;
    esp_say(text, size, "It %s", up ? "rose" : "fell");
    if (entry && entry->up) {
        if (entry->success)
            say_cause(text, size, it, up ? entry->success : -entry->success);
        esp_say(text, size, ": %s", up ? entry->up : entry->down);
    }
    esp_say(text, size, ".");
}
