/* dot_helper.c - runs espalier-dot with resource limits; see dot_helper.h.
 *
 * - Standard input and output of the helper are memory files (memfd); standard error is a pipe.
 * - Between fork and exec there are only calls that are safe in a program with threads.
 * - The pipe is closed when the helper ends, so waiting with a deadline needs no signal.
 * - The picture is read from the memory file only if the exit status says that it is complete.
 */
#include "viz/dot_helper.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "kernels/clock.h"
#include "kernels/status.h"
#include "kernels/system.h"
#include "engine/support/write_file.h"

enum {
    SECONDS = 10,
    MEMORY = 512 << 20,
    OUTPUT = 64 << 20,
    NOT_THERE = 127, /* exit status of a child process that could not start the helper */
};

static const char helper_name[] = "espalier-dot";

struct dot_process {
    char path[PATH_MAX];
    char *arguments[16];
    int seconds;
    int input, output, messages[2];
    char said[256]; /* the first line that the helper wrote to standard error */
    bool late;
    int status; /* the status that waitpid() stored */
};

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* Writes the path of the program, or a plain name that execvp() looks for in PATH. */
static void find(char path[PATH_MAX])
{
    const char *named = getenv("ESPALIER_DOT");
    if (named && *named) {
        snprintf(path, PATH_MAX, "%s", named);
        return;
    }
    char *slash =
        esp_program_path(path, PATH_MAX - sizeof helper_name) ? strrchr(path, '/') : NULL;
    if (slash)
        strcpy(slash + 1, helper_name);
    if (!slash || access(path, X_OK) != 0)
        strcpy(path, helper_name);
}

static int prepare(struct dot_process *h, const char *line, size_t length, char *err,
                   size_t errlen)
{
    find(h->path);
    h->input = esp_unnamed_file("espalier tree");
    h->output = esp_unnamed_file("espalier picture");
    if (h->input < 0 || h->output < 0 || esp_pipe(h->messages, true) < 0 ||
        !esp_write_all(h->input, line, length) || lseek(h->input, 0, SEEK_SET) < 0)
        return esp_fail(err, errlen, ESP_E_MEMORY, "%s cannot be started: %s", helper_name,
                        strerror(errno));
    return ESP_OK;
}

static void limit(int resource, rlim_t most)
{
    struct rlimit limits = {most, most};
    setrlimit(resource, &limits);
}

_Noreturn static void become(const struct dot_process *h)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGXFSZ, SIG_DFL);
    esp_end_with_parent();
    limit(RLIMIT_CPU, (rlim_t)h->seconds);
    limit(RLIMIT_AS, MEMORY);
    limit(RLIMIT_FSIZE, OUTPUT);
    limit(RLIMIT_CORE, 0);
    if (dup2(h->input, STDIN_FILENO) >= 0 && dup2(h->output, STDOUT_FILENO) >= 0 &&
        dup2(h->messages[1], STDERR_FILENO) >= 0)
        execvp(h->path, h->arguments);
    _exit(NOT_THERE);
}

/* Reads the helper's standard error until it is closed. Returns false if this takes too
 * long. */
static bool listen_to(struct dot_process *h, double end)
{
    char text[256];
    size_t used = 0;
    for (;;) {
        struct pollfd ready = {.fd = h->messages[0], .events = POLLIN};
        double left = end - esp_clock();
        if (left <= 0)
            return false;
        int count = poll(&ready, 1, 1 + (int)(1000 * left));
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return false;
        ssize_t n = read(h->messages[0], text, sizeof text);
        if (n == 0)
            return true;
        for (ssize_t i = 0; i < n && used + 1 < sizeof h->said; i++)
            h->said[used++] = text[i];
    }
}

static int run(struct dot_process *h, char *err, size_t errlen)
{
    pid_t child = fork();
    if (child < 0)
        return esp_fail(err, errlen, ESP_E_MEMORY, "%s cannot be started: %s", helper_name,
                        strerror(errno));
    if (child == 0)
        become(h);
    close_fd(&h->messages[1]);
    const double end = esp_clock() + h->seconds;
    const struct timespec pause = {.tv_nsec = 1000000};
    h->late = !listen_to(h, end);
    while (!h->late && waitpid(child, &h->status, WNOHANG) == 0) {
        nanosleep(&pause, NULL); /* the child has closed the pipe, so it is about to exit */
        h->late = esp_clock() > end;
    }
    if (h->late) {
        kill(child, SIGKILL);
        while (waitpid(child, &h->status, 0) < 0 && errno == EINTR)
            ;
    }
    return ESP_OK;
}

/* Returns the first line of the helper's standard error, without the helper's name in front. */
static const char *sentence(struct dot_process *h)
{
    size_t name = strlen(helper_name);
    h->said[strcspn(h->said, "\n")] = '\0';
    bool own = strncmp(h->said, helper_name, name) == 0 && h->said[name] == ':';
    return own ? h->said + name + 1 + strspn(h->said + name + 1, " ") : h->said;
}

static int judge(struct dot_process *h, char *err, size_t errlen)
{
    bool ended = WIFEXITED(h->status);
    int signalled = WIFSIGNALED(h->status) ? WTERMSIG(h->status) : 0;
    const char *said = sentence(h);
    if (h->late || signalled == SIGXCPU || signalled == SIGKILL)
        return esp_fail(
            err, errlen, ESP_E_FORMAT,
            "%s needed more than %d seconds for this picture; export it as svg, txt or json",
            helper_name, h->seconds);
    if (ended && WEXITSTATUS(h->status) == NOT_THERE)
        return esp_fail(err, errlen, ESP_E_UNSUPPORTED,
                        "the program %s, which draws pictures, cannot be run; install "
                        "libgraphviz-dev and build espalier again, or export as txt or json",
                        h->path);
    if (signalled || !ended || !*said)
        return esp_fail(err, errlen, ESP_E_FORMAT,
                        "%s ended early; the picture may need more than %d MB: export this "
                        "tree as txt or json",
                        helper_name, MEMORY >> 20);
    return esp_fail(err, errlen, ESP_E_FORMAT, "no picture: %s", said);
}

static int take(struct dot_process *h, char **picture, size_t *size, char *err, size_t errlen)
{
    struct stat about;
    if (fstat(h->output, &about) == 0 && about.st_size > 0) {
        *size = (size_t)about.st_size;
        *picture = malloc(*size);
        if (*picture && pread(h->output, *picture, *size, 0) == about.st_size)
            return ESP_OK;
        free(*picture);
        *picture = NULL;
    }
    return esp_fail(err, errlen, ESP_E_MEMORY, "%s gave no picture", helper_name);
}

static int draw(struct dot_process *h, const char *input, size_t length, char **picture,
                size_t *size, char *err, size_t errlen)
{
    *picture = NULL;
    *size = 0;
    h->seconds = h->seconds > 0 ? h->seconds : SECONDS;
    h->input = h->output = h->messages[0] = h->messages[1] = -1;
    int status = prepare(h, input, length, err, errlen);
    if (status == ESP_OK)
        status = run(h, err, errlen);
    if (status == ESP_OK)
        status = !h->late && WIFEXITED(h->status) && WEXITSTATUS(h->status) == 0
                     ? take(h, picture, size, err, errlen)
                     : judge(h, err, errlen);
    close_fd(&h->input);
    close_fd(&h->output);
    close_fd(&h->messages[0]);
    close_fd(&h->messages[1]);
    return status;
}

int esp_dot_draw(const char *line, size_t length, const struct esp_dot_options *options,
                 char **picture, size_t *size, char *err, size_t errlen)
{
    char nodes[16], aspect[32];
    int count = 9;
    struct dot_process h = {
        .arguments = {(char *)helper_name, "--format", (char *)options->format, "--theme",
                      (char *)options->theme, "--models",
                      (char *)(options->models ? options->models : ""), "--caption",
                      (char *)esp_caption_name(options->caption), NULL},
        .seconds = options->seconds,
    };
    if (options->nodes >= 0) {
        snprintf(nodes, sizeof nodes, "%d", options->nodes);
        h.arguments[count++] = "--nodes";
        h.arguments[count++] = nodes;
    }
    if (options->aspect > 0) {
        snprintf(aspect, sizeof aspect, "%.6f:1", options->aspect);
        h.arguments[count++] = "--aspect";
        h.arguments[count] = aspect;
    }
    return draw(&h, line, length, picture, size, err, errlen);
}

int esp_dot_convert(const char *svg, size_t length, double width, double height,
                    const char *format, char **picture, size_t *size, char *err, size_t errlen)
{
    char points[48];
    struct dot_process h = {.arguments = {(char *)helper_name, "--convert", points, "--format",
                                          (char *)format, NULL}};
    snprintf(points, sizeof points, "%.2fx%.2f", width, height);
    return draw(&h, svg, length, picture, size, err, errlen);
}
