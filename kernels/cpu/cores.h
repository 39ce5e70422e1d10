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

/* How many of the CPUs with allowed[i] (ESP_MOST_CORES) are performance cores, by the files of
 * Linux below `sys` ("/sys"): devices/cpu_core/cpus of Intel's hybrid processors, else
 * cpu_capacity, where two thirds of the largest is enough. CPUs that share a core count once.
 * Where CPUs do not differ, or the files do not say: all of them. */
int esp_cores_best_of(const char *sys, const bool *allowed);

#endif
