/* Tests keys: their names, the table of bindings, and the bytes that terminals send for
 * them. */
#include "tui/view/keys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/check.h"
#include "tui/view/decode.h"

TEST(names_and_keys_match)
{
    const char *const good[] = {"F1",    "F12", "Tab",    "S-Tab",  "Up",       "PgDn",
                                "C-c",   "M-f", "a",      "?",      "Space",    "Enter",
                                "Equal", "Esc", "\u00e9", "M-Left", "Backspace"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        char name[16];
        int key = esp_key_parse(good[i]);
        CHECK(key > 0, "%s is not a key", good[i]);
        CHECK(strcmp(esp_key_name(key, name), good[i]) == 0, "%s comes back as %s", good[i],
              name);
    }
    CHECK(esp_key_parse("F13") < 0 && esp_key_parse("") < 0 && esp_key_parse("Upp") < 0);
}

static int action_of(int key, struct esp_key_when when)
{
    const struct esp_binding *binding = esp_key_binding(key, when, NULL);
    return binding ? binding->action : ESP_ACTION_NONE;
}

TEST(every_binding_names_a_key)
{
    for (const struct esp_binding *b = esp_bindings; b->key; b++)
        CHECK(esp_key_parse(b->key) >= 0, "%s", b->key);
    const struct esp_key_when typing = {.pane = false}, empty = {.empty = true},
                              pane = {.pane = true};
    const struct esp_key_when step = {.empty = true, .step = true}, both = {.step = true};
    CHECK(action_of(esp_key_parse("F1"), typing) == ESP_ACTION_HELP);
    CHECK(action_of('?', empty) == ESP_ACTION_HELP);
    CHECK(action_of('?', typing) == ESP_ACTION_NONE);
    CHECK(action_of('q', pane) == ESP_ACTION_BACK);
    CHECK(action_of('q', empty) == ESP_ACTION_NONE);
    CHECK(action_of(' ', step) == ESP_ACTION_STEP);
    CHECK(action_of(' ', empty) == ESP_ACTION_NONE);
    CHECK(action_of(' ', both) == ESP_ACTION_NONE);
    CHECK(action_of(ESP_KEY_UP, empty) == ESP_ACTION_NONE);
    CHECK(action_of('\t', typing) == ESP_ACTION_NONE);
}

struct heard {
    char text[512];
    char pasted[128];
    size_t paste_length;
};

static void hear(void *user, int key)
{
    struct heard *heard = user;
    char name[16];
    size_t used = strlen(heard->text);
    snprintf(heard->text + used, sizeof heard->text - used, "%s ", esp_key_name(key, name));
}

static void hear_paste(void *user, const char *bytes, size_t count)
{
    struct heard *heard = user;
    size_t used = strlen(heard->text);
    heard->paste_length += count;
    snprintf(heard->pasted, sizeof heard->pasted, "%.*s", (int)count, bytes);
    snprintf(heard->text + used, sizeof heard->text - used, "paste ");
}

static void hear_mouse(void *user, int button, int x, int y)
{
    struct heard *heard = user;
    size_t used = strlen(heard->text);
    snprintf(heard->text + used, sizeof heard->text - used, "mouse(%d,%d,%d) ", button, x, y);
}

static void hear_background(void *user, int rgb)
{
    struct heard *heard = user;
    size_t used = strlen(heard->text);
    snprintf(heard->text + used, sizeof heard->text - used, "background(%06x) ", (unsigned)rgb);
}

/* Checks that the result does not depend on how the bytes are divided into reads. `asked` tells
 * whether the program has requested the terminal's background colour. */
static void check_cuts(const char *bytes, const char *want, bool asked)
{
    size_t length = strlen(bytes);
    for (size_t cut = 1; cut <= length; cut++) {
        struct heard heard = {.text = ""};
        struct esp_decoder decoder = {.user = &heard,
                                      .key = hear,
                                      .pasted = hear_paste,
                                      .mouse = hear_mouse,
                                      .background = hear_background,
                                      .asked = asked};
        for (size_t i = 0; i < length; i += cut)
            esp_decode(&decoder, bytes + i, length - i < cut ? length - i : cut);
        esp_decode_flush(&decoder);
        esp_decode_free(&decoder);
        CHECK(strcmp(heard.text, want) == 0, "with reads of %zu bytes: '%s', want '%s'", cut,
              heard.text, want);
    }
}

static void sends(const char *bytes, const char *want)
{
    check_cuts(bytes, want, false);
}

TEST(the_sequences_of_terminals_are_known)
{
    sends("ab\r\t", "a b Enter Tab ");
    sends("\033[A\033[B\033OC\033[D", "Up Down Right Left ");
    sends("\033[1;5C\033[5~\033[6~\033[3~", "Right PgUp PgDn Del ");
    sends("\033OP\033[12~\033[[C\033[24~", "F1 F2 F3 F12 ");
    sends("\033[Z\033[H\033[4~", "S-Tab Home End ");
    sends("\033f\033\033[A", "M-f Esc Up ");
    sends("\033", "Esc ");
    sends("\033[?1;2cx\033[99~y", "x y ");
    sends("\u00e9\u6f22\U0001f333", "\u00e9 \u6f22 \U0001f333 ");
    sends("\x03\x1a", "C-c C-z ");
}

static void answers(const char *bytes, const char *want)
{
    check_cuts(bytes, want, true);
}

/* The program requests the terminal's background colour. The answer must be distinguished from
 * keys. No key may be lost before or after the answer. If bytes only resemble an answer, no
 * key may be lost, either. */
TEST(the_background_is_requested)
{
    answers("\033]11;rgb:ffff/8080/0000\a", "background(ff8000) ");
    answers("\033]11;rgb:f/8/0\033\\", "background(ff8800) ");
    answers("ab\033]11;rgb:10/15/1d\acd", "a b background(10151d) c d ");
    answers("\033]11;rgb:10/15/1d\a\033]x", "background(10151d) M-] x ");
    answers("\033]x\033[A", "M-] x Up ");
    answers("\033]11x", "M-] 1 1 x ");
    answers("\033]11;rgb:zz\a", "M-] 1 1 ; r g b : z z C-g ");
    answers("\033]11;rgb:12345/1/1\a", "M-] 1 1 ; r g b : 1 2 3 4 5 / 1 / 1 C-g ");
    answers("\033]11;rgb:1/1\a", "M-] 1 1 ; r g b : 1 / 1 C-g ");
    answers("\033]11;r", "M-] 1 1 ; r ");
    sends("\033]11;rgb:10/15/1d\a", "M-] 1 1 ; r g b : 1 0 / 1 5 / 1 d C-g ");
}

TEST(the_mouse_is_known)
{
    sends("\033[<0;1;1M\033[<0;1;1mx", "mouse(0,0,0) x ");
    sends("\033[<64;300;200Ma\033[<65;2;3M", "mouse(64,299,199) a mouse(65,1,2) ");
    sends("\033[<16;5;6M", "mouse(0,4,5) ");
    sends("\033[<32;5;6Mx\033[<;;Ny\033[<1Mz", "x y z ");
    sends("\033[M !!x", "x ");
}

/* Sends bytes that end where their memory ends, so that a sanitizer detects reads beyond
 * them. */
static void sends_exactly(const char *bytes, size_t length, const char *want)
{
    struct heard heard = {.text = ""};
    struct esp_decoder decoder = {
        .user = &heard, .key = hear, .pasted = hear_paste, .mouse = hear_mouse};
    char *copy = malloc(length);
    CHECK(copy);
    memcpy(copy, bytes, length);
    esp_decode(&decoder, copy, length);
    free(copy);
    esp_decode_flush(&decoder);
    esp_decode_free(&decoder);
    CHECK(strcmp(heard.text, want) == 0, "'%s', want '%s'", heard.text, want);
}

TEST(numbers_end_with_the_sequence)
{
    sends_exactly("\033[<0;10;20M", 11, "mouse(0,9,19) ");
    sends_exactly("\033[3~", 4, "Del ");
    sends_exactly("\033[~", 3, "");
    sends("\033[<0;-2147483648;1Mx", "x ");
    sends("\033[<0;4294967297;1Mx\033[99999999999999999999~y", "x y ");
    sends("\033[<0;1;1;1Mx\033[<0 ;1;1My\033[<+1;1;1Mz", "x y z ");
}

TEST(half_a_character_after_escape_is_not_a_negative_key)
{
    char text[] = "M-\ufffd ";
    sends_exactly("\033\xc3", 2, text);
    sends_exactly("\033[", 2, "M-[ ");
    sends_exactly("\033\xe6\xbc", 3, "");
}

TEST(invalid_utf8_is_replaced)
{
    sends("\xff"
          "a\xc3"
          "b",
          "\ufffd a \ufffd b ");
}

TEST(a_paste_is_one_event)
{
    sends("x\033[200~two\rlines\033[A\033[201~y", "x paste y ");
    sends("\033[200~\033[201~z", "z ");
    struct heard heard = {.text = ""};
    struct esp_decoder decoder = {.user = &heard, .key = hear, .pasted = hear_paste};
    const size_t size = 10 << 20;
    char *bytes = malloc(size);
    CHECK(bytes);
    memset(bytes, 'k', size);
    esp_decode(&decoder, "\033[200~", 6);
    for (size_t i = 0; i < size; i += 65536)
        esp_decode(&decoder, bytes + i, 65536);
    esp_decode(&decoder, "\033[201~", 6);
    free(bytes);
    esp_decode_free(&decoder);
    CHECK(heard.paste_length == size && strcmp(heard.text, "paste ") == 0);
}
