/* part_file.c - manages a table of file names that a signal handler can read; see part_file.h.
 *
 * The state of an entry changes atomically. Only the code that changed it from FREE or NOTED to
 * OWNED may read or write the entry. A handler therefore never reads half a name, even if it
 * interrupts this code or runs in another thread.
 */
#include "engine/support/part_file.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

enum { MOST = 32, LENGTH = 4096 };
enum { FREE, OWNED, NOTED };

static struct {
    atomic_int state;
    char part[LENGTH], whole[LENGTH];
} noted[MOST];

static bool take(int i, int from)
{
    return atomic_compare_exchange_strong(&noted[i].state, &from, OWNED);
}

int esp_part_file_begin(const char *part, const char *whole)
{
    int i = 0;
    while (i < MOST && !take(i, FREE))
        i++;
    if (i == MOST)
        return -1;
    const bool fits = snprintf(noted[i].part, LENGTH, "%s", part) < LENGTH;
    snprintf(noted[i].whole, LENGTH, "%s", whole);
    atomic_store(&noted[i].state, fits ? NOTED : FREE);
    return fits ? i : -1;
}

void esp_part_file_end(int i)
{
    if (i >= 0 && take(i, NOTED))
        atomic_store(&noted[i].state, FREE);
}

void esp_part_files_remove(void (*tell)(const char *whole))
{
    for (int i = MOST - 1; i >= 0; i--) {
        if (!take(i, NOTED))
            continue;
        const bool removed = unlink(noted[i].part) == 0 || rmdir(noted[i].part) == 0;
        if (removed && *noted[i].whole)
            tell(noted[i].whole);
        atomic_store(&noted[i].state, FREE);
    }
}
