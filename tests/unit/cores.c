/* Tests which cores are counted as performance cores. The test makes a folder that imitates
 * /sys on Linux. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernels/cpu/cores.h"
#include "kernels/system.h"
#include "tests/check.h"

static char sys[] = "/tmp/espalier-cores-XXXXXX";

/* Writes `text` to the file sys/`path`. Makes the folders that contain the file. */
static void write_text(const char *path, const char *text)
{
    char all[300];
    snprintf(all, sizeof all, "%s/%s", sys, path);
    for (char *slash = all + strlen(sys); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(all, 0700);
        *slash = '/';
    }
    FILE *file = fopen(all, "w");
    CHECK(file);
    if (file) {
        fputs(text, file);
        fclose(file);
    }
}

static void write_of(int cpu, const char *name, const char *text)
{
    char path[200];
    snprintf(path, sizeof path, "devices/system/cpu/cpu%d/%s", cpu, name);
    write_text(path, text);
}

static void begin(void)
{
    strcpy(sys + strlen(sys) - 6, "XXXXXX");
    CHECK(mkdtemp(sys));
}

static void end(void)
{
    char command[300];
    snprintf(command, sizeof command, "rm -r '%s'", sys);
    CHECK(system(command) == 0);
}

/* Returns the number of performance cores for a process that can use only CPUs first..last. */
static int best(int first, int last)
{
    bool allowed[ESP_MOST_CORES] = {false};
    for (int i = first; i <= last; i++)
        allowed[i] = true;
    return esp_cores_best_of(sys, allowed);
}

/* The processor has six performance cores of two threads each, and eight slower cores of one
 * thread each. */
TEST(on_intels_hybrid_processors_each_performance_core_counts_once)
{
    begin();
    write_text("devices/cpu_core/cpus", "0-11\n");
    write_text("devices/cpu_atom/cpus", "12-19\n");
    for (int i = 0; i < 20; i++) {
        char siblings[20];
        snprintf(siblings, sizeof siblings, i < 12 ? "%d-%d\n" : "%d\n", i & ~1, i | 1);
        write_of(i, "topology/thread_siblings_list", siblings);
    }
    CHECK(best(0, 19) == 6, "%d", best(0, 19));
    CHECK(best(1, 12) == 6,
          "a core must be counted even if the process can use only its second thread: %d",
          best(1, 12));
    CHECK(best(9, 14) == 2, "%d", best(9, 14));
    CHECK(best(12, 19) == 8,
          "if the process can use only slower cores, all of them must be counted: %d",
          best(12, 19));
    CHECK(best(0, 11) == 12, "if all cores are of the same kind, all must be counted: %d",
          best(0, 11));
    end();
}

TEST(with_three_kinds_of_arm_cores_the_slowest_do_not_count)
{
    static const char *const capacity[] = {"250", "250", "250", "250",
                                           "870", "870", "870", "1024"};
    begin();
    for (int i = 0; i < 8; i++)
        write_of(i, "cpu_capacity", capacity[i]);
    CHECK(best(0, 7) == 4, "%d", best(0, 7));
    CHECK(best(0, 3) == 4 && best(4, 7) == 4);
    CHECK(best(3, 6) == 3);
    end();
}

TEST(without_information_all_cores_count)
{
    begin();
    CHECK(best(0, 7) == 8 && best(5, 5) == 1);
    write_text("devices/cpu_core/cpus", "");
    CHECK(best(0, 7) == 8);
    end();
}

TEST(invalid_lists_are_harmless)
{
    static const char *const lists[] = {"x",     "-5",      ",,,",  "3-1",      "0-99999999999",
                                        "7-,-9", "4 5 6 7", "0--1", "1023-1025"};
    begin();
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        write_text("devices/cpu_core/cpus", lists[i]);
        const int found = best(0, 7);
        CHECK(found >= 1 && found <= 8, "%s: %d", lists[i], found);
    }
    end();
}

TEST(this_machine_has_performance_cores)
{
    CHECK(esp_cores_best() >= 1 && esp_cores_best() <= esp_cores_all());
}

/* ------------------------------------------------------------------ NUMA nodes */

static void write_node(int node, const char *cpus)
{
    char path[200];
    snprintf(path, sizeof path, "devices/system/node/node%d/cpulist", node);
    write_text(path, cpus);
}

static struct esp_nodes nodes_of(int first, int last)
{
    struct esp_nodes nodes;
    bool allowed[ESP_MOST_CORES] = {false};
    for (int i = first; i <= last; i++)
        allowed[i] = true;
    esp_nodes_of(&nodes, sys, allowed);
    return nodes;
}

TEST(cpus_belong_to_nodes_of_memory)
{
    begin();
    /* no file describes a NUMA node yet */
    CHECK(nodes_of(0, 7).count == 1 && nodes_of(0, 7).cores[0] == 8);
    write_node(0, "0-1,4-5\n");
    write_node(1, "\n"); /* a node that has memory but no CPUs */
    write_node(3, "2-3,6-7\n");
    const struct esp_nodes all = nodes_of(0, 7), some = nodes_of(1, 3), one = nodes_of(4, 5),
                           more = nodes_of(0, 8);
    CHECK(all.count == 2 && all.number[1] == 3 && all.cores[0] == 4 && all.cores[1] == 4);
    CHECK(all.of[1] == 0 && all.of[2] == 1 && all.of[4] == 0 && all.of[7] == 1);
    CHECK(some.count == 2 && some.cores[0] == 1 && some.cores[1] == 2 && some.of[4] == -1);
    CHECK(one.count == 1 && one.cores[0] == 2);
    CHECK(more.count == 1 && more.cores[0] == 9); /* CPU 8 belongs to no node */
    end();
}
