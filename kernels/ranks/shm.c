/* shm.c - the transport between ranks of one machine: shared memory (shm.h).
 *
 * Rank 0 starts the running program again for every other rank, with the argument list
 * "espalier-rank shm RANK RANKS PARENT THREADS". Each rank runs in its own session, so that the
 * terminal's keys do not reach it. The rank inherits an unnamed file as descriptor 3 and maps
 * it.
 */
#include "kernels/ranks/shm.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernels/ranks/transports.h"
#include "kernels/system.h"

enum { INHERITED = 3 };

static int start(struct esp_shm *s, const char *program, int rank, int threads)
{
    char text[4][16];
    const int number[4] = {rank, s->base.count, (int)getpid(), threads};
    for (int i = 0; i < 4; i++)
        snprintf(text[i], sizeof text[i], "%d", number[i]);
    char *argv[] = {ESP_RANK_PROGRAM, (char *)"shm", text[0], text[1], text[2], text[3], NULL};
    s->child[rank] = esp_start_apart(program, argv, s->file, INHERITED, -1);
    return s->child[rank] > 0 ? ESP_OK : ESP_E_DEVICE;
}

static int open_ranks(struct esp_ranks **ranks, const struct esp_rank_options *o, char *err,
                      size_t errlen)
{
    char program[4096];
    struct esp_shm *s = esp_shm_make(&esp_transport_shm, o->ranks);
    int status = s && esp_program_path(program, sizeof program) ? ESP_OK : ESP_E_MEMORY;
    for (int i = 1; i < o->ranks && status == ESP_OK; i++)
        status = start(s, program, i, o->threads);
    *ranks = status == ESP_OK ? &s->base : NULL;
    if (status == ESP_OK)
        return status;
    esp_fail(err, errlen, status, "%d ranks could not be started: %s", o->ranks,
             strerror(errno));
    if (s) {
        s->base.failed = true;
        esp_shm_close(&s->base);
    }
    return status;
}

/* argv: see the top of this file. */
static int join(struct esp_ranks **ranks, int argc, char **argv)
{
    struct stat about;
    const int rank = argc == 6 ? atoi(argv[2]) : 0, count = argc == 6 ? atoi(argv[3]) : 0;
    if (count < 2 || count > ESP_MAX_RANKS || rank < 1 || rank >= count ||
        fstat(INHERITED, &about) != 0 || about.st_size != (off_t)esp_shm_bytes(count))
        return ESP_E_ARGUMENT;
    struct esp_shm *s = esp_shm_map(&esp_transport_shm, INHERITED, rank, count);
    close(INHERITED);
    if (!s)
        return ESP_E_MEMORY;
    s->parent = (pid_t)atoi(argv[4]);
    s->base.threads = atoi(argv[5]);
    *ranks = &s->base;
    return ESP_OK;
}

const struct esp_transport esp_transport_shm = {
    .name = "shm",
    .summary = "processes of this machine, over shared memory",
    .open = open_ranks,
    .join = join,
    .own = esp_shm_own,
    .of = esp_shm_of,
    .meet = esp_shm_meet,
    .beat = esp_shm_beat,
    .fail = esp_shm_fail,
    .close = esp_shm_close,
};
