/* paths.c - tests that the program finds its data in a source tree, in an installation, and in
 * the folder that ESPALIER_DATA names.
 *
 * The result depends on the folder of the running program. So this program copies itself into
 * several test folders and runs the copies. With PATHS_PROBE=kind/name in the environment, it
 * only prints the path that it finds.
 */
#include "engine/support/paths.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/check.h"

static char root[PATH_MAX];

__attribute__((constructor)) static void probe(void)
{
    char path[PATH_MAX], kind[64] = "", name[64] = "";
    const char *what = getenv("PATHS_PROBE");
    if (!what)
        return;
    sscanf(what, "%63[^/]/%63s", kind, name);
    puts(esp_find_data(path, sizeof path, kind, name) == 0 ? path : "nothing");
    fflush(stdout);
    _exit(0);
}

/* Runs a shell command in a fresh folder, $root, with the path of this program in $self. */
static void in_fresh_root(const char *command)
{
    const char *base = getenv("TMPDIR");
    char made[PATH_MAX], self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    CHECK(n > 0);
    self[n] = '\0';
    snprintf(made, sizeof made, "%s/esp-paths-XXXXXX", base ? base : P_tmpdir);
    CHECK(mkdtemp(made) && realpath(made, root));
    setenv("root", root, 1);
    setenv("self", self, 1);
    CHECK(system(command) == 0, "%s", command);
}

static void remove_root(void)
{
    CHECK(system("rm -r \"$root\"") == 0);
}

/* Checks that `program` finds `what` at `want`, or finds nothing if `want` is NULL. The paths
 * `program` and `want` are relative to $root. */
static void check_finds(int line, const char *environment, const char *program,
                        const char *what, const char *want)
{
    char command[3 * PATH_MAX], line_read[PATH_MAX] = "", expected[2 * PATH_MAX];
    snprintf(command, sizeof command,
             "cd / && unset ESPALIER_DATA && %s PATHS_PROBE='%s' $ESPALIER_TEST_RUNNER '%s/%s'",
             environment, what, root, program);
    FILE *pipe = popen(command, "r");
    CHECK(pipe);
    char *got = fgets(line_read, sizeof line_read, pipe);
    CHECK(pclose(pipe) == 0 && got, "%s", command);
    line_read[strcspn(line_read, "\n")] = '\0';
    snprintf(expected, sizeof expected, "%s/%s", root, want ? want : "");
    if (strcmp(line_read, want ? expected : "nothing") != 0)
        check_fail(__FILE__, line, " %s: found %s, want %s", command, line_read, expected);
}

#define FINDS(environment, program, what, want)                                                \
    check_finds(__LINE__, environment, program, what, want)

TEST(source_tree_is_found_from_the_build)
{
    in_fresh_root("cd \"$root\" && mkdir -p engine/models/a themes build/asan/tests/unit && "
                  "touch themes/b.theme && cp \"$self\" build/p && "
                  "cp \"$self\" build/asan/tests/unit/p");
    FINDS("", "build/p", "models/a", "engine/models/a");
    FINDS("", "build/p", "themes/b.theme", "themes/b.theme");
    FINDS("", "build/p", "themes/", "themes");
    FINDS("", "build/asan/tests/unit/p", "models/a", "engine/models/a");
    FINDS("", "build/p", "models/b", NULL);
    FINDS("", "build/p", "models/../a", NULL);
    FINDS("", "build/p", "models/..", NULL);
    remove_root();
}

TEST(installation_is_found_from_bin)
{
    in_fresh_root(
        "cd \"$root\" && mkdir -p bin share/espalier/models/a share/espalier/themes && "
        "touch share/espalier/themes/b.theme && cp \"$self\" bin/p && "
        "mkdir elsewhere && ln -s ../bin/p elsewhere/p");
    FINDS("", "bin/p", "models/a", "share/espalier/models/a");
    FINDS("", "bin/p", "themes/b.theme", "share/espalier/themes/b.theme");
    FINDS("", "elsewhere/p", "models/a", "share/espalier/models/a");
    remove_root();
}

TEST(environment_comes_first)
{
    in_fresh_root(
        "cd \"$root\" && mkdir -p data/models/a engine/models/a engine/models/c build && "
        "cp \"$self\" build/p");
    FINDS("ESPALIER_DATA=\"$root/data\"", "build/p", "models/a", "data/models/a");
    FINDS("ESPALIER_DATA=\"$root/data\"", "build/p", "models/c", "engine/models/c");
    FINDS("ESPALIER_DATA=", "build/p", "models/a", "engine/models/a");
    remove_root();
}

TEST(a_path_that_does_not_fit_is_not_found)
{
    char path[PATH_MAX];
    in_fresh_root("mkdir -p \"$root/models/a\"");
    setenv("ESPALIER_DATA", root, 1);
    CHECK(esp_find_data(path, sizeof path, "models", "a") == 0);
    CHECK(esp_find_data(path, strlen(path), "models", "a") == ESP_E_FILE);
    CHECK(esp_find_data(path, 0, "models", "a") == ESP_E_FILE);
    unsetenv("ESPALIER_DATA");
    remove_root();
}

TEST(only_theme_files_are_listed)
{
    static const char *const want[] = {"dark", "light"};
    char name[64];
    in_fresh_root("cd \"$root\" && mkdir themes && cd themes && "
                  "touch dark.theme dark.theme~ light.theme .hidden.theme");
    setenv("ESPALIER_DATA", root, 1);
    for (int i = 0; i < 2; i++)
        CHECK(esp_list_data("themes", i, name, sizeof name) == 0 && strcmp(name, want[i]) == 0,
              "%s", name);
    CHECK(esp_list_data("themes", 2, name, sizeof name) == ESP_E_FILE, "%s", name);
    CHECK(esp_list_data("themes", -1, name, sizeof name) == ESP_E_FILE);
    unsetenv("ESPALIER_DATA");
    remove_root();
}
