/* clock.h - reads the monotonic clock. */
#ifndef ESP_CLOCK_H
#define ESP_CLOCK_H

#include <time.h>

/* Returns the number of seconds since a fixed but arbitrary time. */
static inline double esp_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

#endif
