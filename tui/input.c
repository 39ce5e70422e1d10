/* input.c - readline in callback mode without a terminal; see input.h.
 *
 * Readline asks for its bytes (rl_getc_function), calls back when a line is done, and wants to
 * draw (rl_redisplay_function). The bytes come from a queue that a key fills, drawing does
 * nothing, and its own streams lead to /dev/null; its terminal set-up and signal handlers are
 * switched off. Should it ask for more bytes than a key gave, it gets C-g, which ends whatever
 * it was about to read.
 */
#include "input.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <readline/history.h>
#include <readline/readline.h>
#include <utf8proc.h>

#include "espalier.h"
#include "paths.h"
#include "root.h"
#include "write_file.h"

enum { HISTORY_LINES = 1000, LONGEST_REMEMBERED = 1 << 16, ABORT = 7 };

struct esp_input {
    struct esp_input_hooks hooks;
    FILE *in, *out;
    char queue[16];
    int queued, taken;
    struct esp_choices choices;
    int next_choice; /* of an enumeration that readline makes */
    bool show_choices;
    char *history_path; /* NULL: history is not kept */
};

/* ------------------------------------------------------------------ choices */

void esp_choices_add(struct esp_choices *choices, const char *text, const char *summary)
{
    if (choices->count == ESP_MOST_CHOICES)
        return;
    struct esp_choice choice = {strdup(text), summary ? strdup(summary) : NULL};
    if (choice.text)
        choices->choice[choices->count++] = choice;
    else
        free((char *)choice.summary);
}

static void forget_choices(struct esp_choices *choices)
{
    for (int i = 0; i < choices->count; i++) {
        free((char *)choices->choice[i].text);
        free((char *)choices->choice[i].summary);
    }
    choices->count = 0;
    choices->append = ' ';
}

static char *next_match(const char *text, int state)
{
    struct esp_input *input = esp_root.input;
    (void)text;
    if (state == 0)
        input->next_choice = 0;
    if (input->next_choice == input->choices.count)
        return NULL;
    return strdup(input->choices.choice[input->next_choice++].text);
}

static char **complete(const char *word, int start, int end)
{
    struct esp_input *input = esp_root.input;
    char *before = strndup(rl_line_buffer, (size_t)start);
    (void)end;
    rl_attempted_completion_over = 1;
    forget_choices(&input->choices);
    if (before && input->hooks.complete)
        input->hooks.complete(input->hooks.user, before, word, &input->choices);
    free(before);
    rl_completion_append_character = input->choices.append;
    return rl_completion_matches(word, next_match);
}

static void show_matches(char **matches, int count, int longest)
{
    (void)matches;
    (void)count;
    (void)longest;
    esp_root.input->show_choices = true;
}

/* ------------------------------------------------------------------ readline's callbacks */

static int next_byte(FILE *file)
{
    struct esp_input *input = esp_root.input;
    (void)file;
    return input->taken < input->queued ? (unsigned char)input->queue[input->taken++] : ABORT;
}

static int has_bytes(void)
{
    return esp_root.input->taken < esp_root.input->queued;
}

static void draw_nothing(void)
{
}

static void prepare_nothing(int meta)
{
    (void)meta;
}

static void line_done(char *line)
{
    struct esp_input *input = esp_root.input;
    if (line)
        input->hooks.submit(input->hooks.user, line);
    free(line);
}

static void set_up_readline(struct esp_input *input)
{
    rl_readline_name = "espalier";
    rl_instream = input->in;
    rl_outstream = input->out;
    rl_catch_signals = 0;
    rl_catch_sigwinch = 0;
    rl_change_environment = 0;
    rl_getc_function = next_byte;
    rl_input_available_hook = has_bytes;
    rl_redisplay_function = draw_nothing;
    rl_prep_term_function = prepare_nothing;
    rl_deprep_term_function = draw_nothing;
    rl_attempted_completion_function = complete;
    rl_completion_display_matches_hook = show_matches;
    rl_completer_word_break_characters = " :=,";
    rl_completion_query_items = 0;
    rl_sort_completion_matches = 0;
    rl_callback_handler_install("> ", line_done);
    rl_variable_bind("bell-style", "none");
    rl_variable_bind("show-all-if-ambiguous", "on");
    rl_variable_bind("horizontal-scroll-mode", "on");
}

/* ------------------------------------------------------------------ history */

/* Without a place to keep it, history lasts as long as the session. */
static void open_history(struct esp_input *input)
{
    stifle_history(HISTORY_LINES);
    history_comment_char = '#'; /* time stamps tell where an entry of several lines ends */
    history_write_timestamps = 1;
    history_multiline_entries = 1;
    char path[PATH_MAX];
    if (esp_user_path(path, sizeof path, ESP_USER_STATE, "history") == 0)
        input->history_path = strdup(path);
    if (!input->history_path)
        return;
    esp_make_folders(input->history_path);
    int file = open(input->history_path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0) {
        free(input->history_path);
        input->history_path = NULL;
        return;
    }
    close(file);
    read_history(input->history_path);
    using_history(); /* the next line comes after the last one */
}

void esp_input_remember(struct esp_input *input, const char *line)
{
    const HIST_ENTRY *last =
        history_length > 0 ? history_get(history_base + history_length - 1) : NULL;
    if (!*line || strlen(line) > LONGEST_REMEMBERED || (last && strcmp(last->line, line) == 0))
        return;
    add_history(line);
    using_history();
    if (input->history_path && append_history(1, input->history_path) == 0)
        history_truncate_file(input->history_path, HISTORY_LINES);
}

/* ------------------------------------------------------------------ open and close */

int esp_input_open(struct esp_input **opened, const struct esp_input_hooks *hooks, bool history)
{
    struct esp_input *input = calloc(1, sizeof *input);
    *opened = NULL;
    if (!input)
        return ESP_E_MEMORY;
    input->hooks = *hooks;
    input->in = fopen("/dev/null", "re");
    input->out = fopen("/dev/null", "we");
    if (!input->in || !input->out) {
        esp_input_close(input);
        return ESP_E_FILE;
    }
    esp_root.input = input;
    set_up_readline(input);
    if (history)
        open_history(input);
    *opened = input;
    return 0;
}

void esp_input_close(struct esp_input *input)
{
    if (!input)
        return;
    if (esp_root.input == input) {
        rl_callback_handler_remove();
        clear_history();
        esp_root.input = NULL;
    }
    if (input->in)
        fclose(input->in);
    if (input->out)
        fclose(input->out);
    forget_choices(&input->choices);
    free(input->history_path);
    free(input);
}

/* ------------------------------------------------------------------ editing */

/* The bytes a terminal would send for a key; readline's default bindings know them. */
static int key_bytes(int key, char bytes[16])
{
    static const struct {
        int key;
        const char *bytes;
    } special[] = {
        {ESP_KEY_UP, "\033[A"},      {ESP_KEY_DOWN, "\033[B"},    {ESP_KEY_RIGHT, "\033[C"},
        {ESP_KEY_LEFT, "\033[D"},    {ESP_KEY_HOME, "\033[H"},    {ESP_KEY_END, "\033[F"},
        {ESP_KEY_INSERT, "\033[2~"}, {ESP_KEY_DELETE, "\033[3~"},
    };
    int length = 0;
    if (key & ESP_KEY_META)
        bytes[length++] = 27;
    key &= ~ESP_KEY_META;
    for (size_t i = 0; i < sizeof special / sizeof *special; i++)
        if (special[i].key == key) {
            strcpy(bytes + length, special[i].bytes);
            return length + (int)strlen(special[i].bytes);
        }
    if (key >= ESP_KEY_FIRST)
        return 0;
    return length + (int)utf8proc_encode_char(key, (utf8proc_uint8_t *)bytes + length);
}

/* Escape alone has been told from Meta already (decode.c). To readline it would be the first half
 * of a Meta key and swallow the next one; only vi's keys and a search know it by itself. */
static bool escape_is_nothing(void)
{
    return rl_editing_mode != 0 &&
           !RL_ISSTATE(RL_STATE_ISEARCH | RL_STATE_NSEARCH | RL_STATE_NUMERICARG |
                       RL_STATE_MULTIKEY);
}

void esp_input_key(struct esp_input *input, int key)
{
    input->show_choices = false;
    if (key == ESP_KEY_ESCAPE && escape_is_nothing())
        return;
    input->taken = 0;
    input->queued = key_bytes(key, input->queue);
    while (input->taken < input->queued)
        rl_callback_read_char();
}

void esp_input_paste(struct esp_input *input, const char *bytes, size_t length)
{
    char *text = malloc(length + 1);
    size_t kept = 0;
    input->show_choices = false;
    if (!text)
        return;
    for (size_t i = 0; i < length; i++) {
        if (bytes[i] == '\r' && i + 1 < length && bytes[i + 1] == '\n')
            continue;
        if (bytes[i])
            text[kept++] = bytes[i] == '\r' ? '\n' : bytes[i];
    }
    text[kept] = '\0';
    rl_insert_text(text);
    free(text);
}

void esp_input_replace(struct esp_input *input, const char *line)
{
    input->show_choices = false;
    rl_replace_line(line, 0);
    rl_point = rl_end;
}

void esp_input_list(struct esp_input *input)
{
    (void)input;
    rl_possible_completions(1, '?');
}

void esp_input_unlist(struct esp_input *input)
{
    input->show_choices = false;
}

bool esp_input_is_empty(const struct esp_input *input)
{
    (void)input;
    return rl_end == 0 &&
           !RL_ISSTATE(RL_STATE_ISEARCH | RL_STATE_NSEARCH | RL_STATE_NUMERICARG);
}

void esp_input_show(const struct esp_input *input, struct esp_ui *ui)
{
    ui->prompt = rl_display_prompt ? rl_display_prompt : "> ";
    ui->line = rl_line_buffer ? rl_line_buffer : "";
    ui->line_length = (size_t)rl_end;
    ui->point = (size_t)rl_point;
    ui->choices = input->choices.choice;
    ui->choice_count = input->show_choices ? input->choices.count : 0;
}
