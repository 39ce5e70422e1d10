/* team.h - threads that go through a pass together; see team.c. */
#ifndef ESP_CPU_TEAM_H
#define ESP_CPU_TEAM_H

#include <stdatomic.h>
#include <stdbool.h>

struct esp_cpu_backend;

struct esp_cpu_barrier {
    atomic_int waiting, round;
    double waited; /* seconds that thread 0 waited longer than expected */
};

struct esp_cpu_team {
    int thread, threads;
    struct esp_cpu_barrier *barrier; /* NULL for a team of one */
};

/* Decides when the other cores are too busy with other programs to be of help. */
struct esp_cpu_crowd {
    int alone;      /* passes still to be run by one thread */
    int patience;   /* how many they will be next time */
    bool suspected; /* the last pass was held up */
};

/* Runs `pass` on all threads of the backend, or only on the calling one if the pass is small or
 * the machine crowded. Must not be called from within a pass. */
void esp_cpu_together(struct esp_cpu_backend *cpu, bool small,
                      void (*pass)(void *arg, struct esp_cpu_team team), void *arg);

/* Nobody returns before all have come. */
void esp_cpu_meet(struct esp_cpu_team team);

#endif
