/* suggestion.c - computes distances between names; see suggestion.h. */
#include "engine/support/suggestion.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { LONGEST = 63 };

void esp_suggestion_begin(struct esp_suggestion *suggestion, const char *typed, size_t length)
{
    *suggestion = (struct esp_suggestion){.distance = LONGEST + 1};
    snprintf(suggestion->typed, sizeof suggestion->typed, "%.*s",
             (int)(length < 64 ? length : 0), typed);
}

static int least(int a, int b)
{
    return a < b ? a : b;
}

/* Returns the optimal string alignment distance of two texts of at most LONGEST bytes. */
static int distance_of(const char *a, const char *b)
{
    int rows[3][LONGEST + 2];
    const int n = (int)strlen(a), m = (int)strlen(b);
    for (int j = 0; j <= m; j++)
        rows[0][j] = j;
    for (int i = 1; i <= n; i++) {
        int *now = rows[i % 3], *before = rows[(i + 2) % 3], *earlier = rows[(i + 1) % 3];
        now[0] = i;
        for (int j = 1; j <= m; j++) {
            now[j] =
                least(least(before[j], now[j - 1]) + 1, before[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                now[j] = least(now[j], earlier[j - 2] + 1);
        }
    }
    return rows[n % 3][m];
}

void esp_suggestion_try(struct esp_suggestion *suggestion, const char *name)
{
    const size_t typed = strlen(suggestion->typed), length = strlen(name);
    if (typed < 2 || length > LONGEST)
        return;
    int distance = distance_of(suggestion->typed, name);
    if (strncmp(name, suggestion->typed, typed) == 0)
        distance = 0;
    const size_t longer = typed > length ? typed : length;
    if (distance > (int)(longer + 2) / 3 || distance >= suggestion->distance)
        return;
    suggestion->distance = distance;
    snprintf(suggestion->best, sizeof suggestion->best, "%s", name);
}

void esp_suggestion_folders(struct esp_suggestion *suggestion, const char *path)
{
    char above[1024], whole[1300];
    const char *slash = strrchr(path, '/');
    struct stat status;
    struct dirent *entry;
    if ((size_t)snprintf(above, sizeof above, "%.*s", slash ? (int)(slash - path) : 1,
                         slash ? path : ".") >= sizeof above)
        return;
    DIR *entries = opendir(*above ? above : "/");
    while (entries && (entry = readdir(entries))) {
        snprintf(whole, sizeof whole, "%s/%s", above, entry->d_name);
        if (entry->d_name[0] != '.' && stat(whole, &status) == 0 && S_ISDIR(status.st_mode))
            esp_suggestion_try(suggestion, entry->d_name);
    }
    if (entries)
        closedir(entries);
}

const char *esp_suggestion_text(const struct esp_suggestion *suggestion, char text[96])
{
    *text = '\0';
    if (suggestion->best[0])
        snprintf(text, 96, " (did you mean %s?)", suggestion->best);
    return text;
}
