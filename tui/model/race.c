/* race.c - runs the clock of a race, and compares its two runs; see race.h. */
#include "tui/model/race.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/clock.h"
#include "kernels/status.h"

struct esp_race *esp_race_new(const struct esp_race_options *options)
{
    struct esp_race *race = calloc(1, sizeof *race);
    if (!race)
        return NULL;
    if (options)
        race->options = *options;
    for (int i = 0; i < 2; i++)
        if (race->options.drafter[i]) {
            snprintf(race->drafter[i], sizeof race->drafter[i], "%s", options->drafter[i]);
            race->options.drafter[i] = race->drafter[i];
        }
    pthread_mutex_init(&race->lock, NULL);
    esp_run_init(&race->side[0]);
    esp_run_init(&race->side[1]);
    atomic_store(&race->holders, 1);
    return race;
}

void esp_race_hold(struct esp_race *race)
{
    atomic_fetch_add(&race->holders, 1);
}

void esp_race_release(struct esp_race *race)
{
    if (!race || atomic_fetch_sub(&race->holders, 1) > 1)
        return;
    esp_run_free(&race->side[0]);
    esp_run_free(&race->side[1]);
    pthread_mutex_destroy(&race->lock);
    free(race);
}

int esp_race_read(struct esp_race *race, const char *const paths[2], char *err, size_t errlen)
{
    for (int i = 0; i < 2; i++) {
        int status = esp_run_read(&race->side[i], paths[i], err, errlen);
        if (status < 0)
            return status;
    }
    const struct esp_run *left = &race->side[0], *right = &race->side[1];
    race->recorded = true;
    if (strcmp(left->target, right->target) == 0)
        snprintf(race->pair, sizeof race->pair, "%.190s, recorded", left->target);
    else
        snprintf(race->pair, sizeof race->pair, "%.90s, %.90s, recorded", left->target,
                 right->target);
    esp_race_begin(race);
    return ESP_OK;
}

void esp_race_say(struct esp_race *race, int phase, double share, const char *format, ...)
{
    va_list args;
    pthread_mutex_lock(&race->lock);
    va_start(args, format);
    vsnprintf(race->doing, sizeof race->doing, format, args);
    va_end(args);
    race->phase = phase;
    race->share = share;
    pthread_mutex_unlock(&race->lock);
}

void esp_race_begin(struct esp_race *race)
{
    pthread_mutex_lock(&race->lock);
    race->phase = ESP_RACE_RUNS;
    race->begun = esp_clock();
    pthread_mutex_unlock(&race->lock);
}

/* Returns the time on the clock at which both sides have finished. Returns a negative number if
 * one of them is still decoding. */
static double end_of(struct esp_race *race)
{
    double end = 0;
    for (int i = 0; i < 2; i++) {
        struct esp_run *run = &race->side[i];
        pthread_mutex_lock(&run->lock);
        const double seconds = run->complete ? esp_run_seconds(run) : -1;
        pthread_mutex_unlock(&run->lock);
        if (seconds < 0)
            return -1;
        end = seconds > end ? seconds : end;
    }
    return end;
}

double esp_race_clock(struct esp_race *race)
{
    const double end = end_of(race);
    pthread_mutex_lock(&race->lock);
    double clock = race->phase >= ESP_RACE_RUNS ? esp_clock() - race->begun : 0;
    if (race->phase == ESP_RACE_RUNS && end >= 0 && clock >= end)
        race->phase = ESP_RACE_OVER;
    if (race->phase == ESP_RACE_OVER)
        clock = end;
    pthread_mutex_unlock(&race->lock);
    return clock;
}

int esp_race_now(struct esp_race *race)
{
    esp_race_clock(race);
    pthread_mutex_lock(&race->lock);
    const int phase = race->phase;
    pthread_mutex_unlock(&race->lock);
    return phase;
}

/* ------------------------------------------------------------------ the result */

static bool same_token(struct esp_run *const runs[2], const int at[2])
{
    size_t length[2] = {0};
    const char *bytes[2];
    const int32_t one = runs[0]->tokens[at[0]].token, other = runs[1]->tokens[at[1]].token;
    for (int i = 0; i < 2; i++)
        bytes[i] = esp_texts_find(&runs[i]->texts, i ? other : one, &length[i]);
    return one == other && bytes[0] && bytes[1] && length[0] == length[1] &&
           memcmp(bytes[0], bytes[1], length[0]) == 0;
}

static int prompt_length(const struct esp_run *run)
{
    int count = 0;
    while (count < run->token_count && run->tokens[count].kind == ESP_TEXT_PROMPT)
        count++;
    return count;
}

bool esp_race_check(struct esp_race *race, int *compared, int *differs)
{
    struct esp_run *const runs[2] = {&race->side[0], &race->side[1]};
    const int prompt = prompt_length(runs[0]);
    bool same = prompt == prompt_length(runs[1]);
    for (int i = 0; i < prompt && same; i++)
        same = same_token(runs, (int[]){i, i});
    *compared = *differs = 0;
    for (int at = prompt;
         same && *differs == 0 && at < runs[0]->token_count && at < runs[1]->token_count;
         at++) {
        if (!same_token(runs, (int[]){at, at}))
            *differs = at - prompt + 1;
        else
            (*compared)++;
    }
    return same;
}

double esp_race_times_as_fast(const struct esp_race *race)
{
    double speed[2];
    for (int i = 0; i < 2; i++) {
        const double seconds = esp_run_seconds(&race->side[i]);
        speed[i] = seconds > 0 ? esp_run_written(&race->side[i]) / seconds : 0;
    }
    return speed[0] > 0 ? speed[1] / speed[0] : 0;
}

bool esp_race_verdict(struct esp_race *race, char *text, size_t size)
{
    const bool drawn = race->side[0].temperature > 0 || race->side[1].temperature > 0;
    const double times = esp_race_times_as_fast(race);
    char speed[96];
    int compared, differs;
    if (times >= 0.995)
        snprintf(speed, sizeof speed, "%.2f times as fast", times);
    else
        snprintf(speed, sizeof speed,
                 "%.2f times as fast: slower, because its passes cost more than they save",
                 times);
    if (!esp_race_check(race, &compared, &differs)) {
        snprintf(text, size,
                 "not comparable: the prompts differ (the right side wrote %.2f times as many "
                 "tokens per second)",
                 times);
        return true;
    }
    const bool whole = compared == esp_run_written(&race->side[0]) &&
                       compared == esp_run_written(&race->side[1]);
    if (differs > 0 && drawn)
        snprintf(text, size, "%s; the texts differ, as they can above temperature 0", speed);
    else if (differs > 0)
        snprintf(text, size, "NOT identical: token %d differs, so the speeds are not compared",
                 differs);
    else if (whole)
        snprintf(text, size, "identical, %s", speed);
    else
        snprintf(text, size, "the %d tokens that both wrote are identical, %s", compared,
                 speed);
    return differs == 0 || drawn;
}
