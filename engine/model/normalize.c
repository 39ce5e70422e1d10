/* normalize.c - see normalize.h. The composition tables are utf8proc's. */
#include "normalize.h"

#include <string.h>
#include <utf8proc.h>

#include "error.h"

int esp_normalizer_read(bool *nfc, const cJSON *normalizer, char *err, size_t errlen)
{
    *nfc = false;
    if (!normalizer || cJSON_IsNull(normalizer))
        return ESP_OK;
    const char *type =
        cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(normalizer, "type"));
    if (!type)
        return esp_fail(err, errlen, ESP_E_FORMAT, "normalizer has no \"type\"");
    if (strcmp(type, "NFC") == 0) {
        *nfc = true;
        return ESP_OK;
    }
    if (strcmp(type, "Sequence") != 0)
        return esp_fail(err, errlen, ESP_E_UNSUPPORTED,
                        "normalizer \"%.40s\" is not supported: it must be null or NFC", type);
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(normalizer, "normalizers"), *item;
    if (!cJSON_IsArray(list))
        return esp_fail(err, errlen, ESP_E_FORMAT,
                        "normalizer is a Sequence without a list \"normalizers\"");
    cJSON_ArrayForEach(item, list)
    {
        bool part;
        int status = esp_normalizer_read(&part, item, err, errlen);
        if (status < 0)
            return status;
        *nfc |= part;
    }
    return ESP_OK;
}

int esp_nfc(const char *text, size_t length, char **out, size_t *out_length)
{
    /* No character below U+0300 (lead byte 0xCC) composes with what follows or is decomposed.
     */
    size_t i = 0;
    while (i < length && (unsigned char)text[i] < 0xCC)
        i++;
    *out = (char *)text;
    *out_length = length;
    if (i == length)
        return ESP_OK;
    utf8proc_uint8_t *composed = NULL;
    utf8proc_ssize_t n = utf8proc_map((const utf8proc_uint8_t *)text, (utf8proc_ssize_t)length,
                                      &composed, UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    if (n < 0)
        return ESP_E_MEMORY; /* the text is valid UTF-8, so nothing else can fail */
    *out = (char *)composed;
    *out_length = (size_t)n;
    return ESP_OK;
}
