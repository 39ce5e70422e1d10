/* Tests the cost of the search for models. stat() must be called at most once for each file of
 * a folder, and never for files that cannot be models. Each vocabulary must be read only
 * once. */
#include "engine/find_models.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/model/tokenizer.h"
#include "tests/check.h"

/* The functions below replace functions of the C library and of the engine, and count the
 * calls. */
static int asked, opened;

int stat(const char *restrict path, struct stat *restrict about)
{
    asked++;
    return fstatat(AT_FDCWD, path, about, 0);
}

typedef int open_tokenizer(struct esp_tokenizer **, const char *, char *, size_t);

int esp_tokenizer_open(struct esp_tokenizer **tokenizer, const char *path, char *err,
                       size_t errlen)
{
    open_tokenizer *next = NULL;
    void *symbol = dlsym(RTLD_NEXT, "esp_tokenizer_open");
    memcpy(&next, &symbol, sizeof next);
    opened++;
    return next(tokenizer, path, err, errlen);
}

static char folder[64];

static void remove_folder(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    if (system(command) != 0)
        perror(command);
}

/* Makes a home folder that contains only the test's files. */
static void begin(void)
{
    strcpy(folder, P_tmpdir "/espalier-find-XXXXXX");
    CHECK(mkdtemp(folder));
    atexit(remove_folder);
    unsetenv("HF_HUB_CACHE");
    unsetenv("HF_HOME");
    unsetenv("XDG_CACHE_HOME");
    unsetenv("OLLAMA_MODELS");
    setenv("HOME", folder, 1);
    setenv("ESPALIER_MODELS", folder, 1);
}

TEST(searching_a_large_folder_calls_stat_about_once_per_model)
{
    enum { FILES = 10000, MODELS = 400, OTHERS = 100 };
    struct esp_found_models found;
    char path[128];
    begin();
    for (int i = 0; i < FILES; i++) {
        snprintf(path, sizeof path, "%s/%05d.%s", folder, i,
                 i % (FILES / MODELS) == 0 ? "gguf" : "txt");
        const int file = open(path, O_WRONLY | O_CREAT, 0600);
        CHECK(file >= 0 && close(file) == 0);
    }
    asked = 0;
    CHECK(esp_find_models(&found) == 0);
    const int count = found.count;
    esp_found_models_free(&found);
    CHECK(count >= MODELS, "%d models", count);
    CHECK(asked >= MODELS && asked <= MODELS + OTHERS, "%d questions", asked);
}

TEST(a_target_is_read_once_for_all_its_drafts)
{
    struct esp_found_model target, draft;
    char err[256], path[PATH_MAX];
    CHECK(esp_model_path(path, sizeof path, "fairytale-target", err, sizeof err) == 0, "%s",
          err);
    CHECK(esp_found_model_at(&target, path) == 0);
    opened = 0;
    for (int i = 1; i <= 4; i++) {
        CHECK(esp_model_path(path, sizeof path, "fairytale-draft", err, sizeof err) == 0);
        CHECK(esp_found_model_at(&draft, path) == 0);
        CHECK(esp_draft_fits(&target, &draft, err, sizeof err), "%s", err);
        CHECK(opened == 1 + i, "%d vocabularies were read for %d drafts", opened, i);
    }
    CHECK(esp_draft_fits(&target, &draft, err, sizeof err) && opened == 5);
}
