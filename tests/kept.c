/* kept.c - see kept.h. */
#include "tests/kept.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/check.h"

char kept_folder[64], kept_path[128], kept_told[700];
int kept_troubles;

void kept_tell(void *user, const char *sentence)
{
    (void)user;
    kept_troubles++;
    snprintf(kept_told, sizeof kept_told, "%s", sentence);
}

const char *kept_letter(void *user, int32_t token, size_t *length)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz";
    (void)user;
    *length = 1;
    return token >= 0 && token < VOCABULARY ? letters + token : NULL;
}

void kept_begin(void)
{
    strcpy(kept_folder, "/tmp/espalier-library-XXXXXX");
    CHECK(mkdtemp(kept_folder));
    snprintf(kept_path, sizeof kept_path, "%s/below/sessions.db", kept_folder);
    kept_troubles = 0;
    *kept_told = '\0';
}

void kept_end(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", kept_folder);
    CHECK(system(command) == 0);
}

struct esp_recording_header kept_header(const char *target)
{
    struct esp_recording_header header = {.major = ESP_RECORDING_MAJOR,
                                          .vocabulary = VOCABULARY};
    strcpy(header.vocabulary_hash, "letters");
    strcpy(header.program, "test");
    strcpy(header.drafter, "fixed");
    strcpy(header.verifier, "greedy");
    snprintf(header.target.name, sizeof header.target.name, "%s", target);
    return header;
}

struct esp_keeper *kept_keeper(int64_t resume)
{
    struct esp_keeper *keeper;
    const struct esp_recording_header header = kept_header("target");
    CHECK(esp_keeper_open(&keeper, kept_path, resume, kept_tell, NULL) == ESP_OK);
    esp_keeper_models(keeper, &header, "/target", "", &(struct esp_tokens){kept_letter, NULL},
                      false);
    esp_keeper_private(keeper, false);
    return keeper;
}

void kept_execute(const char *statements)
{
    sqlite3 *db;
    char *err = NULL;
    CHECK(sqlite3_open(kept_path, &db) == SQLITE_OK);
    CHECK(sqlite3_exec(db, statements, NULL, NULL, &err) == SQLITE_OK, "%s", err ? err : "");
    sqlite3_free(err);
    sqlite3_close(db);
}
