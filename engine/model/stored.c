/* stored.c - manages the list of a model's tensors. The readers of file formats fill this list;
 * see stored.h. */
#include "engine/model/stored.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/model/json.h"
#include "kernels/status.h"
#include "kernels/system.h"

/* ------------------------------------------------------------------ filling */

int esp_stored_open_file(struct esp_stored_set *set, const char *path, struct esp_shard **shard,
                         char *err, size_t errlen)
{
    struct stat about;
    struct esp_shard *opened = calloc(1, sizeof *opened);
    struct esp_shard **shards =
        realloc(set->shards, ((size_t)set->shard_count + 1) * sizeof *shards);
    if (shards)
        set->shards = shards;
    if (!opened || !shards) {
        free(opened);
        return esp_no_memory(path, err, errlen);
    }
    int status = esp_path_open(&opened->source.fd, &opened->size, path, err, errlen);
    if (status < 0) {
        free(opened);
        return status;
    }
    snprintf(opened->path, sizeof opened->path, "%s", path);
    opened->source.path = opened->path;
    if (fstat(opened->source.fd, &about) == 0)
        opened->changed = about.st_mtim;
    set->shards[set->shard_count++] = *shard = opened;
    return 0;
}

static void close_shard(struct esp_shard *shard)
{
    if (shard->source.fd >= 0)
        close(shard->source.fd);
    free(shard);
}

void esp_stored_drop_file(struct esp_stored_set *set)
{
    close_shard(set->shards[--set->shard_count]);
}

struct esp_stored *esp_stored_add(struct esp_stored_set *set, struct esp_shard *shard,
                                  const char *name)
{
    if (set->count == set->room) {
        const size_t room = 2 * set->room + 64;
        struct esp_stored *tensors = realloc(set->tensors, room * sizeof *tensors);
        if (!tensors)
            return NULL;
        set->tensors = tensors;
        set->room = room;
    }
    struct esp_stored *tensor = &set->tensors[set->count];
    *tensor = (struct esp_stored){
        .name = strdup(name), .source = &shard->source, .file = shard->path};
    set->count += tensor->name != NULL;
    return tensor->name ? tensor : NULL;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct esp_stored *)a)->name, ((const struct esp_stored *)b)->name);
}

int esp_stored_finish(struct esp_stored_set *set, char *err, size_t errlen)
{
    if (set->count > 0)
        qsort(set->tensors, set->count, sizeof *set->tensors, by_name);
    for (size_t i = 1; i < set->count; i++)
        if (by_name(&set->tensors[i - 1], &set->tensors[i]) == 0)
            return esp_fail(err, errlen, ESP_E_FORMAT, "%s has tensor %s twice",
                            set->tensors[i].file, set->tensors[i].name);
    return 0;
}

/* ------------------------------------------------------------------ closing */

void esp_stored_close(struct esp_stored_set *set)
{
    if (!set)
        return;
    for (size_t i = 0; i < set->count; i++)
        free(set->tensors[i].name);
    for (int i = 0; i < set->shard_count; i++)
        close_shard(set->shards[i]);
    free(set->tensors);
    free(set->shards);
    free(set);
}

static bool as_it_was(const struct esp_shard *shard)
{
    struct stat now;
    return !shard->source.failed && fstat(shard->source.fd, &now) == 0 &&
           (size_t)now.st_size == shard->size && now.st_mtim.tv_sec == shard->changed.tv_sec &&
           now.st_mtim.tv_nsec == shard->changed.tv_nsec;
}

int esp_stored_release(struct esp_stored_set *set, char *err, size_t errlen)
{
    int status = 0;
    for (int i = 0; i < set->shard_count; i++) {
        struct esp_shard *shard = set->shards[i];
        if (shard->source.fd < 0)
            continue;
        if (status == 0 && !as_it_was(shard))
            status = esp_fail(err, errlen, ESP_E_FILE,
                              "%s changed while it was read, or its end could not be read: "
                              "load it again when it is complete",
                              shard->path);
        close(shard->source.fd);
        shard->source.fd = -1;
    }
    return status;
}

/* ------------------------------------------------------------------ finding */

struct esp_stored *esp_stored_find(const struct esp_stored_set *set, const char *name)
{
    struct esp_stored key = {.name = (char *)name};
    return set->count ? bsearch(&key, set->tensors, set->count, sizeof key, by_name) : NULL;
}

/* ------------------------------------------------------------------ separate scales */

static const char BLOCKS[] = "_blocks", SCALES[] = "_scales";

/* Returns whether `scales` has one byte for every 16 bytes of `blocks`. */
static bool go_together(const struct esp_stored *blocks, const struct esp_stored *scales)
{
    const int rank = blocks->rank - 1;
    return rank >= 2 && scales && scales->rank == rank && blocks->shape[rank] == 16 &&
           strcmp(blocks->type, "U8") == 0 && strcmp(scales->type, "U8") == 0 &&
           memcmp(blocks->shape, scales->shape, (size_t)rank * sizeof *scales->shape) == 0 &&
           blocks->shape[rank - 1] <= INT64_MAX / 32;
}

int esp_stored_join_scales(struct esp_stored_set *set, char *err, size_t errlen)
{
    size_t kept = 0;
    for (size_t i = 0; i < set->count; i++) {
        struct esp_stored *t = &set->tensors[i];
        const size_t length = strlen(t->name), suffix = sizeof BLOCKS - 1;
        char name[256];
        if (length <= suffix || length >= sizeof name ||
            strcmp(t->name + length - suffix, BLOCKS) != 0)
            continue;
        snprintf(name, sizeof name, "%.*s%s", (int)(length - suffix), t->name, SCALES);
        struct esp_stored *scales = esp_stored_find(set, name);
        if (!go_together(t, scales))
            continue;
        snprintf(t->type, sizeof t->type, "MXFP4");
        t->shape[--t->rank - 1] *= 32;
        t->scale_source = scales->source;
        t->scale_offset = scales->offset;
        scales->used = true; /* the loop below removes it from the list */
    }
    for (size_t i = 0; i < set->count; i++) {
        struct esp_stored *t = &set->tensors[i];
        if (t->used) {
            free(t->name);
            continue;
        }
        if (t->scale_source)
            t->name[strlen(t->name) - (sizeof BLOCKS - 1)] = '\0';
        set->tensors[kept++] = *t;
    }
    set->count = kept;
    return esp_stored_finish(set, err, errlen);
}

int esp_stored_unused(const struct esp_stored_set *set, const char **first)
{
    int count = 0;
    for (size_t i = 0; i < set->count; i++)
        if (!set->tensors[i].used && count++ == 0)
            *first = set->tensors[i].name;
    return count;
}

bool esp_stored_has_prefix(const struct esp_stored_set *set, const char *prefix)
{
    size_t length = strlen(prefix);
    for (size_t i = 0; i < set->count; i++)
        if (strncmp(set->tensors[i].name, prefix, length) == 0)
            return true;
    return false;
}
