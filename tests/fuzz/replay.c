/* Fuzzes a replay: keys and clicks move the player and change the drawing. The first line has
 * the size of the screen, an optional text to search for, and the keys:
 *
 *     80x24 king Gt,,.<3g
 *
 * A TAB focuses the next pane. The two characters after '@' give a cell, which is clicked. The
 * other lines are the recording. */
#include "tui/model/player.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tui/view/cast.h"
#include "tests/fuzz/support/fuzz.h"
#include "tui/view/mouse.h"
#include "tui/view/replay_line.h"
#include "tui/view/ui.h"

enum { MOST_KEYS = 40 };

struct screen {
    struct esp_state state;
    struct esp_player player;
    struct esp_ui ui;
    struct esp_canvas canvas;
    double now;
    char err[512];
};

static void draw(struct screen *s)
{
    char *text = NULL;
    size_t size = 0;
    esp_ui_draw(&s->canvas, &s->ui, &s->state);
    FILE *file = open_memstream(&text, &size);
    FUZZ_REQUIRE(file, "there is memory");
    esp_canvas_dump(&s->canvas, file, false);
    fclose(file);
    fuzz_require_safe(text, size, "the screen");
    free(text);
}

/* Does what a replay does when a key is pressed. Returns false if the key has no meaning in a
 * replay. */
static bool move(struct screen *s, int action, char key)
{
    struct esp_player *player = &s->player;
    switch (action) {
    case ESP_ACTION_EARLIER:
    case ESP_ACTION_LATER:
        esp_player_move(player, action == ESP_ACTION_LATER ? 1 : -1, s->err, sizeof s->err);
        return true;
    case ESP_ACTION_STAGE_BACK:
    case ESP_ACTION_STAGE_FORWARD:
        esp_player_step(player, action == ESP_ACTION_STAGE_FORWARD ? 1 : -1, s->err,
                        sizeof s->err);
        return true;
    case ESP_ACTION_DIGIT:
        esp_player_go(player, esp_player_iterations(player) * (key - '0') / 10, s->err,
                      sizeof s->err);
        return true;
    case ESP_ACTION_GO:
    case ESP_ACTION_GO_END:
        esp_player_go(player, action == ESP_ACTION_GO ? 0 : esp_player_iterations(player),
                      s->err, sizeof s->err);
        return true;
    case ESP_ACTION_MARKER_BACK:
    case ESP_ACTION_MARKER_FORWARD: {
        int at = esp_player_marker(player, action == ESP_ACTION_MARKER_FORWARD ? 1 : -1);
        if (at >= 0)
            esp_player_seek(player, at, 0, s->err, sizeof s->err);
        return true;
    }
    case ESP_ACTION_PAUSE:
        esp_player_play(player, !player->playing, s->now, s->err, sizeof s->err);
        s->now += 0.5;
        esp_player_advance(player, s->now, s->err, sizeof s->err);
        return true;
    case ESP_ACTION_SEARCH_NEXT:
    case ESP_ACTION_SEARCH_BACK: {
        int step = action == ESP_ACTION_SEARCH_NEXT ? 1 : -1;
        int at = esp_player_find(player, s->ui.look.search, step);
        if (at >= 0)
            esp_player_seek(player, at, 0, s->err, sizeof s->err);
        esp_ui_find(&s->ui, &s->state, s->ui.layout.current, step, s->canvas.width,
                    s->canvas.height);
        return true;
    }
    default:
        return false;
    }
}

static void press(struct screen *s, char key)
{
    const struct esp_key_when when = {.pane = true, .empty = true, .replay = true};
    const struct esp_binding *binding = esp_key_binding((unsigned char)key, when, NULL);
    int action = binding ? binding->action : ESP_ACTION_NONE;
    if (action != ESP_ACTION_NONE && !move(s, action, key))
        esp_ui_act(&s->ui, &s->state, action, s->canvas.width, s->canvas.height);
}

static void use(struct screen *s, const char *keys)
{
    draw(s);
    for (int i = 0; i < MOST_KEYS && *keys; i++, keys++) {
        if (*keys == '@' && keys[1] && keys[2]) {
            esp_ui_mouse(&s->ui, &s->state,
                         (struct esp_mouse){i % 3 ? 0 : 64 + i % 2, (unsigned char)keys[1],
                                            (unsigned char)keys[2] - ' '},
                         s->canvas.width, s->canvas.height);
            keys += 2;
        } else {
            press(s, *keys);
        }
        draw(s);
    }
}

static void play(struct screen *s, const char *first_line)
{
    int width = 80, height = 24, end = 0;
    sscanf(first_line, "%4dx%4d%n", &width, &height, &end);
    first_line += end + (first_line[end] == ' ');
    size_t what = strcspn(first_line, " ");
    esp_ui_init(&s->ui);
    s->ui.player = &s->player;
    s->ui.typed = "";
    snprintf(s->ui.look.search, sizeof s->ui.look.search, "%.*s", (int)what, first_line);
    width = width < 1 ? 1 : width > 200 ? 200 : width;
    height = height < 1 ? 1 : height > 60 ? 60 : height;
    FUZZ_REQUIRE(esp_canvas_open(&s->canvas, width, height) == 0, "there is memory");
    use(s, first_line + what + (first_line[what] == ' '));
    esp_canvas_close(&s->canvas);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    char first_line[256];
    const uint8_t *newline = memchr(bytes, '\n', length);
    size_t first = newline ? (size_t)(newline - bytes) : length;
    static struct screen only, *const s = &only; /* too large for the stack: half a megabyte */
    memset(s, 0, sizeof *s);
    snprintf(first_line, sizeof first_line, "%.*s", (int)(first < 255 ? first : 255), bytes);
    bytes += newline ? first + 1 : first;
    length -= newline ? first + 1 : first;
    struct fuzz_file file = fuzz_file_open(bytes, length);
    int status = esp_player_open(&s->player, file.path, &s->state, s->err, sizeof s->err);
    fuzz_file_close(&file);
    if (status == 0) {
        play(s, first_line);
        esp_player_close(&s->player);
    }
    esp_state_free(&s->state);
    return 0;
}
