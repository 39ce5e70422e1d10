/* set.c - ":set key=value" changes one setting: sampling, or a parameter of the current
 * drafter. */
#include "command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *key, *summary, *choices;
} settings[] = {
    {"n", "new tokens per prompt", NULL},
    {"temp", "temperature; 0: the likeliest token always", NULL},
    {"top_p", "sample from the likeliest tokens that hold this share", NULL},
    {"top_k", "sample from this many likeliest tokens; 0: all", NULL},
    {"seed", "of the random numbers", NULL},
    {"order", "rows of the tree in the target's pass", "bfs|dfs|hpd"},
    {"baseline", "measure plain decoding now and then", "on|off"},
};

enum { SETTINGS = sizeof settings / sizeof *settings };

static void set_limit(struct esp_app *app, const char *value)
{
    char *end;
    long tokens = strtol(value, &end, 10);
    if (end == value || *end || tokens < 1 || tokens > 1000000) {
        esp_app_say(app, true, "n takes a whole number from 1 to 1000000, not '%.40s'", value);
        return;
    }
    esp_worker_limit(app->worker, (int)tokens);
    esp_app_say(app, false, "n = %ld", tokens);
}

static void run(struct esp_app *app, const char *arguments)
{
    char key[64];
    size_t length = strcspn(arguments, " =");
    const char *value = arguments + length + strspn(arguments + length, " =");
    if (length == 0 || length >= sizeof key || !*value) {
        esp_app_say(app, true, "write :set key=value; Tab after :set lists the keys");
        return;
    }
    snprintf(key, sizeof key, "%.*s", (int)length, arguments);
    if (strcmp(key, "n") == 0)
        set_limit(app, value);
    else
        esp_worker_set(app->worker, key, value);
}

static void complete_value(const char *drafter, const char *before, const char *word,
                           struct esp_choices *choices)
{
    struct esp_param_info param = {.type = "choice"};
    size_t length = strcspn(before, " =");
    for (int i = 0; i < SETTINGS; i++)
        if (strlen(settings[i].key) == length && strncmp(settings[i].key, before, length) == 0)
            param.choices = settings[i].choices;
    for (int i = 0; !param.choices && esp_item_param(ESP_DRAFTERS, drafter, i, &param); i++)
        if (strlen(param.name) == length && strncmp(param.name, before, length) == 0)
            break;
        else
            param = (struct esp_param_info){.type = "choice"};
    esp_complete_value(&param, word, choices);
}

static void complete(const struct esp_app *app, const char *before, const char *word,
                     struct esp_choices *choices)
{
    char drafter[64];
    struct esp_param_info param;
    snprintf(drafter, sizeof drafter, "%.*s", (int)strcspn(app->state.loaded.drafter, ":"),
             app->state.loaded.drafter);
    if (*before) {
        complete_value(drafter, before, word, choices);
        return;
    }
    choices->append = '=';
    for (int i = 0; i < SETTINGS; i++)
        esp_choices_offer(choices, word, settings[i].key, settings[i].summary);
    for (int i = 0; esp_item_param(ESP_DRAFTERS, drafter, i, &param); i++)
        esp_choices_offer(choices, word, param.name, param.help);
}

const struct esp_command_ops esp_command_set = {
    .name = "set",
    .usage = "KEY=VALUE",
    .summary = "change a setting or a parameter of the drafter, from the next iteration on",
    .run = run,
    .complete = complete,
};
