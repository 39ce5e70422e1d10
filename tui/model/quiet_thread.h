/* quiet_thread.h - starts threads that leave signals to the UI thread.
 *
 * The threads block all signals except those of a crash. The kernel sends these to the
 * crashing thread. If that thread blocked them, the program would die before the handler
 * restored the terminal (terminal.h). */
#ifndef ESP_QUIET_THREAD_H
#define ESP_QUIET_THREAD_H

#include <pthread.h>

/* Starts a thread like pthread_create(). Threads that the new thread starts inherit its signal
 * mask. Returns 0 or ESP_E_MEMORY. */
int esp_quiet_thread(pthread_t *thread, void *(*run)(void *user), void *user);

#endif
