/* cores.c - reads Linux's description of the processors; see cores.h. */
#include "kernels/cpu/cores.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH = 512, TEXT = 4096 };

/* Reads file `name` of CPU `cpu`. If cpu < 0, reads file `name` in the folder `sys`. Returns
 * false if there is no such file. */
static bool read_text(char text[TEXT], const char *sys, int cpu, const char *name)
{
    char path[PATH];
    const int length =
        cpu < 0 ? snprintf(path, sizeof path, "%s/%s", sys, name)
                : snprintf(path, sizeof path, "%s/devices/system/cpu/cpu%d/%s", sys, cpu, name);
    FILE *file = length < PATH ? fopen(path, "r") : NULL;
    if (!file)
        return false;
    const size_t size = fread(text, 1, TEXT - 1, file);
    text[size] = '\0';
    fclose(file);
    return size > 0;
}

/* Adds the CPUs of a list such as "0-3,8" to `cpus`. */
static void add_list(bool *cpus, const char *text)
{
    for (char *end; *text; text = *end == ',' ? end + 1 : "") {
        const long first = strtol(text, &end, 10);
        const long last = *end == '-' ? strtol(end + 1, &end, 10) : first;
        for (long i = end > text && first >= 0 ? first : ESP_MOST_CORES;
             i <= last && i < ESP_MOST_CORES; i++)
            cpus[i] = true;
    }
}

static long capacity(const char *sys, int cpu)
{
    char text[TEXT];
    return read_text(text, sys, cpu, "cpu_capacity") ? strtol(text, NULL, 10) : 0;
}

static void find_by_capacity(bool *fast, const char *sys, const bool *allowed)
{
    long most = 1, of[ESP_MOST_CORES] = {0};
    for (int i = 0; i < ESP_MOST_CORES; i++) {
        of[i] = allowed[i] ? capacity(sys, i) : 0;
        most = of[i] > most ? of[i] : most;
    }
    for (int i = 0; i < ESP_MOST_CORES; i++)
        fast[i] = of[i] >= most - most / 3;
}

/* Returns whether `cpu` is the first of the allowed CPUs that share its core. */
static bool first_of_core(const char *sys, const bool *allowed, int cpu)
{
    bool shares[ESP_MOST_CORES] = {false};
    char text[TEXT];
    if (read_text(text, sys, cpu, "topology/thread_siblings_list"))
        add_list(shares, text);
    for (int i = 0; i < cpu; i++)
        if (allowed[i] && shares[i])
            return false;
    return true;
}

int esp_cores_best_of(const char *sys, const bool *allowed)
{
    bool fast[ESP_MOST_CORES] = {false};
    char text[TEXT];
    int all = 0, found = 0, cores = 0;
    if (read_text(text, sys, -1, "devices/cpu_core/cpus"))
        add_list(fast, text);
    else
        find_by_capacity(fast, sys, allowed);
    for (int i = 0; i < ESP_MOST_CORES; i++) {
        all += allowed[i];
        found += allowed[i] && fast[i];
    }
    for (int i = 0; i < ESP_MOST_CORES && found > 0 && found < all; i++)
        cores += allowed[i] && fast[i] && first_of_core(sys, allowed, i);
    return cores > 0 ? cores : all;
}

void esp_nodes_of(struct esp_nodes *nodes, const char *sys, const bool *allowed)
{
    char name[64], text[TEXT];
    int left = 0, count = 0;
    for (int i = 0; i < ESP_MOST_CORES; i++) {
        nodes->of[i] = allowed[i] ? 0 : -1;
        left += allowed[i];
    }
    *nodes->cores = left;
    *nodes->number = 0;
    nodes->count = 1;
    struct esp_nodes found = *nodes;
    for (int number = 0; number < ESP_MOST_NODES; number++) {
        bool here[ESP_MOST_CORES] = {false};
        int cores = 0;
        snprintf(name, sizeof name, "devices/system/node/node%d/cpulist", number);
        if (!read_text(text, sys, -1, name))
            continue;
        add_list(here, text);
        for (int i = 0; i < ESP_MOST_CORES; i++)
            if (here[i] && allowed[i]) {
                found.of[i] = (signed char)count;
                cores++;
            }
        if (cores == 0) /* a node without CPUs that this process may use */
            continue;
        found.number[count] = number;
        found.cores[count++] = cores;
        left -= cores;
    }
    found.count = count;
    if (left == 0 && count > 1)
        *nodes = found;
}
