/* race.c - ":race" lets two drafters decode the same text, and shows both side by side at the
 * measured speed. */
#include "tui/commands/command.h"

#include <stdio.h>
#include <string.h>

#include "tui/commands/race_page.h"
#include "tui/view/keys.h"
#include "tui/view/race_view.h"
#include "tui/worker/race_run.h"

/* The target is enlarged until a pass takes this many seconds. */
static const double PASS = 0.1;

/* ------------------------------------------------------------------ in the engine thread */

static void run_race(void *race, struct esp_models *models)
{
    esp_race_run(race, models->engine);
}

static void release(void *race)
{
    esp_race_release(race);
}

/* ------------------------------------------------------------------ the page */

static bool settled(void *race)
{
    return esp_race_now(race) >= ESP_RACE_OVER;
}

static void draw(void *user, struct esp_canvas *canvas)
{
    struct esp_race *race = user;
    race->drawn = settled(race);
    esp_race_draw(canvas, race);
}

static bool key(void *race, int pressed)
{
    if (pressed == ' ' && esp_race_now(race) == ESP_RACE_OVER)
        esp_race_begin(race);
    return pressed != ESP_KEY_ESCAPE && pressed != 'q';
}

static int due(void *user)
{
    enum { FRAME_MS = 33 };
    const struct esp_race *race = user;
    return race->drawn && settled(user) ? -1 : FRAME_MS;
}

static void close_race(void *user)
{
    struct esp_race *race = user;
    atomic_store(&race->stopped, true);
    esp_race_release(race);
}

static const struct esp_page_ops page_ops = {draw, key, due, settled, close_race};

/* ------------------------------------------------------------------ opening */

int esp_race_page_read(struct esp_control *control, const char *const paths[2], char *err,
                       size_t errlen)
{
    struct esp_race *race = esp_race_new(NULL);
    int status = race ? esp_race_read(race, paths, err, errlen)
                      : esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory for the race");
    if (status == ESP_OK)
        esp_control_page(control, &page_ops, race);
    else
        esp_race_release(race);
    return status;
}

int esp_race_page_open(struct esp_control *control, const struct esp_race_options *options)
{
    struct esp_race *race = esp_race_new(options);
    if (!race)
        return esp_refuse(control, "not enough memory for the race");
    esp_control_page(control, &page_ops, race);
    esp_race_hold(race);
    ESP_WORKER_POST(control->worker, JOB, .job = {run_race, release, race});
    return ESP_OK;
}

/* Opens a race. The arguments name its drafters: "", "RIGHT" or "LEFT RIGHT". */
static int run(struct esp_control *control, const char *arguments)
{
    struct esp_race_options options = {.engine = control->settings.options.engine,
                                       .pass = PASS};
    char drafter[2][ESP_SPEC_TEXT] = {"", ""}, more[2] = "";
    const int count = sscanf(arguments, "%1023s %1023s %1s", drafter[0], drafter[1], more);
    if (count > 2)
        return esp_refuse(control, "write :race, :race DRAFTER or :race LEFT RIGHT");
    if (count == 2)
        options.drafter[0] = drafter[0];
    if (count > 0)
        options.drafter[1] = drafter[count - 1];
    options.session.values.seed =
        control->state.loaded.values.seed + (uint64_t)control->races++;
    if (options.engine.target || options.engine.width > 0 || options.engine.layers > 0 ||
        control->state.loaded.serial > 1)
        options.pass = 0; /* the target is not enlarged if the user chose the models */
    else
        options.engine.backend = "cpu";
    esp_control_stop(control);
    return esp_race_page_open(control, &options);
}

static void complete(const struct esp_control *control, struct esp_choices *choices)
{
    const char *blank = strchr(choices->before, ' ');
    (void)control;
    esp_complete_spec(ESP_DRAFTERS, blank ? blank + strspn(blank, " ") : choices->before,
                      choices);
}

const struct esp_command_ops esp_command_race = {
    .name = "race",
    .usage = "[[LEFT] RIGHT]",
    .summary = "two drafters decode the same text at true speed; default: plain decoding "
               "against trees",
    .run = run,
    .complete = complete,
};
