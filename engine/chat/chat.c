/* chat.c - reads chat templates and writes conversations; see chat.h and chat_format.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/chat/chat_format.h"
#include "engine/espalier_chat.h"
#include "engine/model/json.h"
#include "kernels/status.h"

#define EXTERN(name) extern const struct esp_chat_format esp_chat_format_##name;
ESP_CHAT_FORMATS(EXTERN)

#define ADDRESS(name) &esp_chat_format_##name,
const struct esp_chat_format *const esp_chat_formats[] = {ESP_CHAT_FORMATS(ADDRESS) NULL};

/* ------------------------------------------------------------------ templates */

/* Returns the chat template in a form in which signs can be found: each \n in a literal becomes
 * a line break, and all quotes become single quotes. The caller frees it. */
static char *plain(const char *text, size_t length)
{
    char *out = malloc(length + 1), *to = out;
    for (size_t i = 0; out && i < length; i++) {
        const bool escaped = text[i] == '\\' && i + 1 < length && text[i + 1] == 'n';
        *to++ = escaped ? '\n' : text[i] == '"' ? '\'' : text[i];
        i += escaped;
    }
    if (out)
        *to = '\0';
    return out;
}

/* Returns the variants whose signs the chat template contains. */
static unsigned variant_of(const struct esp_chat_format *format, const char *text)
{
    unsigned variant = 0;
    for (const struct esp_chat_sign *sign = format->signs; sign->part; sign++)
        if (strstr(text, sign->part) && (!sign->also || strstr(text, sign->also)) &&
            !(sign->lacks && strstr(text, sign->lacks)))
            variant |= sign->variant;
    return variant;
}

/* Copies the text between `before` and `after` in the chat template, if it is part of one
 * literal, that is, without quotes and braces. NULL if there is none. The caller frees it. */
static char *text_between(const char *text, const char *before, const char *after)
{
    for (const char *at = strstr(text, before); at; at = strstr(at, before)) {
        at += strlen(before);
        const size_t length = strcspn(at, "'\"{}");
        const char *end = strstr(at, after);
        if (end && (size_t)(end - at) <= length)
            return strndup(at, (size_t)(end - at));
    }
    return NULL;
}

int esp_chat_read(struct esp_chat *chat, const char *text, size_t length, const char *bos,
                  const char *eos)
{
    *chat = (struct esp_chat){.has_template = length > 0};
    snprintf(chat->bos, sizeof chat->bos, "%s", bos ? bos : "");
    snprintf(chat->eos, sizeof chat->eos, "%s", eos ? eos : "");
    char *template_text = plain(text, length);
    if (!template_text)
        return ESP_E_MEMORY;
    for (int i = 0; esp_chat_formats[i] && !chat->format; i++) {
        const unsigned variant = variant_of(esp_chat_formats[i], template_text);
        if (variant & ESP_CHAT_KNOWN) {
            chat->format = esp_chat_formats[i];
            chat->variant = variant;
        }
    }
    if (chat->format && chat->format->system_after)
        chat->system = text_between(template_text, chat->format->system_after,
                                    chat->format->system_before);
    free(template_text);
    return ESP_OK;
}

void esp_chat_free(struct esp_chat *chat)
{
    free(chat->system);
    *chat = (struct esp_chat){.format = NULL};
}

/* Returns the text of a token in tokenizer_config.json. There, it is a string or the member
 * "content" of an object. */
static const char *token_text(const cJSON *config, const char *key)
{
    const cJSON *token = esp_json_item(config, key);
    if (cJSON_IsObject(token))
        token = esp_json_item(token, "content");
    return cJSON_GetStringValue(token);
}

/* Finds the chat template: chat_template is a text, or a list of named texts. The text
 * named "default" is for conversations. */
static const char *template_of(const cJSON *config)
{
    const cJSON *found = esp_json_item(config, "chat_template"), *item;
    if (!cJSON_IsArray(found))
        return cJSON_GetStringValue(found);
    cJSON_ArrayForEach(item, found)
    {
        const char *name = esp_json_text(item, "name");
        if (name && strcmp(name, "default") == 0)
            return esp_json_text(item, "template");
    }
    return NULL;
}

int esp_chat_open(struct esp_chat *chat, const char *folder, char *err, size_t errlen)
{
    static const char JINJA[] = "chat_template.jinja", CONFIG[] = "tokenizer_config.json";
    struct esp_json config = {.root = NULL};
    char path[PATH_MAX], *file = NULL;
    size_t length = 0;
    int status = ESP_OK;
    *chat = (struct esp_chat){.format = NULL};
    if (esp_file_exists(folder, CONFIG))
        status = esp_json_read(&config, folder, CONFIG, err, errlen);
    if (status == ESP_OK && esp_file_exists(folder, JINJA))
        status = esp_file_read(&file, &length, path, folder, JINJA, ESP_CHAT_TEMPLATE_LIMIT,
                               err, errlen);
    const char *text = file ? file : template_of(config.root);
    length = text ? strlen(text) : 0;
    if (status == ESP_OK && length > ESP_CHAT_TEMPLATE_LIMIT)
        status =
            esp_fail(err, errlen, ESP_E_FORMAT, "%s: chat_template is longer than %d bytes",
                     config.path, ESP_CHAT_TEMPLATE_LIMIT);
    if (status == ESP_OK &&
        esp_chat_read(chat, text, length, token_text(config.root, "bos_token"),
                      token_text(config.root, "eos_token")) < 0)
        status = esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory for the chat template");
    free(file);
    esp_json_close(&config);
    return status;
}

void esp_chat_choose(struct esp_chat *chosen, const struct esp_chat *own, int choice)
{
    *chosen = *own;
    if (choice == ESP_CHAT_AUTO)
        return;
    const struct esp_chat_format *format =
        choice > ESP_CHAT_NONE ? esp_chat_formats[choice - ESP_CHAT_NONE - 1] : NULL;
    if (format == own->format)
        return;
    chosen->format = format;
    chosen->variant = format ? format->usual : 0;
    chosen->system = NULL;
}

/* ------------------------------------------------------------------ conversations */

void esp_chat_begin(struct esp_chat_text *out, const struct esp_chat *chat, const char *system)
{
    esp_chat_write(out, chat, ESP_AT_BEGIN, system ? system : chat->system, "", 0);
}

void esp_chat_turn(struct esp_chat_text *out, const struct esp_chat *chat, bool first,
                   const char *system, const char *text, size_t length)
{
    esp_chat_write(out, chat, ESP_AT_USER, first ? system : NULL, text, length);
    esp_chat_write(out, chat, ESP_AT_CUE, NULL, "", 0);
}

void esp_chat_close(struct esp_chat_text *out, const struct esp_chat *chat)
{
    esp_chat_write(out, chat, ESP_AT_CLOSE, NULL, "", 0);
}
