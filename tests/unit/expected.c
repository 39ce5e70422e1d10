/* Tests guesses from the expected text. A user can give such a text if the output will probably
 * be similar to it. A pointer marks the token of the expected text that the output has reached.
 * Guesses are copied from that position. With any expected text, the output must equal the
 * output of plain decoding. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/check.h"
#include "tests/drafting.h"
#include "engine/drafters/follow.h"
#include "engine/drafters/suffix_automaton.h"

enum { FILE_TOKENS = 300, TEXT = 1000 };

static int32_t file[FILE_TOKENS], text[TEXT];
static struct esp_expected expected = {.tokens = file, .count = FILE_TOKENS, .serial = 1};

/* Makes an expected text in which all tokens are different, so that each token occurs only
 * once. */
static void write_file(void)
{
    for (int i = 0; i < FILE_TOKENS; i++)
        file[i] = 1000 + i;
    text[0] = text[1] = 7; /* the prompt */
    expected.begin = 2;
}

/* Appends the tokens [from, to) of the expected text to the output. Returns the new length of
 * the output. */
static int copy(int length, int from, int to)
{
    memcpy(text + length, file + from, (size_t)(to - from) * sizeof *text);
    return length + to - from;
}

/* Appends `count` tokens to the output. The expected text does not have these tokens. Returns
 * the new length of the output. */
static int invent(int length, int count)
{
    static int32_t next = 5000;
    for (int i = 0; i < count; i++)
        text[length++] = next++;
    return length;
}

/* Lets the pointer follow the output token by token. Returns the pointer's last position in
 * the expected text, or -1 if the pointer is lost. */
static int place_after(int length)
{
    struct esp_follow follow = {0};
    for (int i = expected.begin; i <= length; i++)
        esp_follow_read(&follow, &expected, text, i);
    return esp_follow_place(&follow, &expected);
}

TEST(the_pointer_moves_along_while_the_texts_are_equal)
{
    write_file();
    CHECK(place_after(2) == 0);
    CHECK(place_after(copy(2, 0, 1)) == 1);
    CHECK(place_after(copy(2, 0, 120)) == 120);
    CHECK(place_after(copy(2, 0, FILE_TOKENS)) == -1,
          "at the end of the expected text, the pointer has no position");
}

TEST(the_pointer_continues_after_an_insert_a_deletion_and_a_changed_line)
{
    write_file();
    /* The pointer is lost until three tokens agree. Two tokens are not enough. */
    CHECK(place_after(copy(invent(copy(2, 0, 50), 9), 50, 52)) == -1);
    CHECK(place_after(copy(invent(copy(2, 0, 50), 9), 50, 53)) == 53, "insert");
    CHECK(place_after(copy(copy(2, 0, 50), 70, 73)) == 73, "deletion");
    CHECK(place_after(copy(invent(copy(2, 0, 50), 6), 58, 70)) == 70, "changed line");
    CHECK(place_after(copy(invent(copy(2, 0, 50), 1), 51, 54)) == 54, "changed token");
    /* The numbers of inserted and of skipped tokens may add up to 64, but not to 65. */
    CHECK(place_after(copy(invent(copy(2, 0, 50), 30), 84, 87)) == 87, "30 and 34");
    CHECK(place_after(copy(invent(copy(2, 0, 50), 30), 85, 88)) == -1, "30 and 35");
    /* At a larger distance, eight tokens must agree. The pointer may also continue before the
     * position at which it was lost. */
    CHECK(place_after(copy(copy(2, 0, 50), 200, 207)) == -1);
    CHECK(place_after(copy(copy(2, 0, 50), 200, 208)) == 208);
    CHECK(place_after(copy(invent(copy(2, 0, 150), 200), 20, 28)) == 28);
}

/* Lets the pointer follow the output token by token. Then writes the guesses at the pointer's
 * position, and returns how many there are. */
static int guesses_after(int length, struct esp_follow_guess *guesses)
{
    struct esp_follow follow = {0};
    for (int i = expected.begin; i <= length; i++)
        esp_follow_read(&follow, &expected, text, i);
    return esp_follow_guess(&follow, &expected, text, guesses);
}

TEST(after_a_difference_the_pointer_guesses_where_the_file_continues)
{
    struct esp_follow_guess g[ESP_FOLLOW_PLACES];
    write_file();
    CHECK(guesses_after(copy(2, 0, 50), g) == 0,
          "without a difference, no position is guessed");
    /* After a changed token, the guesses skip as many tokens of the expected text as were
     * written, or one token more or less. */
    CHECK(guesses_after(invent(copy(2, 0, 50), 1), g) == 3);
    CHECK(g[0].place == 51 && g[1].place == 50 && g[2].place == 52);
    CHECK(g[0].q > g[1].q && g[1].q == g[2].q && g[2].q > 0);
    CHECK(guesses_after(invent(copy(2, 0, 50), 2), g) > 0 && g[0].place == 52);
    /* If a token agrees, its position is the first guess, even if the number of skipped tokens
     * differs from the number of written tokens. */
    CHECK(guesses_after(copy(invent(copy(2, 0, 50), 1), 53, 54), g) > 0 && g[0].place == 54);
    CHECK(guesses_after(copy(invent(copy(2, 0, 50), 4), 50, 51), g) > 0 && g[0].place == 51);
    CHECK(guesses_after(copy(invent(copy(2, 0, 50), 1), 53, 56), g) == 0, "three agree");
    /* Near the end of the expected text, there are few or no guesses. If nothing agrees for
     * many tokens, there are none. */
    CHECK(guesses_after(invent(copy(2, 0, FILE_TOKENS - 1), 1), g) == 1);
    CHECK(guesses_after(invent(copy(2, 0, 50), 20), g) == 0);
}

TEST(the_pointer_is_found_after_words_before_the_expected_text)
{
    write_file();
    CHECK(place_after(copy(invent(2, 12), 0, 3)) == 3,
          "the output has a sentence before the expected text");
    CHECK(place_after(copy(2, 5, 8)) == 8,
          "the output lacks the first line of the expected text");
}

TEST(the_pointer_is_lost_if_the_texts_have_nothing_in_common)
{
    write_file();
    CHECK(place_after(invent(2, 200)) == -1);
}

TEST(another_answer_starts_anew)
{
    struct esp_follow follow = {0};
    write_file();
    int length = copy(2, 0, 40);
    esp_follow_read(&follow, &expected, text, length);
    CHECK(esp_follow_place(&follow, &expected) == 40);
    esp_follow_read(&follow, &expected, text, 12); /* the text was shortened */
    CHECK(esp_follow_place(&follow, &expected) == 10);
    expected.begin = 5;
    esp_follow_read(&follow, &expected, text, 5);
    CHECK(esp_follow_place(&follow, &expected) == 0);
    expected.serial++;
    CHECK(esp_follow_place(&follow, &expected) == -1, "of other tokens");
    esp_follow_read(&follow, &expected, text, 5);
    CHECK(esp_follow_place(&follow, &expected) == 0);
}

/* --------------------------------------------------------------- the seed of the automaton */

TEST(the_automaton_copies_from_its_seed)
{
    static struct esp_guess guesses[ESP_GUESSES];
    const struct esp_guess_plan plan = {.nodes = 30, .depth = 20, .factor = 9, .least = 0.2};
    const int32_t seed[] = {1, 2, 3, 4, 5}, said[] = {9, 3, 4}, again[] = {9, 4, 5};
    struct esp_suffix s = {0};
    int match;
    CHECK(esp_suffix_seed(&s, seed, 5) == ESP_OK);
    CHECK(esp_suffix_read(&s, said, 3) == ESP_OK);
    CHECK(esp_suffix_guess(&s, &plan, guesses, &match) == 1 && match == 2);
    CHECK(guesses[0].token == 5 && esp_suffix_back(&s, &guesses[0]) == 0);
    /* The automaton must not copy tokens that follow the end of the seed, not even the
     * beginning of the text. */
    CHECK(esp_suffix_read(&s, again, 3) == ESP_OK);
    CHECK(esp_suffix_guess(&s, &plan, guesses, &match) == 0);
    /* If the text is shortened, the automaton keeps the seed. */
    CHECK(esp_suffix_read(&s, said, 2) == ESP_OK);
    CHECK(esp_suffix_guess(&s, &plan, guesses, &match) == 2 && guesses[0].token == 4);
    CHECK(esp_suffix_seed(&s, NULL, 0) == ESP_OK && esp_suffix_read(&s, said, 2) == ESP_OK);
    CHECK(esp_suffix_guess(&s, &plan, guesses, &match) == 0);
    esp_suffix_close(&s);
}

TEST(a_long_repetitive_seed_is_limited)
{
    enum { MANY = 1 << 18 };
    int32_t *same = calloc(MANY, sizeof *same);
    struct esp_suffix s = {0};
    CHECK(same && esp_suffix_seed(&s, same, MANY) == ESP_OK);
    CHECK(s.seed == ESP_SUFFIX_MOST + 1);
    esp_suffix_close(&s);
    free(same);
}

/* ------------------------------------------------------------------ drafters */

/* Gives a session on the toy models an expected text as tokens, because the toy models have no
 * tokenizer. */
static void expect(struct drafting *d, const int32_t *tokens, int count)
{
    static unsigned serial;
    struct esp_expectation *e = &d->session->expectation;
    e->expected = (struct esp_expected){tokens, count, DRAFTING_PROMPT, ++serial};
    d->session->draft_context.expected = &e->expected;
}

static int plain(int32_t *tokens, double temperature)
{
    struct drafting d;
    drafting_open(&d, &(struct drafting_setup){.drafter = "ar", .temperature = temperature});
    while (drafting_step(&d))
        continue;
    const int length = d.session->length;
    memcpy(tokens, d.session->text, (size_t)length * sizeof *tokens);
    drafting_close(&d);
    return length;
}

/* Generates a text, with `tokens` as the expected text. Returns the number of iterations. */
static int write_with(const char *drafter, const int32_t *tokens, int count,
                      const int32_t *want, int length)
{
    struct drafting d;
    int iterations = 0;
    drafting_open(&d, &(struct drafting_setup){.drafter = drafter});
    expect(&d, tokens, count);
    while (drafting_step(&d)) {
        iterations++;
        for (int u = 1; u < d.tree->count; u++)
            CHECK(d.tree->nodes[u].source < ESP_SOURCES);
    }
    CHECK(d.session->length == length &&
              memcmp(d.session->text, want, (size_t)length * sizeof *want) == 0,
          "%s: another text", drafter);
    drafting_close(&d);
    return iterations;
}

static const char *const drafters[] = {"suffix",
                                       "recycle:cost=off,N=16",
                                       "recycle:cost=off,suffix=off",
                                       "recycle",
                                       "hybrid:N=12",
                                       "goodput",
                                       "ar",
                                       "dynatree"};
enum { DRAFTERS = sizeof drafters / sizeof *drafters };

TEST(with_any_expected_text_the_output_is_that_of_plain_decoding)
{
    static int32_t want[TEXT], other[TEXT];
    const int length = plain(want, 0);
    for (int i = 0; i < TEXT; i++)
        other[i] = (want[i % length] + 1 + i % 5) % 12;
    for (int i = 0; i < DRAFTERS; i++) {
        write_with(drafters[i], want + DRAFTING_PROMPT, length - DRAFTING_PROMPT, want, length);
        write_with(drafters[i], other, TEXT, want, length);
        write_with(drafters[i], other, 1, want, length);
        write_with(drafters[i], other, 0, want, length);
    }
}

/* A tree has up to 24 nodes. So if all guesses are right, a text of 200 tokens takes 9
 * iterations. */
TEST(a_right_expected_text_takes_few_iterations)
{
    static int32_t want[TEXT], changed[TEXT];
    const int length = plain(want, 0), count = length - DRAFTING_PROMPT;
    const int32_t *answer = want + DRAFTING_PROMPT;
    const int all = write_with("suffix", answer, count, want, length);
    CHECK(all <= (count + 24) / 25 + 1, "%d iterations for %d tokens", all, count);
    memcpy(changed, answer, (size_t)count * sizeof *answer);
    for (int i = 40; i < count; i += 40) /* four of every forty tokens are changed */
        for (int j = 0; j < 4; j++)
            changed[i + j] = (changed[i + j] + 5) % 12;
    const int some = write_with("suffix", changed, count, want, length);
    CHECK(some < count / 4, "%d iterations for %d tokens", some, count);
    /* After a changed token, guesses do not wait until three tokens agree. Each change costs
     * the iteration that ends at the changed token, and sometimes one more. */
    memcpy(changed, answer, (size_t)count * sizeof *answer);
    for (int i = 12; i < count; i += 12)
        changed[i] = (changed[i] + 5) % 12;
    const int single = write_with("recycle:cost=off", changed, count, want, length);
    CHECK(single <= 2 * (count / 12), "%d iterations for %d tokens", single, count);
}

/* ------------------------------------------------------------------ files */

static struct esp_engine *engine;
static char err[512];

static void open_engine(void)
{
    const struct esp_engine_options options = {.backend = "cpu", .threads = 1};
    CHECK(esp_engine_open(&engine, &options, err, sizeof err) == 0, "%s", err);
}

static struct esp_session *open_session(const char *drafter, const char *path)
{
    struct esp_session *session;
    struct esp_session_options options = {
        .drafter = drafter, .repeatable = true, .values.expect = path};
    return esp_session_open(&session, engine, &options, err, sizeof err) == ESP_OK ? session
                                                                                   : NULL;
}

static void say(struct esp_session *session, int tokens)
{
    static const char prompt[] = "Once upon a time there was a little girl";
    CHECK(esp_session_say(session, prompt, sizeof prompt - 1, err, sizeof err) == 0, "%s", err);
    esp_session_allow(session, tokens);
    while (esp_session_step(session, err, sizeof err) > 0)
        continue;
}

/* Writes the text of the session's answer to `bytes`. Returns the length of the text. */
static size_t answer_of(const struct esp_session *session, char *bytes)
{
    struct esp_turn_places turn;
    int count;
    const int32_t *tokens = esp_session_tokens(session, &count);
    size_t length = 0, n;
    CHECK(esp_session_turn(session, 0, &turn));
    for (int i = turn.answer; i < count; i++) {
        const char *token = esp_token_bytes(engine, tokens[i], &n);
        memcpy(bytes + length, token, n);
        length += n;
    }
    return length;
}

static void put(const char *path, const char *bytes, size_t length)
{
    FILE *f = fopen(path, "wb");
    CHECK(f && fwrite(bytes, 1, length, f) == length && fclose(f) == 0);
}

TEST(the_seam_is_tokenized_with_the_last_token_of_the_prompt)
{
    static char answer[1 << 14];
    char folder[] = "/tmp/espalier-expected-XXXXXX", path[64];
    struct esp_stats stats;
    open_engine();
    CHECK(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/answer", folder);
    struct esp_session *session = open_session("ar", NULL);
    say(session, 100);
    put(path, answer, answer_of(session, answer));
    esp_session_close(session);
    CHECK((session = open_session("suffix", path)), "%s", err);
    say(session, 100);
    esp_session_stats(session, &stats);
    CHECK(stats.iterations <= 6, "%d iterations", stats.iterations);
    CHECK(stats.source_accepted[ESP_SOURCE_EXPECTED] > 80 &&
              stats.source_nodes[ESP_SOURCE_EXPECTED] ==
                  stats.source_accepted[ESP_SOURCE_EXPECTED],
          "%d of %d", (int)stats.source_accepted[ESP_SOURCE_EXPECTED],
          (int)stats.source_nodes[ESP_SOURCE_EXPECTED]);
    esp_session_close(session);
    remove(path);
    rmdir(folder);
    esp_engine_close(engine);
}

static void check_refused(const char *path, const char *why)
{
    struct esp_session *session = open_session("suffix", path);
    CHECK(!session && strstr(err, why) && strstr(err, path), "%s", err);
}

TEST(hostile_files_are_refused_or_do_not_change_the_text)
{
    static char bytes[ESP_EXPECT_BYTES + 1];
    static int32_t want[200];
    char folder[] = "/tmp/espalier-expected-XXXXXX", path[64];
    int count, same;
    open_engine();
    CHECK(mkdtemp(folder));
    check_refused(folder, "not a regular file");
    snprintf(path, sizeof path, "%s/none", folder);
    check_refused(path, "No such file");
    CHECK(mkfifo(path, 0600) == 0);
    check_refused(path, "not a regular file");
    snprintf(path, sizeof path, "%s/large", folder);
    memset(bytes, 'a', sizeof bytes);
    put(path, bytes, sizeof bytes);
    check_refused(path, "larger than 1 MB");

    struct esp_session *session = open_session("ar", NULL);
    say(session, 40);
    memcpy(want, esp_session_tokens(session, &count), sizeof want / 4);
    esp_session_close(session);
    /* The files contain invalid UTF-8, NUL bytes, CRLF or end tokens. One is empty, and one has
     * the largest allowed size. */
    const struct {
        const char *bytes;
        size_t length;
    } files[] = {{"\xff\xfe\x80 once\x00upon", 13},
                 {"girl\r\nwho\r\n", 11},
                 {"<|endoftext|>", 13},
                 {"", 0},
                 {bytes, ESP_EXPECT_BYTES}};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        put(path, files[i].bytes, files[i].length);
        CHECK((session = open_session("recycle:cost=off,N=8", path)), "%s", err);
        say(session, 40);
        CHECK(memcmp(esp_session_tokens(session, &same), want, sizeof want / 4) == 0 &&
                  same == count,
              "with file %zu, the output differs", i);
        /* If the new file cannot be read, the setting must keep its old value. */
        CHECK(esp_session_set(session, "expect", folder, err, sizeof err) == ESP_E_FILE);
        char now[600];
        CHECK(esp_session_get(session, "expect", now, sizeof now) == 0 &&
              strcmp(now, path) == 0);
        CHECK(esp_session_set(session, "expect", "off", err, sizeof err) == ESP_OK, "%s", err);
        CHECK(esp_session_get(session, "expect", now, sizeof now) == 0 &&
              strcmp(now, "off") == 0);
        esp_session_close(session);
    }
    remove(path);
    snprintf(path, sizeof path, "%s/none", folder);
    remove(path);
    rmdir(folder);
    esp_engine_close(engine);
}
