/* Tests that a file is written completely or not at all. After a failure or a signal, the old
 * file must be unchanged, and no other file may be left. In every thread, a new file must have
 * the permissions of the file that it replaces. If there was no file, its permissions must
 * follow from the umask. */
#include "engine/support/write_file.h"
#include "engine/support/part_file.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/check.h"
#include "engine/espalier.h"

static char folder[64], path[96], err[512];

static void remove_folder(void)
{
    unlink(path);
    rmdir(folder);
}

static void begin(void)
{
    if (*folder)
        return;
    strcpy(folder, P_tmpdir "/espalier-write-XXXXXX");
    CHECK(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/file", folder);
    atexit(remove_folder);
}

static int write_text(const char *text, bool over)
{
    return esp_write_file(path, text, strlen(text), over, err, sizeof err);
}

static bool holds(const char *want)
{
    char text[64];
    FILE *file = fopen(path, "r");
    CHECK(file, "%s", path);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return strcmp(text, want) == 0;
}

static int files(void)
{
    int count = 0;
    DIR *dir = opendir(folder);
    CHECK(dir);
    for (struct dirent *entry; (entry = readdir(dir));)
        count += entry->d_name[0] != '.';
    closedir(dir);
    return count;
}

TEST(a_file_is_replaced_only_if_this_is_allowed)
{
    begin();
    CHECK(write_text("one", false) == 0 && holds("one"), "%s", err);
    CHECK(write_text("two", false) == ESP_E_FILE && strstr(err, path) && holds("one"), "%s",
          err);
    CHECK(write_text("three", true) == 0 && holds("three"), "%s", err);
    CHECK(files() == 1);
    CHECK(esp_write_file(folder, "x", 1, true, err, sizeof err) == ESP_E_FILE &&
              strstr(err, "not a regular file"),
          "%s", err);
    CHECK(esp_write_file("/nowhere/file", "x", 1, true, err, sizeof err) == ESP_E_FILE &&
              strstr(err, "/nowhere/file"),
          "%s", err);
}

/* Links must be followed. For example, /dev/stdout may be a link to a file, and a configuration
 * file may be a link to another folder. */
TEST(a_link_stays_a_link_and_its_file_is_written)
{
    char link[128];
    struct stat about;
    begin();
    snprintf(link, sizeof link, "%s.link", folder);
    CHECK(write_text("before", true) == 0 && symlink(path, link) == 0);
    int status = esp_write_file(link, "after", 5, true, err, sizeof err);
    bool stays = lstat(link, &about) == 0 && S_ISLNK(about.st_mode);
    unlink(link);
    CHECK(status == 0 && stays && holds("after") && files() == 1, "%d: %s", status, err);
}

/* A program that has the old file open must continue to read the old content. */
TEST(a_reader_never_sees_half_a_file)
{
    char text[8] = "";
    begin();
    CHECK(write_text("before", true) == 0);
    FILE *file = fopen(path, "r");
    CHECK(file && write_text("after", true) == 0);
    CHECK(fread(text, 1, sizeof text - 1, file) == 6 && strcmp(text, "before") == 0);
    fclose(file);
    CHECK(holds("after"));
}

TEST(a_file_that_does_not_fit_on_the_disk_changes_nothing)
{
    enum { SIZE = 1 << 16 };
    static char bytes[SIZE];
    struct rlimit limit, small;
    begin();
    CHECK(write_text("precious", true) == 0 && getrlimit(RLIMIT_FSIZE, &limit) == 0);
    small = limit;
    small.rlim_cur = SIZE / 2;
    signal(SIGXFSZ, SIG_IGN);
    CHECK(setrlimit(RLIMIT_FSIZE, &small) == 0);
    int status = esp_write_file(path, bytes, SIZE, true, err, sizeof err);
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    signal(SIGXFSZ, SIG_DFL);
    CHECK(status == ESP_E_FILE && strstr(err, "cannot be written"), "%d: %s", status, err);
    CHECK(holds("precious") && files() == 1);
}

static mode_t mode_of(const char *name)
{
    struct stat about;
    CHECK(stat(name, &about) == 0, "%s", name);
    return about.st_mode & 0777;
}

/* Replaces the C library's umask() and counts its calls. umask() cannot read the umask without
 * changing it for all threads. */
static int changes;

mode_t umask(mode_t mask)
{
    changes++;
    return (mode_t)syscall(SYS_umask, mask);
}

TEST(a_new_file_has_the_permissions_of_the_umask)
{
    begin();
    unlink(path);
    mode_t before = umask(027);
    changes = 0;
    int status = write_text("x", true);
    CHECK(
        changes == 0,
        "umask() was called, which makes other threads' files readable to others for a moment");
    umask(before);
    CHECK(status == 0 && mode_of(path) == 0640, "%o", (unsigned)mode_of(path));
}

TEST(a_file_keeps_the_permissions_of_the_one_that_it_replaces)
{
    static const mode_t modes[] = {0600, 0640, 0604, 0444, 0755};
    struct stat about;
    begin();
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        mode_t before = umask(022);
        unlink(path);
        int status = write_text("x", true);
        CHECK(status == 0 && chmod(path, modes[i]) == 0);
        status = write_text("y", true);
        umask(before);
        CHECK(status == 0 && holds("y"), "%s", err);
        CHECK(mode_of(path) == modes[i], "%o became %o", (unsigned)modes[i],
              (unsigned)mode_of(path));
    }
    if (geteuid() != 0)
        return; /* only root may change the owner of a file */
    CHECK(chown(path, 1234, 2345) == 0 && write_text("z", true) == 0);
    CHECK(stat(path, &about) == 0 && about.st_uid == 1234 && about.st_gid == 2345,
          "it belongs to %d:%d", (int)about.st_uid, (int)about.st_gid);
}

/* While a private file is replaced, nobody else may read the new file. */
TEST(a_half_written_file_is_as_private_as_the_old_file)
{
    struct esp_writing writing;
    begin();
    CHECK(write_text("secret", true) == 0 && chmod(path, 0600) == 0);
    CHECK(esp_write_begin(&writing, path, true, err, sizeof err) == 0, "%s", err);
    const mode_t mode = mode_of(writing.beside);
    CHECK(esp_write_end(&writing, false, err, sizeof err) == ESP_E_FILE && files() == 1);
    CHECK(mode == 0600, "%o", (unsigned)mode);
    unlink(path);
}

/* ------------------------------------------------------------------ signals */

static char said[256];

static void say(const char *whole)
{
    strcat(said, whole);
    strcat(said, ";");
}

TEST(a_signal_handler_can_remove_a_half_written_file)
{
    struct esp_writing writing;
    char other[128];
    begin();
    unlink(path);
    *said = '\0';
    CHECK(esp_write_begin(&writing, path, true, err, sizeof err) == 0, "%s", err);
    CHECK(esp_write_all(writing.file, "half", 4) && files() == 1);
    snprintf(other, sizeof other, "%s/part", folder);
    int folder_noted = esp_part_file_begin(other, "other");
    CHECK(folder_noted >= 0 && mkdir(other, 0700) == 0);
    snprintf(other, sizeof other, "%s/part/file", folder);
    int file_noted = esp_part_file_begin(other, "");
    FILE *file = fopen(other, "w");
    CHECK(file_noted >= 0 && file && fclose(file) == 0);
    esp_part_files_remove(say);
    CHECK(files() == 0, "something is left");
    CHECK(strncmp(said, "other;", 6) == 0 && strstr(said, path), "it says %s", said);
    CHECK(esp_write_end(&writing, true, err, sizeof err) == ESP_E_FILE);
    esp_part_file_end(file_noted);
    esp_part_file_end(folder_noted);
}

TEST(a_signal_handler_leaves_complete_files_alone)
{
    begin();
    *said = '\0';
    CHECK(write_text("whole", true) == 0);
    for (int i = 0; i < 100; i++) { /* the list must forget each file when it is complete */
        int noted = esp_part_file_begin(path, "whole");
        CHECK(noted >= 0, "the list has no room for file %d", i);
        esp_part_file_end(noted);
    }
    esp_part_files_remove(say);
    CHECK(files() == 1 && holds("whole") && !*said, "it says %s", said);
}
