/* race.c - ":race" shows two drafters decode the same text, side by side at true speed. */
#include "tui/commands/command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tui/commands/race_page.h"
#include "tui/view/keys.h"
#include "tui/view/race_view.h"

static const double PASS = 0.1; /* seconds per pass of the enlarged target */

/* ------------------------------------------------------------------ in the engine thread */

struct racers {
    struct esp_race *race;
    struct esp_race_choice choice;
    char drafter[2][ESP_SPEC_TEXT];
};

static void run_race(void *user, struct esp_models *models)
{
    struct racers *racers = user;
    esp_race_run(racers->race, &racers->choice, models->engine);
}

static void release(void *user)
{
    struct racers *racers = user;
    esp_race_release(racers->race);
    free(racers);
}

/* ------------------------------------------------------------------ the page */

struct race_page {
    struct esp_race *race;
    bool drawn; /* the drawing is final until a key is pressed */
};

static bool settled(void *user)
{
    struct race_page *page = user;
    return esp_race_now(page->race) >= ESP_RACE_OVER;
}

static void draw(void *user, struct esp_canvas *canvas)
{
    struct race_page *page = user;
    page->drawn = settled(page);
    esp_race_draw(canvas, page->race);
}

static bool key(void *user, int pressed)
{
    struct race_page *page = user;
    if (pressed == ' ' && esp_race_now(page->race) == ESP_RACE_OVER)
        esp_race_begin(page->race);
    return pressed != ESP_KEY_ESCAPE && pressed != 'q';
}

static int due(void *user)
{
    enum { FRAME_MS = 33 };
    const struct race_page *page = user;
    return page->drawn && settled(user) ? -1 : FRAME_MS;
}

static void close_race(void *user)
{
    struct race_page *page = user;
    atomic_store(&page->race->stopped, true);
    esp_race_release(page->race);
    free(page);
}

static const struct esp_page_ops page_ops = {draw, key, due, settled, close_race};

/* Takes over the caller's reference to the race. */
static int show(struct esp_control *control, struct esp_race *race)
{
    struct race_page *page = calloc(1, sizeof *page);
    if (!page)
        return ESP_E_MEMORY;
    page->race = race;
    esp_control_page(control, &page_ops, page);
    return ESP_OK;
}

/* ------------------------------------------------------------------ opening */

int esp_race_page_read(struct esp_control *control, const char *const paths[2], char *err,
                       size_t errlen)
{
    struct esp_race *race = esp_race_new();
    int status = race ? esp_race_read(race, paths, err, errlen)
                      : esp_fail(err, errlen, ESP_E_MEMORY, "no memory for the race");
    if (status == ESP_OK)
        status = show(control, race);
    if (status < 0)
        esp_race_release(race);
    return status;
}

int esp_race_page_open(struct esp_control *control, const struct esp_race_choice *choice)
{
    struct racers *racers = calloc(1, sizeof *racers);
    struct esp_race *race = esp_race_new();
    if (!racers || !race || show(control, race) < 0) {
        free(racers);
        esp_race_release(race);
        return esp_refuse(control, "no memory for the race");
    }
    racers->race = race;
    racers->choice = *choice;
    for (int i = 0; i < 2; i++)
        if (choice->drafter[i]) {
            snprintf(racers->drafter[i], sizeof racers->drafter[i], "%s", choice->drafter[i]);
            racers->choice.drafter[i] = racers->drafter[i];
        }
    esp_race_hold(race);
    ESP_WORKER_POST(control->worker, JOB, .job = {run_race, release, racers});
    return ESP_OK;
}

/* "", "DRAFTER" on the right, or "DRAFTER DRAFTER". */
static int run(struct esp_control *control, const char *arguments)
{
    struct esp_race_choice choice = {.engine = control->options.engine, .pass = PASS};
    char drafter[2][ESP_SPEC_TEXT] = {"", ""}, more[2] = "";
    const int count = sscanf(arguments, "%1023s %1023s %1s", drafter[0], drafter[1], more);
    if (count > 2)
        return esp_refuse(control, "write :race, :race DRAFTER or :race LEFT RIGHT");
    if (count == 2)
        choice.drafter[0] = drafter[0];
    if (count > 0)
        choice.drafter[1] = drafter[count - 1];
    choice.session.values.seed = control->state.loaded.values.seed + (uint64_t)control->races++;
    if (choice.engine.target || choice.engine.width > 0 || choice.engine.layers > 0 ||
        control->state.loaded.serial > 1)
        choice.pass = 0; /* the user's models race unchanged */
    else
        choice.engine.backend = "cpu";
    esp_control_stop(control);
    return esp_race_page_open(control, &choice);
}

static void complete(const struct esp_control *control, const char *before, const char *word,
                     struct esp_choices *choices)
{
    const char *blank = strchr(before, ' ');
    (void)control;
    esp_complete_spec(ESP_DRAFTERS, blank ? blank + strspn(blank, " ") : before, word, choices);
}

const struct esp_command_ops esp_command_race = {
    .name = "race",
    .usage = "[[LEFT] RIGHT]",
    .summary = "two drafters decode the same text at true speed; default: plain decoding "
               "against trees",
    .run = run,
    .complete = complete,
};
