/* system_posix.c - defines the functions of system.h that are the same on all systems. */
#include "kernels/system.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

pid_t esp_start_apart(const char *program, char *const argv[], int file, int inherited, int log)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    pid_t child = -1;
    extern char **environ;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK |
                                              POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawn_file_actions_init(&files);
    if (file >= 0)
        posix_spawn_file_actions_adddup2(&files, file, inherited);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDWR, 0);
    for (int i = STDOUT_FILENO; i <= STDERR_FILENO; i++)
        if (log >= 0)
            posix_spawn_file_actions_adddup2(&files, log, i);
        else
            posix_spawn_file_actions_addopen(&files, i, "/dev/null", O_RDWR, 0);
    const int failed = posix_spawnp(&child, program, &files, &attributes, argv, environ);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
    errno = failed;
    return failed ? -1 : child;
}
