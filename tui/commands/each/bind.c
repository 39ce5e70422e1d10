/* bind.c - ":bind F12 :theme light" binds a key. */
#include "tui/commands/bindings.h"

#include <stdio.h>
#include <string.h>

#include "tui/commands/command.h"

static int run(struct esp_control *control, const char *arguments)
{
    struct esp_own_keys *own = &control->ui.own_keys;
    char err[300], text[200];
    if (!*arguments)
        return own->count ? esp_answer(control, "you have bound %d key%s; F7 lists all keys",
                                       own->count, own->count == 1 ? "" : "s")
                          : esp_answer(control, "write :bind KEY ACTION or :bind KEY :COMMAND");
    if (esp_bindings_set(own, arguments, err, sizeof err) < 0)
        return esp_refuse(control, "%s", err);
    const struct esp_binding *last = own->count ? &own->binding[own->count - 1] : NULL;
    if (!last || strstr(arguments, " default"))
        return esp_answer(control, "the key has its default action again");
    return esp_answer(control, "%s: %s", last->key, esp_bindings_text(last, text, sizeof text));
}

static void complete(const struct esp_control *control, struct esp_choices *choices)
{
    char action[32];
    (void)control;
    if (!*choices->before || strchr(choices->before, ':'))
        return;
    for (int i = 1; i < ESP_ACTIONS; i++)
        esp_choices_offer(choices, esp_action_name(i, action), NULL);
    esp_choices_offer(choices, "none", "the input line gets the key");
    esp_choices_offer(choices, "default", "its default action");
}

const struct esp_command_ops esp_command_bind = {
    .name = "bind",
    .usage = "KEY ACTION|:COMMAND|none|default",
    .summary = "bind a key; :config save saves the binding",
    .in = ESP_IN_BOTH,
    .run = run,
    .complete = complete,
};
