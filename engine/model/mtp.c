/* mtp.c - finds the MTP layer of a target; see mtp.h. */
#include "engine/model/mtp.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/model/draft_head.h"
#include "engine/model/gguf.h"
#include "kernels/status.h"

static int names_mtp(const struct dirent *entry)
{
    static const char begin[] = "mtp-", end[] = ".gguf";
    const size_t n = strlen(entry->d_name);
    return n > strlen(begin) + strlen(end) &&
           strncmp(entry->d_name, begin, strlen(begin)) == 0 &&
           strcmp(entry->d_name + n - strlen(end), end) == 0;
}

/* Opens the file `path` as the target's MTP layer. Returns false if the file has no MTP layer
 * that fits the target. */
static bool open_file(struct esp_model **head, const char *path, const struct esp_model *target)
{
    char why[512];
    if (!esp_gguf_is(path) || esp_model_open(head, path, why, sizeof why) < 0)
        return false;
    if ((*head)->head && esp_draft_head_join(*head, target, why, sizeof why) == ESP_OK)
        return true;
    esp_model_close(*head);
    *head = NULL;
    return false;
}

/* Opens the MTP layer in a file mtp-*.gguf next to the target's GGUF file. Tries the files in
 * the order of their names, and opens the first file that fits. */
static bool open_beside(struct esp_model **head, const struct esp_model *target)
{
    char path[PATH_MAX];
    struct dirent **entries = NULL;
    const char *slash = strrchr(target->path, '/');
    const int length = slash ? (int)(slash + 1 - target->path) : 0;
    snprintf(path, sizeof path, "%.*s", length, target->path);
    const int count = scandir(length ? path : ".", &entries, names_mtp, alphasort);
    bool found = false;
    for (int i = 0; i < count; i++) {
        const int used =
            snprintf(path, sizeof path, "%.*s%s", length, target->path, entries[i]->d_name);
        found = found || (used < (int)sizeof path && open_file(head, path, target));
        free(entries[i]);
    }
    free(entries);
    return found;
}

int esp_mtp_open(struct esp_model **head, const struct esp_model *target, char *err,
                 size_t errlen)
{
    *head = NULL;
    if (!target->mtp && esp_gguf_is(target->path) && open_beside(head, target))
        return ESP_OK;
    if (!target->mtp)
        return esp_fail(err, errlen, ESP_E_FILE,
                        "%s has no MTP layer that can draft for it; choose another draft, or "
                        "leave --draft out",
                        target->path);
    const int status = esp_model_open_mtp(head, target->path, err, errlen);
    return status == ESP_OK ? esp_draft_head_join(*head, target, err, errlen) : status;
}
