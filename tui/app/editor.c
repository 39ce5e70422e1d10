/* editor.c - passes a file to the editor and reads it back; see editor.h.
 *
 * While the editor runs, C-c goes to the editor. C-z stops both programs, because they are in
 * one process group. SIGTERM and SIGHUP are passed on to the editor (terminal.h).
 */
#include "tui/app/editor.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/support/part_file.h"
#include "engine/support/write_file.h"
#include "kernels/status.h"
#include "tui/app/root.h"

enum { LONGEST = 1 << 20 };

/* Runs the editor through a shell. The shell splits $VISUAL or $EDITOR into a program and its
 * arguments. */
static void become_editor(const char *path)
{
    signal(SIGINT, SIG_DFL);
    signal(SIGQUIT, SIG_DFL);
    signal(SIGXFSZ, SIG_DFL);
    execl("/bin/sh", "sh", "-c", "exec ${VISUAL:-${EDITOR:-vi}} \"$1\"", "sh", path,
          (char *)NULL);
    _exit(127);
}

static int run(const char *path, char *err, size_t errlen)
{
    struct sigaction quiet = {.sa_flags = 0}, stop = {.sa_flags = 0}, before[3];
    siginfo_t about;
    int status = 0;
    quiet.sa_handler = SIG_IGN;
    stop.sa_handler = SIG_DFL;
    sigaction(SIGINT, &quiet, &before[0]);
    sigaction(SIGQUIT, &quiet, &before[1]);
    sigaction(SIGTSTP, &stop, &before[2]);
    const pid_t child = fork();
    if (child == 0)
        become_editor(path);
    pid_t ended = child;
    esp_root.editor = child > 0 ? child : 0;
    if (esp_root.ending && child > 0)
        kill(child, esp_root.ending); /* the signal arrived before esp_root.editor was set */
    while (child > 0 && waitid(P_PID, (id_t)child, &about, WEXITED | WNOWAIT) < 0 &&
           errno == EINTR)
        continue;
    esp_root.editor = 0;
    while (child > 0 && (ended = waitpid(child, &status, 0)) < 0 && errno == EINTR)
        continue;
    sigaction(SIGINT, &before[0], NULL);
    sigaction(SIGQUIT, &before[1], NULL);
    sigaction(SIGTSTP, &before[2], NULL);
    if (child < 0 || ended < 0)
        return esp_fail(err, errlen, ESP_E_FILE, "cannot run the editor: %s", strerror(errno));
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return esp_fail(err, errlen, ESP_E_FILE,
                        "the editor failed, and the line is unchanged; set EDITOR to choose an "
                        "editor");
    return ESP_OK;
}

static int read_back(const char *path, char **text, char *err, size_t errlen)
{
    FILE *file = fopen(path, "re");
    char *bytes = malloc(LONGEST + 1);
    size_t length = file && bytes ? fread(bytes, 1, LONGEST + 1, file) : 0;
    const bool failed = !file || !bytes || ferror(file);
    if (file)
        fclose(file);
    if (failed || length > LONGEST || (length > 0 && memchr(bytes, '\0', length))) {
        free(bytes);
        return esp_fail(
            err, errlen, ESP_E_FILE,
            "the editor's file is not a text of at most %d bytes; the line is unchanged",
            LONGEST);
    }
    if (length > 0 && bytes[length - 1] == '\n')
        length--;
    bytes[length] = '\0';
    *text = bytes;
    return ESP_OK;
}

int esp_editor_run(const char *line, char **text, char *err, size_t errlen)
{
    const char *folder = getenv("TMPDIR");
    char path[1024];
    *text = NULL;
    if (snprintf(path, sizeof path, "%s/espalier-XXXXXX.txt",
                 folder && *folder ? folder : "/tmp") >= (int)sizeof path)
        return esp_fail(err, errlen, ESP_E_FILE, "the path in TMPDIR is too long");
    const int file = mkstemps(path, (int)strlen(".txt"));
    if (file < 0)
        return esp_fail(err, errlen, ESP_E_FILE, "cannot make a file for the editor: %s: %s",
                        path, strerror(errno));
    const int noted = esp_part_file_begin(path, "");
    int status = ESP_OK;
    if (!esp_write_all(file, line, strlen(line)) || !esp_write_all(file, "\n", 1))
        status = esp_fail(err, errlen, ESP_E_FILE, "%s cannot be written: %s", path,
                          strerror(errno));
    close(file);
    if (status == ESP_OK)
        status = run(path, err, errlen);
    if (status == ESP_OK)
        status = read_back(path, text, err, errlen);
    unlink(path);
    esp_part_file_end(noted);
    return status;
}
