/* versus.c - says which side of a comparison is ahead; see versus.h.
 *
 * Compares how many iterations both sides need, which determines the cost for a large target,
 * and how long they take on this machine. If the two comparisons disagree, the sentence names
 * both. A difference in time of less than EQUAL is noise.
 */
#include "viz/versus.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { NAME = 96 };
static const double EQUAL = 0.02;

bool esp_spec_is_plain(const char *drafter)
{
    return strcmp(drafter, "ar") == 0;
}

void esp_contender_name(char *name, size_t size, const struct esp_contender *one,
                        const struct esp_contender *other)
{
    size_t length = strcspn(one->drafter, ":"), others = strcspn(other->drafter, ":");
    if (strcmp(one->drafter, other->drafter) == 0)
        snprintf(name, size, "%s %s", one->drafter, one->verifier);
    else if (length == others && strncmp(one->drafter, other->drafter, length) == 0)
        snprintf(name, size, "%s", one->drafter);
    else
        snprintf(name, size, "%.*s", (int)length, one->drafter);
}

static double per_iteration(const struct esp_contender *c)
{
    return c->iterations > 0 ? (double)c->tokens / c->iterations : 0;
}

static double speed(const struct esp_contender *c)
{
    return c->pace > 0 ? 1 / c->pace : 0;
}

/* Writes "9 % faster" or "4.2 times as fast"; returns `text`. */
static const char *write_gain(char text[32], double ratio)
{
    if (ratio < 2)
        snprintf(text, 32, "%.0f %% faster", 100 * (ratio - 1));
    else
        snprintf(text, 32, "%.1f times as fast", ratio);
    return text;
}

void esp_versus(char *text, size_t size, const struct esp_contender *one,
                const struct esp_contender *other)
{
    char names[2][NAME], gain[32];
    double tokens[] = {per_iteration(one), per_iteration(other)};
    double speeds[] = {speed(one), speed(other)};
    text[0] = '\0';
    if (tokens[0] <= 0 || tokens[1] <= 0)
        return;
    esp_contender_name(names[0], NAME, one, other);
    esp_contender_name(names[1], NAME, other, one);
    int fewer = tokens[1] > tokens[0], faster = speeds[1] > speeds[0];
    double saved = 100 * (1 - tokens[!fewer] / tokens[fewer]);
    bool timed = speeds[0] > 0 && speeds[1] > 0;
    double ratio = timed ? speeds[faster] / speeds[!faster] : 1;
    write_gain(gain, ratio);
    if (saved < 0.5 && ratio < 1 + EQUAL)
        snprintf(text, size, "Both need the same number of iterations for the same text%s.",
                 timed ? " and are equally fast" : "");
    else if (saved < 0.5)
        snprintf(text, size,
                 "Both need the same number of iterations for the same text; %s is %s.",
                 names[faster], gain);
    else if (!timed)
        snprintf(text, size, "%s is ahead: %.0f %% fewer iterations for the same text.",
                 names[fewer], saved);
    else if (ratio < 1 + EQUAL)
        snprintf(text, size,
                 "%s needs %.0f %% fewer iterations for the same text, but is not faster.",
                 names[fewer], saved);
    else if (fewer == faster)
        snprintf(text, size, "%s is ahead: %.0f %% fewer iterations for the same text, %s.",
                 names[fewer], saved, gain);
    else
        snprintf(text, size,
                 "%s needs %.0f %% fewer iterations for the same text, but %s is %s: its "
                 "iterations cost less.",
                 names[fewer], saved, names[faster], gain);
}
