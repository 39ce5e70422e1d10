/* normalize.c - see normalize.h. The composition tables are utf8proc's. */
#include "engine/model/normalize.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "engine/model/json.h"
#include "kernels/status.h"

enum kind { NFC, PREPEND, REPLACE };

enum {
    TEXT_LIMIT = 1 << 30,    /* bytes that a text may have after any step */
    CONTENT_LIMIT = 1 << 10, /* bytes that a step may insert */
};

/* ------------------------------------------------------------------ reading */

static int add_step(struct esp_normalizer *normalizer, enum kind kind, const char *pattern,
                    const char *content, char *err, size_t errlen)
{
    if (normalizer->count == ESP_NORMALIZER_LIMIT)
        return esp_fail(err, errlen, ESP_E_UNSUPPORTED,
                        "normalizer has more than %d steps, which is not supported",
                        ESP_NORMALIZER_LIMIT);
    if (strlen(content) > CONTENT_LIMIT)
        return esp_fail(err, errlen, ESP_E_UNSUPPORTED,
                        "normalizer inserts a text of more than %d bytes, which is not "
                        "supported",
                        CONTENT_LIMIT);
    struct esp_normalizer_step *step = &normalizer->steps[normalizer->count++];
    step->kind = kind;
    step->pattern = strdup(pattern);
    step->content = strdup(content);
    if (!step->pattern || !step->content)
        return esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory for the normalizer");
    return ESP_OK;
}

static int read_replace(struct esp_normalizer *normalizer, const cJSON *json, char *err,
                        size_t errlen)
{
    const cJSON *pattern = esp_json_item(json, "pattern");
    const char *string = esp_json_text(pattern, "String"),
               *content = esp_json_text(json, "content");
    if (!string || !*string || !content)
        return esp_fail(err, errlen, ESP_E_UNSUPPORTED,
                        "normalizer has a Replace that is not supported: it must have a "
                        "\"pattern\" that is a String, and \"content\"");
    return add_step(normalizer, REPLACE, string, content, err, errlen);
}

int esp_normalizer_read(struct esp_normalizer *normalizer, const cJSON *json, char *err,
                        size_t errlen)
{
    if (!json || cJSON_IsNull(json))
        return ESP_OK;
    const char *type = esp_json_text(json, "type");
    if (!type)
        return esp_fail(err, errlen, ESP_E_FORMAT, "normalizer has no \"type\"");
    if (strcmp(type, "NFC") == 0)
        return add_step(normalizer, NFC, "", "", err, errlen);
    if (strcmp(type, "Replace") == 0)
        return read_replace(normalizer, json, err, errlen);
    if (strcmp(type, "Prepend") == 0) {
        const char *content = esp_json_text(json, "prepend");
        return content ? add_step(normalizer, PREPEND, "", content, err, errlen)
                       : esp_fail(err, errlen, ESP_E_FORMAT,
                                  "normalizer is a Prepend without a string \"prepend\"");
    }
    if (strcmp(type, "Sequence") != 0)
        return esp_fail(err, errlen, ESP_E_UNSUPPORTED,
                        "normalizer \"%.40s\" is not supported: it must be null, NFC, Prepend, "
                        "Replace or a Sequence of these",
                        type);
    const cJSON *list = esp_json_item(json, "normalizers"), *item;
    if (!cJSON_IsArray(list))
        return esp_fail(err, errlen, ESP_E_FORMAT,
                        "normalizer is a Sequence without a list \"normalizers\"");
    cJSON_ArrayForEach(item, list)
    {
        int status = esp_normalizer_read(normalizer, item, err, errlen);
        if (status < 0)
            return status;
    }
    return ESP_OK;
}

void esp_normalizer_free(struct esp_normalizer *normalizer)
{
    for (int i = 0; i < normalizer->count; i++) {
        free(normalizer->steps[i].pattern);
        free(normalizer->steps[i].content);
    }
    normalizer->count = 0;
}

/* ------------------------------------------------------------------ normalising */

/* Enlarges scratch buffer `to` to at least `size` bytes and returns it, or NULL if there is no
 * memory. */
static char *reserve(struct esp_normalize_scratch *scratch, int to, size_t size)
{
    if (size <= scratch->size[to])
        return scratch->buffer[to];
    free(scratch->buffer[to]);
    scratch->buffer[to] = malloc(2 * size);
    scratch->size[to] = scratch->buffer[to] ? 2 * size : 0;
    return scratch->buffer[to];
}

/* Applies NFC to *text (*length bytes). If anything changes, writes the result to buffer `to`,
 * and sets *text and *length to it. The functions for other steps work in the same way. */
static int compose(struct esp_normalize_scratch *scratch, int to, const char **text,
                   size_t *length)
{
    const utf8proc_option_t how = UTF8PROC_STABLE | UTF8PROC_COMPOSE;
    const utf8proc_uint8_t *bytes = (const utf8proc_uint8_t *)*text;
    const utf8proc_ssize_t size = (utf8proc_ssize_t)*length;
    /* NFC does not change a text in which all characters are below U+0300 (lead byte 0xCC). */
    size_t i = 0;
    while (i < *length && bytes[i] < 0xCC)
        i++;
    if (i == *length)
        return ESP_OK;
    /* The text is valid UTF-8, so the only possible failure is a lack of memory. */
    const utf8proc_ssize_t count = utf8proc_decompose(bytes, size, NULL, 0, how);
    utf8proc_int32_t *points =
        count < 0 ? NULL
                  : (utf8proc_int32_t *)(void *)reserve(scratch, to,
                                                        ((size_t)count + 1) * sizeof *points);
    if (!points || utf8proc_decompose(bytes, size, points, count, how) != count)
        return ESP_E_MEMORY;
    const utf8proc_ssize_t n = utf8proc_reencode(points, count, how);
    *text = scratch->buffer[to];
    *length = n < 0 ? 0 : (size_t)n;
    return n < 0 ? (int)ESP_E_MEMORY : (int)ESP_OK;
}

static int prepend(const char *content, struct esp_normalize_scratch *scratch, int to,
                   const char **text, size_t *length)
{
    size_t n = strlen(content);
    if (*length == 0)
        return ESP_OK;
    char *longer = reserve(scratch, to, n + *length);
    if (!longer)
        return ESP_E_MEMORY;
    memcpy(longer, content, n);
    memcpy(longer + n, *text, *length);
    *text = longer;
    *length += n;
    return ESP_OK;
}

static int replace(const struct esp_normalizer_step *step,
                   struct esp_normalize_scratch *scratch, int to, const char **text,
                   size_t *length)
{
    size_t n = strlen(step->pattern), put = strlen(step->content), found = 0, used = 0;
    const char *end = *text + *length, *at = *text, *hit;
    for (; (hit = memmem(at, (size_t)(end - at), step->pattern, n)); at = hit + n)
        found++;
    if (found == 0)
        return ESP_OK;
    size_t size = *length - found * n + found * put;
    char *replaced = size <= TEXT_LIMIT ? reserve(scratch, to, size + 1) : NULL;
    if (!replaced)
        return ESP_E_MEMORY;
    for (at = *text; (hit = memmem(at, (size_t)(end - at), step->pattern, n)); at = hit + n) {
        memcpy(replaced + used, at, (size_t)(hit - at));
        used += (size_t)(hit - at);
        memcpy(replaced + used, step->content, put);
        used += put;
    }
    memcpy(replaced + used, at, (size_t)(end - at));
    *text = replaced;
    *length = size;
    return ESP_OK;
}

int esp_normalize(const struct esp_normalizer *normalizer,
                  struct esp_normalize_scratch *scratch, const char *text, size_t length,
                  const char **out, size_t *out_length)
{
    int status = ESP_OK, to = 0;
    for (int i = 0; i < normalizer->count && status == ESP_OK; i++) {
        const struct esp_normalizer_step *step = &normalizer->steps[i];
        const char *const before = text;
        status = step->kind == NFC       ? compose(scratch, to, &text, &length)
                 : step->kind == PREPEND ? prepend(step->content, scratch, to, &text, &length)
                                         : replace(step, scratch, to, &text, &length);
        if (length > TEXT_LIMIT)
            status = ESP_E_MEMORY;
        to = text != before ? !to : to;
    }
    *out = text;
    *out_length = length;
    return status;
}

void esp_normalize_scratch_free(struct esp_normalize_scratch *scratch)
{
    free(scratch->buffer[0]);
    free(scratch->buffer[1]);
    *scratch = (struct esp_normalize_scratch){0};
}

/* In the Unicode standard, some control characters and all characters in the separator
 * categories (Zs, Zl, Zp) are white space. */
size_t esp_white_space(const char *text, size_t length)
{
    utf8proc_int32_t c = -1;
    const utf8proc_ssize_t size =
        utf8proc_iterate((const utf8proc_uint8_t *)text, (utf8proc_ssize_t)length, &c);
    if (length == 0 || size <= 0)
        return 0;
    const utf8proc_category_t category = utf8proc_category(c);
    const bool is = (c >= '\t' && c <= '\r') || c == 0x85 || category == UTF8PROC_CATEGORY_ZS ||
                    category == UTF8PROC_CATEGORY_ZL || category == UTF8PROC_CATEGORY_ZP;
    return is ? (size_t)size : 0;
}
