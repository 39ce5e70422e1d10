/* Tests that text from any source reaches the terminal only as printable characters. */
#include "tui/view/ui.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "tests/check.h"
#include "tests/scene.h"

/* Checks that the text is valid UTF-8 without control, format, bidirectional or zero-width
 * characters. */
static void is_safe(const char *text, const char *where)
{
    while (*text) {
        utf8proc_int32_t c;
        utf8proc_ssize_t n = utf8proc_iterate((const utf8proc_uint8_t *)text, -1, &c);
        CHECK(n > 0, "%s: byte %02x is not valid UTF-8", where, (unsigned char)*text);
        utf8proc_category_t category = utf8proc_category(c);
        CHECK(c == '\n' || category != UTF8PROC_CATEGORY_CC, "%s: U+%04X", where, c);
        CHECK(category != UTF8PROC_CATEGORY_CF && category != UTF8PROC_CATEGORY_ZL &&
                  category != UTF8PROC_CATEGORY_ZP && category != UTF8PROC_CATEGORY_CN,
              "%s: U+%04X", where, c);
        text += n;
    }
}

/* Hostile tokens are shown in the text, the tree, the title and the message. */
TEST(hostile_text_is_shown_but_has_no_effect)
{
    struct scene scene;
    const int32_t tokens[] = {TOKEN_HOSTILE, TOKEN_NEWLINE, TOKEN_WIDE, TOKEN_HOSTILE};
    scene_open(&scene, 100, 20);
    scene_ready(&scene);
    snprintf(scene.state.loaded.target, sizeof scene.state.loaded.target, "evil\033]0;x\a");
    scene_event(&scene, &(struct esp_event){
                            .type = ESP_EVENT_PROMPT, .tokens = tokens, .token_count = 4});
    struct esp_iteration it = *scene_king(0);
    it.tree.nodes[1].token = TOKEN_HOSTILE;
    it.tree.nodes[2].token = TOKEN_NEWLINE;
    it.bonus = TOKEN_WIDE;
    scene_event(&scene, &(struct esp_event){.type = ESP_EVENT_ITERATION, .iteration = &it});
    scene.ui.message = "bad \033[2J path\xff";
    scene_golden(&scene, "hostile_100x20");
    scene_close(&scene);
}

#define ATTACK                                                                                 \
    "\033]0;x\a\033[2J\x7f\t\r\n\xc2\x9b"                                                      \
    "31m\u202e\u2066\u200b\u200d\u2028\ufeff\xff\xc3\xe2\x82\U000e0041"

static void dump_safe(struct scene *scene, const char *where)
{
    char *text = scene_dump(scene, false), copy[200];
    snprintf(copy, sizeof copy, "%s", where);
    is_safe(text, copy);
    free(text);
}

/* Names, paths, settings, messages, choices, typed text and searched text are hostile, too.
 */
TEST(hostile_text_has_no_effect_in_any_pane)
{
    struct scene scene;
    const int32_t tokens[] = {TOKEN_HOSTILE, TOKEN_NEWLINE, TOKEN_WIDE, TOKEN_HOSTILE};
    static const char *const help[] = {ATTACK, "  " ATTACK, NULL};
    const struct esp_choice choices[] = {{ATTACK, ATTACK}, {"b", "c"}};
    scene_open(&scene, 100, 30);
    scene_ready(&scene);
    struct esp_setup *loaded = &scene.state.loaded;
    snprintf(loaded->target, sizeof loaded->target, "%s", ATTACK);
    snprintf(loaded->draft, sizeof loaded->draft, "%s", ATTACK);
    snprintf(loaded->backend, sizeof loaded->backend, "%.20s", ATTACK);
    scene_event(&scene, &(struct esp_event){
                            .type = ESP_EVENT_PROMPT, .tokens = tokens, .token_count = 4});
    for (int i = 0; i < 4; i++) {
        struct esp_iteration it = *scene_king(i);
        for (int node = 0; node < it.tree.count; node++)
            if (node % 2 == 1 || i == 3)
                it.tree.nodes[node].token = node % 4 == 1 ? TOKEN_NEWLINE : TOKEN_HOSTILE;
        it.bonus = TOKEN_HOSTILE;
        scene_event(&scene, &(struct esp_event){.type = ESP_EVENT_ITERATION, .iteration = &it});
    }
    scene.ui.look.help = help;
    scene.ui.layout.focused = true;
    for (int size = 0; size < 4; size++) {
        static const int sizes[][2] = {{100, 30}, {200, 60}, {40, 12}, {24, 6}};
        CHECK(esp_canvas_resize(&scene.canvas, sizes[size][0], sizes[size][1]) == 0);
        for (int pane = 0; pane < ESP_PANES; pane++) {
            scene.ui.layout.current = pane;
            scene.ui.layout.zoomed = size % 2;
            scene.ui.look.grows_right = pane % 2;
            dump_safe(&scene, esp_panes[pane]->name);
            esp_ui_act(&scene.ui, &scene.state, ESP_ACTION_UP, sizes[size][0], sizes[size][1]);
            dump_safe(&scene, esp_panes[pane]->name);
        }
        scene.ui.message = ATTACK;
        dump_safe(&scene, "a message");
        scene.ui.message = NULL;
        scene.ui.choices = choices;
        scene.ui.choice_count = 2;
        scene.ui.input.line = ATTACK;
        scene.ui.input.length = scene.ui.input.point = strlen(ATTACK);
        scene.ui.layout.focused = false;
        dump_safe(&scene, "the input line");
        scene.ui.choice_count = 0;
        scene.ui.help = true;
        dump_safe(&scene, "the help");
        scene.ui.help = false;
        esp_palette_open(&scene.ui.palette);
        esp_palette_add(&scene.ui.palette, ATTACK, ATTACK, ATTACK, NULL);
        snprintf(scene.ui.palette.query, sizeof scene.ui.palette.query, "%s", ATTACK);
        esp_palette_filter(&scene.ui.palette);
        dump_safe(&scene, "the palette");
        esp_palette_close(&scene.ui.palette);
        scene_phase(&scene, ESP_PHASE_LOADING, ATTACK, 0.5);
        dump_safe(&scene, "loading");
        scene_phase(&scene, ESP_PHASE_FAILED, ATTACK, 0);
        dump_safe(&scene, "an error");
        scene_phase(&scene, ESP_PHASE_GENERATING, "", 0);
    }
    scene_close(&scene);
}
