/* prompt_list.c - see prompt_list.h. */
#include "tui/cli/bench/prompt_list.h"

#include <cJSON.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/status.h"
#include "tui/cli/prompt.h"

static int add(struct cli_prompts *list, const char *text, size_t length, const char *category,
               char *err, size_t errlen)
{
    const size_t room = (size_t)list->count;
    struct cli_prompt *larger = list->prompt;
    if ((room & (room - 1)) == 0) /* the list is full: its capacity is 0 or a power of two */
        larger = realloc(list->prompt, (room ? 2 * room : 1) * sizeof *larger);
    if (!larger)
        return esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory for the prompts");
    list->prompt = larger;
    struct cli_prompt *p = &larger[list->count];
    *p = (struct cli_prompt){malloc(length), length, strdup(category)};
    list->count++;
    if (!p->text || !p->category)
        return esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory for the prompts");
    memcpy(p->text, text, length);
    return ESP_OK;
}

static int add_json(struct cli_prompts *list, const char *line, size_t length, const char *name,
                    int number, char *err, size_t errlen)
{
    cJSON *o = cJSON_ParseWithLength(line, length);
    const cJSON *text = cJSON_GetObjectItemCaseSensitive(o, "prompt");
    const cJSON *category = cJSON_GetObjectItemCaseSensitive(o, "category");
    int status = ESP_OK;
    if (!cJSON_IsObject(o))
        status = esp_fail(err, errlen, ESP_E_FORMAT,
                          "%s, line %d: this is not a JSON object; each line must be one", name,
                          number);
    else if (!cJSON_IsString(text) || (category && !cJSON_IsString(category)))
        status = esp_fail(err, errlen, ESP_E_FORMAT,
                          "%s, line %d: \"prompt\" must be a string, and so must \"category\", "
                          "if there is one",
                          name, number);
    else if (*text->valuestring)
        status = add(list, text->valuestring, strlen(text->valuestring),
                     category ? category->valuestring : "", err, errlen);
    cJSON_Delete(o);
    return status;
}

static size_t blanks(const char *text, size_t length)
{
    size_t n = 0;
    while (n < length && memchr(" \t\r\n", text[n], 4))
        n++;
    return n;
}

int cli_prompts_take(struct cli_prompts *list, const char *text, size_t length,
                     const char *name, char *err, size_t errlen)
{
    const size_t begin = blanks(text, length);
    const bool json = begin < length && text[begin] == '{';
    int status = ESP_OK, number = 1;
    *list = (struct cli_prompts){0};
    for (size_t at = 0, end; at < length && status == ESP_OK; at = end + 1, number++) {
        const char *newline = memchr(text + at, '\n', length - at);
        end = newline ? (size_t)(newline - text) : length;
        if (json && blanks(text + at, end - at) < end - at)
            status = add_json(list, text + at, end - at, name, number, err, errlen);
        else if (!json && end > at)
            status = add(list, text + at, end - at, "", err, errlen);
    }
    if (status == ESP_OK && list->count == 0)
        status = esp_fail(err, errlen, ESP_E_ARGUMENT,
                          "%s: there is no prompt: every line is empty", name);
    if (status < 0)
        cli_prompts_free(list);
    return status;
}

int cli_read_prompts(struct cli_prompts *list, const struct cli_options *o)
{
    char *text, err[512];
    size_t length;
    int code = cli_read_prompt(o, &text, &length);
    if (code != EXIT_DONE)
        return code;
    const bool file = o->prompt_file && strcmp(o->prompt_file, "-") != 0;
    const char *name = file ? o->prompt_file : o->prompt ? "-p" : "standard input";
    if (cli_prompts_take(list, text, length, name, err, sizeof err) < 0)
        code = cli_fail(err);
    else
        cli_prompts_keep(list, o->most_prompts);
    free(text);
    return code;
}

void cli_prompts_keep(struct cli_prompts *list, int most)
{
    while (list->count > most) {
        struct cli_prompt *last = &list->prompt[--list->count];
        free(last->text);
        free(last->category);
    }
}

void cli_prompts_free(struct cli_prompts *list)
{
    for (int i = 0; i < list->count; i++) {
        free(list->prompt[i].text);
        free(list->prompt[i].category);
    }
    free(list->prompt);
    *list = (struct cli_prompts){0};
}
