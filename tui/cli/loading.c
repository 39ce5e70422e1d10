/* loading.c - opening an engine for a command: a bar while a large model loads, and a word on a
 * device that is there but cannot be used.
 *
 * Both go to standard error, the bar only to a terminal, and only when loading takes long enough
 * to wonder.
 */
#include <stdio.h>
#include <unistd.h>

#include "cli.h"
#include "clock.h"

enum { BAR = 30 };
static const double PATIENCE = 0.5; /* seconds */

struct loading {
    double start;
    bool shown;
};

static bool progress(void *user, const char *what, size_t done, size_t total)
{
    struct loading *l = user;
    if (!l->shown && esp_clock() - l->start < PATIENCE)
        return true;
    l->shown = true;
    int filled = (int)((double)done / (double)total * BAR);
    fprintf(stderr, "\r[%.*s%*s] %s, %.0f of %.0f MB\033[K", filled,
            "##############################", BAR - filled, "", what, (double)done / 1e6,
            (double)total / 1e6);
    return true;
}

int cli_open_engine(struct esp_engine **engine, const struct cli_options *options, char *err,
                    size_t errlen)
{
    struct esp_engine_options with = options->engine;
    struct loading loading = {.start = esp_clock()};
    if (isatty(STDERR_FILENO)) {
        with.progress = progress;
        with.user = &loading;
    }
    int status = esp_engine_open(engine, &with, err, errlen);
    if (loading.shown)
        fprintf(stderr, "\r\033[K");
    if (status == ESP_OK && *esp_engine_notice(*engine))
        fprintf(stderr, "espalier: %s; using the %s backend\n", esp_engine_notice(*engine),
                esp_engine_backend(*engine));
    return status;
}
