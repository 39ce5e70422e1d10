/* stats.c - `espalier stats FILE`: prints which drafts of a recorded session were accepted.
 *
 * Prints the same tables as the papers, and needs only the recording (viz/acceptance.h). The
 * tables show how many iterations accepted a path of each length. They also show the acceptance
 * by depth, by rank among the siblings, by source and by the draft's probability. If the
 * drafter or verifier changed during the session, each pair of drafter and verifier has its own
 * tables.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/find_models.h"
#include "tui/cli/cli.h"
#include "kernels/status.h"
#include "sessions/recording.h"
#include "tui/cli/session_json.h"
#include "viz/safe.h"

enum { MOST_PAIRS = 32, NAME = 40 };

struct pair {
    char drafter[NAME], verifier[NAME];
    struct esp_acceptance acceptance;
};

struct pairs {
    struct pair pair[MOST_PAIRS];
    int count;
    char draft[256]; /* name of the draft model at the start of the recording, or "" */
};

/* ------------------------------------------------------------------ counting */

/* Returns the entry of the iteration's drafter and verifier. After the first MOST_PAIRS - 1
 * pairs, all other pairs share the last entry. */
static struct pair *find_pair(struct pairs *pairs, const struct esp_iteration *it)
{
    char drafter[NAME], verifier[NAME];
    snprintf(drafter, sizeof drafter, "%s", it->drafter ? it->drafter : "");
    snprintf(verifier, sizeof verifier, "%s", it->verifier ? it->verifier : "");
    for (int i = 0; i < pairs->count; i++)
        if (strcmp(pairs->pair[i].drafter, drafter) == 0 &&
            strcmp(pairs->pair[i].verifier, verifier) == 0)
            return &pairs->pair[i];
    if (pairs->count == MOST_PAIRS)
        return &pairs->pair[MOST_PAIRS - 1];
    struct pair *new = &pairs->pair[pairs->count++];
    bool last = pairs->count == MOST_PAIRS;
    strcpy(new->drafter, last ? "others" : drafter);
    strcpy(new->verifier, last ? "others" : verifier);
    return new;
}

static int count_all(struct pairs *pairs, struct esp_recording *recording, char *err,
                     size_t errlen)
{
    for (int i = 0; i < esp_recording_iterations(recording); i++) {
        const struct esp_event *event;
        int status = esp_recording_read(recording, esp_recording_iteration_event(recording, i),
                                        &event, err, errlen);
        if (status < 0)
            return status;
        esp_acceptance_add(&find_pair(pairs, event->iteration)->acceptance, event->iteration);
    }
    return ESP_OK;
}

/* ------------------------------------------------------------------ tables */

static double percent(int64_t part, int64_t whole)
{
    return whole > 0 ? 100.0 * (double)part / (double)whole : 0;
}

static void print_summary(const struct pair *pair)
{
    const struct esp_acceptance *a = &pair->acceptance;
    const double iterations = a->iterations;
    esp_safe_print(stdout, "%s, %s: %d iterations\n\n", pair->drafter, pair->verifier,
                   a->iterations);
    printf("tokens per iteration  %.2f: an accepted path of %.2f and the bonus token\n",
           1 + (double)a->accepted / iterations, (double)a->accepted / iterations);
    if (a->known > 0)
        printf("expected tokens       %.2f for the trees of %d iterations, which gave %.2f\n",
               a->expected / a->known, a->known, a->obtained / a->known);
    if (a->drafted == 0)
        return;
    printf("accepted nodes        %lld of %lld, %.1f %%; path / depth %.1f %%\n",
           (long long)a->accepted, (long long)a->drafted, percent(a->accepted, a->drafted),
           percent(a->accepted, a->deepest));
    printf("nodes of a tree       %.1f, at most %d; %.1f blocks of its mask\n",
           (double)a->drafted / iterations, a->most_nodes, (double)a->mask_blocks / iterations);
    if (isfinite(esp_acceptance_error(a)))
        printf("q as a forecast       is off by %.3f on average (calibration error)\n",
               esp_acceptance_error(a));
    printf("path lengths         ");
    cli_print_lengths(stdout, a);
}

static void print_mean(double sum, int64_t of)
{
    if (of > 0)
        printf("  %7.3f", sum / (double)of);
    else
        printf("  %7s", "-");
}

static void print_tried(const struct esp_trial_counts *t)
{
    printf("  %9lld  %6.1f %%  %9lld", (long long)t->tried, percent(t->accepted, t->tried),
           (long long)t->nodes);
    print_mean(t->q, t->with_q);
    print_mean(t->p, t->with_p);
    putchar('\n');
}

static void print_tables(const struct esp_acceptance *a)
{
    if (a->drafted == 0)
        return;
    printf("\n%-10s      tried  accepted      nodes  formula  ceiling\n", "depth");
    for (int i = 0; i < ESP_ACCEPT_DEPTHS && a->depth[i].nodes > 0; i++) {
        const struct esp_accept_depth *d = &a->depth[i];
        printf("%10d  %9lld  %6.1f %%  %9lld", i + 1, (long long)d->tried,
               percent(d->accepted, d->tried), (long long)d->nodes);
        print_mean(d->rate, d->rated);
        print_mean(d->ceiling, d->rated);
        putchar('\n');
    }
    printf("\n%-10s      tried  accepted      nodes   mean q   mean p\n", "child");
    for (int i = 0; i < ESP_ACCEPT_RANKS && a->rank[i].tried > 0; i++) {
        printf("%10d", i + 1);
        print_tried(&a->rank[i]);
    }
    printf("\n%-10s      tried  accepted      nodes   mean q   mean p\n", "source");
    for (int i = 0; i < ESP_SOURCES; i++) {
        if (a->source[i].nodes == 0)
            continue;
        printf("%-10s", esp_source_word(i));
        print_tried(&a->source[i]);
    }
    printf("\n%-10s      tried  accepted      nodes   mean q   mean p\n", "q");
    for (int i = 0; i < ESP_ACCEPT_BINS; i++) {
        if (a->share[i].tried == 0)
            continue;
        printf("%3.1f to %3.1f", (double)i / ESP_ACCEPT_BINS, (i + 1.0) / ESP_ACCEPT_BINS);
        print_tried(&a->share[i]);
    }
}

static int print_json(const struct pairs *pairs)
{
    cJSON *all = cJSON_CreateArray();
    for (int i = 0; i < pairs->count; i++) {
        cJSON *o = cJSON_CreateObject();
        cJSON_AddStringToObject(o, "drafter", pairs->pair[i].drafter);
        cJSON_AddStringToObject(o, "verifier", pairs->pair[i].verifier);
        cJSON_AddBoolToObject(o, "draft_is_copy", esp_is_own_copy(pairs->draft));
        cJSON_AddNumberToObject(o, "iterations", pairs->pair[i].acceptance.iterations);
        cli_json_acceptance(o, &pairs->pair[i].acceptance);
        cJSON_AddItemToArray(all, o);
    }
    return cli_print_json(all);
}

static int print(const struct cli_options *o, const struct pairs *pairs)
{
    if (o->json)
        return print_json(pairs);
    if (esp_is_own_copy(pairs->draft))
        esp_safe_print(stdout, "draft                 %s, the target's own copy\n\n",
                       pairs->draft);
    for (int i = 0; i < pairs->count; i++) {
        if (i > 0)
            putchar('\n');
        print_summary(&pairs->pair[i]);
        print_tables(&pairs->pair[i].acceptance);
    }
    return EXIT_DONE;
}

static int run(struct cli_options *o)
{
    struct esp_recording *recording;
    char err[512] = "";
    struct pairs *pairs = calloc(1, sizeof *pairs);
    if (!pairs)
        return cli_fail("not enough memory for the tables");
    int status = esp_recording_open(&recording, o->arguments[0], err, sizeof err);
    if (status == ESP_OK) {
        snprintf(pairs->draft, sizeof pairs->draft, "%s",
                 esp_recording_header(recording)->draft.name);
        status = count_all(pairs, recording, err, sizeof err);
        if (status == ESP_OK && pairs->count > 0)
            cli_tell_cut(recording, o->arguments[0]);
        esp_recording_close(recording);
    }
    if (status == ESP_OK && pairs->count == 0)
        status = esp_fail(err, sizeof err, ESP_E_ARGUMENT, "%.300s has no iterations",
                          o->arguments[0]);
    int code = status < 0 ? cli_fail(*err ? err : esp_status_message(status)) : print(o, pairs);
    free(pairs);
    return code;
}

const struct cli_command cli_stats = {
    .name = "stats",
    .arguments = "FILE",
    .summary = "show in tables which drafts of a recorded session were accepted",
    .flags = CLI(JSON),
    .least = 1,
    .most = 1,
    .details =
        "There are tables by length of the accepted path, by depth, by rank among the "
        "siblings, by\nsource (the draft model, the text, an expected text, recycled tokens) "
        "and by the draft's\nprobability q, which only the draft model's tokens have. A draft "
        "counts as tried if the\nverifier reached its parent.",
    .run = run,
};
