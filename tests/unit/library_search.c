/* Tests the search of kept sessions, and how long the library takes if it is large. */
#include "sessions/library.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/clock.h"
#include "sessions/journal.h"
#include "sessions/log.h"
#include "tests/check.h"
#include "tests/kept.h"
#include "tui/commands/resume.h"

static int ignore(void *user, const struct esp_kept_match *match)
{
    (*(int *)user)++;
    CHECK(match->session == 1);
    return 0;
}

/* ------------------------------------------------------------------ search */

TEST(words_are_found)
{
    struct esp_library *library;
    struct esp_keeper *keeper;
    char err[512];
    int found = 0;
    const int32_t tokens[] = {3, 14, 6}; /* the letters d, o, g */
    kept_begin();
    keeper = kept_keeper(0);
    esp_keeper_event(keeper, &(struct esp_event){
                                 .type = ESP_EVENT_PROMPT, .tokens = tokens, .token_count = 3});
    esp_keeper_settle(keeper);
    CHECK(esp_library_open(&library, kept_path, ESP_LIBRARY_READ, err, sizeof err) == ESP_OK);
    CHECK(esp_library_search(library, "dog", ignore, &found, err, sizeof err) == ESP_OK &&
              found == 1,
          "%s", err);
    CHECK(esp_library_search(library, "do", ignore, &found, err, sizeof err) == ESP_OK &&
              found == 2,
          "the search finds the beginning of a word");
    CHECK(esp_library_search(library, "cat", ignore, &found, err, sizeof err) == ESP_OK &&
          found == 2);
    CHECK(esp_library_search(library, "\"do OR * ( NEAR", ignore, &found, err, sizeof err) ==
              ESP_OK,
          "a word of a search is never an operator: %s", err);
    esp_library_close(library);
    esp_keeper_close(keeper);
    kept_end();
}

/* A damaged index of words must be rebuilt from the texts. */
TEST(a_damaged_index_of_words_is_rebuilt)
{
    static const char *const changes[] = {
        "DROP TABLE words_config",
        "DROP TABLE words_data",
        "DROP TABLE words_idx",
        "DELETE FROM words_config",
        "UPDATE words_config SET v = 99",
        "UPDATE words_data SET block = x'0102030405060708090a'",
        "DELETE FROM words_data",
        "DROP TABLE words_content"};
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        struct esp_library *library;
        char err[512];
        int found = 0;
        const int32_t tokens[] = {3, 14, 6}; /* the letters d, o, g */
        kept_begin();
        struct esp_keeper *keeper = kept_keeper(0);
        esp_keeper_event(
            keeper,
            &(struct esp_event){.type = ESP_EVENT_PROMPT, .tokens = tokens, .token_count = 3});
        esp_keeper_close(keeper);
        kept_execute(changes[i]);
        CHECK(esp_library_open(&library, kept_path, ESP_LIBRARY_READ, err, sizeof err) ==
                  ESP_OK,
              "%s", err);
        CHECK(esp_library_search(library, "dog", ignore, &found, err, sizeof err) == ESP_OK &&
                  found == 1,
              "%s: %d, %s", changes[i], found, err);
        CHECK(esp_library_delete(library, 1, err, sizeof err) == ESP_OK, "%s", err);
        esp_library_close(library);
        kept_end();
    }
}

/* ------------------------------------------------------------------ size */

/* Adds a session with `branches` branches of `each` tokens. The first branch is the parent of
 * all other branches. */
static void add_large(struct esp_library *library, int branches, int each)
{
    struct esp_written *tokens = calloc((size_t)each, sizeof *tokens);
    struct esp_line line = {.text = NULL};
    struct esp_pack log = {.length = 0};
    const struct esp_recording_header header = kept_header("target");
    char err[512];
    for (int i = 0; i < each; i++)
        tokens[i] = (struct esp_written){
            .token = i % 6 == 5 ? 25 : i * 7 % 25,
            .iteration = -1,
            .kind = ESP_TEXT_DRAFTED,
            .score = {.p = 0.5f, .entropy = 1, .rank = 1, .count = 8, .likely_p = {0.5f}}};
    esp_library_begin(library);
    const int64_t id = esp_library_add(library, 1000);
    CHECK(esp_library_commit(library, err, sizeof err) == ESP_OK, "%s", err);
    esp_header_to_json(&line, &header);
    esp_log_header(&log, &header, line.text, line.length, "", "");
    for (int i = 0; i < VOCABULARY; i++)
        esp_log_piece(&log, i, i == 25 ? " " : &"abcdefghijklmnopqrstuvwxyz"[i], 1);
    for (int i = 0; i < branches; i++) {
        const struct esp_branch branch = {.parent = i > 0 ? 0 : -1,
                                          .fork = i > 0 ? 1 + i % each : 0,
                                          .tokens = tokens,
                                          .count = each,
                                          .drafter = "fixed"};
        tokens[0].token = i % 25;
        tokens[1].token = i / 25 % 25;
        tokens[2].token = i / 625 % 25;
        esp_log_branch(&log, &branch);
    }
    esp_log_place(&log, (struct esp_text_place){0, each});
    CHECK(esp_library_store(library, id, 0, &(struct esp_records){log.at, log.length}, 1, err,
                            sizeof err) == ESP_OK,
          "%s", err);
    CHECK(esp_library_refresh(library, id, err, sizeof err) == ESP_OK, "%s", err);
    esp_library_release(library, id);
    esp_pack_free(&log);
    esp_line_free(&line);
    free(tokens);
}

static int count_any(void *user, const struct esp_kept_match *match)
{
    (void)match;
    (*(int *)user)++;
    return 0;
}

/* The limits are larger than the times that the library should need, because the machine may be
 * busy. */
TEST(ten_thousand_branches_open_quickly)
{
    enum { BRANCHES = 10000, EACH = 100 };
    struct esp_library *library;
    struct esp_resumed *resumed;
    char err[512];
    int found = 0;
    if (check_quick())
        check_skip();
    kept_begin();
    CHECK(esp_library_open(&library, kept_path, ESP_LIBRARY_KEEP, err, sizeof err) == ESP_OK);
    add_large(library, BRANCHES, EACH);
    double start = esp_clock();
    const clock_t before = clock();
    CHECK(esp_resumed_open(&resumed, kept_path, NULL, err, sizeof err) == ESP_OK, "%s", err);
    const double opened = esp_clock() - start,
                 busy = (double)(clock() - before) / CLOCKS_PER_SEC;
    CHECK(resumed->text.branches.count == BRANCHES);
    int *order = calloc(BRANCHES + 1, 2 * sizeof *order);
    start = esp_clock();
    CHECK(esp_branches_list(&resumed->text.branches, order, order + BRANCHES + 1) == BRANCHES);
    const double listed = esp_clock() - start;
    start = esp_clock();
    CHECK(esp_library_search(library, "bah", count_any, &found, err, sizeof err) == ESP_OK,
          "%s", err);
    const double searched = esp_clock() - start;
    CHECK(found > 0);
    printf("  %d branches, %d tokens: open %.2f s (%.2f s of processor time), list %.1f ms, "
           "search %.1f ms\n",
           BRANCHES, BRANCHES * EACH, opened, busy, 1e3 * listed, 1e3 * searched);
    CHECK(opened < 10 && listed < 0.5 && searched < 1);
    free(order);
    esp_resumed_close(resumed);
    esp_library_close(library);
    kept_end();
}
