/* quiet_thread.c - see quiet_thread.h. */
#include "tui/model/quiet_thread.h"

#include <signal.h>
#include <stddef.h>

#include "engine/espalier.h"

int esp_quiet_thread(pthread_t *thread, void *(*run)(void *user), void *user)
{
    static const int crashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGSYS, SIGTRAP};
    sigset_t others, before;
    sigfillset(&others);
    for (size_t i = 0; i < sizeof crashes / sizeof *crashes; i++)
        sigdelset(&others, crashes[i]);
    pthread_sigmask(SIG_BLOCK, &others, &before);
    int failed = pthread_create(thread, NULL, run, user);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed ? ESP_E_MEMORY : ESP_OK;
}
