/* Tests that SIGTERM and SIGHUP end the interface within a few seconds, even if it waits for
 * something, and that the terminal is restored. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/check.h"
#include "tests/pty.h"

/* The program promises to end within three seconds, but the machine may be slow. */
static const double SECONDS = 9;

static char folder[64];

static void remove_folder(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    if (system(command) != 0)
        perror(command);
}

static void in_folder(char path[128], const char *name)
{
    if (!*folder) {
        strcpy(folder, P_tmpdir "/espalier-end-XXXXXX");
        CHECK(mkdtemp(folder));
        atexit(remove_folder);
    }
    snprintf(path, 128, "%s/%s", folder, name);
}

/* Makes a program that runs `first`, writes its process id to NAME.pid, and then sleeps. */
static void make_sleeper(char path[128], const char *name, const char *first)
{
    in_folder(path, name);
    FILE *file = fopen(path, "w");
    CHECK(file);
    fprintf(file, "#!/bin/sh\n%s\necho $$ >'%s.pid'\nexec sleep 1000\n", first, path);
    CHECK(fclose(file) == 0 && chmod(path, 0700) == 0);
}

/* Waits until the sleeper has started, and returns its process id. */
static pid_t sleeper(struct pty *pty, const char *path)
{
    char name[160];
    int pid = 0;
    snprintf(name, sizeof name, "%s.pid", path);
    for (double end = pty_now() + 20; pid == 0 && pty_now() < end;) {
        pty_read(pty, 0.02);
        FILE *file = fopen(name, "r");
        if (file && fscanf(file, "%d", &pid) != 1)
            pid = 0;
        if (file)
            fclose(file);
    }
    CHECK(pid > 0, "%s was not started", path);
    unlink(name);
    return pid;
}

/* Returns whether the process ends within five seconds. A zombie counts as ended, because there
 * may be no process that waits for it. */
static bool has_gone(pid_t pid)
{
    char path[64], state = 'X';
    for (double end = pty_now() + 5; pty_now() < end && state != 'Z';) {
        snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
        FILE *file = fopen(path, "r");
        if (!file)
            return true;
        if (fscanf(file, "%*d %*s %c", &state) != 1)
            state = 'X';
        fclose(file);
    }
    return state == 'Z';
}

/* Does the same as pty_end(), but without reading the program's output. */
static int end_unread(struct pty *pty)
{
    int status;
    for (double end = pty_now() + SECONDS; pty_now() < end; usleep(10000))
        if (waitpid(pty->pid, &status, WNOHANG) == pty->pid) {
            pty->pid = -1;
            return status;
        }
    return -1;
}

static void ended_well(struct pty *pty, int status, int number)
{
    CHECK(status != -1, "%s does not end the program within %.0f s", strsignal(number),
          SECONDS);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 128 + number, "it ends with %x",
          (unsigned)status);
    CHECK(pty_restored(pty), "the terminal's modes are not restored");
    pty_close(pty);
}

static void ends(struct pty *pty, int number)
{
    CHECK(kill(pty->pid, number) == 0);
    ended_well(pty, pty_end(pty, SECONDS), number);
}

static void open_ready(struct pty *pty, const char *const *environment)
{
    static const char *const arguments[] = {"-n", "100000", NULL};
    pty_open(pty, 80, 24, environment, arguments);
    CHECK(pty_wait(pty, "ready", 20));
}

/* ------------------------------------------------------------------ children */

/* Starts the program with a drawing helper that hangs. */
static pid_t open_drawing(struct pty *pty, char path[128])
{
    char variable[160], line[300];
    make_sleeper(path, "dot", "");
    snprintf(variable, sizeof variable, "ESPALIER_DOT=%s", path);
    const char *const environment[] = {variable, NULL};
    open_ready(pty, environment);
    pty_type(pty, "Once upon a time\r");
    CHECK(pty_wait(pty, "committed", 20)); /* the first tree is drawn */
    snprintf(line, sizeof line, "\025:export %s.svg\r", path);
    pty_type(pty, line);
    return sleeper(pty, path);
}

TEST(a_helper_that_hangs_does_not_block_the_end)
{
    struct pty pty;
    char path[128];
    pid_t helper = open_drawing(&pty, path);
    ends(&pty, SIGTERM);
    CHECK(has_gone(helper), "the helper still runs");
}

TEST(a_second_sigterm_ends_the_program_at_once)
{
    struct pty pty;
    char path[128];
    open_drawing(&pty, path);
    kill(pty.pid, SIGTERM);
    pty_read(&pty, 0.05);
    kill(pty.pid, SIGTERM);
    int status = pty_end(&pty, SECONDS);
    CHECK(status != -1 && WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM, "it ends with %x",
          (unsigned)status);
    CHECK(pty_restored(&pty));
    pty_close(&pty);
}

static void ends_with_editor(const char *first, int number)
{
    struct pty pty;
    char path[128], variable[160], lines[128], temporary[160];
    in_folder(lines, "lines");
    mkdir(lines, 0700);
    snprintf(temporary, sizeof temporary, "TMPDIR=%s", lines);
    make_sleeper(path, "editor", first);
    snprintf(variable, sizeof variable, "VISUAL=%s", path);
    const char *const environment[] = {variable, temporary, NULL};
    open_ready(&pty, environment);
    pty_type(&pty, "\030\005");
    pid_t editor = sleeper(&pty, path);
    ends(&pty, number);
    CHECK(has_gone(editor), "the editor still runs");
    CHECK(rmdir(lines) == 0, "the folder of the edited line was not removed");
}

TEST(the_program_ends_while_an_editor_has_the_terminal)
{
    ends_with_editor("", SIGTERM);
    ends_with_editor("", SIGHUP);
}

TEST(the_program_ends_even_if_an_editor_ignores_signals)
{
    ends_with_editor("trap '' TERM HUP; stty raw -echo", SIGTERM);
}

/* ------------------------------------------------------------------ the terminal */

/* The test does not read the program's output, so the program waits in write(). */
TEST(a_terminal_that_takes_no_output_does_not_block_the_end)
{
    struct pty pty;
    pty_open(&pty, 400, 120, NULL, NULL);
    CHECK(pty_wait(&pty, "ready", 20));
    for (int i = 0; i < 40; i++) {
        CHECK(write(pty.fd, "\014", 1) == 1 || errno == EAGAIN);
        usleep(25000);
    }
    CHECK(kill(pty.pid, SIGTERM) == 0);
    ended_well(&pty, end_unread(&pty), SIGTERM);
}

/* When the program has restored the terminal's modes, C-s stops the output and C-z stops the
 * program. The program must end nevertheless. */
TEST(stopped_output_does_not_block_the_end)
{
    for (int i = 0; i < 3; i++) {
        struct pty pty;
        open_ready(&pty, NULL);
        CHECK(kill(pty.pid, SIGTERM) == 0);
        int status = -1;
        for (double end = pty_now() + SECONDS; status == -1 && pty_now() < end;) {
            (void)!write(pty.fd, "\023\032", 2);
            status = pty_end(&pty, 0.011);
        }
        ended_well(&pty, status, SIGTERM);
    }
}

/* ------------------------------------------------------------------ the engine */

TEST(the_program_ends_while_models_load_or_a_prompt_is_read)
{
    static const char *const arguments[] = {"--width", "4", "--threads", "1", NULL};
    static char prompt[2800];
    struct pty pty;
    pty_open(&pty, 80, 24, NULL, arguments);
    CHECK(pty_wait(&pty, "loading", 20) || pty_wait(&pty, "ready", 60));
    ends(&pty, SIGTERM);
    pty_open(&pty, 80, 24, NULL, arguments);
    CHECK(pty_wait(&pty, "ready", 60));
    for (size_t i = 0; i + 6 < sizeof prompt; i += 5)
        memcpy(prompt + i, "king ", 6);
    pty_type(&pty, prompt);
    pty_type(&pty, "\r");
    CHECK(pty_wait(&pty, "reading", 20));
    ends(&pty, SIGTERM);
}

TEST(a_recording_pipe_that_nobody_reads_does_not_block_the_end)
{
    struct pty pty;
    char path[128], line[200];
    in_folder(path, "pipe");
    CHECK(mkfifo(path, 0600) == 0);
    const int reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    open_ready(&pty, NULL);
    snprintf(line, sizeof line, ":pace full\r:record %s\rOnce upon a time\r", path);
    pty_type(&pty, line);
    CHECK(pty_wait(&pty, "iter", 20));
    ends(&pty, SIGTERM);
    close(reader);
}

/* ------------------------------------------------------------------ keys */

static void type_any(struct pty *pty, unsigned long long *random)
{
    char bytes[16];
    size_t count = 1 + (size_t)(check_uniform(random) * 8);
    for (size_t i = 0; i < count; i++) {
        const double kind = check_uniform(random);
        bytes[i] = (char)(kind < 0.4   ? check_uniform(random) * 32
                          : kind < 0.8 ? 32 + check_uniform(random) * 95
                                       : 128 + check_uniform(random) * 128);
    }
    (void)!write(pty->fd, bytes, count);
}

/* Any key may be pressed while the program ends. When the program has restored the terminal's
 * modes, C-c and C-\ end the program with a signal, like any other program. */
TEST(keys_do_no_harm_while_the_program_ends)
{
    static const char *const environment[] = {"VISUAL=true", NULL};
    const int sessions = check_quick() ? 12 : 60;
    unsigned long long random = 16;
    for (int i = 0; i < sessions; i++) {
        struct pty pty;
        int status = -1, number = i % 4 == 3 ? SIGHUP : SIGTERM;
        pty_open(&pty, 80, 24, environment, NULL);
        CHECK(pty_wait(&pty, i % 2 ? "ready" : "espalier", 20));
        const double start = pty_now() + 0.2 * check_uniform(&random);
        while (status == -1 && pty_now() < start) {
            type_any(&pty, &random);
            status = pty_end(&pty, 0.011);
        }
        if (status == -1)
            kill(pty.pid, number);
        for (double end = pty_now() + SECONDS; status == -1 && pty_now() < end;) {
            type_any(&pty, &random);
            status = pty_end(&pty, 0.011);
        }
        CHECK(status != -1, "session %d does not end", i);
        CHECK(WIFEXITED(status) || WTERMSIG(status) == SIGINT || WTERMSIG(status) == SIGQUIT,
              "session %d ends with %x", i, (unsigned)status);
        CHECK(pty_restored(&pty), "session %d does not restore the terminal's modes", i);
        pty_close(&pty);
    }
}
