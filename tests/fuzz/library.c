/* Fuzzes the library of kept sessions. Whatever its pages contain, opening, listing, searching,
 * loading and exporting must either succeed or fail with an error message. A session that is
 * loaded must be a complete tree of texts. A program that keeps sessions must open the library
 * or rename its file.
 *
 * The input changes a small library. Each line has the number of a page, an offset in the page,
 * and the bytes to write at this offset, as hexadecimal digits. A line without digits truncates
 * the file at this offset. Page 0 means the journal of session 1, as a killed program would
 * leave it. Its offsets start at the beginning of the journal. A line "seal" corrects the
 * checksums of the journal's records.
 */
#include "sessions/library.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sessions/event_json.h"
#include "sessions/journal.h"
#include "sessions/library_export.h"
#include "sessions/log.h"
#include "tests/fuzz/support/fuzz.h"
#include "tui/commands/resume.h"

enum { PAGE = 4096, VOCABULARY = 26, TOKENS = 12, MOST_SESSIONS = 4, ERR = 512 };

static const char HASH[] = "letters";
static const char *path;

/* ------------------------------------------------------------------ a small library */

/* Returns whether a call succeeded. If it failed, checks that it gave an error message. */
static bool holds(int status, const char *err)
{
    FUZZ_REQUIRE(status >= 0 || *err, "a failure is a sentence");
    return status >= 0;
}

static void put_iteration(struct esp_pack *log, int number)
{
    struct esp_node nodes[] = {{.parent = -1, .q = 1, .copies = 1},
                               {.parent = 0, .depth = 1, .copies = 1, .token = 1, .q = 0.5f}};
    int32_t order[] = {0, 1}, path_of[] = {1}, committed[] = {1, 2};
    const struct esp_token_score scores[2] = {{.p = 0.5f, .count = 1, .likely_p = {0.5f}}};
    struct esp_tree_layer layer = {.time = 1, .nodes = 1, .passes = 1, .changes = 1};
    struct esp_change grown = {0, {.copies = 1, .confidence = 0.5f, .reason = 1}};
    const struct esp_layers layers = {
        .layers = &layer, .count = 1, .changes = &grown, .change_count = 1};
    const struct esp_iteration it = {.index = number,
                                     .position = 4 + 2 * number,
                                     .drafter = "fixed",
                                     .verifier = "greedy",
                                     .tree = {nodes, 2, order, 2},
                                     .path = path_of,
                                     .path_length = 1,
                                     .bonus = 2,
                                     .committed = committed,
                                     .committed_count = 2,
                                     .gauges = {{"tauh", 0.25, 0.5, 0, 1}},
                                     .gauge_count = 1,
                                     .scores = scores};
    const struct esp_event event = {ESP_EVENT_ITERATION, .iteration = &it};
    esp_log_iteration(log, number, &event);
    esp_log_tree(log, number, 0, &event, &layers);
}

/* Writes the records of a text, and of a branch that begins in this text. */
static void put_branches(struct esp_pack *log)
{
    struct esp_written tokens[TOKENS];
    for (int i = 0; i < TOKENS; i++)
        tokens[i] = (struct esp_written){
            .token = i < 4 ? i : 1 + i % 2,
            .kind = i < 4 ? ESP_TEXT_PROMPT : ESP_TEXT_DRAFTED,
            .iteration = i < 4 ? ESP_BY_NO_ITERATION : (i - 4) / 2,
            .score = {.p = 0.5f, .entropy = 1, .rank = 1, .count = 1, .likely_p = {0.5f}}};
    for (int i = 0; i < 2; i++)
        esp_log_branch(log, &(struct esp_branch){.parent = i - 1,
                                                 .fork = 6 * i,
                                                 .tokens = tokens + 4 * i,
                                                 .count = TOKENS - 4 * i,
                                                 .name = "a name",
                                                 .drafter = "fixed"});
    esp_log_place(log, (struct esp_text_place){1, 6 + TOKENS - 4});
}

static void put_header(struct esp_pack *log)
{
    struct esp_recording_header header = {.major = ESP_RECORDING_MAJOR,
                                          .vocabulary = VOCABULARY,
                                          .drafter = "fixed",
                                          .verifier = "greedy"};
    struct esp_line line = {.length = 0};
    strcpy(header.vocabulary_hash, HASH);
    esp_header_to_json(&line, &header);
    esp_log_header(log, &header, line.text, line.length, "/t", "/d");
    esp_log_generation(log,
                       &(struct esp_kept_generation){0, 4, {0, 0}, 8, line.text, line.length});
    esp_line_free(&line);
}

/* Writes one record for each kind of change that a program can make to a text. */
static void put_records(struct esp_pack *log, int iteration)
{
    const struct esp_text_token text[] = {{0, 0}, {1, 0}, {5, ESP_TEXT_CHOSEN}};
    const struct esp_token_score score = {.p = 0.5f, .count = 1, .likely_p = {0.5f}};
    const int32_t prompt[] = {3, 4};
    esp_log_time(log, 3000);
    esp_log_prompt(
        log, &(struct esp_event){.type = ESP_EVENT_PROMPT, .tokens = prompt, .token_count = 2});
    put_iteration(log, iteration);
    esp_log_fork(log, 2, text, 3);
    esp_log_scores(log, 1, &score, 1);
    esp_log_judge(log, 0, "name", true, false);
    esp_log_drop(log, 1, 1);
    esp_log_cut(log, 1);
    esp_log_piece(log, 7, "h", 1);
}

static void put_session(struct esp_library *library)
{
    struct esp_pack log = {.length = 0};
    char err[ERR] = "";
    esp_library_begin(library);
    const int64_t id = esp_library_add(library, 1000);
    if (esp_library_commit(library, err, sizeof err) < 0)
        return;
    put_header(&log);
    for (int i = 0; i < VOCABULARY; i++)
        esp_log_piece(&log, i, i == 3 ? " " : (char[]){(char)('a' + i)}, 1);
    put_branches(&log);
    for (int i = 0; i < 4; i++)
        put_iteration(&log, i);
    const struct esp_records span = {log.at, log.length};
    holds(esp_library_store(library, id, 0, &span, 1, err, sizeof err), err);
    esp_library_release(library, id);
    esp_pack_free(&log);
}

/* Returns the bytes of the small library before any change. The first call makes the
 * library. */
static const unsigned char *base(size_t *size)
{
    static unsigned char *bytes;
    static size_t length;
    struct esp_library *library;
    struct esp_kept_text text;
    char err[ERR];
    *size = length;
    if (bytes)
        return bytes;
    FUZZ_REQUIRE(esp_library_open(&library, path, ESP_LIBRARY_KEEP, err, sizeof err) == 0, "%s",
                 err);
    for (int i = 0; i < 2; i++)
        put_session(library);
    FUZZ_REQUIRE(esp_library_refresh(library, 0, err, sizeof err) == 0, "%s", err);
    for (int i = 1; i <= 2; i++, esp_kept_text_free(&text))
        FUZZ_REQUIRE(esp_library_load(library, i, &text, err, sizeof err) == 0, "%s", err);
    esp_library_close(library);
    FILE *file = fopen(path, "rbe");
    FUZZ_REQUIRE(file && fseek(file, 0, SEEK_END) == 0, "the library can be read");
    length = (size_t)ftell(file);
    rewind(file);
    bytes = malloc(length);
    FUZZ_REQUIRE(bytes && fread(bytes, 1, length, file) == length, "the library can be read");
    fclose(file);
    *size = length;
    return bytes;
}

/* Returns the first bytes of the journal before any change. All later bytes of the journal are
 * zeros. The first call makes the journal. */
static const unsigned char *base_journal(size_t *size)
{
    static unsigned char bytes[3 * PAGE];
    struct esp_pack log = {.length = 0};
    struct esp_journal *journal;
    char name[ERR], err[ERR];
    *size = sizeof bytes;
    if (*bytes)
        return bytes;
    FUZZ_REQUIRE(esp_journal_open(&journal, path, 1, 1, err, sizeof err) == 0, "%s", err);
    put_records(&log, 4);
    FUZZ_REQUIRE(esp_journal_add(journal, log.at, log.length), "there is room");
    esp_pack_free(&log);
    esp_journal_close(journal, false);
    esp_journal_path(name, sizeof name, path, 1);
    FILE *file = fopen(name, "rbe");
    FUZZ_REQUIRE(file && fread(bytes, 1, sizeof bytes, file) == sizeof bytes,
                 "the journal can be read");
    fclose(file);
    return bytes;
}

/* ------------------------------------------------------------------ changes */

/* Makes the change that a line of the input describes, at offset `at`. Returns the new size of
 * the file. */
static size_t change(unsigned char *bytes, size_t size, size_t at, const char *digits)
{
    int high = -1;
    bool any = false;
    for (; *digits && *digits != '\n'; digits++) {
        if (!isxdigit((unsigned char)*digits))
            continue;
        const int digit =
            isdigit((unsigned char)*digits) ? *digits - '0' : (*digits | 32) - 'a' + 10;
        if (high >= 0 && at < size)
            bytes[at++] = (unsigned char)(16 * high + digit);
        high = high >= 0 ? -1 : digit;
        any = true;
    }
    return any || at > size ? size : at;
}

/* Corrects the checksums of the journal's records. Stops at the first record with an invalid
 * length. */
static void seal(unsigned char *bytes, size_t size)
{
    for (size_t at = PAGE, length; at + ESP_LOG_FRAME < size; at += ESP_LOG_FRAME + length) {
        length = bytes[at] | (size_t)bytes[at + 1] << 8;
        if (length == 0 || bytes[at + 2] || bytes[at + 3] || at + ESP_LOG_FRAME + length > size)
            return;
        esp_log_seal(bytes + at, length);
    }
}

static unsigned char *copy_of(const unsigned char *from, size_t size)
{
    unsigned char *bytes = malloc(size);
    FUZZ_REQUIRE(bytes, "there is memory");
    memcpy(bytes, from, size);
    return bytes;
}

/* Writes the library with the changes that the input describes. The journal is written only
 * if a line changes it. */
static void write_changed(const char *input)
{
    size_t size, journal_size, journal_whole;
    const unsigned char *from = base(&size), *from_journal = base_journal(&journal_size);
    unsigned char *bytes = copy_of(from, size), *journal = copy_of(from_journal, journal_size);
    bool left = false;
    journal_whole = journal_size;
    for (const char *line = input; line; line = strchr(line, '\n')) {
        char *end;
        line += *line == '\n';
        const unsigned long page = strtoul(line, &end, 10), offset = strtoul(end, &end, 10);
        const bool is_seal = strncmp(line, "seal", 4) == 0;
        if (page >= 1 && page <= 1024 && offset < PAGE)
            size = change(bytes, size, (page - 1) * PAGE + offset, end);
        left |= is_seal || (isdigit((unsigned char)*line) && page == 0);
        if (is_seal)
            seal(journal, journal_whole);
        else if (isdigit((unsigned char)*line) && page == 0 && offset < journal_whole)
            journal_size = change(journal, journal_size, offset, end);
    }
    fuzz_folder_empty();
    fuzz_folder_write("sessions.db", bytes, size, 0);
    if (left) {
        fuzz_folder_write(
            "sessions.db-1.journal", journal, journal_size,
            journal_size == journal_whole ? PAGE + 2 * ESP_JOURNAL_AREA - journal_whole : 0);
        fuzz_folder_write("sessions.db.lock", "", 0, 0);
    }
    free(bytes);
    free(journal);
}

/* ------------------------------------------------------------------ requirements */

static void look_at_texts(const struct esp_kept_text *text)
{
    const struct esp_branches *b = &text->branches;
    for (int i = -1; i < b->count; i++) {
        const struct esp_text_place place = i < 0 ? b->at : esp_branches_end(b, i);
        struct esp_written *tokens = malloc(((size_t)place.length + 1) * sizeof *tokens);
        FUZZ_REQUIRE(tokens, "there is memory");
        esp_branches_text(b, place, 0, tokens);
        for (int j = 0; j < place.length; j++)
            FUZZ_REQUIRE(tokens[j].token >= 0 && tokens[j].token < text->vocabulary &&
                             tokens[j].iteration < text->iterations,
                         "token %d of branch %d is in the vocabulary", j, i);
        free(tokens);
    }
}

static int visit_generation(void *user, const struct esp_kept_generation *generation)
{
    (void)user;
    FUZZ_REQUIRE(strlen(generation->header) <= generation->header_length,
                 "the header ends with a NUL");
    return 0;
}

static void look_at_session(struct esp_library *library, int64_t id)
{
    struct esp_kept_text text;
    struct esp_recorded_event event = {.event = {.type = 0}};
    struct esp_texts names = {.count = 0};
    char err[ERR] = "";
    int *writers;
    FILE *out = fopen("/dev/null", "we");
    if (holds(esp_library_load(library, id, &text, err, sizeof err), err)) {
        look_at_texts(&text);
        for (int i = 0; i < text.iterations && i < 8; i++)
            esp_library_iteration(library, id, i, text.vocabulary, &event, &names);
        esp_recorded_event_free(&event);
        esp_texts_free(&names);
        *err = '\0';
        if (text.iterations < 1 << 16) {
            holds(esp_library_writers(library, id, text.iterations, &writers, err, sizeof err),
                  err);
            free(writers);
        }
    }
    esp_kept_text_free(&text);
    *err = '\0';
    holds(esp_library_generations(library, id, visit_generation, NULL, err, sizeof err), err);
    for (int branch = -1; branch < 3 && out; branch++) {
        *err = '\0';
        holds(esp_library_export(library, id, branch, out, err, sizeof err), err);
    }
    if (out)
        fclose(out);
}

struct found {
    int64_t id[MOST_SESSIONS];
    int count;
};

static int visit_session(void *user, const struct esp_kept_session *session)
{
    struct found *found = user;
    FUZZ_REQUIRE(strlen(session->words) < sizeof session->words, "the words end with a NUL");
    found->id[found->count++] = session->id;
    return found->count == MOST_SESSIONS;
}

static int visit_match(void *user, const struct esp_kept_match *match)
{
    (void)user;
    FUZZ_REQUIRE(strlen(match->words) < sizeof match->words, "the words end with a NUL");
    return 0;
}

static void look(void)
{
    struct esp_library *library;
    struct esp_kept_session session;
    struct found found = {.count = 0};
    char err[ERR] = "";
    if (!holds(esp_library_open(&library, path, ESP_LIBRARY_READ, err, sizeof err), err))
        return;
    holds(esp_library_list(library, visit_session, &found, err, sizeof err), err);
    for (int i = 0; i < found.count; i++)
        look_at_session(library, found.id[i]);
    *err = '\0';
    holds(esp_library_find(library, NULL, &session, err, sizeof err), err);
    *err = '\0';
    holds(esp_library_search(library, "abc bcb", visit_match, NULL, err, sizeof err), err);
    *err = '\0';
    holds(esp_library_delete(library, 2, err, sizeof err), err);
    esp_library_close(library);
}

static void resume(void)
{
    struct esp_resumed *resumed;
    char err[ERR] = "";
    int count;
    if (!holds(esp_resumed_open(&resumed, path, NULL, err, sizeof err), err))
        return;
    free(esp_resumed_text(resumed, &count));
    esp_resumed_close(resumed);
}

/* Opens the library like a program that keeps sessions. If the file is damaged, the program
 * renames it. The program finds damage in a page only when it reads that page. */
static void keep(void)
{
    struct esp_library *library;
    char err[ERR] = "";
    if (!holds(esp_library_open(&library, path, ESP_LIBRARY_KEEP, err, sizeof err), err))
        return;
    put_session(library);
    esp_library_close(library);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    static char name[256];
    snprintf(name, sizeof name, "%s/sessions.db", fuzz_folder());
    path = name;
    char *input = fuzz_text(bytes, length);
    write_changed(input);
    free(input);
    resume();
    look();
    keep();
    fuzz_folder_empty();
    return 0;
}
