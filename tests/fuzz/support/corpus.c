/* corpus.c - the main() of a harness without libFuzzer. It runs every input of the corpus.
 *
 * Each input runs in a separate process. If this process crashes, leaks or hangs, the program
 * prints the name of the input's file and continues with the next input. If there are
 * arguments, they name the files to run instead of the corpus.
 */
#include "tests/fuzz/support/fuzz.h"

#include <dirent.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SECONDS = 60 /* time limit of an input, enough for sanitizers on a busy machine */ };

static void run(const char *path)
{
    long length = -1;
    FILE *file = fopen(path, "rbe");
    if (file && fseek(file, 0, SEEK_END) == 0)
        length = ftell(file);
    FUZZ_REQUIRE(length >= 0, "%s can be read", path);
    rewind(file);
    uint8_t *bytes = malloc((size_t)length ? (size_t)length : 1);
    FUZZ_REQUIRE(bytes && fread(bytes, 1, (size_t)length, file) == (size_t)length,
                 "%s can be read", path);
    fclose(file);
    fuzz_folder_empty();
    LLVMFuzzerTestOneInput(bytes, (size_t)length);
    free(bytes);
}

static bool passes(const char *path)
{
    int status = -1;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        alarm(SECONDS);
        run(path);
        exit(EXIT_SUCCESS);
    }
    bool passed = child > 0 && waitpid(child, &status, 0) == child && status == 0;
    if (!passed)
        printf("  FAILED %s%s\n", path,
               WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM ? " (takes too long)" : "");
    return passed;
}

static int is_input(const struct dirent *entry)
{
    return *entry->d_name != '.';
}

int main(int argc, char **argv)
{
    char folder[PATH_MAX / 2], path[PATH_MAX];
    const char *slash = strrchr(argv[0], '/'), *name = slash ? slash + 1 : argv[0];
    const char *tests = getenv("ESPALIER_TESTS");
    struct dirent **inputs = NULL;
    int passed = 0, failed = 0;
    /* This process makes the folder for all inputs, and removes it when it exits. So the folder
     * is removed even if the process of an input crashes. */
    fuzz_folder();
    for (int i = 1; i < argc; i++)
        passes(argv[i]) ? passed++ : failed++;
    snprintf(folder, sizeof folder, "%s/fuzz/corpus/%s", tests ? tests : "tests", name);
    int count = argc > 1 ? 0 : scandir(folder, &inputs, is_input, alphasort);
    for (int i = 0; i < count; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, inputs[i]->d_name);
        passes(path) ? passed++ : failed++;
        free(inputs[i]);
    }
    free(inputs);
    printf("%s: %d passed, %d failed\n", name, passed, failed);
    return failed > 0 || passed == 0;
}
