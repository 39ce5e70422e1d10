/* bindings.c - the user's key bindings; see bindings.h. */
#include "tui/commands/bindings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/support/suggestion.h"
#include "kernels/status.h"

enum { LONGEST = 400 };

static void forget(struct esp_own_keys *own, int at)
{
    free((char *)own->binding[at].key);
    free((char *)own->binding[at].command);
    own->count--;
    memmove(&own->binding[at], &own->binding[at + 1],
            (size_t)(own->count - at) * sizeof *own->binding);
}

static int refuse_action(const char *name, char *err, size_t errlen)
{
    struct esp_suggestion guess;
    char action[32], meant[96];
    esp_suggestion_begin(&guess, name, strlen(name));
    for (int i = 1; i < ESP_ACTIONS; i++)
        esp_suggestion_try(&guess, esp_action_name(i, action));
    return esp_fail(err, errlen, ESP_E_ARGUMENT,
                    "there is no action '%.40s'%s; write an action of espalier-interface(7), "
                    ":COMMAND, none or default",
                    name, esp_suggestion_text(&guess, meant));
}

static int add(struct esp_own_keys *own, struct esp_binding binding, const char *key,
               const char *command, char *err, size_t errlen)
{
    const size_t size = ((size_t)own->count + 1) * sizeof *own->binding;
    struct esp_binding *grown = realloc(own->binding, size);
    if (grown)
        own->binding = grown;
    binding.key = strdup(key);
    binding.command = command ? strdup(command) : NULL;
    if (!grown || !binding.key || (command && !binding.command)) {
        free((char *)binding.key);
        free((char *)binding.command);
        return esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory for this key");
    }
    grown[own->count++] = binding;
    return ESP_OK;
}

int esp_bindings_set(struct esp_own_keys *own, const char *text, char *err, size_t errlen)
{
    char name[16], written[16];
    const size_t length = strcspn(text, " ");
    const char *what = text + length + strspn(text + length, " ");
    snprintf(name, sizeof name, "%.*s", (int)(length < sizeof name ? length : 0), text);
    const int key = esp_key_parse(name);
    if (key < 0)
        return esp_fail(err, errlen, ESP_E_ARGUMENT,
                        "there is no key '%.40s'; write F12, C-t, M-t or a character", text);
    if (key == ('c' & 0x1f))
        return esp_fail(err, errlen, ESP_E_ARGUMENT,
                        "C-c cannot be bound; it always stops the generation or leaves");
    const int action = esp_action_find(what);
    const bool none = strcmp(what, "none") == 0, normal = strcmp(what, "default") == 0;
    if (action == ESP_ACTION_DIGIT && (key < '0' || key > '9'))
        return esp_fail(err, errlen, ESP_E_ARGUMENT, "the action digit is for the keys 0 to 9");
    if (strlen(what) > LONGEST)
        return esp_fail(err, errlen, ESP_E_ARGUMENT,
                        "the command of a key may have at most %d bytes", LONGEST);
    if (what[0] != ':' && !none && !normal && action < 0)
        return refuse_action(what, err, errlen);
    for (int i = own->count - 1; i >= 0; i--)
        if (esp_key_parse(own->binding[i].key) == key)
            forget(own, i);
    if (normal)
        return ESP_OK;
    const bool typed = key >= ' ' && key < ESP_KEY_FIRST && key != 127;
    return add(own,
               (struct esp_binding){.action = action < 0 ? ESP_ACTION_NONE : action,
                                    .when = typed ? ESP_WHEN_EMPTY : ESP_WHEN_ALWAYS,
                                    .label = "",
                                    .help = "bound by you"},
               esp_key_name(key, written), what[0] == ':' ? what : NULL, err, errlen);
}

void esp_bindings_free(struct esp_own_keys *own)
{
    while (own->count > 0)
        forget(own, own->count - 1);
    free(own->binding);
    own->binding = NULL;
}

const char *esp_bindings_text(const struct esp_binding *binding, char *text, size_t size)
{
    char action[32];
    snprintf(text, size, "%s",
             binding->command                     ? binding->command
             : binding->action != ESP_ACTION_NONE ? esp_action_name(binding->action, action)
                                                  : "none");
    return text;
}
