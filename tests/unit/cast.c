/* Tests asciicasts. The test plays each cast on a simple emulated terminal. The terminal must
 * show the same screens as the canvas, whether the cast contains changed cells or whole
 * screens. The file must conform to the format. */
#include "tui/view/cast.h"

#include <cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utf8proc.h>

#include "tui/view/ansi.h"
#include "tests/check.h"
#include "tui/model/player.h"
#include "tests/scene.h"

enum { WIDTH = 90, HEIGHT = 24, MOST = 128 };

/* ------------------------------------------------------------------ a terminal */

struct terminal {
    int width, height, x, y;
    char style[40];
    struct {
        char text[24], style[40];
    } cell[HEIGHT * MOST];
};

static void clear(struct terminal *t)
{
    for (int i = 0; i < HEIGHT * MOST; i++) {
        strcpy(t->cell[i].text, " ");
        strcpy(t->cell[i].style, "0");
    }
}

static void reset(struct terminal *t, int width, int height)
{
    *t = (struct terminal){.width = width, .height = height, .style = "0"};
    CHECK(width <= MOST && height <= HEIGHT);
    clear(t);
}

/* Executes a sequence of the form ESC [ parameters final. Returns the text after it. */
static const char *obey(struct terminal *t, const char *bytes)
{
    size_t length = strspn(bytes + 2, "0123456789;?");
    char final = bytes[2 + length], parameters[40];
    CHECK(length < sizeof parameters, "%.20s", bytes + 1);
    snprintf(parameters, sizeof parameters, "%.*s", (int)length, bytes + 2);
    if (final == 'H') {
        t->x = t->y = 1;
        if (length > 0)
            CHECK(sscanf(parameters, "%d;%d", &t->y, &t->x) == 2);
        t->x--;
        t->y--;
        CHECK(t->x >= 0 && t->x < t->width && t->y >= 0 && t->y < t->height);
    } else if (final == 'J') {
        CHECK(strcmp(parameters, "2") == 0);
        clear(t);
    } else if (final == 'm') {
        strcpy(t->style, parameters);
    } else {
        CHECK(final == 'l' && strcmp(parameters, "?25") == 0, "%.20s", bytes + 1);
    }
    return bytes + 3 + length;
}

static void feed(struct terminal *t, const char *bytes)
{
    while (*bytes) {
        utf8proc_int32_t c;
        if (bytes[0] == '\033') {
            CHECK(bytes[1] == '[', "ESC %c", bytes[1]);
            bytes = obey(t, bytes);
            continue;
        }
        utf8proc_ssize_t n = utf8proc_iterate((const utf8proc_uint8_t *)bytes, -1, &c);
        CHECK(n > 0 && c >= ' ' && c != 0x7f, "byte %d", (unsigned char)*bytes);
        int width = utf8proc_charwidth(c), at = t->y * MOST + t->x - (width == 0);
        CHECK(t->x + width <= t->width && at >= 0, "column %d", t->x);
        if (width > 0)
            t->cell[at].text[0] = '\0';
        strncat(t->cell[at].text, bytes, (size_t)n);
        strcpy(t->cell[at].style, t->style);
        if (width == 2)
            t->cell[at + 1].text[0] = '\0';
        t->x += width;
        bytes += n;
    }
}

/* Checks that the terminal shows the same text as the canvas in the first `rows` rows. */
static void same_text(const struct terminal *t, const struct esp_canvas *canvas, int rows)
{
    for (int y = 0; y < rows; y++)
        for (int x = 0; x < canvas->width; x++) {
            const struct esp_cell *cell = &canvas->cells[y * canvas->width + x];
            const char *shown = t->cell[y * MOST + x].text;
            CHECK(cell->width == 0 || strcmp(esp_cell_text(canvas, cell), shown) == 0,
                  "row %d column %d shows '%s', not '%s'", y, x, shown,
                  esp_cell_text(canvas, cell));
        }
}

/* ------------------------------------------------------------------ changes */

static void update(struct terminal *t, struct esp_canvas *shown, struct scene *scene,
                   const struct esp_theme *theme)
{
    char *text = NULL;
    size_t length;
    FILE *file = open_memstream(&text, &length);
    CHECK(file && esp_ansi_update(file, shown, &scene->canvas, HEIGHT, theme) == 0);
    fclose(file);
    feed(t, text);
    free(text);
}

TEST(changed_cells_give_the_same_screen_as_whole_frames)
{
    static struct terminal changed, whole;
    struct scene scene;
    struct esp_canvas shown, fresh;
    struct esp_theme theme;
    char err[256];
    CHECK(esp_theme_load(&theme, "dark", err, sizeof err) == 0, "%s", err);
    scene_open(&scene, WIDTH, HEIGHT);
    CHECK(esp_canvas_open(&shown, 1, 1) == 0);
    scene_ready(&scene);
    scene_prompt(&scene);
    reset(&changed, WIDTH, HEIGHT);
    for (int i = 0; i < 60; i++) {
        struct esp_iteration it = *scene_king(i);
        it.bonus = i % TOKENS; /* includes wide, combining and hostile tokens */
        scene_event(&scene, &(struct esp_event){.type = ESP_EVENT_ITERATION, .iteration = &it});
        scene.ui.help = i % 7 == 3;
        free(scene_dump(&scene, false));
        update(&changed, &shown, &scene, &theme);
        same_text(&changed, &scene.canvas, HEIGHT);
        reset(&whole, WIDTH, HEIGHT);
        CHECK(esp_canvas_open(&fresh, 1, 1) == 0);
        update(&whole, &fresh, &scene, &theme);
        esp_canvas_close(&fresh);
        for (int cell = 0; cell < HEIGHT * MOST; cell++)
            if (strcmp(whole.cell[cell].text, " ") != 0 && whole.cell[cell].text[0])
                CHECK(strcmp(changed.cell[cell].style, whole.cell[cell].style) == 0,
                      "screen %d, cell %d: style %s, not %s", i, cell, changed.cell[cell].style,
                      whole.cell[cell].style);
    }
    esp_canvas_close(&shown);
    scene_close(&scene);
}

/* ------------------------------------------------------------------ the asciicast file */

static char *make(const char *path, double speed, size_t *length)
{
    struct esp_theme theme;
    char err[512] = "", *bytes;
    CHECK(esp_theme_load(&theme, "light", err, sizeof err) == 0, "%s", err);
    const struct esp_cast_options options = {.recording = path,
                                             .width = WIDTH,
                                             .height = HEIGHT,
                                             .speed = speed,
                                             .idle = 1,
                                             .theme = &theme};
    CHECK(esp_cast_make(&options, &bytes, length, err, sizeof err) == 0, "%s", err);
    return bytes;
}

static void check_header(const char *line, size_t length)
{
    cJSON *header = cJSON_ParseWithLength(line, length);
    CHECK(header && cJSON_GetObjectItem(header, "version")->valueint == 2 &&
          cJSON_GetObjectItem(header, "width")->valueint == WIDTH &&
          cJSON_GetObjectItem(header, "height")->valueint == HEIGHT);
    const cJSON *theme = cJSON_GetObjectItem(header, "theme");
    CHECK(strcmp(cJSON_GetObjectItem(theme, "bg")->valuestring, "#ffffff") == 0);
    CHECK(strlen(cJSON_GetObjectItem(theme, "palette")->valuestring) == 16 * 8 - 1);
    cJSON_Delete(header);
}

struct played {
    int frames, markers;
    double end;
    char marker[64];
};

/* Plays the cast in `text` on a terminal. */
static struct played play(struct terminal *t, char *text)
{
    struct played played = {.end = 0};
    char *rest = NULL, *line = strtok_r(text, "\n", &rest);
    check_header(line, strlen(line));
    reset(t, WIDTH, HEIGHT);
    while ((line = strtok_r(NULL, "\n", &rest))) {
        cJSON *event = cJSON_Parse(line);
        CHECK(event && cJSON_GetArraySize(event) == 3, "%.80s", line);
        double time = cJSON_GetArrayItem(event, 0)->valuedouble;
        const char *kind = cJSON_GetArrayItem(event, 1)->valuestring;
        const char *data = cJSON_GetArrayItem(event, 2)->valuestring;
        CHECK(time >= played.end, "%g after %g", time, played.end);
        CHECK(strcmp(kind, "o") == 0 || strcmp(kind, "m") == 0, "%s", kind);
        played.end = time;
        if (*kind == 'o') {
            played.frames++;
            feed(t, data);
        } else {
            played.markers++;
            snprintf(played.marker, sizeof played.marker, "%s", data);
        }
        cJSON_Delete(event);
    }
    return played;
}

/* Copies a recording, and adds a marker after its first iteration. */
static void with_marker(char path[64])
{
    char line[1 << 16];
    FILE *from = fopen(check_path("cli/three.esp.jsonl"), "r");
    strcpy(path, "/tmp/espalier-cast-XXXXXX");
    int fd = mkstemp(path);
    FILE *to = fdopen(fd, "w");
    CHECK(from && to);
    for (int i = 0; fgets(line, sizeof line, from); i++) {
        fputs(line, to);
        if (i == 2)
            fputs("{\"t\":0.5,\"type\":\"marker\",\"text\":\"look \\u001b[31mhere\"}\n", to);
    }
    fclose(from);
    fclose(to);
}

TEST(a_replay_becomes_a_file_that_ends_where_the_replay_does)
{
    static struct terminal terminal;
    static struct esp_state state;
    struct esp_player player;
    struct scene scene;
    char path[64], err[256];
    size_t length, again;
    with_marker(path);
    char *first = make(path, 1, &length), *second = make(path, 1, &again);
    CHECK(length == again && memcmp(first, second, length) == 0, "two files differ");
    free(second);
    struct played played = play(&terminal, first);
    free(first);
    CHECK(played.frames >= 5 && played.markers == 1, "%d frames, %d markers", played.frames,
          played.markers);
    CHECK(strstr(played.marker, "here") != NULL);
    CHECK(played.end > 2 && played.end < 6, "it takes %g s", played.end);

    scene_open(&scene, WIDTH, HEIGHT + 1);
    CHECK(esp_player_open(&player, path, &state, err, sizeof err) == 0, "%s", err);
    CHECK(esp_player_go(&player, 3, err, sizeof err) == 0);
    scene.ui.player = &player;
    scene.ui.typed = "";
    player.speed = 1;
    player.idle = 1;
    esp_ui_draw(&scene.canvas, &scene.ui, &state);
    same_text(&terminal, &scene.canvas, HEIGHT);

    char *fast = make(path, 16, &length);
    CHECK(play(&terminal, fast).end < played.end);
    same_text(&terminal, &scene.canvas, HEIGHT - 1);
    free(fast);
    esp_player_close(&player);
    esp_state_free(&state);
    scene_close(&scene);
    unlink(path);
}

TEST(a_file_that_is_not_a_recording_is_refused)
{
    struct esp_theme theme;
    char err[256], *bytes;
    size_t length;
    esp_theme_plain(&theme);
    const struct esp_cast_options options = {.recording = "/nonexistent/file", .theme = &theme};
    CHECK(esp_cast_make(&options, &bytes, &length, err, sizeof err) < 0 && !bytes);
    CHECK(strstr(err, "/nonexistent/file"), "%s", err);
}
