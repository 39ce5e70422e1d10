/* palette_items.c - fills the palette from the tables; see palette_items.h.
 *
 * If the command of a chosen item ends with a blank or '=', the command is put on the input
 * line, where the user completes it. All other commands run when their items are chosen.
 */
#include "tui/commands/palette_items.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tui/commands/bindings.h"
#include "tui/commands/command.h"
#include "tui/commands/settings.h"

__attribute__((format(printf, 4, 5))) static void
add(struct esp_palette *palette, const char *kind, const char *summary, const char *format, ...)
{
    char line[128];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    esp_palette_add(palette, kind, line, summary, NULL);
}

static void add_commands(struct esp_control *control)
{
    for (int i = 0; esp_command(i); i++) {
        const struct esp_command_ops *command = esp_command(i);
        bool complete = !*command->usage || *command->usage == '[';
        if (esp_control_is_in(control, command->in))
            add(&control->ui.palette, "command", command->summary, ":%s%s", command->name,
                complete ? "" : " ");
    }
}

static void add_list(struct esp_palette *palette, enum esp_list list, const char *key)
{
    struct esp_item item;
    for (int i = 0; esp_item(list, i, &item); i++)
        add(palette, key, item.summary, ":%s %s", key, item.name);
}

static void add_settings(struct esp_control *control)
{
    for (int i = 0; esp_setting(i); i++) {
        char now[512], summary[800];
        if (!esp_control_is_in(control, esp_setting_place(esp_setting(i))))
            continue;
        esp_setting_get(control, i, now, sizeof now);
        snprintf(summary, sizeof summary, "%s; now %s", esp_setting(i)->summary, now);
        add(&control->ui.palette, "setting", *now ? summary : esp_setting(i)->summary, ":%s ",
            esp_setting(i)->key);
    }
}

static void add_parameters(struct esp_control *control)
{
    char name[64];
    struct esp_param_info param;
    const char *drafter = control->state.loaded.drafter;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(drafter, ":"), drafter);
    for (int i = 0; esp_item_param(ESP_DRAFTERS, name, i, &param); i++)
        add(&control->ui.palette, "parameter", param.help, ":set %s=", param.name);
}

static void add_models(struct esp_palette *palette)
{
    struct esp_choices choices = {.before = "", .word = ""};
    esp_complete_model(NULL, &choices);
    for (int i = 0; i < choices.count; i++)
        add(palette, "model", choices.choice[i].summary, ":model %s", choices.choice[i].text);
    esp_choices_clear(&choices);
}

static void add_themes(struct esp_palette *palette)
{
    char name[64];
    for (int i = 0; esp_theme_list(i, name, sizeof name) == 0; i++)
        add(palette, "theme", "colours", ":theme %s", name);
}

static void add_keys(struct esp_control *control)
{
    const struct esp_own_keys *own = &control->ui.own_keys;
    char text[200];
    for (int i = 0; i < own->count; i++)
        esp_palette_add(&control->ui.palette, "your key", own->binding[i].key,
                        esp_bindings_text(&own->binding[i], text, sizeof text),
                        &own->binding[i]);
    for (const struct esp_binding *b = esp_bindings; b->key; b++)
        if (b->help[0] && !esp_own_key(own, esp_key_parse(b->key)) &&
            (b->when != ESP_WHEN_REPLAY || control->player) &&
            ((b->when != ESP_WHEN_LIVE && b->when != ESP_WHEN_BRANCH) || !control->player))
            esp_palette_add(&control->ui.palette, "key", b->key, b->help, b);
}

/* Removes the kind and the name from a reason such as "verifier nss needs a temperature" or
 * "verifier greedy is for temperature 0", because the list already shows them. */
static const char *without_name(const char *why, const char *kind, const char *name)
{
    char start[128];
    const int length = snprintf(start, sizeof start, "%s %s ", kind, name);
    if (strncmp(why, start, (size_t)length) != 0)
        return why;
    why += length;
    return strncmp(why, "is ", 3) == 0 ? why + 3 : why;
}

void esp_palette_menu(struct esp_control *control, enum esp_list list)
{
    const struct esp_setup *loaded = &control->state.loaded;
    const bool drafters = list == ESP_DRAFTERS;
    const char *key = drafters ? "drafter" : "verifier",
               *now = drafters ? loaded->drafter : loaded->verifier;
    const int verifier = esp_setting_find("verifier", strlen("verifier"));
    struct esp_palette *palette = &control->ui.palette;
    struct esp_item item;
    char why[400];
    esp_palette_open(palette);
    palette->title =
        drafters ? "drafter: how trees are drafted" : "verifier: how trees are verified";
    palette->skipped = (int)strlen(key) + 2;
    add(palette, key,
        drafters ? "the default for the loaded models"
                 : "the best lossless verifier for the drafter",
        ":%s auto", key);
    for (int i = 0; esp_item(list, i, &item); i++) {
        /* If the user has not chosen a verifier, the program chooses one for the drafter. */
        const char *with = !drafters                            ? item.name
                           : control->settings.chosen[verifier] ? loaded->verifier
                                                                : NULL;
        const bool refused = control->state.ready &&
                             esp_choice_check(drafters ? item.name : loaded->drafter, with,
                                              loaded->values.temperature,
                                              loaded->draft[0] != '\0', why, sizeof why) < 0;
        add(palette, key, refused ? without_name(why, key, item.name) : item.summary, ":%s %s",
            key, item.name);
        esp_palette_mark(palette,
                         strlen(item.name) == strcspn(now, ":") &&
                             strncmp(item.name, now, strlen(item.name)) == 0,
                         refused);
    }
    esp_palette_filter(palette);
}

void esp_palette_fill(struct esp_control *control)
{
    struct esp_palette *palette = &control->ui.palette;
    esp_palette_open(palette);
    add_commands(control);
    if (!control->player) {
        add_list(palette, ESP_DRAFTERS, "drafter");
        add_list(palette, ESP_VERIFIERS, "verifier");
    }
    add_settings(control);
    if (!control->player) {
        add_parameters(control);
        add_list(palette, ESP_BACKENDS, "backend");
        add_models(palette);
    }
    add_themes(palette);
    add_keys(control);
    esp_palette_filter(palette);
}
