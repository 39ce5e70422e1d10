/* Fuzzes the library of kept sessions. Whatever its pages contain, opening it either works or
 * is refused with an error message; so do lists, searches, sessions and exports. A session that
 * is loaded is a complete tree of texts. A program that keeps sessions either opens the file or
 * sets it aside.
 *
 * The input changes a small library. Each line has the number of a page, an offset in it,
 * and bytes to write there, in hexadecimal; a line without bytes truncates the file there. */
#include "sessions/library.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sessions/event_json.h"
#include "sessions/library_export.h"
#include "tests/fuzz/support/fuzz.h"
#include "tui/commands/resume.h"

enum { PAGE = 4096, VOCABULARY = 26, TOKENS = 12, MOST_SESSIONS = 4, ERR = 512 };

static const char HASH[] = "letters";
static const char *path;

/* ------------------------------------------------------------------ a small library */

static void put_iteration(struct esp_library *library, int64_t id, int number)
{
    struct esp_node nodes[] = {{.parent = -1, .q = 1, .copies = 1},
                               {.parent = 0, .depth = 1, .copies = 1, .token = 1, .q = 0.5f}};
    int32_t order[] = {0, 1}, path_of[] = {1}, committed[] = {1, 2};
    const struct esp_iteration it = {.index = number,
                                     .position = 4 + 2 * number,
                                     .drafter = "fixed",
                                     .verifier = "greedy",
                                     .tree = {nodes, 2, order, 2},
                                     .path = path_of,
                                     .path_length = 1,
                                     .bonus = 2,
                                     .committed = committed,
                                     .committed_count = 2};
    struct esp_line line = {.length = 0};
    esp_event_to_json(&line, &(struct esp_event){ESP_EVENT_ITERATION, .iteration = &it}, NULL,
                      NULL);
    esp_library_put_iteration(library, id, number, 0, line.text, line.length);
    esp_line_free(&line);
}

/* Writes a text and a branch of it. */
static void put_branches(struct esp_library *library, int64_t id)
{
    struct esp_written tokens[TOKENS];
    for (int i = 0; i < TOKENS; i++)
        tokens[i] = (struct esp_written){
            .token = i < 4 ? i : 1 + i % 2,
            .kind = i < 4 ? ESP_TEXT_PROMPT : ESP_TEXT_DRAFTED,
            .iteration = i < 4 ? ESP_BY_NO_ITERATION : (i - 4) / 2,
            .score = {.p = 0.5f, .entropy = 1, .rank = 1, .count = 1, .likely_p = {0.5f}}};
    for (int i = 0; i < 2; i++) {
        const struct esp_branch branch = {.parent = i - 1,
                                          .fork = 6 * i,
                                          .tokens = tokens + 4 * i,
                                          .count = TOKENS - 4 * i,
                                          .name = "a name",
                                          .drafter = "fixed"};
        esp_library_put_branch(library, id, i, &branch);
        esp_library_put_tokens(library, id, i, &branch, 0, branch.count);
    }
    esp_library_put_place(library, id, (struct esp_text_place){1, ESP_LIBRARY_END}, 2000);
}

static void put_session(struct esp_library *library)
{
    struct esp_recording_header header = {.major = ESP_RECORDING_MAJOR,
                                          .vocabulary = VOCABULARY,
                                          .drafter = "fixed",
                                          .verifier = "greedy"};
    struct esp_line line = {.length = 0};
    const int64_t id = esp_library_add(library, 1000);
    strcpy(header.vocabulary_hash, HASH);
    esp_header_to_json(&line, &header);
    esp_library_put_header(library, id, line.text, line.length, VOCABULARY, HASH, "/t", "/d");
    esp_library_put_generation(
        library, id, &(struct esp_kept_generation){0, 4, {0, 0}, 8, line.text, line.length});
    put_branches(library, id);
    for (int i = 0; i < 4; i++)
        put_iteration(library, id, i);
    esp_line_free(&line);
}

/* Makes, once, the library that inputs change; returns its bytes. */
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
    esp_library_begin(library);
    for (int i = 0; i < 2; i++)
        put_session(library);
    for (int i = 0; i < VOCABULARY; i++)
        esp_library_put_piece(library, HASH, i, i == 3 ? " " : (char[]){(char)('a' + i)}, 1);
    esp_library_index(library, 0);
    FUZZ_REQUIRE(esp_library_commit(library, err, sizeof err) == 0, "%s", err);
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

/* ------------------------------------------------------------------ changes */

/* Writes the bytes of a line at `at`; returns the new size of the file. */
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

/* Writes the library with the changes of the input. */
static void write_changed(const char *input)
{
    size_t size;
    const unsigned char *from = base(&size);
    unsigned char *bytes = malloc(size);
    FUZZ_REQUIRE(bytes, "there is memory");
    memcpy(bytes, from, size);
    for (const char *line = input; line; line = strchr(line, '\n')) {
        char *end;
        line += *line == '\n';
        const unsigned long page = strtoul(line, &end, 10), offset = strtoul(end, &end, 10);
        if (page >= 1 && page <= 1024 && offset < PAGE)
            size = change(bytes, size, (page - 1) * PAGE + offset, end);
    }
    fuzz_folder_empty();
    fuzz_folder_write("sessions.db", bytes, size, 0);
    free(bytes);
}

/* ------------------------------------------------------------------ requirements */

/* Returns whether a call succeeded. If not, it must have written a message. */
static bool holds(int status, const char *err)
{
    FUZZ_REQUIRE(status >= 0 || *err, "a failure is a sentence");
    return status >= 0;
}

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
    char err[ERR] = "", *line;
    int *writers;
    FILE *out = fopen("/dev/null", "we");
    if (holds(esp_library_load(library, id, &text, err, sizeof err), err)) {
        look_at_texts(&text);
        for (int i = 0; i < text.iterations && i < 8; i++, free(line))
            esp_library_iteration(library, id, i, &line);
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
    FUZZ_REQUIRE(strlen(session->words) < sizeof session->words, "its words end with a NUL");
    found->id[found->count++] = session->id;
    return found->count == MOST_SESSIONS;
}

static int visit_match(void *user, const struct esp_kept_match *match)
{
    (void)user;
    FUZZ_REQUIRE(strlen(match->words) < sizeof match->words, "its words end with a NUL");
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

/* The file opens or is set aside. Damage in deeper pages is found when they are read. */
static void keep(void)
{
    struct esp_library *library;
    char err[ERR] = "";
    if (!holds(esp_library_open(&library, path, ESP_LIBRARY_KEEP, err, sizeof err), err))
        return;
    esp_library_begin(library);
    put_session(library);
    holds(esp_library_commit(library, err, sizeof err), err);
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
