/* gauges.c - the table of names and sentences; see gauges.h. */
#include "viz/gauges.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "viz/chart.h"
#include "viz/say.h"

static const struct entry {
    const char *symbol, *name, *meaning;
    const char *up, *down; /* what it changes when it rises and when it falls; or NULL */
    const char *goal;      /* symbol of the value it is steered to; or NULL */
} entries[] = {
    {"tauh", "upper confidence",
     "A node whose best guess is at least this likely gets the fewest children.",
     "fewer nodes count as sure, so trees get wider",
     "more nodes count as sure, so trees get narrower", NULL},
    {"taul", "lower confidence",
     "A node whose best guess is less likely than this gets the most children.",
     "more nodes count as unsure, so trees get wider",
     "fewer nodes count as unsure, so trees get narrower", NULL},
    {"D0", "base depth", "Every path may be this deep; below, only likely ones go on.",
     "trees may get deeper", "trees stay lower", NULL},
    {"rhodeep", "deepening bound", "A path at least this likely goes on below the base depth.",
     "fewer paths go deep", "more paths go deep", NULL},
    {"rhostop", "stopping bound", "A path less likely than this is not continued.",
     "paths stop earlier", "paths go on longer", NULL},
    {"tau", "pruning bound", "A path less likely than this is cut before the target sees it.",
     "more nodes are cut", "fewer nodes are cut", NULL},
    {"acceptance", "accepted share", "How much of the drafted depth was accepted of late.",
     NULL, NULL, "target"},
    {"target", "goal", "The accepted share that the controller steers for.", NULL, NULL, NULL},
    {"reached", "reached share", "How many accepted paths of late reached the deepest layer.",
     NULL, NULL, "price"},
    {"row", "cost of a row", "What one more node costs the target, in tokens.", NULL, NULL,
     NULL},
    {"layer", "cost of a pass", "What one more pass of the draft costs, in tokens.", NULL, NULL,
     NULL},
    {"expected", "expected tokens", "What the drafter expects of this tree.", NULL, NULL, NULL},
    {"obtained", "obtained tokens", "What the tree gave.", NULL, NULL, "expected"},
    {"account", "savings",
     "Plain decoding steps that trees have saved; a tree may cost no more than that.", NULL,
     NULL, NULL},
    {"wait", "wait", "Tokens that are decoded plainly before a draft is tried again.", NULL,
     NULL, NULL},
    {"match", "longest match", "Tokens of the text's end that were found earlier in it.", NULL,
     NULL, NULL},
    {"retrieved", "copied length", "Accepted tokens per copied passage.", NULL, NULL, NULL},
    {"model", "drafted length", "Accepted tokens per tree of the draft model.", NULL, NULL,
     NULL},
    {"K", "chain length", "Tokens that the next chain has.", "the next chain is longer",
     "the next chain is shorter", NULL},
    {"threshold", "threshold", "A node is drafted where it is accepted at least this likely.",
     "fewer nodes are drafted", "more nodes are drafted", NULL},
    {"r1", "first child", "How often a first child was accepted.", NULL, NULL, NULL},
    {"r2", "second child", "How often a second child was accepted.", NULL, NULL, NULL},
    {"r3", "third child", "How often a third child was accepted.", NULL, NULL, NULL},
    {"r4", "fourth child", "How often a fourth child was accepted.", NULL, NULL, NULL},
    {"draft_temp", "draft temperature",
     "The draft's probabilities are taken at this temperature, so that they mean what they "
     "say.",
     NULL, NULL, NULL},
    {"error_raw", "error as drafted", "How far the draft's own probabilities are off.", NULL,
     NULL, NULL},
    {"error", "error as corrected", "How far they are off at the draft temperature.", NULL,
     NULL, NULL},
};

static const struct entry price_of_layer = {
    "price", "goal", "The share of paths that must reach a layer for it to pay.",
    NULL,    NULL,   NULL};
static const struct entry price_of_time = {
    "price", "price of time", "Tokens per second of late: what a second is worth.", NULL, NULL,
    NULL};

static const struct entry *find(const char *symbol)
{
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++)
        if (strcmp(entries[i].symbol, symbol) == 0)
            return &entries[i];
    return NULL;
}

static const struct esp_gauge *value_of(const struct esp_iteration *it, const char *symbol)
{
    for (int i = 0; i < it->gauge_count && i < ESP_MAX_GAUGES; i++)
        if (strcmp(it->gauges[i].name, symbol) == 0)
            return &it->gauges[i];
    return NULL;
}

/* Two drafters have a price, and mean different things by it. */
static const struct entry *entry_of(const struct esp_iteration *it, const char *symbol)
{
    if (strcmp(symbol, "price") == 0)
        return value_of(it, "reached") ? &price_of_layer : &price_of_time;
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

const struct esp_gauge *esp_gauge_goal(const struct esp_iteration *it, const char *symbol)
{
    const struct entry *entry = entry_of(it, symbol);
    return entry && entry->goal ? value_of(it, entry->goal) : NULL;
}

/* ", as the accepted share .74 is above the goal .70": of a controller that steers for one. */
static void say_cause(char *text, size_t size, const struct esp_iteration *it)
{
    static const char *const steered[] = {"acceptance", "reached"};
    char a[16], b[16];
    for (int i = 0; i < 2; i++) {
        const struct esp_gauge *share = value_of(it, steered[i]);
        const struct esp_gauge *goal = share ? esp_gauge_goal(it, steered[i]) : NULL;
        if (!goal || !isfinite(share->after))
            continue;
        esp_say(text, size, ", as the %s %s is %s the goal %s", esp_gauge_name(it, steered[i]),
                esp_number(a, share->after, 2),
                share->after > goal->after   ? "above"
                : share->after < goal->after ? "below"
                                             : "at",
                esp_number(b, goal->after, 2));
        return;
    }
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
        say_cause(text, size, it);
        esp_say(text, size, ": %s", up ? entry->up : entry->down);
    }
    esp_say(text, size, ".");
}
