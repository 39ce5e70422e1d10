/* race_run.c - see race_run.h. */
#include "tui/worker/race_run.h"

#include <stdio.h>
#include <string.h>

#include "tui/worker/decode_run.h"

/* The bundled prompts of races, each with a number of tokens. tests/race_prompts finds
 * candidates. tests/cli/race.sh checks that the built-in target continues each prompt by this
 * number of tokens to the end of a sentence, without repeating itself. A repetitive text would
 * make drafts look too good. */
static const struct {
    const char *prompt;
    int tokens;
} tales[] = {
    {"Once upon a time there lived by the sea a fox who was never content.", 116},
    {"Long ago there lived a giant in a castle on a hill. In the garden stood a tree that bore "
     "golden apples.",
     107},
    {"Once upon a time there lived a sultan who had lost his sleep. There was nothing to eat "
     "in "
     "the house but a crust of bread,",
     151},
};

enum {
    TALES = sizeof tales / sizeof *tales,
    TOKENS = 64 /* number of tokens to generate after a prompt of the user */
};

enum { PRACTICE = 40, PLAIN_PRACTICE = 4 };

struct racing {
    struct esp_race *race;
    int side;
    const char *name; /* drafter of the side that is decoding */
};

static bool goes_on(void *user, bool practice, double share)
{
    struct racing *r = user;
    if (r->side == 1 && !practice)
        esp_race_say(r->race, ESP_RACE_PREPARES, 0.4 + 0.6 * share,
                     "decoding the right side alone, so that it does not share the processors");
    else if (r->side == 1)
        esp_race_say(r->race, ESP_RACE_PREPARES, 0.2 + 0.2 * share,
                     "%s measures the cost of passes on another text", r->name);
    else if (!practice && share == 0)
        esp_race_begin(r->race);
    return !atomic_load(&r->race->stopped);
}

static bool progress(void *user, const char *what, size_t done, size_t total)
{
    struct esp_race *race = user;
    (void)what;
    const double share = total > 0 ? (double)done / (double)total : 0;
    esp_race_say(race, ESP_RACE_PREPARES, 0.2 * share, "loading the models");
    return !atomic_load(&race->stopped);
}

static void name_pair(struct esp_race *race, const struct esp_engine *engine, double took)
{
    struct esp_model_info target = {.name = ""}, draft = {.name = ""};
    char pass[48] = "";
    esp_engine_target(engine, &target);
    esp_engine_draft(engine, &draft);
    if (took > 0)
        snprintf(pass, sizeof pass, ", %.*f ms per pass", took < 0.01 ? 1 : 0, 1e3 * took);
    pthread_mutex_lock(&race->lock);
    snprintf(race->pair, sizeof race->pair, "%.80s%s%s%.60s", target.name, pass,
             *draft.name ? " <- " : "", draft.name);
    pthread_mutex_unlock(&race->lock);
}

static int decode(struct racing *r, struct esp_engine *engine, char *err, size_t errlen)
{
    const struct esp_race_options *c = &r->race->options;
    const char *drafter = c->drafter[r->side] ? c->drafter[r->side]
                          : r->side == 0      ? "ar"
                                              : NULL;
    const bool plain = drafter && strcmp(drafter, "ar") == 0;
    const int tale = (int)(c->session.values.seed % TALES);
    const int tokens = c->prompt ? TOKENS : tales[tale].tokens;
    struct esp_decode_options options = {.session = c->session,
                                         .prompt = c->prompt ? c->prompt : tales[tale].prompt,
                                         .tokens = c->tokens > 0 ? c->tokens : tokens,
                                         .practice = plain ? PLAIN_PRACTICE : PRACTICE,
                                         .goes_on = goes_on,
                                         .user = r};
    options.session.drafter = drafter;
    options.session.verifier = c->verifier[r->side];
    r->name = drafter ? drafter : "the drafter";
    return esp_decode_run(&r->race->side[r->side], engine, &options, err, errlen);
}

bool esp_race_run(struct esp_race *race, struct esp_engine *engine)
{
    const double pass = race->options.pass;
    struct esp_engine_options models = race->options.engine;
    struct esp_engine *own = NULL;
    struct racing r = {.race = race, .side = 1};
    char err[512] = "";
    double took = 0;
    int status = ESP_OK;
    models.progress = progress;
    models.user = race;
    esp_race_say(race, ESP_RACE_PREPARES, 0, "loading the models");
    if (pass > 0)
        status = esp_engine_open_slow(&own, &models, pass, &took, err, sizeof err);
    else if (!engine)
        status = esp_engine_open(&own, &models, err, sizeof err);
    engine = own ? own : engine;
    if (status == ESP_OK) {
        name_pair(race, engine, took);
        status = decode(&r, engine, err, sizeof err);
    }
    r.side = 0;
    if (status == ESP_OK && !atomic_load(&race->stopped))
        status = decode(&r, engine, err, sizeof err);
    esp_engine_close(own);
    if (status < 0 && !atomic_load(&race->stopped))
        esp_race_say(race, ESP_RACE_FAILED, 0, "%s", *err ? err : esp_status_message(status));
    return status == ESP_OK && !atomic_load(&race->stopped);
}
