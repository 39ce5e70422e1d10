/* keys.c - the table of keys and their names; see keys.h. */
#include "tui/view/keys.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

const struct esp_binding esp_bindings[] = {
#define ACTION(name, key, when, label, help)                                                   \
    {ESP_ACTION_##name, ESP_WHEN_##when, key, label, help, NULL},
#define KEY(name, key, when) {ESP_ACTION_##name, ESP_WHEN_##when, key, "", "", NULL},
#define COMMAND(line, key, when, label, help)                                                  \
    {ESP_ACTION_NONE, ESP_WHEN_##when, key, label, help, line},
#define INPUT(key, when, label, help)                                                          \
    {ESP_ACTION_NONE, ESP_WHEN_##when, key, label, help, NULL},
#include "tui/view/keys.def"
    {0, 0, NULL, NULL, NULL, NULL},
};

static const char *const actions[] = {
    [ESP_ACTION_NONE] = "",
#define ACTION(name, key, when, label, help) [ESP_ACTION_##name] = #name,
#define KEY(name, key, when)
#define COMMAND(line, key, when, label, help)
#define INPUT(key, when, label, help)
#include "tui/view/keys.def"
};

const char *esp_action_name(int action, char text[32])
{
    snprintf(text, 32, "%s", actions[action]);
    for (char *c = text; *c; c++)
        *c = *c == '_' ? '-' : (char)tolower((unsigned char)*c);
    return text;
}

int esp_action_find(const char *name)
{
    char text[32];
    for (int i = 1; i < ESP_ACTIONS; i++)
        if (strcmp(esp_action_name(i, text), name) == 0)
            return i;
    return -1;
}

static const struct {
    int key;
    const char *name;
} names[] = {
    {ESP_KEY_UP, "Up"},
    {ESP_KEY_DOWN, "Down"},
    {ESP_KEY_LEFT, "Left"},
    {ESP_KEY_RIGHT, "Right"},
    {ESP_KEY_HOME, "Home"},
    {ESP_KEY_END, "End"},
    {ESP_KEY_PAGE_UP, "PgUp"},
    {ESP_KEY_PAGE_DOWN, "PgDn"},
    {ESP_KEY_INSERT, "Ins"},
    {ESP_KEY_DELETE, "Del"},
    {ESP_KEY_BACKTAB, "S-Tab"},
    {ESP_KEY_ENTER, "Enter"},
    {ESP_KEY_TAB, "Tab"},
    {ESP_KEY_ESCAPE, "Esc"},
    {' ', "Space"},
    {127, "Backspace"},
    {'=', "Equal"},
};

enum { NAMES = sizeof names / sizeof *names };

int esp_key_parse(const char *name)
{
    size_t length = strlen(name);
    for (int i = 0; i < NAMES; i++)
        if (strcmp(names[i].name, name) == 0)
            return names[i].key;
    if (name[0] == 'F' && length > 1) {
        int number = atoi(name + 1);
        return number >= 1 && number <= 12 ? ESP_KEY_F0 + number : -1;
    }
    if (strncmp(name, "M-", 2) == 0 && length > 2) {
        int key = esp_key_parse(name + 2);
        return key < 0 ? -1 : key | ESP_KEY_META;
    }
    if (strncmp(name, "C-", 2) == 0 && length == 3)
        return name[2] & 0x1f;
    utf8proc_int32_t c;
    utf8proc_ssize_t n = utf8proc_iterate((const utf8proc_uint8_t *)name, -1, &c);
    return n > 0 && (size_t)n == length ? c : -1;
}

const char *esp_key_name(int key, char name[16])
{
    const char *meta = key & ESP_KEY_META ? "M-" : "";
    int plain = key & ~ESP_KEY_META;
    for (int i = 0; i < NAMES; i++)
        if (names[i].key == plain) {
            snprintf(name, 16, "%s%s", meta, names[i].name);
            return name;
        }
    if (plain > ESP_KEY_F0 && plain <= ESP_KEY_LAST)
        snprintf(name, 16, "%sF%d", meta, plain - ESP_KEY_F0);
    else if (plain < 0x20)
        snprintf(name, 16, "%sC-%c", meta, plain | 0x60);
    else {
        char bytes[5] = "";
        utf8proc_encode_char(plain, (utf8proc_uint8_t *)bytes);
        snprintf(name, 16, "%s%s", meta, bytes);
    }
    return name;
}

static bool holds(const struct esp_binding *binding, struct esp_key_when when)
{
    switch (binding->when) {
    case ESP_WHEN_PANE:
        return when.pane;
    case ESP_WHEN_EMPTY:
        return when.pane || when.empty;
    case ESP_WHEN_STEP:
        return when.step && (when.pane || when.empty);
    case ESP_WHEN_LIVE:
        return !when.replay;
    case ESP_WHEN_BRANCH:
        return when.pane && !when.replay;
    case ESP_WHEN_REPLAY:
        return when.replay && (when.pane || when.empty);
    default:
        return true;
    }
}

const struct esp_binding *esp_own_key(const struct esp_own_keys *own, int key)
{
    for (int i = 0; own && i < own->count; i++)
        if (esp_key_parse(own->binding[i].key) == key)
            return &own->binding[i];
    return NULL;
}

const struct esp_binding *esp_key_binding(int key, struct esp_key_when when,
                                          const struct esp_own_keys *own)
{
    const struct esp_binding *mine = esp_own_key(own, key);
    if (mine && holds(mine, when))
        return mine->command || mine->action != ESP_ACTION_NONE ? mine : NULL;
    for (const struct esp_binding *binding = esp_bindings; binding->key; binding++)
        if (esp_key_parse(binding->key) == key && holds(binding, when))
            return binding;
    return NULL;
}
