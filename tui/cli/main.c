/* main.c - runs the subcommand that the user names. Without a name, opens the terminal
 * interface.
 *
 * A command fails if it cannot write to standard output.
 */
#include <fcntl.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/find_models.h"
#include "engine/support/suggestion.h"
#include "kernels/serve.h"
#include "tui/cli/cli.h"
#include "viz/safe.h"

static const struct cli_command *find(const char *name)
{
    for (int i = 0; cli_commands[i]; i++)
        if (strcmp(cli_commands[i]->name, name) == 0)
            return cli_commands[i];
    return NULL;
}

/* Opens /dev/null for each standard stream that is closed. Otherwise a file that is opened
 * later would get the descriptor of that stream, and everything that is printed would go into
 * the file. Reading from such a stream returns the end of the file, and writing to it fails. */
static void hold_streams(void)
{
    int fd;
    while ((fd = open("/dev/null", O_RDONLY)) >= 0 && fd <= STDERR_FILENO)
        continue;
    if (fd >= 0)
        close(fd);
}

/* Returns whether the word is a path or the name of a model. A name can fit several models. */
static bool is_model(const char *name)
{
    char path[PATH_MAX], err[512];
    struct stat about;
    return (stat(name, &about) == 0 ||
            esp_model_path(path, sizeof path, name, err, sizeof err) == 0 ||
            strstr(err, "several models"));
}

static int run(int argc, char **argv)
{
    struct cli_options options;
    const struct cli_command *command = cli_commands[0];
    if (argc > 1 && argv[1][0] != '-') {
        command = find(argv[1]);
        if (!command && is_model(argv[1])) {
            command = cli_commands[0];
        } else if (!command || command == cli_commands[0]) {
            struct esp_suggestion guess;
            char meant[96];
            esp_suggestion_begin(&guess, argv[1], strlen(argv[1]));
            for (int i = 1; cli_commands[i]; i++)
                esp_suggestion_try(&guess, cli_commands[i]->name);
            esp_complain("there is no command '%s', and no model of this name%s; try espalier "
                         "--help or espalier list models",
                         argv[1], esp_suggestion_text(&guess, meant));
            return EXIT_USAGE;
        } else {
            argc--;
            argv++;
        }
    } else if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        cli_help(NULL);
        return EXIT_DONE;
    }
    int code = cli_parse(&options, command, argc, argv);
    options.commands = cli_commands;
    if (code < 0 && command->names_models)
        code = cli_take_models(&options);
    if (code < 0)
        code = cli_find_models(&options, command == cli_commands[0]);
    return code >= 0 ? code : command->run(&options);
}

int main(int argc, char **argv)
{
    if (esp_is_rank(argc, argv))
        return esp_serve_rank(argc, argv);
    hold_streams();
    cli_clean_up_at_end();
    signal(SIGXFSZ, SIG_IGN); /* if a file grows too large, write() fails instead */
    setlocale(LC_ALL, "");
    setlocale(LC_NUMERIC, "C"); /* numbers in files and flags have a decimal point */
    int code = run(argc, argv);
    bool lost = fflush(stdout) != 0 || ferror(stdout);
    return code == EXIT_DONE && lost ? cli_fail("standard output could not be written") : code;
}
