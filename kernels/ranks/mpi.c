/* mpi.c - implements the program's side of the transport between ranks on several machines.
 *
 * The program never calls MPI: MPI libraries replace signal handlers, and if one process of a
 * job ends, they end all its processes. Instead the program shares memory (shm.h) with a
 * process on its machine, the bridge. The bridge exchanges areas with the ranks of other
 * machines. In MPI's numbering, rank 0 is the bridge; in the numbering of this program, rank 0
 * is the program. The bridge and the other ranks run the program espalier-rank (mpi_rank.c). It
 * is built once for each MPI library, and the launcher of that library starts it:
 *
 *     mpirun ... -n RANKS espalier-rank --serve PATH RANKS THREADS
 *
 * A user can also start the ranks with mpirun; then the bridge starts the program:
 *
 *     mpirun ... -n RANKS espalier-rank espalier generate ...
 *
 * PATH is the path of the shared memory, /proc/PROGRAM/fd/N. Only the same user can open it,
 * and it disappears when the program ends. The output of the launcher and its processes is
 * stored for the error message.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernels/ranks/shm.h"
#include "kernels/ranks/transports.h"
#include "kernels/system.h"

enum { MOST_PATH = 4096, MOST_ARGUMENTS = 32 };

/* Describes an MPI library and its launcher. `says` is a word in the output of `LAUNCHER
 * --version`. `program` is the name of the espalier-rank that was built for the library. */
struct library {
    const char *says, *program;
    const char *hosts;      /* the option that takes the names of machines */
    const char *options[4]; /* options that allow threads on any core, and more ranks than
                               cores */
};

#define OPEN_MPI                                                                               \
    "espalier-rank.openmpi", "--host",                                                         \
    {                                                                                          \
        "--bind-to", "none", "--oversubscribe"                                                 \
    }
static const struct library libraries[] = {
    {"Open MPI", OPEN_MPI},
    {"OpenRTE", OPEN_MPI},
    {"HYDRA", "espalier-rank.mpich", "-hosts", {NULL}},
    {"MPICH", "espalier-rank.mpich", "-hosts", {NULL}},
};
enum { LIBRARIES = sizeof libraries / sizeof *libraries };

/* ------------------------------------------------------------------ the launcher */

/* Returns the library to which a launcher belongs, or NULL if the launcher is unknown or cannot
 * be run. */
static const struct library *library_of(const char *launcher)
{
    char command[MOST_PATH + 40], line[256];
    const struct library *found = NULL;
    for (const char *c = launcher; *c; c++)
        if (strchr("'\n", *c))
            return NULL;
    snprintf(command, sizeof command, "'%s' --version 2>/dev/null </dev/null", launcher);
    FILE *pipe = popen(command, "r");
    while (pipe && fgets(line, sizeof line, pipe))
        for (int i = 0; i < LIBRARIES && !found; i++)
            if (strstr(line, libraries[i].says))
                found = &libraries[i];
    if (pipe)
        pclose(pipe);
    return found;
}

/* Finds espalier-rank beside this program or where `make install` puts it. */
static bool find_program(const char *name, char *path, size_t size)
{
    char own[MOST_PATH];
    if (!esp_program_path(own, sizeof own))
        return false;
    char *slash = strrchr(own, '/');
    *(slash ? slash : own) = '\0';
    static const char *const folders[] = {"", "/../lib/espalier"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        if (snprintf(path, size, "%s%s/%s", own, folders[i], name) < (int)size &&
            access(path, X_OK) == 0)
            return true;
    return false;
}

/* Finds a launcher and the espalier-rank for its library. Unless the user has named the
 * launcher, launchers without an espalier-rank are skipped. */
static const struct library *find_launcher(const char **launcher, char *program, size_t size,
                                           char *err, size_t errlen)
{
    const char *const names[] = {*launcher && **launcher ? *launcher : NULL, "mpirun.openmpi",
                                 "mpirun.mpich", "mpirun", "mpiexec"};
    const size_t last = names[0] ? 1 : sizeof names / sizeof *names;
    const struct library *found = NULL;
    for (size_t i = names[0] ? 0 : 1; i < last; i++) {
        const struct library *library = library_of(names[i]);
        *launcher = library ? names[i] : *launcher;
        found = library ? library : found;
        if (library && find_program(library->program, program, size))
            return library;
    }
    if (found)
        esp_fail(err, errlen, 0,
                 "%s was not found beside this program; make builds it if the library's mpicc "
                 "is installed (libopenmpi-dev or libmpich-dev)",
                 found->program);
    else if (names[0])
        esp_fail(err, errlen, 0, "--launcher %.200s is neither Open MPI's mpirun nor MPICH's",
                 names[0]);
    else
        esp_fail(err, errlen, 0,
                 "--hosts needs an MPI library, and no mpirun was found: install openmpi-bin "
                 "and libopenmpi-dev (or mpich), then run make again");
    return NULL;
}

/* ------------------------------------------------------------------ the start */

static int launch(struct esp_shm *s, const struct esp_rank_options *o, char *err, size_t errlen)
{
    char program[MOST_PATH], memory[64], count[16], threads[16];
    const char *launcher = o->launcher, *argv[MOST_ARGUMENTS];
    const struct library *library =
        find_launcher(&launcher, program, sizeof program, err, errlen);
    int n = 0;
    if (!library)
        return ESP_E_UNSUPPORTED;
    snprintf(count, sizeof count, "%d", o->ranks);
    snprintf(memory, sizeof memory, "/proc/%d/fd/%d", (int)getpid(), s->file);
    snprintf(threads, sizeof threads, "%d", o->threads);
    argv[n++] = launcher;
    for (int i = 0; library->options[i]; i++)
        argv[n++] = library->options[i];
    argv[n++] = library->hosts;
    argv[n++] = o->hosts;
    argv[n++] = "-n";
    argv[n++] = count;
    argv[n++] = program;
    argv[n++] = "--serve";
    argv[n++] = memory;
    argv[n++] = count;
    argv[n++] = threads;
    argv[n] = NULL;
    s->log = esp_unnamed_file("espalier-ranks-log");
    s->child[1] = esp_start_apart(launcher, (char *const *)argv, -1, -1, s->log);
    return s->child[1] > 0 ? ESP_OK
                           : esp_fail(err, errlen, ESP_E_DEVICE, "%s could not be started: %s",
                                      launcher, strerror(errno));
}

/* Maps the memory of the bridge that started this program. */
static int take_given(struct esp_ranks **ranks, int count, char *err, size_t errlen)
{
    const int file = open(getenv(ESP_RANKS_GIVEN), O_RDWR | O_CLOEXEC);
    struct stat about;
    struct esp_shm *s = NULL;
    if (file >= 0 && fstat(file, &about) == 0 && about.st_size == (off_t)esp_shm_bytes(count))
        s = esp_shm_map(&esp_transport_mpi, file, 0, count);
    if (file >= 0)
        close(file);
    if (!s)
        return esp_fail(err, errlen, ESP_E_ARGUMENT,
                        "mpirun did not start %d ranks; if mpirun starts the program, "
                        "leave out --ranks and --hosts",
                        count);
    unsetenv(ESP_RANKS_GIVEN); /* only the first engine of this process has ranks */
    s->parent = getppid();
    *ranks = &s->base;
    return ESP_OK;
}

static int open_ranks(struct esp_ranks **ranks, const struct esp_rank_options *o, char *err,
                      size_t errlen)
{
    if (getenv(ESP_RANKS_GIVEN))
        return take_given(ranks, o->ranks, err, errlen);
    struct esp_shm *s = esp_shm_make(&esp_transport_mpi, o->ranks);
    const int status = s ? launch(s, o, err, errlen)
                         : esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory for ranks");
    *ranks = status == ESP_OK ? &s->base : NULL;
    if (status < 0 && s) {
        s->base.failed = true;
        esp_shm_close(&s->base);
    }
    return status;
}

const struct esp_transport esp_transport_mpi = {
    .name = "mpi",
    .summary = "processes of several machines, over MPI",
    .open = open_ranks,
    .own = esp_shm_own,
    .of = esp_shm_of,
    .meet = esp_shm_meet,
    .beat = esp_shm_beat,
    .fail = esp_shm_fail,
    .close = esp_shm_close,
};
