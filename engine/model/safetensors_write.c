/* safetensors_write.c - see safetensors_write.h. */
#include "engine/model/safetensors_write.h"

#include <stdlib.h>
#include <string.h>

void esp_safetensors_add(struct esp_safetensors_header *h, const char *name, const char *type,
                         int rows, int columns, size_t bytes)
{
    const int shape[] = {rows, columns};
    const double offsets[] = {(double)h->data, (double)(h->data + bytes)};
    h->data += bytes;
    if (!h->all)
        h->all = cJSON_CreateObject();
    cJSON *entry = cJSON_AddObjectToObject(h->all, name);
    h->failed |=
        !cJSON_AddStringToObject(entry, "dtype", type) ||
        !cJSON_AddItemToObject(entry, "shape", cJSON_CreateIntArray(shape, columns ? 2 : 1)) ||
        !cJSON_AddItemToObject(entry, "data_offsets", cJSON_CreateDoubleArray(offsets, 2));
}

char *esp_safetensors_begin(struct esp_safetensors_header *h, bool padded, size_t room,
                            size_t *size)
{
    char *text = h->failed ? NULL : cJSON_PrintUnformatted(h->all);
    size_t length = text ? strlen(text) : 0;
    if (padded)
        length = (length + 7) / 8 * 8;
    *size = 8 + length;
    char *file = text ? malloc(*size + room) : NULL;
    if (file) {
        for (int i = 0; i < 8; i++)
            file[i] = (char)(unsigned char)(length >> 8 * i);
        memset(file + 8, ' ', length);
        memcpy(file + 8, text, strlen(text));
    }
    free(text);
    cJSON_Delete(h->all);
    return file;
}
