/* Tests that no combination of keys in the input line ends the program. */
#include "tui/app/input.h"

#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <readline/history.h>
#include <readline/readline.h>

#include "tests/check.h"
#include "tui/view/keys.h"

/* Readline does not free all of its memory. The leak sanitizer calls this
 * function. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libreadline";
}

/* Readline aborts a sequence of keys with longjmp(). AddressSanitizer then searches its own
 * stack for dead frames. This function makes that stack as small as possible, so that the
 * search takes only a sixteenth of the time. The sanitizer calls this function. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "max_uar_stack_size_log=16";
}

static struct esp_input *input;
static int submitted;

static void submit(void *user, const char *line)
{
    (void)user;
    (void)line;
    submitted++;
}

static void complete(void *user, const char *before, const char *word,
                     struct esp_choices *choices)
{
    (void)user;
    (void)before;
    (void)word;
    esp_choices_add(choices, "alpha", "a letter");
    esp_choices_add(choices, "beta", NULL);
}

/* Opens the input line without the user's files. */
static void open_input(void)
{
    const struct esp_input_hooks hooks = {.submit = submit, .complete = complete};
    setenv("INPUTRC", "/dev/null", 1);
    setlocale(LC_CTYPE, "C.UTF-8");
    CHECK(esp_input_open(&input, &hooks, false) == 0);
    esp_input_remember(input, "the king of the hill");
    esp_input_remember(input, ":set temp 0.6");
    esp_input_remember(input, "two\nlines of a \u6f22 prompt");
}

static void close_input(void)
{
    esp_input_close(input);
    input = NULL;
}

/* Ends unfinished key sequences and empties the line. */
static void begin_anew(void)
{
    for (int i = 0; i < 3; i++)
        esp_input_key(input, 'g' & 0x1f);
    esp_input_replace(input, "some words, \u00e9 \u6f22");
}

/* ------------------------------------------------------------------ the keys */

enum { MOST_KEYS = 512 };

/* Lists the keys: all control characters, special keys, Meta with every ASCII character and
 * special key, and some other characters. */
static int list_keys(int keys[MOST_KEYS])
{
    const int characters[] = {'a', ' ', '0', ':', '/', 0x7f, 0xe9, 0x6f22, 0xfffd};
    int count = 0;
    for (int c = 1; c < 0x20; c++)
        keys[count++] = c;
    for (int key = 1; key < 0x80; key++)
        keys[count++] = key | ESP_KEY_META;
    for (int key = ESP_KEY_FIRST; key <= ESP_KEY_LAST; key++) {
        keys[count++] = key;
        keys[count++] = key | ESP_KEY_META;
    }
    for (size_t i = 0; i < sizeof characters / sizeof *characters; i++)
        keys[count++] = characters[i];
    keys[count++] = 0xe9 | ESP_KEY_META;
    return count;
}

/* ------------------------------------------------------------------ keys that once broke the
 * input line */

static int trial[3], trial_length;

static const char *trial_keys(char keys[128])
{
    char name[16];
    *keys = '\0';
    for (int i = 0; i < trial_length; i++) {
        strcat(keys, " ");
        strcat(keys, esp_key_name(trial[i], name));
    }
    return keys;
}

static void say_trial(int number)
{
    char keys[128];
    const char *how = number == SIGALRM ? " do not end\n" : " crash\n";
    (void)!write(STDOUT_FILENO, "    keys:", 9);
    (void)!write(STDOUT_FILENO, keys, strlen(trial_keys(keys)));
    (void)!write(STDOUT_FILENO, how, strlen(how));
    signal(number, SIG_DFL);
    raise(number);
}

static void name_the_keys(void)
{
    const int ends[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGALRM};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        signal(ends[i], say_trial);
}

/* Checks that the line which is drawn has a valid cursor position and length. */
static void check_line(void)
{
    struct esp_ui ui = {.stepping = false};
    char keys[128];
    esp_input_show(input, &ui);
    CHECK(ui.input.prompt && ui.input.line && ui.input.point <= ui.input.length &&
              strlen(ui.input.line) == ui.input.length,
          "keys:%s", trial_keys(keys));
}

static void press(const int *keys, int count)
{
    memcpy(trial, keys, (size_t)count * sizeof *keys);
    trial_length = count;
    for (int i = 0; i < count; i++)
        esp_input_key(input, keys[i]);
    check_line();
    begin_anew();
}

static void press_pairs(void)
{
    int keys[MOST_KEYS];
    const int count = list_keys(keys);
    for (int a = 0; a < count; a++) {
        alarm(60);
        for (int b = 0; b < count; b++)
            press((const int[]){keys[a], keys[b]}, 2);
    }
    alarm(0);
}

/* Presses each of the `count` keys in `first`, followed by every pair of keys. */
static void press_threes(const int *first, int count)
{
    int keys[MOST_KEYS];
    const int all = list_keys(keys), step = check_quick() ? 3 : 1;
    for (int i = 0; i < count; i++)
        for (int a = 0; a < all; a++) {
            alarm(60);
            for (int b = a % step; b < all; b += step)
                press((const int[]){first[i], keys[a], keys[b]}, 3);
        }
    alarm(0);
}

TEST(every_pair_of_keys_is_safe)
{
    name_the_keys();
    open_input();
    press_pairs();
    CHECK(submitted > 0, "no line was submitted");
    close_input();
}

/* In readline's vi mode, keys have other meanings in command mode. So several prefixes, such as
 * Esc, are typed before each pair, too. */
TEST(every_pair_of_keys_in_vi_mode_is_safe)
{
    const char *const before[] = {"", "\033", "\0330", "\033d", "\033/", "\033kk", "R"};
    int keys[MOST_KEYS];
    const int count = list_keys(keys), step = check_quick() ? 3 : 1;
    name_the_keys();
    open_input();
    rl_variable_bind("editing-mode", "vi");
    press_pairs();
    for (size_t i = 0; i < sizeof before / sizeof *before; i++)
        for (int a = 0; a < count; a++)
            for (int b = 0x20 + a % step; b < 0x80; b += step) {
                for (const char *key = before[i]; *key; key++)
                    esp_input_key(input, *key);
                press((const int[]){keys[a], b}, 2);
            }
    rl_variable_bind("editing-mode", "emacs");
    close_input();
}

/* Presses many keys without clearing the line in between. Pastes, lines that the program sets,
 * and lists of completions come between the keys. */
TEST(many_keys_and_pastes_are_safe)
{
    int keys[MOST_KEYS];
    const int all = list_keys(keys), steps = check_quick() ? 20000 : 200000;
    const char *const modes[] = {"emacs", "vi"};
    unsigned long long random = 12;
    name_the_keys();
    for (int mode = 0; mode < 2; mode++) {
        open_input();
        rl_variable_bind("editing-mode", modes[mode]);
        trial_length = 0;
        for (int i = 0; i < steps; i++) {
            if (i % 1000 == 0)
                alarm(60);
            const double chance = check_uniform(&random);
            trial_length = 3;
            memmove(trial, trial + 1, 2 * sizeof *trial);
            trial[2] = keys[(int)(check_uniform(&random) * all)];
            if (chance < 0.01)
                esp_input_paste(input, "a b\r\nc \xff\xe6", 9);
            else if (chance < 0.02)
                esp_input_replace(input, "a line");
            else if (chance < 0.03)
                esp_input_list(input);
            else if (rl_end > 10000)
                esp_input_replace(input, "");
            else
                esp_input_key(input, trial[2]);
            check_line();
        }
        alarm(0);
        rl_variable_bind("editing-mode", "emacs");
        close_input();
    }
}

TEST(every_three_keys_after_a_search_or_a_prefix_are_safe)
{
    const int first[] = {'r' & 0x1f, 's' & 0x1f, 'x' & 0x1f};
    name_the_keys();
    open_input();
    press_threes(first, sizeof first / sizeof *first);
    close_input();
}

TEST(every_three_keys_after_a_number_are_safe)
{
    int first[11] = {'-' | ESP_KEY_META};
    for (int digit = 0; digit < 10; digit++)
        first[digit + 1] = ('0' + digit) | ESP_KEY_META;
    name_the_keys();
    open_input();
    press_threes(first, sizeof first / sizeof *first);
    close_input();
}
