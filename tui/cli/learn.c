/* learn.c - `espalier learn`: shows lessons in the terminal interface. Without a terminal,
 * prints them as text and reads the answers from standard input. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tui/app/interface.h"
#include "tui/cli/cli.h"
#include "tui/lessons/lesson_view.h"
#include "tui/lessons/lecture_run.h"
#include "viz/safe.h"

enum { WIDTH = 80, HEIGHT = 60 };

static int print_list(void)
{
    char name[256], title[200];
    int count = 0;
    for (; esp_lesson_list(count, name, sizeof name, title, sizeof title); count++)
        esp_safe_print(stdout, "%-28s %s\n", name, title);
    return count > 0 ? EXIT_DONE
                     : cli_fail("no lessons were found; set ESPALIER_DATA to the folder that "
                                "contains lessons/");
}

/* Prints a page as it would look on a tall screen. Leaves out the blank lines at the end. */
static int print_page(struct esp_canvas *canvas, struct esp_lecture *lecture)
{
    char *text = NULL;
    size_t length;
    FILE *file = open_memstream(&text, &length);
    if (!file)
        return ESP_E_MEMORY;
    esp_canvas_clear(canvas);
    esp_lesson_draw(canvas, lecture, false);
    esp_canvas_dump(canvas, file, false);
    if (fclose(file) != 0) {
        free(text);
        return ESP_E_MEMORY;
    }
    while (length > 0 && isspace((unsigned char)text[length - 1]))
        length--;
    printf("%.*s\n\n", (int)length, text);
    free(text);
    return ESP_OK;
}

static int walk(struct esp_lecture *lecture)
{
    struct esp_canvas canvas;
    int status = esp_canvas_open(&canvas, WIDTH, HEIGHT);
    do {
        if (status == ESP_OK)
            status = print_page(&canvas, lecture);
        if (status == ESP_OK && esp_lecture_asks(lecture)) {
            char line[64]; /* the answer, counted from 1 */
            const int choice = fgets(line, sizeof line, stdin) ? atoi(line) - 1 : -1;
            esp_lecture_answer(lecture, choice < esp_lecture_choices(lecture) ? choice : -1);
            status = print_page(&canvas, lecture);
        }
    } while (status == ESP_OK && esp_lecture_turn(lecture, 1));
    if (status == ESP_OK && lecture->asked > 0)
        printf("%d of %d predictions were right.\n", lecture->right, lecture->asked);
    esp_canvas_close(&canvas);
    return cli_code(status, "");
}

static int run_plain(const struct cli_options *o)
{
    struct esp_lecture *lecture;
    char path[PATH_MAX], err[512] = "", doing[512];
    if (o->argument_count == 0)
        return print_list();
    if (esp_lesson_find(path, o->arguments[0], err, sizeof err) < 0 ||
        esp_lecture_open(&lecture, path, err, sizeof err) < 0)
        return cli_fail(err);
    if (esp_lecture_phase(lecture, NULL, 0) == 0)
        esp_lecture_decode(lecture, &o->engine, NULL);
    int code =
        esp_lecture_phase(lecture, doing, sizeof doing) < 0 ? cli_fail(doing) : walk(lecture);
    esp_lecture_release(lecture);
    return code;
}

static int run(struct cli_options *o)
{
    const char *script = getenv("ESPALIER_SCRIPT");
    struct esp_interface_options options = {
        .lesson = o->argument_count > 0 ? o->arguments[0] : "",
    };
    if (o->plain || (!isatty(STDOUT_FILENO) && !(script && *script)))
        return run_plain(o);
    return cli_open_interface(&options, o);
}

const struct cli_command cli_learn = {
    .name = "learn",
    .arguments = "[LESSON|FILE]",
    .summary = "short lessons: predict what happens, then watch it",
    .flags = CLI(MODELS) | CLI(DEVICE) | CLI(MEMORY) | CLI(PLAIN) | CLI(LOOKS) | CLI(CONFIG),
    .details =
        "Without an argument, lists the lessons. A lesson is a text file that you can copy "
        "and\n"
        "change (sessions/lessons/README.md). To open your own lesson, give its path. Without\n"
        "a terminal, the pages are printed, and each line of standard input is the number of\n"
        "an answer.",
    .most = 1,
    .run = run,
};
