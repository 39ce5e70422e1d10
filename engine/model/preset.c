/* preset.c - writes espalier.json; see preset.h.
 *
 * model.c reads this file. An existing file is parsed before it is replaced, so that a file of
 * another kind is not lost.
 */
#include "engine/model/preset.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "engine/model/json.h"
#include "engine/support/write_file.h"
#include "kernels/status.h"

bool esp_place_beside(const char *target, const char *file, char folder[4096], char name[4096])
{
    static const char ending[] = ".gguf";
    struct stat about;
    if (stat(target, &about) < 0 || !S_ISREG(about.st_mode)) {
        return snprintf(name, 4096, "%s", file) < 4096 &&
               snprintf(folder, 4096, "%s", target) < 4096;
    }
    const char *slash = strrchr(target, '/'), *last = slash ? slash + 1 : target;
    size_t length = strlen(last), tail = sizeof ending - 1;
    if (length > tail && strcmp(last + length - tail, ending) == 0)
        length -= tail;
    int above = slash ? (int)(slash - target) + (slash == target) : 1;
    return snprintf(folder, 4096, "%.*s", above, slash ? target : ".") < 4096 &&
           snprintf(name, 4096, "%.*s.%s", (int)length, last, file) < 4096;
}

static bool set_member(cJSON *root, const char *key, const char *value)
{
    cJSON *item = value ? cJSON_CreateString(value) : NULL;
    if (!value)
        return true;
    if (!item)
        return false;
    bool done = esp_json_item(root, key)
                    ? cJSON_ReplaceItemInObjectCaseSensitive(root, key, item)
                    : cJSON_AddItemToObject(root, key, item);
    if (!done)
        cJSON_Delete(item);
    return done;
}

int esp_preset_write(const char *target, const char *drafter, const char *sampling_drafter,
                     char *err, size_t errlen)
{
    char folder[4096], name[4096];
    struct esp_json json = {.root = NULL};
    int status = ESP_OK;
    if (!esp_place_beside(target, ESP_PRESET_FILE, folder, name))
        status = esp_fail(err, errlen, ESP_E_FILE, "the path of %.300s is too long", target);
    else if (esp_file_exists(folder, name))
        status = esp_json_read(&json, folder, name, err, errlen);
    else
        status = esp_file_path(json.path, folder, name, err, errlen);
    if (status < 0)
        return status;
    if (!json.root)
        json.root = cJSON_CreateObject();
    char *text = NULL;
    if (json.root && set_member(json.root, "drafter", drafter) &&
        set_member(json.root, "sampling_drafter", sampling_drafter))
        text = cJSON_Print(json.root);
    size_t length = text ? strlen(text) : 0;
    if (text) {
        text[length] = '\n'; /* replaces the NUL: the file ends with a newline */
        status = esp_write_file(json.path, text, length + 1, true, err, errlen);
    } else {
        status = esp_no_memory(json.path, err, errlen);
    }
    free(text);
    esp_json_close(&json);
    return status;
}
