/* Tests the library, a file that keeps sessions. After any change of a text, the library must
 * have the session's tree of texts, even if the program was killed. Opening a file that is
 * damaged or is not a library must give one error message, and must not change the file. */
#include "sessions/library.h"

#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "kernels/clock.h"
#include "sessions/journal.h"
#include "sessions/library_export.h"
#include "sessions/log.h"
#include "tests/check.h"
#include "tests/kept.h"
#include "tui/commands/resume.h"
#include "tui/worker/keeper.h"

enum { LONGEST = 200, MOST_TEXTS = 20000 };

static int load(int64_t id, struct esp_kept_text *text, char *err, size_t errlen)
{
    struct esp_library *library;
    *text = (struct esp_kept_text){.vocabulary = 0};
    int status = esp_library_open(&library, kept_path, ESP_LIBRARY_READ, err, errlen);
    if (status == ESP_OK)
        status = esp_library_load(library, id, text, err, errlen);
    esp_library_close(library);
    return status;
}

/* ------------------------------------------------------------------ a session in use */

/* Holds the content that the library must have: a tree as in the interface, the current text
 * as a string, and all texts that ever existed. */
struct model {
    struct esp_branches tree;
    char now[LONGEST + 1];
    int length;
    char (*seen)[LONGEST + 1];
    int seen_count;
    int index; /* the index of the next iteration */
    struct esp_keeper *keeper;
    uint32_t random;
};

static int draw(struct model *m, int below)
{
    m->random = m->random * 1664525u + 1013904223u;
    return (int)((m->random >> 8) % (uint32_t)below);
}

static void note(struct model *m)
{
    if (m->length > 0 && m->seen_count < MOST_TEXTS)
        memcpy(m->seen[m->seen_count++], m->now, sizeof m->now);
}

static void append(struct model *m, const struct esp_written *token, bool anew)
{
    struct esp_written *stored;
    CHECK(esp_branches_append(&m->tree, token, anew, "fixed", &stored) == ESP_OK);
    m->now[m->length++] = (char)('a' + token->token);
    m->now[m->length] = '\0';
}

static void say(struct model *m)
{
    int32_t tokens[4];
    const int count = 1 + draw(m, 4);
    for (int i = 0; i < count; i++)
        tokens[i] = draw(m, 3);
    const struct esp_event event = {
        .type = ESP_EVENT_PROMPT, .tokens = tokens, .token_count = count};
    esp_keeper_event(m->keeper, &event);
    for (int i = 0; i < count; i++)
        append(m, &(struct esp_written){.token = tokens[i], .iteration = -1}, true);
}

/* Runs an iteration with a root, one node for each accepted token, and a bonus token. */
static void iterate(struct model *m)
{
    struct esp_node nodes[4] = {{.parent = -1, .q = 1, .copies = 1, .verdict = ESP_ACCEPTED}};
    struct esp_token_score scores[4];
    int32_t path_of[3], committed[4], order[4] = {0, 1, 2, 3};
    const int accepted = draw(m, 4);
    for (int i = 0; i < accepted; i++) {
        nodes[i + 1] = (struct esp_node){.token = draw(m, 3),
                                         .parent = i,
                                         .depth = i + 1,
                                         .copies = 1,
                                         .verdict = ESP_ACCEPTED,
                                         .q = 0.5f,
                                         .p = 0.5f,
                                         .confidence = 0.5f};
        path_of[i] = i + 1;
        committed[i] = nodes[i + 1].token;
    }
    committed[accepted] = draw(m, 3);
    for (int i = 0; i <= accepted; i++)
        scores[i] = (struct esp_token_score){.p = (float)(1 + draw(m, 100)) / 100,
                                             .entropy = 1.5f,
                                             .rank = 1,
                                             .count = 2,
                                             .likely = {committed[i], 7},
                                             .likely_p = {0.5f, 0.25f}};
    const struct esp_iteration it = {.index = m->index++,
                                     .position = m->length,
                                     .drafter = "fixed",
                                     .verifier = "greedy",
                                     .tree = {.nodes = nodes,
                                              .count = accepted + 1,
                                              .order = order,
                                              .verified = accepted + 1},
                                     .path = path_of,
                                     .path_length = accepted,
                                     .bonus = committed[accepted],
                                     .committed = committed,
                                     .committed_count = accepted + 1,
                                     .scores = scores};
    const struct esp_event event = {.type = ESP_EVENT_ITERATION, .iteration = &it};
    esp_keeper_event(m->keeper, &event);
    for (int i = 0; i <= accepted; i++)
        append(m,
               &(struct esp_written){.token = committed[i],
                                     .iteration = it.index,
                                     .kind = (uint8_t)esp_text_kind_of(&event, i),
                                     .score = scores[i]},
               true);
}

static void shorten(struct model *m, int length)
{
    esp_branches_cut(&m->tree, length);
    m->length = length;
    m->now[length] = '\0';
}

static void turn_to(struct model *m, struct esp_text_place place, int more)
{
    struct esp_written tokens[LONGEST + 8];
    struct esp_text_token text[LONGEST + 8];
    int kept = 0, count = place.length;
    esp_branches_text(&m->tree, place, 0, tokens);
    for (int i = 0; i < more; i++)
        tokens[count++] =
            (struct esp_written){.token = draw(m, 3), .iteration = -1, .kind = ESP_TEXT_CHOSEN};
    for (int i = 0; i < count; i++)
        text[i] = (struct esp_text_token){tokens[i].token, tokens[i].kind};
    while (kept < count && kept < m->length && m->now[kept] == 'a' + text[kept].token)
        kept++;
    esp_keeper_fork(m->keeper, kept, text, count);
    shorten(m, kept);
    for (int i = kept; i < count; i++)
        append(m,
               &(struct esp_written){
                   .token = text[i].token, .iteration = -1, .kind = text[i].kind},
               false);
}

static void judge(struct model *m, int branch)
{
    struct esp_branch *of = &m->tree.branch[branch];
    const int what = draw(m, 3);
    if (what == 0)
        snprintf(of->name, sizeof of->name, "name %d", draw(m, 100));
    if (what == 1)
        of->marked = !of->marked;
    if (what == 2)
        of->deleted = !of->deleted;
    esp_keeper_branch(m->keeper, branch, of->name, of->marked, of->deleted);
}

static void score(struct model *m)
{
    const int place = draw(m, m->length);
    const struct esp_token_score known = {.p = 0.25f,
                                          .entropy = 2,
                                          .rank = 0,
                                          .count = 1,
                                          .likely = {draw(m, VOCABULARY)},
                                          .likely_p = {0.75f}};
    esp_keeper_scores(m->keeper, place, &known, 1);
    esp_branches_token(&m->tree, m->tree.at, place)->score = known;
}

static void step(struct model *m)
{
    const int what = draw(m, 16);
    if (m->length > LONGEST - 16 || (what == 0 && m->length > 0)) {
        const int kept = draw(m, m->length);
        esp_keeper_event(m->keeper,
                         &(struct esp_event){.type = ESP_EVENT_REWIND, .token_count = kept});
        shorten(m, kept);
    } else if (what == 1) {
        esp_keeper_event(m->keeper, &(struct esp_event){.type = ESP_EVENT_CLEAR});
        shorten(m, 0);
    } else if (what < 5 && m->tree.count > 0) {
        const int branch = draw(m, m->tree.count);
        const struct esp_text_place whole = esp_branches_end(&m->tree, branch);
        turn_to(m, esp_branches_before(&m->tree, whole, 1 + draw(m, whole.length)), draw(m, 3));
    } else if (what < 7 && m->tree.count > 0) {
        judge(m, draw(m, m->tree.count));
    } else if (what == 7 && m->length > 0) {
        score(m);
    } else if (what < 10) {
        say(m);
    } else {
        iterate(m);
    }
    note(m);
}

/* -------------------------------------------------------------- the content of the library */

static bool same_score(const struct esp_token_score *a, const struct esp_token_score *b)
{
    return a->count == b->count && (a->count == 0 || memcmp(a, b, sizeof *a) == 0);
}

static void check_tree(const struct model *m, const struct esp_kept_text *text)
{
    const struct esp_branches *a = &m->tree, *b = &text->branches;
    CHECK(a->count == b->count, "%d branches, not %d", b->count, a->count);
    CHECK(a->at.branch == b->at.branch && a->at.length == b->at.length, "the present text");
    for (int i = 0; i < a->count && i < b->count; i++) {
        const struct esp_branch *x = &a->branch[i], *y = &b->branch[i];
        CHECK(x->parent == y->parent && x->fork == y->fork && x->count == y->count &&
                  x->furthest == y->furthest,
              "branch %d starts from branch %d at %d and has %d tokens", i, y->parent, y->fork,
              y->count);
        CHECK(strcmp(x->name, y->name) == 0 && x->marked == y->marked &&
                  x->deleted == y->deleted,
              "the description of branch %d differs", i);
        for (int j = 0; j < x->count && j < y->count; j++)
            CHECK(x->tokens[j].token == y->tokens[j].token &&
                      x->tokens[j].kind == y->tokens[j].kind &&
                      (x->tokens[j].iteration >= 0) == (y->tokens[j].iteration >= 0) &&
                      same_score(&x->tokens[j].score, &y->tokens[j].score),
                  "token %d of branch %d", j, i);
    }
}

/* Every text that ever existed must be the beginning of a branch. */
static void check_texts(const struct model *m, const struct esp_branches *b)
{
    char(*texts)[LONGEST + 1] = calloc((size_t)b->count + 1, sizeof *texts);
    struct esp_written tokens[LONGEST];
    for (int i = 0; i < b->count; i++) {
        const struct esp_text_place whole = esp_branches_end(b, i);
        esp_branches_text(b, whole, 0, tokens);
        for (int j = 0; j < whole.length; j++)
            texts[i][j] = (char)('a' + tokens[j].token);
    }
    for (int i = 0; i < m->seen_count; i++) {
        bool there = false;
        for (int j = 0; j < b->count && !there; j++)
            there = strncmp(texts[j], m->seen[i], strlen(m->seen[i])) == 0;
        CHECK(there, "'%s' is lost", m->seen[i]);
    }
    free(texts);
}

static void compare(struct model *m)
{
    struct esp_kept_text text;
    char err[512] = "";
    esp_keeper_settle(m->keeper);
    CHECK(load(1, &text, err, sizeof err) == ESP_OK, "%s", err);
    check_tree(m, &text);
    check_texts(m, &text.branches);
    esp_kept_text_free(&text);
}

/* The panes must get the iterations that wrote the current text, as far back as their memory
 * allows. */
static void check_iterations(const struct model *m, const struct esp_resumed *resumed,
                             const struct esp_state *state)
{
    const struct esp_branches *b = &state->branches;
    const struct esp_text_place at = m->tree.at;
    CHECK(state->trace.kept_count == resumed->count);
    for (int i = 0; i < at.length; i++) {
        const bool written = esp_branches_token(&m->tree, at, i)->iteration >= 0;
        const int index = esp_branches_token(b, at, i)->iteration;
        CHECK(index < resumed->count && (index >= 0 || !written || index == ESP_BY_FORGOTTEN));
        CHECK(!written || index >= 0, "token %d has an iteration, but the library lost it", i);
        if (index < 0)
            continue;
        const struct esp_iteration *it = esp_trace_at(&state->trace, index);
        const int place = i - resumed->iterations[index].place.length;
        CHECK(it->index == index && place >= 0 && place < it->committed_count);
        CHECK(it->committed[place] == m->now[i] - 'a', "the iteration lacks token %d", i);
    }
}

/* Closes the session, and continues it as a new run of the program would. This drops deleted
 * branches. */
static void resume(struct model *m)
{
    struct esp_resumed *resumed;
    struct esp_state state = {.has_branches = true};
    char err[512] = "";
    esp_keeper_close(m->keeper);
    CHECK(esp_resumed_open(&resumed, kept_path, "1", err, sizeof err) == ESP_OK, "%s", err);
    if (esp_branches_compact(&m->tree) > 0)
        m->seen_count = 0;
    check_tree(m, &resumed->text);
    int count;
    struct esp_text_token *text = esp_resumed_text(resumed, &count);
    CHECK(count == m->length);
    esp_branches_open(&state.branches);
    CHECK(esp_resumed_install(resumed, &state) == ESP_OK);
    check_iterations(m, resumed, &state);
    m->keeper = kept_keeper(1);
    esp_keeper_fork(m->keeper, 0, text, count);
    free(text);
    m->index = resumed->count;
    esp_state_free(&state);
    esp_resumed_close(resumed);
}

TEST(random_sessions_are_kept)
{
    for (uint32_t seed = 1; seed <= (check_quick() ? 3 : 12); seed++) {
        struct model m = {.random = seed, .seen = calloc(MOST_TEXTS, sizeof *m.seen)};
        kept_begin();
        esp_branches_open(&m.tree);
        m.keeper = kept_keeper(0);
        say(&m);
        note(&m);
        for (int i = 0; i < 600; i++) {
            step(&m);
            if (i % 60 == 59)
                compare(&m);
            if (i % 150 == 149)
                resume(&m);
        }
        compare(&m);
        esp_keeper_close(m.keeper);
        CHECK(kept_troubles == 0, "%s", kept_told);
        esp_branches_free(&m.tree);
        free(m.seen);
        kept_end();
    }
}

/* ------------------------------------------------------------------ kill -9 */

/* Runs in a separate process. Writes iterations until the process is killed, and reports each
 * iteration that the keeper has received. With `settle`, the keeper moves each iteration to the
 * library immediately. */
static void write_until_killed(int to, bool settle)
{
    struct model m = {.random = 5};
    m.seen = calloc(MOST_TEXTS, sizeof *m.seen);
    esp_branches_open(&m.tree);
    m.keeper = kept_keeper(0);
    say(&m);
    for (;;) {
        m.length = 0;
        iterate(&m);
        if (write(to, "x", 1) != 1)
            _exit(1);
        if (settle)
            esp_keeper_settle(m.keeper);
        else
            /* longer than a disk access, but shorter than an iteration of a model */
            usleep(10);
    }
}

TEST(kill_9_loses_at_most_one_iteration)
{
    const int times = check_quick() ? 12 : 200;
    for (int i = 0; i < times; i++) {
        int ends[2], written = 0, more;
        char bytes[4096], err[512];
        struct esp_kept_text text;
        kept_begin();
        CHECK(pipe(ends) == 0);
        const pid_t child = fork();
        if (child == 0)
            write_until_killed(ends[1], i % 4 == 0);
        close(ends[1]);
        usleep((useconds_t)(5000 + 997 * (i % 37)));
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        while ((more = (int)read(ends[0], bytes, sizeof bytes)) > 0)
            written += more;
        close(ends[0]);
        const int status = load(1, &text, err, sizeof err);
        CHECK(status == ESP_OK || written == 0, "%s", err);
        CHECK(status < 0 || text.iterations == written || text.iterations == written + 1,
              "%d iterations were written, the library has %d", written, text.iterations);
        esp_kept_text_free(&text);
        kept_end();
    }
}

/* ------------------------------------------------------------------ private sessions */

static int count_sessions(void)
{
    struct esp_library *library;
    struct esp_kept_session session;
    char err[512];
    if (esp_library_open(&library, kept_path, ESP_LIBRARY_READ, err, sizeof err) < 0)
        return 0;
    int count = 0;
    for (int64_t id = 1; id < 20; id++) {
        char which[16];
        snprintf(which, sizeof which, "%d", (int)id);
        count += esp_library_find(library, which, &session, err, sizeof err) == ESP_OK;
    }
    esp_library_close(library);
    return count;
}

TEST(a_private_session_leaves_nothing)
{
    struct model m = {.random = 3, .seen = calloc(MOST_TEXTS, sizeof *m.seen)};
    struct esp_kept_text text;
    char err[512];
    kept_begin();
    esp_branches_open(&m.tree);
    m.keeper = kept_keeper(0);
    esp_keeper_private(m.keeper, true);
    say(&m);
    iterate(&m);
    esp_keeper_settle(m.keeper);
    CHECK(access(kept_path, F_OK) < 0, "a private session must create no file");
    esp_keeper_private(m.keeper, false);
    esp_keeper_settle(m.keeper);
    CHECK(load(1, &text, err, sizeof err) == ESP_OK, "the session was not kept: %s", err);
    check_tree(&m, &text);
    esp_kept_text_free(&text);
    esp_keeper_private(m.keeper, true);
    esp_keeper_settle(m.keeper);
    CHECK(count_sessions() == 0, "a session that becomes private must be deleted");
    esp_keeper_close(m.keeper);
    CHECK(kept_troubles == 0, "%s", kept_told);
    esp_branches_free(&m.tree);
    free(m.seen);
    kept_end();
}

/* ------------------------------------------------------------------ several programs */

TEST(two_programs_share_a_library)
{
    struct model a = {.random = 7, .seen = calloc(MOST_TEXTS, sizeof *a.seen)};
    struct model b = {.random = 8, .seen = calloc(MOST_TEXTS, sizeof *b.seen)};
    struct esp_library *library;
    char err[512];
    kept_begin();
    esp_branches_open(&a.tree);
    esp_branches_open(&b.tree);
    a.keeper = kept_keeper(0);
    say(&a);
    esp_keeper_settle(a.keeper);
    b.keeper = kept_keeper(0);
    say(&b);
    for (int i = 0; i < 200; i++) {
        step(&a);
        step(&b);
    }
    esp_keeper_settle(a.keeper);
    esp_keeper_settle(b.keeper);
    CHECK(count_sessions() == 2);
    CHECK(esp_library_open(&library, kept_path, ESP_LIBRARY_READ, err, sizeof err) == ESP_OK);
    CHECK(!esp_library_claim(library, 1), "a session must be open only once");
    CHECK(esp_library_delete(library, 1, err, sizeof err) < 0 &&
              strstr(err, "is open in another"),
          "%s", err);
    esp_keeper_close(a.keeper);
    CHECK(esp_library_claim(library, 1), "opening a closed session must work");
    esp_library_release(library, 1);
    CHECK(esp_library_delete(library, 1, err, sizeof err) == ESP_OK, "%s", err);
    esp_library_close(library);
    esp_keeper_close(b.keeper);
    CHECK(count_sessions() == 1);
    CHECK(kept_troubles == 0, "%s", kept_told);
    esp_branches_free(&a.tree);
    esp_branches_free(&b.tree);
    free(a.seen);
    free(b.seen);
    kept_end();
}

/* ------------------------------------------------------------------ unexpected files */

static void write_file(const char *bytes, size_t length)
{
    char below[128];
    snprintf(below, sizeof below, "%s/below", kept_folder);
    mkdir(below, 0700);
    const int file = open(kept_path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    CHECK(file >= 0 && write(file, bytes, length) == (ssize_t)length);
    close(file);
}

/* Keeps a small session in the library, and frees its tree. */
static void keep_one(void)
{
    struct model m = {.random = 11, .seen = calloc(MOST_TEXTS, sizeof *m.seen)};
    esp_branches_open(&m.tree);
    m.keeper = kept_keeper(0);
    say(&m);
    for (int i = 0; i < 30; i++)
        step(&m);
    say(&m);
    esp_keeper_close(m.keeper);
    esp_branches_free(&m.tree);
    free(m.seen);
}

static bool is_set_aside(void)
{
    char aside[160];
    snprintf(aside, sizeof aside, "%s.unreadable-1", kept_path);
    return access(aside, F_OK) == 0;
}

TEST(a_file_that_is_not_a_library_is_renamed)
{
    static const char *const files[] = {
        "this is not a database, but a text of some length.......", "SQLite format 3"};
    for (int i = 0; i < 3; i++) {
        struct esp_library *library;
        char err[512];
        kept_begin();
        if (i < 2) {
            write_file(files[i], strlen(files[i]));
        } else {
            write_file("", 0);
            kept_execute("CREATE TABLE mine(x); INSERT INTO mine VALUES(1)");
        }
        CHECK(esp_library_open(&library, kept_path, ESP_LIBRARY_READ, err, sizeof err) < 0 &&
                  strstr(err, kept_path),
              "%s", err);
        CHECK(!is_set_aside(), "a reader must not move the file");
        keep_one();
        CHECK(is_set_aside() && strstr(kept_told, "kept in a new file"), "%s", kept_told);
        CHECK(count_sessions() == 1);
        kept_end();
    }
}

TEST(a_library_of_a_newer_program_stays_unchanged)
{
    struct esp_library *library;
    char err[512];
    kept_begin();
    keep_one();
    kept_execute("PRAGMA user_version = 9");
    CHECK(esp_library_open(&library, kept_path, ESP_LIBRARY_KEEP, err, sizeof err) < 0 &&
              strstr(err, "newer espalier"),
          "%s", err);
    keep_one();
    CHECK(kept_troubles == 1 && strstr(kept_told, "no longer kept") &&
              strstr(kept_told, "newer"),
          "%s", kept_told);
    CHECK(!is_set_aside());
    kept_execute("PRAGMA user_version = 3");
    CHECK(count_sessions() == 1, "nothing is lost");
    kept_end();
}

/* Returns the recording of the current text of a session. The caller frees it. */
static char *exported(int64_t id)
{
    struct esp_library *library;
    char err[512], *bytes = NULL;
    size_t size;
    FILE *out = open_memstream(&bytes, &size);
    CHECK(esp_library_open(&library, kept_path, ESP_LIBRARY_READ, err, sizeof err) == ESP_OK);
    CHECK(esp_library_export(library, id, -1, out, err, sizeof err) == ESP_OK, "%s", err);
    esp_library_close(library);
    fclose(out);
    return bytes;
}

/* Returns how often the text `what` occurs in the text `in`. */
static int count_of(const char *in, const char *what)
{
    int count = 0;
    for (; (in = strstr(in, what)); in++)
        count++;
    return count;
}

TEST(an_export_has_texts_and_scores)
{
    kept_begin();
    keep_one();
    char *recording = exported(1);
    const int iterations = count_of(recording, "\"type\":\"iteration\"");
    CHECK(iterations > 0 && count_of(recording, "\"scores\":[{\"p\":") == iterations, "%s",
          recording);
    CHECK(count_of(recording, "{\"id\":") + 1 /* the end event */ ==
              count_of(recording, ",\"text\":\""),
          "%s", recording);
    free(recording);
    kept_end();
}

/* Copies the library of version 2 from tests/vectors to the test's library. Executes the
 * SQL statement `change` on the copy. */
static void make_old(const char *change)
{
    char sql[20000];
    FILE *file = fopen("tests/vectors/library-version-2.sql", "r");
    CHECK(file);
    sql[fread(sql, 1, sizeof sql - 1, file)] = '\0';
    fclose(file);
    write_file("", 0);
    kept_execute(sql);
    kept_execute(change);
}

static int hear_generation(void *user, const struct esp_kept_generation *generation)
{
    int *count = user;
    CHECK(generation->number == *count && generation->place == 4 + *count);
    CHECK(generation->generator.draft == (*count ? 10u : 0u));
    CHECK(strstr(generation->header, "\"drafter\":\"fixed:K=2\""));
    ++*count;
    return 0;
}

TEST(a_library_of_version_2_can_still_be_used)
{
    struct esp_library *library;
    struct esp_kept_session session;
    struct esp_kept_text text;
    char err[512];
    int generations = 0, *writers;
    kept_begin();
    make_old("PRAGMA user_version = 1");
    CHECK(esp_library_open(&library, kept_path, ESP_LIBRARY_READ, err, sizeof err) == ESP_OK,
          "%s", err);
    CHECK(esp_library_find(library, "the tale", &session, err, sizeof err) == ESP_OK, "%s",
          err);
    CHECK(session.id == 3 && session.created == 1000 && session.changed == 2000 &&
          session.branches == 2 && session.tokens == 9 && !strcmp(session.words, "dog bca") &&
          !strcmp(session.target_path, "/target") && !strcmp(session.target, "target"));
    CHECK(esp_library_load(library, 3, &text, err, sizeof err) == ESP_OK, "%s", err);
    const struct esp_branches *b = &text.branches;
    CHECK(b->count == 2 && b->at.branch == 1 && b->at.length == 6 && text.iterations == 3);
    CHECK(b->branch[1].marked && b->branch[1].created == 1002 &&
          !strcmp(b->branch[1].name, "other") && !strcmp(b->branch[1].drafter, "fixed"));
    CHECK(b->branch[0].tokens[4].score.count == 2 && b->branch[0].tokens[4].iteration == 0 &&
          b->branch[0].tokens[4].score.likely[1] == 7 && b->branch[1].tokens[0].kind == 4);
    esp_kept_text_free(&text);
    CHECK(esp_library_generations(library, 3, hear_generation, &generations, err, sizeof err) ==
              ESP_OK &&
          generations == 2);
    CHECK(esp_library_writers(library, 3, 3, &writers, err, sizeof err) == ESP_OK &&
          writers[0] == 0 && writers[1] == 0 && writers[2] == 1);
    free(writers);
    esp_library_close(library);
    char *recording = exported(3);
    CHECK(count_of(recording, "\"type\":\"iteration\"") == 1 &&
              strstr(recording, "\"index\":2,\"position\":5") &&
              strstr(recording, "\"t\":0.75"),
          "%s", recording);
    free(recording);
    keep_one();
    CHECK(kept_troubles == 0 && count_sessions() == 2, "%s", kept_told);
    kept_end();
}

/* If a session of an old library is damaged, the new library lacks it, and a copy of the old
 * file is kept. */
TEST(an_old_library_that_is_damaged_is_copied)
{
    char copy[160];
    struct stat about;
    kept_begin();
    make_old("UPDATE token SET kind = 9 WHERE place = 0");
    keep_one();
    snprintf(copy, sizeof copy, "%s.damaged", kept_path);
    CHECK(strstr(kept_told, "1 of the sessions") && strstr(kept_told, ".damaged"), "%s",
          kept_told);
    CHECK(stat(copy, &about) == 0 && about.st_size > 4096 && (about.st_mode & 077) == 0);
    CHECK(count_sessions() == 1);
    kept_end();
}

TEST(views_and_triggers_never_run)
{
    static const char *const changes[] = {
        "CREATE VIEW v AS SELECT 1", "CREATE TABLE other(x)",
        "CREATE TRIGGER t AFTER INSERT ON chunk BEGIN DELETE FROM chunk; END",
        "DROP TABLE piece; CREATE VIEW piece AS SELECT 1 AS vocabulary, 2 AS token, 3 AS "
        "bytes"};
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        struct esp_library *library;
        char err[512];
        kept_begin();
        keep_one();
        kept_execute(changes[i]);
        CHECK(esp_library_open(&library, kept_path, ESP_LIBRARY_READ, err, sizeof err) ==
                  ESP_E_FORMAT,
              "%s", changes[i]);
        kept_end();
    }
}

TEST(values_are_checked)
{
    static const char *const changes[] = {
        "UPDATE chunk SET texts = x'00'",
        "UPDATE chunk SET texts = zeroblob(1000)",
        "UPDATE chunk SET texts = substr(texts, 1, length(texts) - 1) WHERE number = 0",
        "UPDATE chunk SET texts = substr(texts, 9) WHERE number = 0",
        "UPDATE chunk SET texts = CAST(texts || x'ffffffff00000000' AS BLOB)",
        "UPDATE session SET iterations = -1",
        "UPDATE session SET iterations = 100000000",
        "UPDATE session SET created = -1",
        "UPDATE session SET vocabulary = NULL",
        "UPDATE vocabulary SET tokens = 0",
        "UPDATE vocabulary SET tokens = 1",
        "UPDATE session SET header = 'x'",
        "UPDATE session SET header = ''",
    };
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        struct esp_resumed *resumed;
        char err[512] = "";
        kept_begin();
        keep_one();
        kept_execute(changes[i]);
        CHECK(esp_resumed_open(&resumed, kept_path, NULL, err, sizeof err) < 0 && *err, "%s",
              changes[i]);
        CHECK(strstr(err, "damaged") != NULL, "%s: %s", changes[i], err);
        kept_end();
    }
}

TEST(a_damaged_session_is_exported_up_to_the_damage)
{
    struct esp_library *library;
    char err[512] = "", *bytes = NULL;
    size_t size;
    const int32_t tokens[] = {3, 14, 6}; /* the letters d, o, g */
    kept_begin();
    struct esp_keeper *keeper = kept_keeper(0);
    for (int i = 0; i < 3; i++)
        esp_keeper_event(
            keeper,
            &(struct esp_event){.type = ESP_EVENT_PROMPT, .tokens = tokens, .token_count = 3});
    esp_keeper_close(keeper);
    kept_execute("UPDATE chunk SET texts = substr(texts, 1, length(texts) - 1) WHERE number = "
                 "(SELECT max(number) FROM chunk WHERE length(texts) > 1)");
    FILE *out = open_memstream(&bytes, &size);
    CHECK(esp_library_open(&library, kept_path, ESP_LIBRARY_READ, err, sizeof err) == ESP_OK);
    CHECK(esp_library_export(library, 1, -1, out, err, sizeof err) == ESP_E_FORMAT);
    CHECK(strstr(err, "session 1 is damaged: its texts"), "%s", err);
    fclose(out);
    CHECK(bytes && count_of(bytes, "\"type\":\"prompt\"") > 0 &&
              count_of(bytes, "\"type\":\"end\"") == 1,
          "%s", bytes);
    free(bytes);
    esp_library_close(library);
    kept_end();
}

/* Changes each byte of each record of a log in turn, and corrects the checksum. Reading the log
 * must give a tree or report that the log is damaged. */
TEST(records_are_checked)
{
    struct esp_library *library;
    struct esp_pack log = {.length = 0};
    char err[512];
    int refused = 0;
    kept_begin();
    keep_one();
    CHECK(esp_library_open(&library, kept_path, ESP_LIBRARY_READ, err, sizeof err) == ESP_OK);
    CHECK(esp_library_texts(library, 1, &log, err, sizeof err) == ESP_OK, "%s", err);
    esp_library_close(library);
    for (size_t record = 0, next; record < log.length; record = next) {
        const size_t length = log.at[record] | (size_t)log.at[record + 1] << 8;
        next = record + ESP_LOG_FRAME + length;
        for (size_t i = 0; i < length && i < 64; i++) {
            struct esp_branches tree;
            struct esp_log_texts texts = {.branches = &tree, .vocabulary = VOCABULARY};
            struct esp_from from;
            const unsigned char *at = log.at;
            unsigned char *byte = &log.at[record + ESP_LOG_FRAME + i], before = *byte;
            int kind;
            *byte = (unsigned char)(before + 1 + 37 * i);
            esp_log_seal(log.at + record, length);
            esp_branches_open(&tree);
            while ((kind = esp_log_next(&at, log.at + log.length, &from)) > 0 &&
                   esp_log_apply(&texts, kind, &from))
                continue;
            refused += kind != 0;
            CHECK(!texts.no_memory);
            for (int j = 0; j < tree.count; j++)
                CHECK(tree.branch[j].parent < j && tree.branch[j].count > 0);
            esp_branches_free(&tree);
            *byte = before;
            esp_log_seal(log.at + record, length);
        }
    }
    CHECK(refused > 0);
    esp_pack_free(&log);
    kept_end();
}

static void journal_path(char *to, size_t size)
{
    esp_journal_path(to, size, kept_path, 1);
}

/* Starts a process that stores a text in the library and ends without closing the library. */
static void keep_and_die(void)
{
    const pid_t child = fork();
    if (child == 0) {
        struct model m = {.random = 11, .seen = calloc(MOST_TEXTS, sizeof *m.seen)};
        esp_branches_open(&m.tree);
        m.keeper = kept_keeper(0);
        say(&m);
        iterate(&m);
        _exit(0);
    }
    waitpid(child, NULL, 0);
}

TEST(a_leftover_journal_is_stored)
{
    struct esp_kept_text text;
    char journal[160], err[512];
    kept_begin();
    keep_and_die();
    journal_path(journal, sizeof journal);
    CHECK(access(journal, F_OK) == 0);
    CHECK(load(1, &text, err, sizeof err) == ESP_OK && text.iterations == 1, "%s", err);
    esp_kept_text_free(&text);
    CHECK(access(journal, F_OK) < 0, "once");
    CHECK(load(1, &text, err, sizeof err) == ESP_OK && text.iterations == 1, "%s", err);
    esp_kept_text_free(&text);
    kept_end();
}

/* A program that keeps sessions renames a damaged journal and gives one message. */
TEST(a_damaged_journal_is_renamed)
{
    static const char *const changes[] = {"this is not a journal", "espalier-log 1\n"};
    for (int i = 0; i < 3; i++) {
        struct esp_kept_text text;
        char journal[160], aside[200], err[512];
        kept_begin();
        keep_and_die();
        journal_path(journal, sizeof journal);
        const int file = open(journal, O_WRONLY);
        CHECK(file >= 0);
        if (i < 2) /* writes another header, or a header with invalid numbers */
            CHECK(pwrite(file, changes[i], strlen(changes[i]) + 1, 0) > 0 &&
                  (i == 0 || pwrite(file, "\377\377\377\377\377\377\377\377", 8, 24) == 8));
        else /* damages the second half of the records */
            CHECK(pwrite(file, "????????", 8, 4096 + 300) == 8);
        close(file);
        load(1, &text, err, sizeof err);
        esp_kept_text_free(&text);
        CHECK(access(journal, F_OK) == 0, "a reader must not rename the journal");
        keep_one();
        snprintf(aside, sizeof aside, "%s.unreadable-1", journal);
        CHECK(access(journal, F_OK) < 0 && access(aside, F_OK) == 0, "change %d", i);
        CHECK(kept_troubles == 1 && strstr(kept_told, "is damaged") &&
                  strstr(kept_told, ".unreadable-1"),
              "%d: %s", kept_troubles, kept_told);
        CHECK(load(2, &text, err, sizeof err) == ESP_OK, "%s", err);
        esp_kept_text_free(&text);
        kept_end();
    }
}

/* After random changes to the file, opening it must give an error message or a complete tree,
 * never a crash. */
TEST(random_damage_gives_a_sentence_or_a_complete_tree)
{
    uint32_t random = 17;
    const int times = check_quick() ? 60 : 600;
    kept_begin();
    keep_one();
    kept_execute("PRAGMA journal_mode = DELETE");
    struct stat about;
    CHECK(stat(kept_path, &about) == 0);
    char *bytes = malloc((size_t)about.st_size), *changed = malloc((size_t)about.st_size);
    const int file = open(kept_path, O_RDONLY);
    CHECK(read(file, bytes, (size_t)about.st_size) == about.st_size);
    close(file);
    for (int i = 0; i < times; i++) {
        struct esp_library *library;
        struct esp_kept_text text = {.vocabulary = 0};
        char err[512] = "";
        memcpy(changed, bytes, (size_t)about.st_size);
        for (int j = 0; j < 1 + i % 40; j++) {
            random = random * 1664525u + 1013904223u;
            changed[(random >> 4) % (uint32_t)about.st_size] = (char)(random >> 24);
        }
        write_file(changed, (size_t)about.st_size);
        if (esp_library_open(&library, kept_path, ESP_LIBRARY_READ, err, sizeof err) < 0) {
            CHECK(*err);
            continue;
        }
        FILE *out = fopen("/dev/null", "w");
        struct esp_kept_session session;
        *err = '\0';
        const int status = esp_library_load(library, 1, &text, err, sizeof err);
        CHECK(status == ESP_OK || *err);
        esp_kept_text_free(&text);
        esp_library_find(library, NULL, &session, err, sizeof err);
        esp_library_export(library, 1, -1, out, err, sizeof err);
        fclose(out);
        esp_library_close(library);
    }
    free(bytes);
    free(changed);
    kept_end();
}

/* ------------------------------------------------------------------ disks */

TEST(a_full_disk_is_reported_once)
{
    struct model m = {.random = 21, .seen = calloc(MOST_TEXTS, sizeof *m.seen)};
    const struct rlimit small = {100000, RLIM_INFINITY};
    struct rlimit before;
    kept_begin();
    signal(SIGXFSZ, SIG_IGN);
    esp_branches_open(&m.tree);
    m.keeper = kept_keeper(0);
    say(&m);
    esp_keeper_settle(m.keeper);
    getrlimit(RLIMIT_FSIZE, &before);
    CHECK(setrlimit(RLIMIT_FSIZE, &small) == 0);
    for (int i = 0; i < 400; i++)
        step(&m);
    esp_keeper_settle(m.keeper);
    CHECK(kept_troubles == 1 && strstr(kept_told, "is no longer kept"), "%d: %s", kept_troubles,
          kept_told);
    esp_keeper_close(m.keeper);
    setrlimit(RLIMIT_FSIZE, &before);
    CHECK(count_sessions() == 1, "the session that was kept before must still be there");
    esp_branches_free(&m.tree);
    free(m.seen);
    kept_end();
}

TEST(a_folder_that_cannot_be_made_is_reported_once)
{
    kept_begin();
    snprintf(kept_path, sizeof kept_path, "/dev/null/below/sessions.db");
    keep_one();
    CHECK(kept_troubles == 1 && strstr(kept_told, "/dev/null/below/sessions.db"), "%s",
          kept_told);
    kept_end();
}

/* ------------------------------------------------------------------ cost */

/* Keeping a session must not slow it down. The limit is far above the usual time, because
 * machines may be busy and sanitizers are slow. */
TEST(keeping_an_iteration_takes_microseconds)
{
    enum { TIMES = 20000 };
    struct model m = {.random = 9, .seen = calloc(MOST_TEXTS, sizeof *m.seen)};
    kept_begin();
    esp_branches_open(&m.tree);
    m.keeper = kept_keeper(0);
    say(&m);
    m.length = 0;
    const clock_t before = clock();
    for (int i = 0; i < TIMES; i++, m.length = 0)
        iterate(&m);
    esp_keeper_settle(m.keeper);
    const double spent = (double)(clock() - before) / CLOCKS_PER_SEC / TIMES;
    printf("  keeping an iteration: %.1f us of processor time\n", 1e6 * spent);
    CHECK(spent < 1e-3);
    esp_keeper_close(m.keeper);
    esp_branches_free(&m.tree);
    free(m.seen);
    kept_end();
}
