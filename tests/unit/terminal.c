/* Tests the program in a terminal: how fast it draws, how much processor time it takes, and how
 * it handles difficult input. No matter how the program ends, the terminal must be restored. */
#include <dirent.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/check.h"
#include "tests/pty.h"

/* Starts a new text. The built-in pair fills its context within a second and then stops. */
static void write_text(struct pty *pty)
{
    pty_forget(pty);
    pty_type(pty, "\025:clear!\rOnce upon a time there was a king\r");
}

/* Returns whether the screen shows the text. Redraws the whole screen until it does. Without
 * this, the program would write only changed cells, and the text might never arrive in one
 * piece. */
static bool see(struct pty *pty, const char *text)
{
    bool seen = false;
    for (int i = 0; i < 40 && !seen; i++) {
        pty_type(pty, "\014");
        seen = pty_wait(pty, text, 0.5);
    }
    return seen;
}

/* Does the same as write_text(), and waits until the screen shows the text. */
static void write_text_and_wait(struct pty *pty)
{
    pty_forget(pty);
    pty_type(pty, "\025:clear!\r");
    CHECK(see(pty, "Draft trees are drawn"));
    write_text(pty);
    CHECK(see(pty, "iter"));
}

/* Runs the program and lets it write at full speed. */
static void open_writing(struct pty *pty, int width, int height)
{
    static const char *const arguments[] = {"-n", "100000", NULL};
    pty_open(pty, width, height, NULL, arguments);
    CHECK(pty_wait(pty, "ready", 20));
    pty_type(pty, ":pace full\r");
    CHECK(pty_wait(pty, "pace = full", 20));
    write_text(pty);
    CHECK(pty_wait(pty, "iter", 20));
}

static bool has_ended(const struct pty *pty)
{
    return memmem(pty->output, pty->count, "context full", 12);
}

static void quit(struct pty *pty)
{
    pty_type(pty, "\003");
    pty_read(pty, 0.05);
    pty_type(pty, "\025:quit\r");
    int status = pty_end(pty, 20);
    CHECK(status != -1, "the program does not end");
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "it ends with %x", (unsigned)status);
    CHECK(pty_restored(pty), "the terminal's modes are not restored");
    pty_close(pty);
}

/* ------------------------------------------------------------------ time */

TEST(the_first_frame_comes_before_the_models)
{
    double best = 1;
    bool loading = false;
    for (int round = 0; round < 5 && (best > 0.1 || !loading); round++) {
        struct pty pty;
        pty_open(&pty, 120, 36, NULL, NULL);
        CHECK(pty_wait(&pty, "espalier", 20));
        double took = pty_now() - pty.started;
        best = took < best ? took : best;
        CHECK(pty_wait(&pty, "loading", 20) || pty_wait(&pty, "ready", 20));
        loading = loading || memmem(pty.output, pty.count, "loading", 7);
        CHECK(pty_wait(&pty, "ready", 20));
        quit(&pty);
    }
    printf("    first frame after %.1f ms\n", 1e3 * best);
    CHECK(best <= 0.1, "the first frame took %.0f ms", 1e3 * best);
    CHECK(loading, "no frame was drawn before the models were loaded");
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Returns the seconds from a key press until the terminal shows its character. This character
 * occurs nowhere else on the screen. Each key adds one such character to the line, so every
 * frame is different. */
static double paint(struct pty *pty)
{
    pty_forget(pty);
    double start = pty_now();
    pty_type(pty, "@");
    CHECK(pty_wait(pty, "@", 5), "a key is not shown");
    return pty_now() - start;
}

/* Measures how long it takes from a key press until the character is on the screen, while
 * text is generated at full speed. Uses the 99th percentile of many keys. Other programs may
 * slow the machine down, so the result is the best of three rounds. */
TEST(a_key_changes_the_screen_at_once)
{
    enum { MOST = 300 };
    const int keys = check_quick() ? 40 : MOST;
    double seconds[MOST], best = 10, median = 10;
    struct pty pty;
    open_writing(&pty, 120, 36);
    for (int round = 0; round < 3 && best > 0.033; round++) {
        for (int i = 0; i < keys; i++) {
            pty_read(&pty, 0.001 * (i % 20)); /* keys arrive at different moments of a frame */
            if (i % 50 == 0 || has_ended(&pty)) {
                write_text_and_wait(&pty);
                pty_read(&pty, 0.05);
            }
            seconds[i] = paint(&pty);
        }
        qsort(seconds, (size_t)keys, sizeof *seconds, by_value);
        double p99 = seconds[keys * 99 / 100];
        if (p99 < best) {
            best = p99;
            median = seconds[keys / 2];
        }
    }
    quit(&pty);
    printf("    key press to screen: median %.2f ms, p99 %.2f ms of %d keys\n", 1e3 * median,
           1e3 * best, keys);
    CHECK(best <= 0.033, "key press to screen: p99 is %.1f ms", 1e3 * best);
}

/* Returns how many seconds of processor time the first thread of a process has used. This
 * is the thread of the interface. */
static double thread_seconds(pid_t pid)
{
    char path[64];
    double nanoseconds = 0;
    snprintf(path, sizeof path, "/proc/%d/task/%d/schedstat", (int)pid, (int)pid);
    FILE *file = fopen(path, "r");
    if (!file)
        return -1;
    if (fscanf(file, "%lf", &nanoseconds) != 1)
        nanoseconds = -1e9;
    fclose(file);
    return nanoseconds * 1e-9;
}

static double share(struct pty *pty, double seconds)
{
    double start = pty_now(), before = thread_seconds(pty->pid);
    while (pty_now() < start + seconds) {
        pty_read(pty, 0.02);
        if (has_ended(pty))
            write_text(pty);
        else
            pty_forget(pty);
    }
    return (thread_seconds(pty->pid) - before) / (pty_now() - start);
}

static double processor_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Measures work that is similar to drawing a frame: formats the cells of a screen of 120 x 36,
 * compares them with the cells of the previous frame, and copies them. Returns the processor
 * time in seconds. */
static double yardstick(void)
{
    enum { CELLS = 120 * 36, FRAMES = 40 };
    static char shown[CELLS][24];
    double start = processor_seconds();
    for (int frame = 0; frame < FRAMES; frame++)
        for (int i = 0; i < CELLS; i++) {
            char cell[24] = "";
            snprintf(cell, sizeof cell, "%c%d", 'a' + (i + frame) % 26, i % 1000);
            if (memcmp(cell, shown[i], sizeof cell) != 0)
                memcpy(shown[i], cell, sizeof cell);
        }
    return (processor_seconds() - start) / FRAMES;
}

/* The limit was set on a machine where the yardstick takes 0.18 ms. The yardstick is measured
 * in each round, because processors differ, and are slower if other programs use them, too. A
 * thread that is often interrupted has cold caches, so the best round is used. */
TEST(the_interface_uses_little_processor_time)
{
    static const double GOAL = 0.05, YARDSTICK = 0.18e-3;
    const char *const paces[2] = {"\025:pace full\r", "\025:pace 12\r"};
    const double seconds = check_quick() ? 1 : 2;
    double least[2] = {1, 1}, measured[2] = {1, 1};
    struct pty pty;
    open_writing(&pty, 120, 36);
    if (thread_seconds(pty.pid) < 0) {
        quit(&pty); /* this system does not report the time of a thread */
        return;
    }
    for (int round = 0; round < 5 && (least[0] > GOAL || least[1] > GOAL); round++)
        for (int i = 0; i < 2; i++) {
            pty_type(&pty, paces[i]);
            double taken = share(&pty, seconds), there = taken * YARDSTICK / yardstick();
            least[i] = fmin(least[i], there);
            measured[i] = fmin(measured[i], taken);
        }
    quit(&pty);
    printf("    interface thread: %.2f %% of a processor at full speed, %.2f %% at 12/s; "
           "scaled to the machine that the limit is for, %.2f %% and %.2f %%\n",
           100 * measured[0], 100 * measured[1], 100 * least[0], 100 * least[1]);
    CHECK(least[0] <= GOAL && least[1] <= GOAL, "%.1f %% and %.1f %%, want %.0f %%",
          100 * least[0], 100 * least[1], 100 * GOAL);
}

/* ------------------------------------------------------------------ difficult input */

TEST(a_thousand_sizes_during_a_generation_do_no_harm)
{
    struct pty pty;
    unsigned long long random = 4;
    const int sizes = check_quick() ? 100 : 1000;
    open_writing(&pty, 80, 24);
    for (int i = 0; i < sizes; i++) {
        int width = 1 + (int)(check_uniform(&random) * 400);
        int height = 1 + (int)(check_uniform(&random) * 120);
        if (i % 4 == 0) { /* small sizes are difficult */
            width = 1 + width % 24;
            height = 1 + height % 8;
        }
        pty_resize(&pty, width, height);
        pty_read(&pty, 0.003);
        if (has_ended(&pty) || i % 100 == 0)
            write_text(&pty);
        else
            pty_forget(&pty);
        CHECK(kill(pty.pid, 0) == 0);
    }
    pty_resize(&pty, 80, 24);
    pty_read(&pty, 0.1);
    pty_forget(&pty);
    pty_type(&pty, "\014");
    CHECK(pty_wait(&pty, "controller", 20), "the program no longer draws");
    quit(&pty);
}

static void rest(struct pty *pty, double seconds)
{
    const double end = pty_now() + seconds;
    while (pty_now() < end)
        pty_read(pty, end - pty_now());
}

/* On a slow line, the bytes of a key can arrive in pieces. If nothing follows an Escape for a
 * while, this byte is the key Esc. While text is generated, a frame is drawn during this wait.
 * Drawing the frame must not end the wait. */
TEST(a_key_in_pieces_is_one_key)
{
    struct pty pty;
    int tries = 0;
    open_writing(&pty, 120, 36);
    for (int i = 0; i < 40; i++) {
        if (has_ended(&pty))
            write_text(&pty);
        rest(&pty, 0.001 * (i % 34)); /* keys arrive at different moments of a frame */
        pty_type(&pty, "\033");
        double start = pty_now();
        rest(&pty, 0.012);
        /* the remaining bytes of the key Insert, which ncurses itself never writes */
        pty_type(&pty, "[2~");
        bool in_time = pty_now() - start < 0.02;
        rest(&pty, 0.04);
        CHECK(!in_time || !memmem(pty.output, pty.count, "2~", 2),
              "a piece of a key became text");
        tries += in_time;
        pty_type(&pty, "\025");
        pty_forget(&pty);
    }
    quit(&pty);
    CHECK(tries > 0, "this machine is too slow for the test");
}

/* A paste of megabytes with newlines is one edit: one undo removes it, and none of its lines is
 * submitted. */
TEST(ten_megabytes_can_be_pasted)
{
    enum { SIZE = 10 << 20, SHOWN = 20 };
    /* the end of the last line, which is visible because the cursor is there */
    char last[SHOWN + 1];
    struct pty pty;
    char *bytes = malloc(SIZE);
    CHECK(bytes);
    for (int i = 0; i < SIZE; i++)
        bytes[i] = i % 61 == 0 ? '\n' : (char)('a' + i % 26);
    pty_open(&pty, 80, 24, NULL, NULL);
    CHECK(pty_wait(&pty, "ready", 20));
    pty_forget(&pty);
    double start = pty_now();
    pty_type(&pty, "\033[200~");
    pty_send(&pty, bytes, SIZE);
    pty_type(&pty, "\033[201~");
    snprintf(last, sizeof last, "%.*s", SHOWN, bytes + SIZE - SHOWN);
    free(bytes);
    CHECK(pty_wait(&pty, last, 60), "the paste is not shown");
    double took = pty_now() - start;
    CHECK(!memmem(pty.output, pty.count, "reading the prompt", 18));
    CHECK(!memmem(pty.output, pty.count, "iter", 4), "it was submitted");
    pty_type(&pty, "\037:quit\r");
    int status = pty_end(&pty, 30);
    CHECK(status != -1, "one undo does not remove the paste");
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    pty_close(&pty);
    printf("    10 MB were pasted in %.2f s\n", took);
    CHECK(took < 30);
}

/* ------------------------------------------------------------------ the end of the program */

static bool has(const struct pty *pty, const char *text)
{
    return memmem(pty->output, pty->count, text, strlen(text));
}

/* Returns whether the cursor is visible after the program's last output. */
static bool shows_cursor(const struct pty *pty)
{
    const char *hidden = NULL;
    for (const char *at = pty->output; (at = strstr(at, "\033[?25l")); at++)
        hidden = at;
    return !hidden || strstr(hidden, "\033[?25h");
}

/* Checks that the terminal's modes, cursor, screen, pastes and mouse are restored. */
static void was_restored(const struct pty *pty, const char *how)
{
    CHECK(pty_restored(pty), "%s does not restore the modes", how);
    CHECK(has(pty, "\033[?1049l"), "%s does not restore the main screen", how);
    CHECK(has(pty, "\033[?2004l"), "%s leaves bracketed paste on", how);
    CHECK(has(pty, "\033[?1000l"), "%s leaves the mouse on", how);
    CHECK(shows_cursor(pty), "%s leaves the cursor hidden", how);
}

/* Sends a signal to a thread of the engine. `which` is the thread's number, without counting
 * the first thread of the program. Returns whether there is such a thread. */
static bool signal_thread(pid_t pid, int number, int which)
{
    char path[64];
    int seen = 0;
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *tasks = opendir(path);
    CHECK(tasks, "no %s", path);
    for (struct dirent *task; (task = readdir(tasks));) {
        const pid_t thread = (pid_t)atoi(task->d_name);
        if (thread > 0 && thread != pid && seen++ == which) {
            closedir(tasks);
            CHECK(syscall(SYS_tgkill, pid, thread, number) == 0);
            return true;
        }
    }
    closedir(tasks);
    return false;
}

/* The signal of a fault goes to the thread that caused it, so no thread may block such a
 * signal. */
static bool thread_dies_by(int number, int which)
{
    struct pty pty;
    open_writing(&pty, 80, 24);
    if (!signal_thread(pty.pid, number, which)) {
        quit(&pty);
        return false;
    }
    int status = pty_end(&pty, 20);
    CHECK(status != -1 && WIFSIGNALED(status) && WTERMSIG(status) == number,
          "%s in thread %d ends the program with %x", strsignal(number), which,
          (unsigned)status);
    was_restored(&pty, strsignal(number));
    pty_close(&pty);
    return true;
}

TEST(a_fault_in_any_thread_restores_the_terminal)
{
    const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    const int count = check_quick() ? 1 : sizeof faults / sizeof *faults;
    for (int i = 0; i < count; i++)
        CHECK(thread_dies_by(faults[i], 0), "there is no thread of the engine");
    for (int which = 1; which < 3 && thread_dies_by(SIGSEGV, which); which++)
        continue;
}

static void dies_by(int number, bool at_once)
{
    struct pty pty;
    open_writing(&pty, 80, 24);
    pty_type(&pty, ":mouse on\r");
    CHECK(pty_wait(&pty, "mouse = on", 20));
    pty_forget(&pty);
    kill(pty.pid, number);
    int status = pty_end(&pty, 20);
    CHECK(status != -1, "%s does not end the program", strsignal(number));
    if (at_once)
        CHECK(WIFSIGNALED(status) && WTERMSIG(status) == number, "%s ends it with %x",
              strsignal(number), (unsigned)status);
    else
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 128 + number, "%s ends it with %x",
              strsignal(number), (unsigned)status);
    was_restored(&pty, strsignal(number));
    pty_close(&pty);
}

TEST(signals_restore_the_terminal)
{
    const int crashes[] = {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGQUIT};
    dies_by(SIGTERM, false);
    dies_by(SIGHUP, false);
    for (size_t i = 0; i < (check_quick() ? 1 : sizeof crashes / sizeof *crashes); i++)
        dies_by(crashes[i], true);
}

TEST(keys_end_the_program)
{
    static const char *const ways[] = {":quit\r", ":q\r", "\003\003", "\004", "\033[21~"};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        struct pty pty;
        pty_open(&pty, 80, 24, NULL, NULL);
        CHECK(pty_wait(&pty, "ready", 20));
        pty_forget(&pty);
        for (const char *key = ways[i]; *key; key++) {
            pty_send(&pty, key, 1);
            if (*key == '\003' || *key == '\t')
                pty_read(&pty, 0.02);
        }
        int status = pty_end(&pty, 20);
        CHECK(status != -1, "key sequence %zu does not end the program", i);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "way %zu: %x", i,
              (unsigned)status);
        CHECK(pty_restored(&pty) && has(&pty, "\033[?1049l"));
        pty_close(&pty);
    }
}

/* ------------------------------------------------------------------ output */

static void write_some(struct pty *pty, const char *const *environment,
                       const char *const *arguments)
{
    pty_open(pty, 100, 30, environment, arguments);
    CHECK(pty_wait(pty, "token limit reached", 20));
    pty_type(pty, "\033OP");
    CHECK(pty_wait(pty, "step mode", 20));
    pty_type(pty, "\033OP\t\t\033[A\033[A\033[18~\033[B"); /* help, tree, palette and more */
    pty_read(pty, 0.2);
    pty_type(pty, "\033");
    pty_read(pty, 0.1);
    pty_type(pty, "\033");
    pty_read(pty, 0.1);
    pty_type(pty, ":pace full\r");
    pty_read(pty, 0.1);
}

TEST(the_ascii_option_prints_only_ascii)
{
    static const char *const arguments[] = {"--ascii", "-p", "Once upon a time",
                                            "-n",      "30", NULL};
    struct pty pty;
    write_some(&pty, NULL, arguments);
    for (size_t i = 0; i < pty.count; i++)
        CHECK((unsigned char)pty.output[i] < 128, "byte %02x is sent",
              (unsigned char)pty.output[i]);
    quit(&pty);
}

/* Returns whether the output has SGR sequences that choose a colour. */
static bool has_colour(const struct pty *pty)
{
    for (const char *at = pty->output; (at = strstr(at, "\033[")); at += 2) {
        char numbers[64];
        size_t length = strspn(at + 2, "0123456789;");
        if (at[2 + length] != 'm' || length >= sizeof numbers)
            continue;
        snprintf(numbers, sizeof numbers, "%.*s", (int)length, at + 2);
        char *rest = NULL;
        for (char *word = strtok_r(numbers, ";", &rest); word;
             word = strtok_r(NULL, ";", &rest)) {
            int number = atoi(word);
            if ((number >= 30 && number <= 38) || (number >= 40 && number <= 48) ||
                (number >= 90 && number <= 107))
                return true;
        }
    }
    return false;
}

/* :copy sends OSC 52 with the text in base64. Also checks that the mouse is on unless the user
 * has switched it off. */
TEST(copy_sends_the_text_to_the_clipboard)
{
    static const char *const arguments[] = {"-p", "Once upon a time", "-n", "30", NULL};
    static const char *const linux_console[] = {"TERM=linux", NULL};
    struct pty pty;
    write_some(&pty, NULL, arguments);
    CHECK(has(&pty, "\033[?1000h\033[?1006h"), "the mouse is not on by default");
    CHECK(has(&pty, "\033[?1007l"), "the wheel still sends keys");
    pty_forget(&pty);
    pty_type(&pty, ":copy\r");
    CHECK(pty_wait(&pty, "\033]52;c;T25jZSB1cG9uIGEgdGltZ", 5) && pty_wait(&pty, "\a", 5));
    pty_type(&pty, ":mouse off\r");
    CHECK(pty_wait(&pty, "\033[?1006l\033[?1000l", 5));
    quit(&pty);
    write_some(&pty, linux_console, arguments);
    pty_type(&pty, ":copy\r");
    CHECK(pty_wait(&pty, "has no clipboard", 5));
    CHECK(!has(&pty, "\033]52"));
    quit(&pty);
}

TEST(the_variable_no_color_removes_colours)
{
    static const char *const arguments[] = {"-p", "Once upon a time", "-n", "30", NULL};
    static const char *const none[] = {"NO_COLOR=1", NULL}, *const empty[] = {"NO_COLOR=",
                                                                              NULL};
    struct pty pty;
    write_some(&pty, none, arguments);
    CHECK(!has_colour(&pty));
    quit(&pty);
    write_some(&pty, empty, arguments);
    CHECK(has_colour(&pty), "an empty NO_COLOR has no effect");
    quit(&pty);
}

/* A theme's exact colours are used only if the terminal says that it supports them. */
TEST(exact_colours_are_used_if_the_terminal_supports_them)
{
    static const char *const arguments[] = {
        "-p", "Once upon a time", "-n", "30", "--theme", "dark", NULL};
    static const char *const all[] = {"COLORTERM=truecolor", NULL},
                             *const bits[] = {"COLORTERM=24bit", "TERM=tmux-256color", NULL},
                             *const none[] = {"COLORTERM=truecolor", "NO_COLOR=1", NULL};
    static const char text[] = ";38;2;211;218;230;48;2;16;21;29m";
    struct pty pty;
    write_some(&pty, all, arguments);
    CHECK(has(&pty, text), "the colours of text and background are not exact");
    CHECK(has(&pty, "Once upon a time"));
    pty_forget(&pty);
    pty_type(&pty, ":theme light\r");
    CHECK(pty_wait(&pty, ";48;2;255;255;255m", 5), "the light background");
    pty_forget(&pty);
    pty_resize(&pty, 70, 20);
    CHECK(pty_wait(&pty, "Once upon a time", 5), "a resize draws everything");
    quit(&pty);
    CHECK(has(&pty, "\033[?25h"), "the cursor is not shown again");
    write_some(&pty, bits, arguments);
    CHECK(has(&pty, text));
    quit(&pty);
    write_some(&pty, none, arguments);
    CHECK(!has_colour(&pty));
    quit(&pty);
    write_some(&pty, NULL, arguments);
    CHECK(!has(&pty, ";38;2;"),
          "exact colours are used, but the terminal did not say that it supports them");
    quit(&pty);
}

/* A terminal with a light background gets the light theme, unless the user chose one. */
TEST(the_background_chooses_the_theme)
{
    static const char *const chosen[] = {"--theme", "dark", NULL};
    struct pty pty;
    pty_open(&pty, 80, 24, NULL, NULL);
    CHECK(pty_wait(&pty, "\033]11;?\a", 20));
    pty_type(&pty, "\033]11;rgb:fafa/fafa/f0f0\a:theme\r");
    CHECK(pty_wait(&pty, "theme = light", 20));
    quit(&pty);
    pty_open(&pty, 80, 24, NULL, chosen);
    CHECK(pty_wait(&pty, "ready", 20));
    CHECK(!has(&pty, "\033]11"), "a theme was chosen, but the program asks for the background");
    quit(&pty);
}

TEST(the_program_works_on_other_terminals)
{
    static const char *const types[] = {"TERM=xterm",         "TERM=vt100",
                                        "TERM=linux",         "TERM=screen",
                                        "TERM=tmux-256color", "TERM=rxvt-unicode-256color"};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        const char *const environment[] = {types[i], NULL};
        struct pty pty;
        pty_open(&pty, 80, 24, environment, NULL);
        bool ready = pty_wait(&pty, "ready", 5);
        /* this machine may lack a description of the terminal type */
        if (!ready && strstr(pty.output, "is not known")) {
            pty_close(&pty);
            continue;
        }
        CHECK(ready, "%s", types[i]);
        quit(&pty);
    }
}

TEST(a_dumb_terminal_is_refused_with_a_message)
{
    static const char *const dumb[] = {"TERM=dumb", NULL}, *const none[] = {"TERM=", NULL};
    const char *const *const environments[] = {dumb, none};
    for (int i = 0; i < 2; i++) {
        struct pty pty;
        pty_open(&pty, 80, 24, environments[i], NULL);
        int status = pty_end(&pty, 20);
        CHECK(status != -1 && WIFEXITED(status) && WEXITSTATUS(status) == 1, "%x",
              (unsigned)status);
        CHECK(strstr(pty.output, "use espalier generate"), "%s", pty.output);
        CHECK(!memchr(pty.output, '\033', pty.count),
              "a terminal without escape codes got an escape code");
        CHECK(pty_restored(&pty));
        pty_close(&pty);
    }
}
