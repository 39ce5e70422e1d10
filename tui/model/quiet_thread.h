/* quiet_thread.h - a thread that leaves signals to the interface's thread.
 *
 * It blocks all signals but those of a crash. The kernel sends those to the thread that
 * crashed; if they were blocked there, the program would end before the handler that gives the
 * terminal back (terminal.h) could run. */
#ifndef ESP_QUIET_THREAD_H
#define ESP_QUIET_THREAD_H

#include <pthread.h>

/* Starts a thread as pthread_create() does. Threads that it starts are quiet, too. Returns 0 or
 * ESP_E_MEMORY. */
int esp_quiet_thread(pthread_t *thread, void *(*run)(void *user), void *user);

#endif
