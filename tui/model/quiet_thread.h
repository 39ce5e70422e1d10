/* quiet_thread.h - starts threads that leave signals to the UI thread.
 *
 * The threads block all signals except the signals of a crash, such as SIGSEGV. The kernel
 * sends such a signal to the thread that crashes. If that thread blocked the signal, the
 * program would end before the signal handler restores the terminal (terminal.h). */
#ifndef ESP_QUIET_THREAD_H
#define ESP_QUIET_THREAD_H

#include <pthread.h>

/* Starts a thread, as pthread_create() does. If the new thread starts other threads, they
 * inherit its signal mask. Returns 0 or ESP_E_MEMORY. */
int esp_quiet_thread(pthread_t *thread, void *(*run)(void *user), void *user);

#endif
