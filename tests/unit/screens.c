/* Tests whole screens, which are drawn from fixed events. At several sizes, they must equal
 * golden screens. At every size, drawing must not crash, and the screen must have no control
 * characters. With ASCII glyphs, it must have only ASCII. */
#include "tui/view/ui.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/check.h"
#include "tests/scene.h"

TEST(wide_120x36)
{
    struct scene scene;
    scene_telling(&scene, 120, 36);
    scene_golden(&scene, "wide_120x36");
    scene_close(&scene);
}

TEST(normal_80x24)
{
    struct scene scene;
    scene_telling(&scene, 80, 24);
    scene_golden(&scene, "normal_80x24");
    scene.ui.layout.stacked = true;
    scene_golden(&scene, "stacked_80x24");
    scene_close(&scene);
}

TEST(large_200x60)
{
    struct scene scene;
    scene_telling(&scene, 200, 60);
    scene_golden(&scene, "large_200x60");
    scene_close(&scene);
}

TEST(tabs_20x6_and_50x16)
{
    struct scene scene;
    scene_telling(&scene, 20, 6);
    scene_golden(&scene, "tabs_20x6");
    CHECK(esp_canvas_resize(&scene.canvas, 50, 16) == 0);
    scene.ui.layout.current = ESP_PANE_tree;
    scene_golden(&scene, "tabs_50x16");
    scene_close(&scene);
}

TEST(too_small_19x4)
{
    struct scene scene;
    scene_telling(&scene, 40, 4);
    scene_golden(&scene, "tiny_40x4");
    scene_close(&scene);
}

TEST(glyph_sets)
{
    struct scene scene;
    scene_telling(&scene, 80, 24);
    scene.canvas.glyphs = &esp_glyphs_plain;
    scene_golden(&scene, "plain_80x24");
    scene.canvas.glyphs = &esp_glyphs_ascii;
    scene_golden(&scene, "ascii_80x24");
    scene_close(&scene);
}

TEST(loading_and_failing)
{
    struct scene scene;
    scene_open(&scene, 80, 24);
    scene_phase(&scene, ESP_PHASE_LOADING, "fairytale-target", 0.43);
    scene_golden(&scene, "loading_80x24");
    scene_phase(&scene, ESP_PHASE_FAILED,
                "cannot open /nowhere/config.json: No such file or directory", 0);
    scene_golden(&scene, "failed_80x24");
    scene_close(&scene);
}

/* While different models are being loaded, the screen must still show the old text. */
TEST(the_old_text_is_shown_while_models_load)
{
    struct scene scene;
    scene_telling(&scene, 80, 24);
    scene_phase(&scene, ESP_PHASE_LOADING, "pythia-2.8b", 0.43);
    scene_golden(&scene, "loading_others_80x24");
    scene_close(&scene);
}

static bool says_lossy(struct scene *scene)
{
    char *text = scene_dump(scene, false);
    const bool says = strstr(text, "LOSSY") != NULL;
    free(text);
    return says;
}

/* The engine decides whether a verifier is lossy. The setting lossy=allow must not make an
 * exact verifier lossy. */
TEST(a_lossy_verifier_is_called_lossy)
{
    struct scene scene;
    scene_telling(&scene, 80, 24);
    struct esp_event setting = {.type = ESP_EVENT_SETTING,
                                .key = "verifier",
                                .text = "naive:lossy=allow",
                                .lossy = true};
    const bool before = says_lossy(&scene);
    scene_event(&scene, &setting);
    const bool after = says_lossy(&scene);
    setting.text = "khisti:lossy=allow";
    setting.lossy = false;
    scene_event(&scene, &setting);
    const bool exact = says_lossy(&scene);
    scene.state.loaded.lossy = true;
    scene_iteration(&scene, 60);
    const bool iterated = says_lossy(&scene);
    scene_close(&scene);
    CHECK(!before && after);
    CHECK(!exact && !iterated);
}

static bool header_says(struct scene *scene, const char *what)
{
    char *text = scene_dump(scene, false);
    text[strcspn(text, "\n")] = '\0';
    const bool says = strstr(text, what) != NULL;
    free(text);
    return says;
}

/* The header must show that there is no pace, that the pace is kept, or that the pace is too
 * fast for the machine. */
TEST(the_screen_shows_the_pace)
{
    struct scene scene;
    scene_telling(&scene, 120, 36);
    const bool full = header_says(&scene, "iter 6, at full speed");
    scene.ui.pace = 12;
    const bool paced = header_says(&scene, "iter 6, paced 12/s");
    scene.ui.rate = 11.5;
    const bool kept = header_says(&scene, "iter 6, paced 12/s");
    scene.ui.rate = 7.34;
    const bool slower = header_says(&scene, "iter 6, at 7.3/s of 12/s");
    scene_close(&scene);
    CHECK(full && paced && kept && slower);
}

/* The footer must name the key F7 at every width at which there is a footer, whichever pane has
 * the focus. */
TEST(the_menu_stays_in_the_footer)
{
    struct scene scene;
    scene_telling(&scene, 20, 24);
    for (int width = 20; width < 200; width += 7) {
        CHECK(esp_canvas_resize(&scene.canvas, width, 24) == 0);
        scene.ui.layout.focused = width % 2;
        scene.ui.layout.current = width % ESP_PANES;
        char *text = scene_dump(&scene, false);
        const bool there = strstr(text, "F7 menu") != NULL;
        free(text);
        CHECK(there, "at %d columns", width);
    }
    scene_close(&scene);
}

/* At every width, the header must compare the speed with the speed of plain decoding. If
 * speculation is slower, the header must say so in words. */
TEST(the_header_says_that_speculation_is_slower)
{
    struct scene scene;
    const struct {
        int width;
        const char *want;
    } cases[] = {{160, "slower than plain decoding by 24 %: the draft is right"},
                 {80, "slower than plain decoding by 24 %"},
                 {60, "24 % slower"}};
    scene_telling(&scene, 80, 24);
    for (int i = 0; i < scene.state.trace.course.count; i++)
        scene.state.trace.course.points[i].seconds[ESP_STAGE_VERIFY] *= 2.43;
    for (int i = 0; i < 3; i++) {
        CHECK(esp_canvas_resize(&scene.canvas, cases[i].width, 24) == 0);
        char *text = scene_dump(&scene, false);
        text[strcspn(text, "\n")] = '\0';
        const bool said = strstr(text, cases[i].want) != NULL;
        CHECK(said, "%d columns: %s", cases[i].width, text);
        free(text);
    }
    scene_close(&scene);
}

TEST(the_header_names_a_gpu_if_there_is_room)
{
    static const char *const device = "NVIDIA H100, 85 GB, driver 580.65.06";
    struct scene scene;
    scene_telling(&scene, 200, 30);
    snprintf(scene.state.loaded.device, sizeof scene.state.loaded.device, "%s", device);
    for (int wide = 0; wide < 2; wide++)
        for (int gpu = 0; gpu < 2; gpu++) {
            CHECK(esp_canvas_resize(&scene.canvas, wide ? 200 : 110, 30) == 0);
            snprintf(scene.state.loaded.backend, sizeof scene.state.loaded.backend, "%s",
                     gpu ? "cuda" : "cpu");
            char *dump = scene_dump(&scene, false);
            dump[strcspn(dump, "\n")] = '\0';
            CHECK((strstr(dump, device) != NULL) == (wide && gpu), "wide %d, gpu %d: %s", wide,
                  gpu, dump);
            CHECK(strstr(dump, gpu ? ", cuda" : ", cpu"), "wide %d: %s", wide, dump);
            free(dump);
        }
    scene_close(&scene);
}

TEST(which_drafts_were_accepted)
{
    struct scene scene;
    scene_telling(&scene, 120, 36);
    scene_focus(&scene, ESP_PANE_accepted, true);
    scene_golden(&scene, "accepted_120x36");
    CHECK(esp_canvas_resize(&scene.canvas, 80, 24) == 0);
    scene.canvas.glyphs = &esp_glyphs_ascii;
    scene_golden(&scene, "accepted_ascii_80x24");
    scene_event(&scene, &(struct esp_event){
                            .type = ESP_EVENT_SETTING, .key = "drafter", .text = "linear"});
    char *text = scene_dump(&scene, false);
    const bool empty = strstr(text, "is counted here") != NULL;
    free(text);
    scene_close(&scene);
    CHECK(empty, "after a setting has changed, counts must start at 0 again");
}

TEST(help_and_choices)
{
    struct scene scene;
    static const char *const lines[] = {"Keys", "  F1    help", NULL};
    const struct esp_choice choices[] = {{"dynatree", "adapts"}, {"linear", "one chain"}};
    scene_telling(&scene, 80, 24);
    scene.ui.help = true;
    scene.ui.look.help = lines;
    scene_golden(&scene, "help_80x24");
    scene.ui.help = false;
    scene.ui.input.line = ":drafter ";
    scene.ui.input.length = scene.ui.input.point = 9;
    scene.ui.choices = choices;
    scene.ui.choice_count = 2;
    scene_golden(&scene, "choices_80x24");
    CHECK(scene.canvas.cursor_x == 11 && scene.canvas.cursor_y == 22);
    scene_close(&scene);
}

TEST(the_palette)
{
    struct scene scene;
    scene_telling(&scene, 80, 24);
    esp_palette_open(&scene.ui.palette);
    esp_palette_add(&scene.ui.palette, "command", ":save ", "write the text to a file", NULL);
    esp_palette_add(&scene.ui.palette, "drafter", ":drafter dynatree", "adapts", NULL);
    esp_palette_add(&scene.ui.palette, "theme", ":theme light", "comes with the program", NULL);
    esp_palette_add(&scene.ui.palette, "key", "F5", "step mode: stop after every stage", NULL);
    esp_palette_key(&scene.ui.palette, 't');
    esp_palette_key(&scene.ui.palette, ESP_KEY_DOWN);
    scene_golden(&scene, "palette_80x24");
    esp_palette_close(&scene.ui.palette);
    scene_close(&scene);
}

TEST(styles_differ_by_more_than_colour)
{
    struct scene scene;
    scene_telling(&scene, 80, 24);
    char *styles = scene_dump(&scene, true);
    const char *write = getenv("ESPALIER_GOLDEN");
    const bool anew = write && strcmp(write, "write") == 0;
    FILE *file = fopen(check_path("tui/golden/styles_80x24.txt"), anew ? "w+" : "r");
    CHECK(file);
    if (anew) {
        fputs(styles, file);
        rewind(file);
    }
    static char wanted[8192];
    wanted[fread(wanted, 1, sizeof wanted - 1, file)] = '\0';
    fclose(file);
    bool same = strcmp(styles, wanted) == 0;
    free(styles);
    scene_close(&scene);
    CHECK(same, "the styles differ from styles_80x24.txt");
    CHECK(esp_style_attributes(ESP_STYLE_DRAFTED) != esp_style_attributes(ESP_STYLE_BONUS));
    CHECK(esp_style_attributes(ESP_STYLE_PROMPT) != esp_style_attributes(ESP_STYLE_BONUS));
    CHECK(esp_style_attributes(ESP_STYLE_ACCEPTED) != esp_style_attributes(ESP_STYLE_REJECTED));
}

static void is_printable(const char *text, bool ascii)
{
    for (const char *c = text; *c; c++) {
        CHECK((unsigned char)*c >= 0x20 || *c == '\n', "byte %02x", (unsigned char)*c);
        CHECK(!ascii || (unsigned char)*c < 0x80, "byte %02x", (unsigned char)*c);
    }
}

TEST(every_size_can_be_drawn)
{
    struct scene scene;
    static struct esp_node nodes[200];
    static int32_t path[200];
    unsigned long long random = 3;
    scene_telling(&scene, 1, 1);
    for (int round = 0; round < 1500; round++) {
        int width = 1 + (int)(check_uniform(&random) * (round % 3 ? 130 : 24));
        int height = 1 + (int)(check_uniform(&random) * (round % 3 ? 45 : 8));
        CHECK(esp_canvas_resize(&scene.canvas, width, height) == 0);
        scene.ui.layout.focused = round % 5 == 0;
        scene.ui.layout.current = round % ESP_PANES;
        scene.ui.layout.zoomed = round % 7 == 0;
        scene.ui.layout.stacked = round % 2;
        scene.ui.look.grows_right = round % 3 == 0;
        snprintf(scene.ui.look.search, sizeof scene.ui.look.search, "%s",
                 round % 6 ? "" : "\u6f22");
        scene.canvas.glyphs = round % 4 ? &esp_glyphs_full : &esp_glyphs_ascii;
        scene.canvas.ascii_text = round % 4 == 0;
        if (round % 10 == 0) {
            struct esp_iteration it;
            scene_random(&it, nodes, path, 1 + (int)(check_uniform(&random) * 199), &random);
            it.path_length = it.path_length > 3 ? 3 : it.path_length;
            scene_event(&scene,
                        &(struct esp_event){.type = ESP_EVENT_ITERATION, .iteration = &it});
        }
        char *text = scene_dump(&scene, false);
        is_printable(text, round % 4 == 0);
        free(text);
    }
    scene_close(&scene);
}

/* If the user has scrolled back in the text, new text must not move the view. */
TEST(the_text_can_be_scrolled)
{
    struct scene scene;
    scene_telling(&scene, 80, 24);
    for (int i = 0; i < 60; i++)
        scene_iteration(&scene, i);
    char *end = scene_dump(&scene, false);
    for (int i = 0; i < 10; i++)
        CHECK(esp_ui_act(&scene.ui, &scene.state, ESP_ACTION_PAGE_UP, 80, 24));
    CHECK(scene.ui.view[ESP_PANE_text].anchor == 0);
    char *start = scene_dump(&scene, false);
    CHECK(strstr(start, "Once upon a time") && !strstr(end, "Once upon a time"));
    scene_iteration(&scene, 60);
    char *later = scene_dump(&scene, false);
    CHECK(strstr(later, "Once upon a time"),
          "the view moved when text was added, although the user had scrolled");
    for (int i = 0; i < 20; i++)
        esp_ui_act(&scene.ui, &scene.state, ESP_ACTION_PAGE_DOWN, 80, 24);
    CHECK(scene.ui.view[ESP_PANE_text].anchor == -1);
    free(start);
    free(end);
    free(later);
    scene_close(&scene);
}

TEST(the_cursor_stays_in_the_input_line)
{
    struct scene scene;
    static char line[20000];
    scene_telling(&scene, 80, 24);
    for (size_t length = 0; length + 3 < sizeof line; length += 3) {
        memcpy(line + length, "\u6f22", 3);
        if (length % 300)
            continue;
        scene.ui.input.line = line;
        scene.ui.input.length = length + 3;
        scene.ui.input.point = length;
        esp_ui_draw(&scene.canvas, &scene.ui, &scene.state);
        CHECK(scene.canvas.cursor_x >= 2 && scene.canvas.cursor_x < 80);
    }
    scene_close(&scene);
}

TEST(the_focus_goes_round)
{
    struct scene scene;
    scene_telling(&scene, 120, 36);
    int seen = 0;
    for (int i = 0; i < ESP_PANES - 1; i++) {
        esp_ui_act(&scene.ui, &scene.state, ESP_ACTION_NEXT_PANE, 120, 36);
        seen += scene.ui.layout.focused;
    }
    /* All panes can have the focus, except help and, without a comparison, the compare pane. */
    CHECK(seen == ESP_PANES - 2 && !scene.ui.layout.focused, "%d panes had the focus", seen);
    esp_ui_act(&scene.ui, &scene.state, ESP_ACTION_PREVIOUS_PANE, 120, 36);
    CHECK(scene.ui.layout.focused && scene.ui.layout.current != ESP_PANE_help);
    scene_close(&scene);
}
