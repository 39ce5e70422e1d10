/* cores.h - which processors of a machine are its performance cores.
 *
 * Hybrid processors have cores of two or three kinds. A step of a pass ends when its last part
 * does, so threads on slow cores help little and may even hold up the others; two threads on
 * one core share its vector units. So by default there is one thread per performance core.
 */
#ifndef ESP_CPU_CORES_H
#define ESP_CPU_CORES_H

#include <stdbool.h>

enum { ESP_MOST_CORES = 1024 };

/* Returns how many of the CPUs with allowed[i] (ESP_MOST_CORES) are performance cores. Reads
 * Linux's files below `sys` ("/sys"): devices/cpu_core/cpus of Intel's hybrid processors, or
 * else cpu_capacity; a CPU with at least two thirds of the largest capacity is a performance
 * core. CPUs that share a core count once. If CPUs do not differ, or the files do not say so,
 * returns the number of allowed CPUs. */
int esp_cores_best_of(const char *sys, const bool *allowed);

#endif
