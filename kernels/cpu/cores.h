/* cores.h - finds the performance cores of a machine, and the memory that is near each core.
 *
 * Hybrid processors have cores of two or three kinds. A step of a pass ends when its last part
 * ends, so threads on slow cores help little and may even delay the other threads. Two threads
 * on one core share its vector units. So by default there is one thread per performance core.
 */
#ifndef ESP_CPU_CORES_H
#define ESP_CPU_CORES_H

#include <stdbool.h>

enum { ESP_MOST_CORES = 1024, ESP_MOST_NODES = 16 };

/* Returns how many of the CPUs for which allowed[i] is true (ESP_MOST_CORES) are performance
 * cores. Reads Linux's files in the folder `sys` ("/sys"): devices/cpu_core/cpus of Intel's
 * hybrid processors, or else cpu_capacity; a CPU with at least two thirds of the largest
 * capacity is a performance core. CPUs that share a core are counted once. If the CPUs are all
 * alike, or the files do not describe them, returns the number of allowed CPUs. */
int esp_cores_best_of(const char *sys, const bool *allowed);

/* A node is memory with the CPUs that are near it, such as the memory and the cores of one
 * socket of a server. */
struct esp_nodes {
    int count; /* number of nodes with allowed CPUs; at least 1 */
    /* For each node: the system's number of the node, and how many of its CPUs are allowed. */
    int number[ESP_MOST_NODES], cores[ESP_MOST_NODES];
    signed char of[ESP_MOST_CORES]; /* each CPU's node, 0..count-1; -1 if not allowed */
};

/* Reads devices/system/node/node0..15/cpulist in the folder `sys`. If these files do not say
 * where all allowed CPUs are, there is one node. */
void esp_nodes_of(struct esp_nodes *nodes, const char *sys, const bool *allowed);

#endif
