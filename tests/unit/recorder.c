/* Tests recording under failures. A killed program may lose only the last event of its
 * recording. A full disk, a closed pipe, an I/O error or a stalled reader must suspend the
 * recording and nothing else. Files must never be overwritten by accident. */
#include "sessions/recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/check.h"
#include "tests/recorded.h"

static char err[512];

static const struct esp_recording_header header = {.vocabulary = 12};

static struct esp_recorder *open_recorder(const char *path, bool force,
                                          ssize_t (*write)(int, const void *, size_t))
{
    struct esp_recorder_options options = {.path = path, .force = force, .write = write};
    struct esp_recorder *recorder;
    *err = '\0';
    return esp_recorder_open(&recorder, &options, &header, err, sizeof err) == 0 ? recorder
                                                                                 : NULL;
}

static void record_prompt(struct esp_recorder *recorder)
{
    const int32_t tokens[] = {1, 2, 3};
    esp_recorder_event(
        recorder,
        &(struct esp_event){.type = ESP_EVENT_PROMPT, .tokens = tokens, .token_count = 3});
}

/* ------------------------------------------------------------------ killed programs */

/* Returns whether a generation was running at the last whole line before `cut`. */
static bool was_writing(const char *bytes, size_t cut)
{
    static const char mark[] = "\"type\":\"";
    bool writing = false;
    for (const char *line = bytes, *end; (end = strchr(line, '\n')) && end <= bytes + cut;
         line = end + 1) {
        const char *type = memmem(line, (size_t)(end - line), mark, sizeof mark - 1);
        if (!type)
            continue;
        type += sizeof mark - 1;
        if (strncmp(type, "setting", 7) != 0 && strncmp(type, "marker", 6) != 0)
            writing = strncmp(type, "iteration", 9) == 0;
    }
    return writing;
}

/* Opens a file with the first `cut` bytes of a recording. The reader must find all events that
 * have a complete line. */
static void open_cut(const char *bytes, size_t cut, size_t header_length)
{
    struct esp_recording *recording;
    int lines = 0;
    recorded_write(bytes, cut);
    for (size_t i = 0; i < cut; i++)
        lines += bytes[i] == '\n';
    int status = esp_recording_open(&recording, recorded_path(), err, sizeof err);
    if (cut < header_length - 1) {
        CHECK(status < 0 && strstr(err, "session.esp.jsonl"), "cut at %zu: %s", cut, err);
        return;
    }
    CHECK(status == 0, "cut at %zu: %s", cut, err);
    bool whole = bytes[cut - 1] == '\n' || bytes[cut] == '\n';
    int events = lines - 1 + (bytes[cut - 1] != '\n' && bytes[cut] == '\n');
    CHECK(esp_recording_is_cut(recording) == (!whole || was_writing(bytes, cut)), "cut at %zu",
          cut);
    CHECK(esp_recording_events(recording) == (events < 0 ? 0 : events), "cut at %zu: %d events",
          cut, esp_recording_events(recording));
    esp_recording_close(recording);
}

TEST(a_truncation_anywhere_loses_at_most_the_last_event)
{
    size_t length;
    unsigned long long random = 11;
    recorded_session(NULL, "dynatree", 0, 12);
    char *bytes = recorded_read(&length);
    size_t header_length = (size_t)(strchr(bytes, '\n') - bytes) + 1;
    for (int trial = 0; trial < (check_quick() ? 200 : 1000); trial++)
        open_cut(bytes, (size_t)(check_uniform(&random) * (double)length), header_length);
    for (size_t at = header_length; at < length; at++)
        if (bytes[at] == '\n') {
            open_cut(bytes, at, header_length);
            open_cut(bytes, at + 1, header_length);
        }
    free(bytes);
}

/* Records markers until the process is killed. Writes a byte to `told` after each of them. */
static _Noreturn void mark_until_killed(int told)
{
    struct esp_recorder *recorder = open_recorder(recorded_path(), true, NULL);
    while (recorder) {
        recorded_mark(recorder, "still alive, and with a text of some length");
        if (write(told, "", 1) != 1)
            break;
    }
    _exit(1);
}

TEST(a_killed_program_leaves_all_that_it_had_recorded)
{
    for (int trial = 0; trial < 10; trial++) {
        char bytes[512];
        int ends[2], told = 0, wanted = 50 * (trial + 1);
        ssize_t n;
        CHECK(pipe(ends) == 0);
        pid_t child = fork();
        if (child == 0)
            mark_until_killed(ends[1]);
        close(ends[1]);
        while (told < wanted && (n = read(ends[0], bytes, sizeof bytes)) > 0)
            told += (int)n;
        CHECK(kill(child, SIGKILL) == 0);
        while ((n = read(ends[0], bytes, sizeof bytes)) > 0)
            told += (int)n;
        close(ends[0]);
        waitpid(child, NULL, 0);
        struct esp_recording *recording = recorded_open();
        int events = esp_recording_events(recording);
        CHECK(told >= wanted && events >= told, "%d events of %d", events, told);
        esp_recording_close(recording);
    }
}

/* ------------------------------------------------------------------ writes that fail */

static int good_writes, failure;
static size_t part;

/* Replaces write(). The first `good_writes` writes succeed. Then only `part` more bytes can be
 * written. */
static ssize_t failing(int fd, const void *bytes, size_t length)
{
    if (good_writes-- > 0)
        return write(fd, bytes, length);
    if (part > 0 && part < length) {
        size_t written = part;
        part = 0;
        return write(fd, bytes, written);
    }
    errno = failure;
    return -1;
}

TEST(a_failing_write_suspends_the_recording_and_keeps_whole_lines)
{
    static const int failures[] = {ENOSPC, EPIPE, EIO, EDQUOT, EFBIG, EBADF};
    for (size_t i = 0; i < sizeof failures / sizeof *failures; i++)
        for (part = 0; part < 60; part += 20) {
            size_t before = part;
            good_writes = 4;
            failure = failures[i];
            struct esp_recorder *recorder = open_recorder(recorded_path(), true, failing);
            CHECK(recorder, "%s", err);
            record_prompt(recorder);
            for (int n = 0; n < 5; n++)
                recorded_mark(recorder, "a place");
            CHECK(strstr(esp_recorder_trouble(recorder), strerror(failure)) &&
                      strstr(esp_recorder_trouble(recorder), "the generation continues"),
                  "%s", esp_recorder_trouble(recorder));
            CHECK(esp_recorder_close(recorder, err, sizeof err) == ESP_E_FILE);
            struct esp_recording *recording = recorded_open();
            CHECK(esp_recording_events(recording) == 3 && !esp_recording_is_cut(recording),
                  "%d events after %s", esp_recording_events(recording), strerror(failure));
            esp_recording_close(recording);
            part = before;
        }
}

static bool interrupt_next;

/* Replaces write(). Interrupts every second write. The other writes write only a few bytes. */
static ssize_t in_pieces(int fd, const void *bytes, size_t length)
{
    interrupt_next = !interrupt_next;
    errno = EINTR;
    return interrupt_next ? -1 : write(fd, bytes, length < 7 ? length : 7);
}

TEST(interrupted_and_partial_writes_are_continued)
{
    struct esp_recorder *recorder = open_recorder(recorded_path(), true, in_pieces);
    CHECK(recorder, "%s", err);
    record_prompt(recorder);
    recorded_mark(recorder, "a place");
    CHECK(esp_recorder_close(recorder, err, sizeof err) == 0, "%s", err);
    struct esp_recording *recording = recorded_open();
    CHECK(esp_recording_events(recording) == 2);
    esp_recording_close(recording);
}

TEST(a_full_disk_is_reported_at_the_start)
{
    CHECK(!open_recorder("/dev/full", false, NULL));
    CHECK(strstr(err, "/dev/full") && strstr(err, strerror(ENOSPC)), "%s", err);
}

/* Makes a pipe in the folder of the recording. */
static const char *make_pipe(void)
{
    static char path[128];
    snprintf(path, sizeof path, "%.100s.pipe", recorded_path());
    unlink(path);
    CHECK(mkfifo(path, 0600) == 0);
    return path;
}

TEST(a_closed_pipe_does_not_end_the_program)
{
    const char *path = make_pipe();
    char bytes[4096];
    CHECK(!open_recorder(path, false, NULL) && strstr(err, "nobody reads"), "%s", err);
    int reader = open(path, O_RDONLY | O_NONBLOCK);
    struct esp_recorder *recorder = open_recorder(path, false, NULL);
    CHECK(recorder, "%s", err);
    record_prompt(recorder);
    CHECK(read(reader, bytes, sizeof bytes) > 100 && !*esp_recorder_trouble(recorder));
    close(reader);
    recorded_mark(recorder, "");
    CHECK(strstr(esp_recorder_trouble(recorder), strerror(EPIPE)), "%s",
          esp_recorder_trouble(recorder));
    recorded_mark(recorder, "");
    esp_recorder_close(recorder, err, sizeof err);
    sigset_t pending;
    sigpending(&pending);
    CHECK(!sigismember(&pending, SIGPIPE));
    unlink(path);
}

TEST(recording_to_a_pipe_that_nobody_reads_is_suspended)
{
    const char *path = make_pipe();
    int reader = open(path, O_RDONLY | O_NONBLOCK);
    struct esp_recorder *recorder = open_recorder(path, false, NULL);
    CHECK(recorder, "%s", err);
    for (int i = 0; i < 10000 && !*esp_recorder_trouble(recorder); i++)
        recorded_mark(recorder, "a text of some length, so that the pipe is full soon");
    CHECK(strstr(esp_recorder_trouble(recorder), "its reader has stalled"), "%s",
          esp_recorder_trouble(recorder));
    esp_recorder_close(recorder, err, sizeof err);
    close(reader);
    unlink(path);
}

TEST(a_file_at_its_size_limit_does_not_end_the_program)
{
    struct rlimit limit, small;
    CHECK(getrlimit(RLIMIT_FSIZE, &limit) == 0);
    struct esp_recorder *recorder = open_recorder(recorded_path(), true, NULL);
    CHECK(recorder, "%s", err);
    small = limit;
    small.rlim_cur = 2048;
    CHECK(setrlimit(RLIMIT_FSIZE, &small) == 0);
    for (int i = 0; i < 200; i++)
        recorded_mark(recorder, "a place");
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    CHECK(strstr(esp_recorder_trouble(recorder), strerror(EFBIG)), "%s",
          esp_recorder_trouble(recorder));
    esp_recorder_close(recorder, err, sizeof err);
    struct esp_recording *recording = recorded_open();
    CHECK(esp_recording_events(recording) > 10 && !esp_recording_is_cut(recording));
    esp_recording_close(recording);
}

/* ------------------------------------------------------------------ opening and closing */

TEST(a_file_is_overwritten_only_by_force)
{
    recorded_write("precious", 8);
    CHECK(!open_recorder(recorded_path(), false, NULL));
    CHECK(strstr(err, "exists") && strstr(err, "--force"), "%s", err);
    size_t length;
    char *bytes = recorded_read(&length);
    CHECK(strcmp(bytes, "precious") == 0);
    free(bytes);
    struct esp_recorder *recorder = open_recorder(recorded_path(), true, NULL);
    CHECK(recorder, "%s", err);
    CHECK(esp_recorder_close(recorder, err, sizeof err) == 0);
    esp_recording_close(recorded_open());
}

/* Two recorders of one file would mix their lines, so even --force does not allow a second
 * recorder. */
TEST(a_file_has_one_recorder_at_a_time)
{
    unlink(recorded_path());
    for (int made = 0; made < 2; made++) { /* first a new file, then an existing one */
        struct esp_recorder *first = open_recorder(recorded_path(), made, NULL);
        CHECK(first, "%s", err);
        record_prompt(first);
        CHECK(!open_recorder(recorded_path(), true, NULL));
        CHECK(strstr(err, recorded_path()) && strstr(err, "another session records to it"),
              "%s", err);
        recorded_mark(first, "the first recorder still records");
        CHECK(esp_recorder_close(first, err, sizeof err) == 0, "%s", err);
        struct esp_recording *recording = recorded_open();
        CHECK(esp_recording_events(recording) == 2);
        esp_recording_close(recording);
    }
    struct esp_recorder *next = open_recorder(recorded_path(), true, NULL);
    CHECK(next, "the file is still locked: %s", err);
    CHECK(esp_recorder_close(next, err, sizeof err) == 0);
}

static int mode_of_file(void)
{
    struct stat info;
    CHECK(stat(recorded_path(), &info) == 0);
    return (int)(info.st_mode & 0777);
}

/* Recordings contain prompts. The umask may remove permissions, but not add any. */
TEST(a_recording_is_readable_only_by_its_owner)
{
    static const struct {
        mode_t umask, before;
        int want;
    } cases[] = {
        {0, 0, 0600}, {022, 0, 0600}, {0277, 0, 0400}, {0, 0644, 0600}, {022, 0666, 0600}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        unlink(recorded_path());
        if (cases[i].before) {
            recorded_write("", 0);
            CHECK(chmod(recorded_path(), cases[i].before) == 0);
        }
        mode_t before = umask(cases[i].umask);
        struct esp_recorder *recorder = open_recorder(recorded_path(), true, NULL);
        umask(before);
        CHECK(recorder, "%s", err);
        CHECK(mode_of_file() == cases[i].want, "case %zu: mode %03o", i, mode_of_file());
        CHECK(esp_recorder_close(recorder, err, sizeof err) == 0);
    }
    CHECK(chmod(recorded_path(), 0600) == 0);
}

TEST(a_file_that_cannot_be_made_is_named)
{
    CHECK(!open_recorder("/nowhere/at/all.esp.jsonl", false, NULL));
    CHECK(strstr(err, "/nowhere/at/all.esp.jsonl"), "%s", err);
    CHECK(!open_recorder("/", true, NULL) && strstr(err, "cannot write /"), "%s", err);
    unlink(recorded_path());
    good_writes = 0;
    part = 20;
    failure = ENOSPC;
    CHECK(!open_recorder(recorded_path(), false, failing));
    CHECK(access(recorded_path(), F_OK) < 0, "a file without a header is left");
}

TEST(a_generation_can_be_ended_from_outside)
{
    struct esp_node root = {.parent = -1, .copies = 1};
    const int32_t token = 4;
    struct esp_iteration it = {.tree = {.nodes = &root, .count = 1},
                               .bonus = token,
                               .committed = &token,
                               .committed_count = 1};
    const struct esp_event *event;
    struct esp_recorder *recorder = open_recorder(recorded_path(), true, NULL);
    CHECK(recorder, "%s", err);
    record_prompt(recorder);
    esp_recorder_event(recorder,
                       &(struct esp_event){.type = ESP_EVENT_ITERATION, .iteration = &it});
    esp_recorder_end(recorder, "interrupted");
    esp_recorder_end(recorder, "only once");
    CHECK(esp_recorder_close(recorder, err, sizeof err) == 0);
    struct esp_recording *recording = recorded_open();
    CHECK(esp_recording_events(recording) == 3);
    CHECK(esp_recording_read(recording, 2, &event, err, sizeof err) == 0);
    CHECK(event->type == ESP_EVENT_END && strcmp(event->text, "interrupted") == 0);
    esp_recording_close(recording);
    CHECK(esp_recorder_close(NULL, err, sizeof err) == 0);
}
