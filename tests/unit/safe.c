/* Tests that a terminal gets no byte that it could interpret as a command, and that all text is
 * visible. */
#include "viz/safe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/check.h"

static const char *shown(const char *bytes, int flags)
{
    static char text[512];
    struct esp_safe_unit unit;
    size_t used = 0, length = strlen(bytes);
    text[0] = '\0';
    for (size_t i = 0; i < length;) {
        i += esp_safe_next(bytes + i, length - i, flags, &unit);
        used += (size_t)snprintf(text + used, sizeof text - used, "%s", unit.text);
    }
    return text;
}

static void same(const char *bytes, int flags, const char *want, int width)
{
    CHECK(strcmp(shown(bytes, flags), want) == 0, "'%s', want '%s'", shown(bytes, flags), want);
    CHECK(esp_safe_width(bytes, strlen(bytes), flags) == width, "'%s' is %d columns, want %d",
          want, esp_safe_width(bytes, strlen(bytes), flags), width);
}

TEST(plain_text_is_unchanged)
{
    same("a king", 0, "a king", 6);
    same("K\u00f6nig", 0, "K\u00f6nig", 5);
    same("\u6f22", 0, "\u6f22", 2);
    same("e\u0301", 0, "e\u0301", 1);
    same("\\", 0, "\\", 1);
}

TEST(control_characters_have_replacements)
{
    same("\033[2J", 0, "^[[2J", 5);
    same("\a\x7f", 0, "^G^?", 4);
    same("\xc2\x9b"
         "1m",
         0, "<U+009B>1m", 10);
    same("a\nb", ESP_SAFE_QUOTED, "a\\nb", 4);
    same("\t\r\\", ESP_SAFE_QUOTED, "\\t\\r\\\\", 6);
    same(".\"", ESP_SAFE_QUOTED, ".\\\"", 3);
    same(".\"\n", ESP_SAFE_ESCAPED, ".\"\\n", 4);
}

TEST(invisible_characters_have_replacements)
{
    same("\u202eevil", 0, "<U+202E>evil", 12);
    same("a\u200bb", 0, "a<U+200B>b", 10);
    same("\ufeff", 0, "<U+FEFF>", 8);
    same("\u2066x\u2069", 0, "<U+2066>x<U+2069>", 17);
    same("\U000e0041", 0, "<U+E0041>", 9);
    same("\u2028", 0, "<U+2028>", 8);
    same("\u00ad", 0, "<U+00AD>", 8);
    same("\u115f", 0, "<U+115F>", 8);
    same("\uE000", 0, "<U+E000>", 8);
}

TEST(invalid_utf8_has_replacements)
{
    same("\xff", 0, "<FF>", 4);
    same("\xe6\xbc", 0, "<E6><BC>", 8);
    same("\xc0\x80", 0, "<C0><80>", 8);
    same("\xed\xa0\x80", 0, "<ED><A0><80>", 12);
}

TEST(combining_marks_need_a_character)
{
    same("\u0301a", 0, "\u25cc\u0301a", 2);
    same("\u2764\ufe0f", 0, "\u2764", 1);
    /* Combining marks that do not fit in a cell must not be lost. */
    CHECK(esp_safe_width("a\u0301\u0301\u0301\u0301\u0301\u0301", 13, 0) == 3);
}

TEST(ascii_terminals_get_ascii)
{
    same("K\u00f6nig", ESP_SAFE_ASCII, "K<U+00F6>nig", 12);
    same("e\u0301", ESP_SAFE_ASCII, "e<U+0301>", 9);
}

/* For any bytes, each step must consume some of them and give a short text. The text must have
 * the reported width and no control characters. */
TEST(random_bytes_are_safe)
{
    unsigned long long random = 1;
    for (int round = 0; round < 20000; round++) {
        char bytes[24];
        for (size_t i = 0; i < sizeof bytes; i++)
            bytes[i] = (char)(unsigned char)(check_uniform(&random) * 256);
        int flags = (int)(check_uniform(&random) * 4);
        for (size_t i = 0; i < sizeof bytes;) {
            struct esp_safe_unit unit;
            size_t taken = esp_safe_next(bytes + i, sizeof bytes - i, flags, &unit);
            CHECK(taken > 0 && unit.width > 0 && strlen(unit.text) < sizeof unit.text);
            for (const char *c = unit.text; *c; c++) {
                CHECK((unsigned char)*c >= 0x20 && *c != 0x7f);
                CHECK(!(flags & ESP_SAFE_ASCII) || (unsigned char)*c < 0x80);
            }
            i += taken;
        }
    }
}

static void same_json(const char *json, const char *want)
{
    char *text = NULL;
    size_t length;
    FILE *file = open_memstream(&text, &length);
    CHECK(file);
    esp_safe_json(file, json, strlen(json));
    CHECK(fclose(file) == 0);
    bool same = strcmp(text, want) == 0;
    if (!same)
        printf("    got %s\n", text);
    free(text);
    CHECK(same, "want %s", want);
}

TEST(json_keeps_its_meaning_and_loses_its_controls)
{
    same_json("{\"a\":\t\"K\u00f6nig \\\"\\\\\",\n\"b\": 1}",
              "{\"a\":\t\"K\u00f6nig \\\"\\\\\",\n\"b\": 1}");
    same_json("[\"\033]0;x\a\x7f\n\"]", "[\"\\u001b]0;x\\u0007\\u007f\\u000a\"]");
    same_json("[\"\xc2\x9b\u202e\u2028\U000e0041\"]",
              "[\"\\u009b\\u202e\\u2028\\udb40\\udc41\"]");
    same_json("[\"\x9b\xe2\x82\"]", "[\"\ufffd\ufffd\ufffd\"]");
    same_json("\033[\r\"\\\033\"\a]", " [ \"\\\\u001b\" ]");
    same_json("\u202e[\x9b]", "\\u202e[\ufffd]");
    same_json("[\"\\", "[\"\\");
}

TEST(text_of_lines_keeps_its_lines)
{
    char *text = NULL;
    size_t length;
    FILE *file = open_memstream(&text, &length);
    CHECK(file);
    esp_safe_print(file, "%s\n%-4s|%d\t", "a\033[2J\rb\xff", "c\a", 7);
    CHECK(fclose(file) == 0);
    bool same = strcmp(text, "a^[[2J^Mb<FF>\nc^G  |7\t") == 0;
    if (!same)
        printf("    got %s\n", text);
    free(text);
    CHECK(same);
}

/* An argument with a line break must not look like another entry of a list. */
TEST(arguments_cannot_begin_new_lines)
{
    char *text = NULL;
    size_t length;
    FILE *file = open_memstream(&text, &length);
    CHECK(file);
    esp_safe_print(file, "\n%s\t|%-8s|\n%s", "\nx\n", "a\nb\t\a", "\a\n");
    CHECK(fclose(file) == 0);
    bool same = strcmp(text, "\n^Jx^J\t|a^Jb^I^G   |\n^G^J") == 0;
    if (!same)
        printf("    got %s\n", text);
    free(text);
    CHECK(same);
}
