/* Tests the palette: which entries match a query, in which order they are listed, and what the
 * palette's keys do. */
#include "tui/view/palette.h"

#include <string.h>

#include "tests/check.h"
#include "tui/view/fuzzy.h"
#include "tui/view/keys.h"

TEST(letters_must_occur_in_order)
{
    CHECK(esp_fuzzy_score("", "anything") == 0);
    CHECK(esp_fuzzy_score("abc", "") == -1);
    CHECK(esp_fuzzy_score("abc", "acb") == -1);
    CHECK(esp_fuzzy_score("abcd", "abc") == -1);
    CHECK(esp_fuzzy_score("abc", "xaxbxc") >= 0);
    CHECK(esp_fuzzy_score("DyN", ":drafter dynatree") >= 0, "in either case");
    CHECK(esp_fuzzy_score("dr dyn", ":drafter dynatree") >= 0, "blanks are skipped");
    CHECK(esp_fuzzy_score("\xff\x80", "abc") == -1);
}

static void is_better(const char *query, const char *better, const char *worse)
{
    int a = esp_fuzzy_score(query, better), b = esp_fuzzy_score(query, worse);
    CHECK(a > b && b >= 0, "'%s': %d for '%s', %d for '%s'", query, a, better, b, worse);
}

TEST(better_matches_score_higher)
{
    is_better("sav", ":save", ":set a value");
    is_better("theme", ":theme light", ":the method, more");
    is_better("st", ":step", ":set tauh=");
    is_better("co", "config", "baco");
    is_better("hc", "theme high-contrast", "theme-hscc");
    is_better("aab", "aab", "aaxaxb");
    is_better("light", ":theme light", ":theme light and more of it");
}

/* Returns the best score of all ways to match the query, by trying all of them. Dynamic
 * programming must find the same score. */
static int tried(const char *query, const char *text, int at, int last)
{
    int best = -1;
    if (!*query)
        return 0;
    for (int j = at; text[j]; j++) {
        if (text[j] != *query)
            continue;
        bool word = j == 0 || !strchr("abc", text[j - 1]);
        int here = last >= 0 && j == last + 1 ? 10 : 4 + (word ? 5 : 0) + (j == 0 ? 4 : 0);
        if (last >= 0 && j == last + 1 && 4 + (word ? 5 : 0) > here)
            here = 4 + (word ? 5 : 0);
        int rest = tried(query + 1, text, j + 1, j);
        if (rest >= 0 && here + rest > best)
            best = here + rest;
    }
    return best;
}

TEST(the_best_match_is_found)
{
    unsigned long long random = 9;
    for (int round = 0; round < 3000; round++) {
        char query[5] = "", text[13] = "";
        int letters = 1 + (int)(check_uniform(&random) * 4);
        int length = 1 + (int)(check_uniform(&random) * 12);
        for (int i = 0; i < letters; i++)
            query[i] = "abc"[(int)(check_uniform(&random) * 3)];
        for (int i = 0; i < length; i++)
            text[i] = "abc -"[(int)(check_uniform(&random) * 5)];
        int want = tried(query, text, 0, -1), got = esp_fuzzy_score(query, text);
        if (want >= 0)
            want = 4 * want - length > 0 ? 4 * want - length : 0;
        CHECK(got == want, "'%s' in '%s': %d, want %d", query, text, got, want);
    }
}

static void fill(struct esp_palette *palette)
{
    *palette = (struct esp_palette){.open = false};
    esp_palette_open(palette);
    esp_palette_add(palette, "command", ":save ", "write the text", NULL);
    esp_palette_add(palette, "theme", ":theme light", "colours", NULL);
    esp_palette_add(palette, "command", ":step", "stop after every stage", NULL);
    esp_palette_add(palette, "key", "F5", "step mode", &esp_bindings[0]);
    esp_palette_filter(palette);
}

TEST(typing_filters_the_entries)
{
    struct esp_palette palette;
    fill(&palette);
    CHECK(palette.shown_count == 4 && esp_palette_selected(&palette) == &palette.items[0]);
    CHECK(esp_palette_key(&palette, 's') == ESP_PALETTE_STAYS);
    CHECK(esp_palette_key(&palette, 't') == ESP_PALETTE_STAYS);
    CHECK(palette.shown_count == 2);
    CHECK(strcmp(esp_palette_selected(&palette)->text, ":step") == 0);
    CHECK(palette.shown[1] == 3, "the search must include the descriptions of entries");
    CHECK(esp_palette_key(&palette, ESP_KEY_DOWN) == ESP_PALETTE_STAYS);
    CHECK(esp_palette_key(&palette, ESP_KEY_ENTER) == ESP_PALETTE_CHOSE);
    CHECK(esp_palette_selected(&palette)->binding == &esp_bindings[0]);
    esp_palette_key(&palette, 127);
    esp_palette_key(&palette, 127);
    esp_palette_key(&palette, 127);
    CHECK(palette.shown_count == 4 && palette.query[0] == '\0');
    esp_palette_key(&palette, ESP_KEY_PAGE_DOWN);
    CHECK(palette.selected == 3);
    esp_palette_key(&palette, ESP_KEY_UP);
    CHECK(palette.selected == 2);
    esp_palette_key(&palette, 0xe9);
    esp_palette_key(&palette, 0x6f22);
    CHECK(palette.shown_count == 0 && !esp_palette_selected(&palette));
    CHECK(esp_palette_key(&palette, ESP_KEY_ENTER) == ESP_PALETTE_STAYS);
    esp_palette_key(&palette, 127);
    CHECK(strcmp(palette.query, "\u00e9") == 0,
          "erasing must remove a whole character, not a byte");
    for (int i = 0; i < 500; i++)
        esp_palette_key(&palette, 0x1f333);
    CHECK(strlen(palette.query) < sizeof palette.query);
    CHECK(esp_palette_key(&palette, ESP_KEY_ESCAPE) == ESP_PALETTE_LEFT);
    esp_palette_close(&palette);
    CHECK(!palette.open && palette.count == 0);
}

TEST(the_palette_can_be_drawn_at_any_size)
{
    struct esp_palette palette;
    struct esp_canvas canvas;
    fill(&palette);
    CHECK(esp_canvas_open(&canvas, 1, 1) == 0);
    for (int width = 1; width < 130; width += 3)
        for (int height = 1; height < 40; height += 2) {
            CHECK(esp_canvas_resize(&canvas, width, height) == 0);
            esp_palette_draw(&canvas, &palette);
        }
    esp_canvas_close(&canvas);
    esp_palette_close(&palette);
}
