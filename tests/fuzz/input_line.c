/* Fuzzes the input line with any keys and pastes that a terminal can send: readline must not
 * crash, the cursor must stay in the line, and the drawn text must be safe. Words are
 * completed, and submitted lines are added to the history. The input is the bytes from the
 * terminal. */
#include "tui/app/input.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <readline/history.h>
#include <readline/readline.h>

#include "tui/commands/command.h"
#include "tui/view/decode.h"
#include "tests/fuzz/support/fuzz.h"

enum { KILLS = 10 /* readline keeps this many deleted texts */ };

struct line {
    struct esp_control control; /* all zeros; completion reads it */
    struct esp_input *input;
    struct esp_canvas canvas;
};

static void submit(void *user, const char *text)
{
    struct line *line = user;
    esp_input_remember(line->input, text);
}

static void complete(void *user, const char *before, const char *word,
                     struct esp_choices *choices)
{
    struct line *line = user;
    choices->before = before;
    choices->word = word;
    if (before[0] == ':')
        esp_command_complete(&line->control, choices);
}

static void look(struct line *line)
{
    struct esp_ui *ui = &line->control.ui;
    esp_input_show(line->input, ui);
    FUZZ_REQUIRE(ui->input.point <= ui->input.length, "the cursor is in the line");
    FUZZ_REQUIRE(strlen(ui->input.line) == ui->input.length, "the length of the line is right");
    esp_ui_draw(&line->canvas, ui, &line->control.state);
}

static void take_key(void *user, int key)
{
    struct line *line = user;
    esp_input_key(line->input, key);
    esp_input_is_empty(line->input);
}

static void take_paste(void *user, const char *bytes, size_t count)
{
    struct line *line = user;
    esp_input_paste(line->input, bytes, count);
}

/* Resets the state of readline after an input. Readline has one global state, and initialising
 * it again for each input would take too long. */
static void forget(struct esp_input *input)
{
    esp_input_key(input, 7);
    rl_free_line_state();
    rl_variable_bind("editing-mode", "emacs");
    for (int i = 0; i < KILLS; i++) {
        rl_last_func = NULL;
        esp_input_replace(input, "x");
        rl_kill_text(0, 1);
    }
    esp_input_replace(input, "");
    rl_free_undo_list();
    clear_history();
}

static void open_line(struct line *line)
{
    struct esp_input_hooks hooks = {.user = line, .submit = submit, .complete = complete};
    fuzz_folder();
    setlocale(LC_CTYPE, "C.UTF-8");
    setenv("INPUTRC", "/dev/null", 1);
    FUZZ_REQUIRE(esp_input_open(&line->input, &hooks, false) == 0, "there is memory");
    FUZZ_REQUIRE(esp_canvas_open(&line->canvas, 40, 12) == 0, "there is memory");
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    static struct line line;
    struct esp_decoder decoder = {.user = &line, .key = take_key, .pasted = take_paste};
    if (!line.input)
        open_line(&line);
    esp_ui_init(&line.control.ui);
    esp_decode(&decoder, (const char *)bytes, length);
    esp_decode_flush(&decoder);
    look(&line);
    forget(line.input);
    esp_decode_free(&decoder);
    return 0;
}
