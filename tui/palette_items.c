/* palette_items.c - collects the palette's items from the tables; see palette_items.h.
 *
 * A line that ends with a blank or '=' is begun, and the user goes on; any other is run.
 */
#include "palette_items.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "paths.h"
#include "settings.h"

__attribute__((format(printf, 4, 5))) static void
add(struct esp_app *app, const char *kind, const char *summary, const char *format, ...)
{
    char line[128];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    esp_palette_add(&app->ui.palette, kind, line, summary, NULL);
}

static void add_commands(struct esp_app *app)
{
    for (int i = 0; esp_command(i); i++) {
        const struct esp_command_ops *command = esp_command(i);
        bool complete = !*command->usage || *command->usage == '[';
        if (esp_app_is_in(app, command->in))
            add(app, "command", command->summary, ":%s%s", command->name, complete ? "" : " ");
    }
}

static void add_list(struct esp_app *app, enum esp_list list, const char *key)
{
    struct esp_item item;
    for (int i = 0; esp_item(list, i, &item); i++)
        add(app, key, item.summary, ":%s %s", key, item.name);
}

static void add_settings(struct esp_app *app)
{
    for (int i = 0; esp_setting(i); i++) {
        char now[512], summary[800];
        if (!esp_app_is_in(app, esp_setting_place(esp_setting(i))))
            continue;
        esp_setting_get(app, i, now, sizeof now);
        snprintf(summary, sizeof summary, "%s; now %s", esp_setting(i)->summary, now);
        add(app, "setting", *now ? summary : esp_setting(i)->summary, ":%s ",
            esp_setting(i)->key);
    }
}

static void add_parameters(struct esp_app *app)
{
    char name[64];
    struct esp_param_info param;
    const char *drafter = app->state.loaded.drafter;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(drafter, ":"), drafter);
    for (int i = 0; esp_item_param(ESP_DRAFTERS, name, i, &param); i++)
        add(app, "parameter", param.help, ":set %s=", param.name);
}

static void add_models(struct esp_app *app)
{
    char name[64];
    for (int i = 0; esp_list_data("models", i, name, sizeof name) == 0; i++)
        add(app, "model", "comes with the program", ":model %s", name);
}

static void add_themes(struct esp_app *app)
{
    char name[64];
    for (int i = 0; esp_theme_list(i, name, sizeof name) == 0; i++)
        add(app, "theme", "colours", ":theme %s", name);
}

static void add_keys(struct esp_app *app)
{
    for (const struct esp_binding *b = esp_bindings; b->key; b++)
        if (b->help[0] && (b->when != ESP_WHEN_REPLAY || app->player) &&
            (b->when != ESP_WHEN_LIVE || !app->player))
            esp_palette_add(&app->ui.palette, "key", b->key, b->help, b);
}

void esp_palette_fill(struct esp_app *app)
{
    esp_palette_open(&app->ui.palette);
    add_commands(app);
    if (!app->player) {
        add_list(app, ESP_DRAFTERS, "drafter");
        add_list(app, ESP_VERIFIERS, "verifier");
    }
    add_settings(app);
    if (!app->player) {
        add_parameters(app);
        add_list(app, ESP_BACKENDS, "backend");
        add_models(app);
    }
    add_themes(app);
    add_keys(app);
    esp_palette_filter(&app->ui.palette);
}
