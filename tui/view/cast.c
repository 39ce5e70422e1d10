/* cast.c - writes an asciicast; see cast.h. https://docs.asciinema.org/manual/asciicast/v2/ */
#include "tui/view/cast.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tui/view/ansi.h"
#include "kernels/status.h"
#include "sessions/json_line.h"
#include "tui/model/player.h"
#include "viz/safe.h"
#include "tui/view/ui.h"

enum {
    WIDTH = 120,
    HEIGHT = 36,
    KEYS = 1 /* number of rows with key hints, which are useless in a file */
};

static const double frame = 1.0 / 30; /* shortest time between two frames, in seconds */
static const double hold = 1.5;       /* seconds for which the last frame is shown */

struct cast {
    const struct esp_cast_options *options;
    struct esp_state state;
    struct esp_player player;
    struct esp_ui ui;
    struct esp_canvas canvas, shown;
    int width, height;
    FILE *file;
    struct esp_line line; /* buffer for a line of the file */
};

static void choose_size(struct cast *cast)
{
    const struct esp_recording_header *header = esp_recording_header(cast->player.recording);
    bool recorded = header->columns > 0 && header->rows > 0;
    cast->width = cast->options->width;
    cast->height = cast->options->height;
    if (cast->width <= 0 || cast->height <= 0) {
        cast->width = recorded ? header->columns : WIDTH;
        cast->height = recorded ? header->rows : HEIGHT;
    }
    cast->width = cast->width < 20 ? 20 : cast->width > 500 ? 500 : cast->width;
    cast->height = cast->height < 5 ? 5 : cast->height > 200 ? 200 : cast->height;
}

/* ------------------------------------------------------------------ lines of the file */

static void put_line(struct cast *cast)
{
    fwrite(cast->line.text, 1, cast->line.length, cast->file);
    cast->line.length = 0;
    cast->line.comma = false;
}

/* Writes a text of the recording. Replaces its control characters, because a player can also
 * show the text elsewhere, such as in a title. */
static void put_text(struct cast *cast, const char *name, const char *text)
{
    char *shown = NULL;
    size_t length = 0, size = strlen(text);
    FILE *file = open_memstream(&shown, &length);
    struct esp_safe_unit unit;
    for (size_t i = 0; file && i < size;) {
        i += esp_safe_next(text + i, size - i, 0, &unit);
        fputs(unit.text, file);
    }
    if (file && fclose(file) == 0)
        esp_line_string(&cast->line, name, shown, length);
    else
        cast->line.failed = true;
    free(shown);
}

/* Writes the colours that the player uses as the terminal's default colours. */
static void put_terminal(struct cast *cast)
{
    static const char palette[] =
        "#1d2733:#d0534a:#4fa866:#c9a24b:#4f87c9:#a274c4:#4ba6ad:#cfd6e0:"
        "#6b7688:#f07178:#7fd99a:#e3c07a:#7fb2e5:#c9b0ea:#8fd3d8:#f7f9fc";
    bool light = strstr(cast->options->theme->name, "light") != NULL;
    const char *text = light ? "#1d2733" : "#dde3ec", *back = light ? "#ffffff" : "#10151d";
    esp_line_open(&cast->line, "theme", '{');
    esp_line_string(&cast->line, "fg", text, strlen(text));
    esp_line_string(&cast->line, "bg", back, strlen(back));
    esp_line_string(&cast->line, "palette", palette, strlen(palette));
    esp_line_close(&cast->line, '}');
}

static void put_header(struct cast *cast)
{
    const struct esp_recording_header *header = esp_recording_header(cast->player.recording);
    char title[256];
    snprintf(title, sizeof title, "espalier: %s <- %s", header->target.name,
             header->draft.name);
    esp_line_open(&cast->line, NULL, '{');
    esp_line_integer(&cast->line, "version", 2);
    esp_line_integer(&cast->line, "width", cast->width);
    esp_line_integer(&cast->line, "height", cast->height);
    put_text(cast, "title", title);
    put_terminal(cast);
    esp_line_close(&cast->line, '}');
    esp_line_newline(&cast->line);
    put_line(cast);
}

static void put_event(struct cast *cast, double time, const char *kind, const char *text,
                      size_t length)
{
    fprintf(cast->file, "[%.6f, \"%s\", ", time, kind);
    esp_line_string(&cast->line, NULL, text, length);
    put_line(cast);
    fputs("]\n", cast->file);
}

/* Draws a frame. Writes the text `before`, and then the changed cells. */
static int put_frame(struct cast *cast, double time, const char *before)
{
    char *text = NULL;
    size_t length;
    FILE *file = open_memstream(&text, &length);
    if (!file)
        return ESP_E_MEMORY;
    fputs(before, file);
    esp_ui_draw(&cast->canvas, &cast->ui, &cast->state);
    int status =
        esp_ansi_update(file, &cast->shown, &cast->canvas, cast->height, cast->options->theme);
    if (fclose(file) != 0)
        status = ESP_E_MEMORY;
    else if (status == ESP_OK && length > 0)
        put_event(cast, time, "o", text, length);
    free(text);
    return status;
}

/* Writes the markers among the applied events, beginning with event `from`. */
static int put_markers(struct cast *cast, double time, int from, char *err, size_t errlen)
{
    struct esp_recording *recording = cast->player.recording;
    for (int i = from; i < cast->player.at; i++) {
        const struct esp_event *event;
        if (esp_recording_entry(recording, i).type != ESP_EVENT_MARKER)
            continue;
        int status = esp_recording_read(recording, i, &event, err, errlen);
        if (status < 0)
            return status;
        fprintf(cast->file, "[%.6f, \"m\", ", time);
        put_text(cast, NULL, event->text ? event->text : "");
        put_line(cast);
        fputs("]\n", cast->file);
    }
    return ESP_OK;
}

/* ------------------------------------------------------------------ playing */

/* Plays the recording. The clock jumps from event to event, each time by at least one frame. */
static int play(struct cast *cast, char *err, size_t errlen)
{
    struct esp_player *player = &cast->player;
    double now = 0, wait;
    int status = put_frame(cast, 0, "\033[?25l");
    if (status == ESP_OK)
        status = esp_player_play(player, true, 0, err, errlen);
    while (status >= 0 && (wait = esp_player_wait(player, now)) >= 0) {
        int from = player->at;
        now += wait > frame ? wait : frame;
        status = esp_player_advance(player, now, err, errlen);
        if (status > 0)
            status = put_markers(cast, now, from, err, errlen);
        if (status >= 0)
            status = put_frame(cast, now, "");
    }
    if (status >= 0)
        put_event(cast, now + hold, "o", "\033[0m", 4);
    return status < 0 ? status : (int)ESP_OK;
}

static int write_cast(struct cast *cast, char *err, size_t errlen)
{
    choose_size(cast);
    esp_ui_init(&cast->ui);
    cast->ui.player = &cast->player;
    cast->ui.typed = "";
    cast->player.speed = cast->options->speed;
    cast->player.idle = cast->options->idle;
    int status = esp_canvas_open(&cast->canvas, cast->width, cast->height + KEYS);
    if (status == ESP_OK)
        status = esp_canvas_open(&cast->shown, 1, 1);
    if (status < 0)
        return status;
    if (cast->options->ascii) {
        cast->canvas.glyphs = &esp_glyphs_ascii;
        cast->canvas.ascii_text = true;
    }
    put_header(cast);
    status = play(cast, err, errlen);
    return cast->line.failed ? (int)ESP_E_MEMORY : status;
}

int esp_cast_make(const struct esp_cast_options *options, char **bytes, size_t *length,
                  char *err, size_t errlen)
{
    struct cast *cast = calloc(1, sizeof *cast);
    int status = ESP_E_MEMORY;
    *bytes = NULL;
    *length = 0;
    if (errlen > 0)
        *err = '\0';
    if (cast) {
        cast->options = options;
        status = esp_player_open(&cast->player, options->recording, &cast->state, err, errlen);
    }
    if (status == ESP_OK) {
        cast->file = open_memstream(bytes, length);
        status = cast->file ? write_cast(cast, err, errlen) : ESP_E_MEMORY;
        if (cast->file && fclose(cast->file) != 0 && status == ESP_OK)
            status = ESP_E_MEMORY;
        esp_player_close(&cast->player);
    }
    if (cast) {
        esp_canvas_close(&cast->canvas);
        esp_canvas_close(&cast->shown);
        esp_state_free(&cast->state);
        esp_line_free(&cast->line);
    }
    free(cast);
    if (status < 0) {
        free(*bytes);
        *bytes = NULL;
    }
    if (status < 0 && errlen > 0 && !*err)
        esp_fail(err, errlen, status, "the replay cannot be written: %s",
                 esp_status_message(status));
    return status;
}
