/* replay.c - `espalier replay FILE`: plays a recording in the terminal interface, or prints
 * its screens as text.
 *
 * With --plain every iteration is printed as a frame: a line with its number, then the header
 * and the panes of the screen. The frame has the size of the terminal. Without a terminal it
 * has the size of the recorded session or, if the recording has none, 80 x 24. Pauses are
 * skipped.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "tui/cli/cli.h"
#include "tui/app/interface.h"
#include "tui/model/player.h"
#include "tui/view/ui.h"

enum { WIDTH = 80, HEIGHT = 24, BELOW = 2 /* rows that show keys; they are not printed */ };

struct plain {
    struct esp_state state;
    struct esp_player player;
    struct esp_ui ui;
    struct esp_canvas canvas;
};

static void choose_size(const struct plain *plain, int *width, int *height)
{
    const struct esp_recording_header *header = esp_recording_header(plain->player.recording);
    struct winsize size;
    *width = WIDTH;
    *height = HEIGHT;
    if (header->columns > 0 && header->rows > 0) {
        *width = header->columns;
        *height = header->rows;
    }
    if (isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 &&
        size.ws_col > 0 && size.ws_row > 0) {
        *width = size.ws_col;
        *height = size.ws_row;
    }
    *width = *width < 20 ? 20 : *width > 500 ? 500 : *width;
    *height = *height < 5 ? 5 : *height > 200 ? 200 : *height;
}

static int print_frame(struct plain *plain)
{
    const struct esp_player *player = &plain->player;
    int iteration = esp_player_iteration(player), rows = plain->canvas.height - BELOW;
    char *text = NULL;
    size_t length;
    FILE *file = open_memstream(&text, &length);
    if (!file)
        return ESP_E_MEMORY;
    esp_ui_draw(&plain->canvas, &plain->ui, &plain->state);
    esp_canvas_dump(&plain->canvas, file, false);
    if (fclose(file) != 0) {
        free(text);
        return ESP_E_MEMORY;
    }
    if (iteration == 0)
        printf("--- start, %d iterations ---\n", esp_player_iterations(player));
    else
        printf("--- iteration %d of %d, %.3f s ---\n", iteration - 1,
               esp_player_iterations(player) - 1, esp_player_time(player));
    for (char *line = text, *end; rows > 0 && (end = strchr(line, '\n'));
         line = end + 1, rows--)
        fwrite(line, 1, (size_t)(end - line) + 1, stdout);
    free(text);
    return 0;
}

static int print_frames(struct plain *plain, char *err, size_t errlen)
{
    int status = print_frame(plain), iterations = esp_player_iterations(&plain->player);
    for (int i = 1; i <= iterations && status == 0 && !ferror(stdout); i++) {
        status = esp_player_go(&plain->player, i, err, errlen);
        if (status == 0)
            status = print_frame(plain);
    }
    return status;
}

static int replay_plain(const struct cli_options *o)
{
    struct plain *plain = calloc(1, sizeof *plain);
    char err[512] = "";
    int width, height;
    if (!plain)
        return cli_fail("not enough memory for the replay");
    int status =
        esp_player_open(&plain->player, o->arguments[0], &plain->state, err, sizeof err);
    if (status == 0) {
        cli_tell_cut(plain->player.recording, o->arguments[0]);
        choose_size(plain, &width, &height);
        esp_ui_init(&plain->ui);
        plain->ui.player = &plain->player;
        plain->ui.typed = "";
        status = esp_canvas_open(&plain->canvas, width, height);
        if (o->ascii) {
            plain->canvas.glyphs = &esp_glyphs_ascii;
            plain->canvas.ascii_text = true;
        }
        if (status == 0)
            status = print_frames(plain, err, sizeof err);
        esp_canvas_close(&plain->canvas);
        esp_player_close(&plain->player);
    }
    esp_state_free(&plain->state);
    free(plain);
    return cli_code(status, err);
}

static int run(struct cli_options *o)
{
    struct esp_interface_options options = {
        .recording = o->arguments[0],
        .speed = o->speed,
        .idle = o->idle,
    };
    return o->plain ? replay_plain(o) : cli_open_interface(&options, o);
}

const struct cli_command cli_replay = {
    .name = "replay",
    .arguments = "FILE [--plain]",
    .summary = "play a recorded session; no model is loaded",
    .flags = CLI(SPEED) | CLI(PLAIN) | CLI(LOOKS) | CLI(CONFIG),
    .least = 1,
    .most = 1,
    .details =
        "Space pauses; < and > move by iterations, comma and full stop by stages; 0 to 9 "
        "jump to\na tenth of the recording, a number and g to an iteration; F1 lists all "
        "keys.",
    .run = run,
};
