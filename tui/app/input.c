/* input.c - runs readline in callback mode without a terminal; see input.h.
 *
 * Readline reads bytes through rl_getc_function, calls a function when a line is done, and
 * draws through rl_redisplay_function. Each key puts its bytes into a queue, from which
 * readline reads. Drawing does nothing, readline's streams lead to /dev/null, and its terminal
 * set-up and signal handlers are off. If readline reads more bytes than a key has, it gets C-g,
 * which ends the operation.
 */
#include "tui/app/input.h"

#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <readline/history.h>
#include <readline/readline.h>
#include <utf8proc.h>

#include "engine/support/open_file.h"
#include "engine/support/paths.h"
#include "tui/app/root.h"
#include "engine/support/write_file.h"

enum { HISTORY_LINES = 1000, LONGEST_REMEMBERED = 1 << 16, ABORT = 7 };
/* The largest repeat count for a key. Readline itself would accept a million. */
enum { MOST_REPEATS = 999 };

struct esp_input {
    struct esp_input_hooks hooks;
    FILE *in, *out;
    char queue[16];
    int queued, taken;
    struct esp_choices choices;
    int next_choice; /* index of the choice that readline reads next */
    bool show_choices;
    char *history_path; /* NULL: the history is not saved */
};

/* ------------------------------------------------------------------ choices */

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
    esp_choices_clear(&input->choices);
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

/* ------------------------------------------------------------------ safe history */

/* Lists the functions of readline that move to another line of the history. */
#define MOVES(X)                                                                               \
    X(rl_get_previous_history)                                                                 \
    X(rl_get_next_history)                                                                     \
    X(rl_beginning_of_history)                                                                 \
    X(rl_end_of_history)                                                                       \
    X(rl_fetch_history)                                                                        \
    X(rl_operate_and_get_next)                                                                 \
    X(rl_forward_search_history)                                                               \
    X(rl_reverse_search_history)                                                               \
    X(rl_history_search_forward)                                                               \
    X(rl_history_search_backward)                                                              \
    X(rl_history_substr_search_forward)                                                        \
    X(rl_history_substr_search_backward)                                                       \
    X(rl_noninc_forward_search)                                                                \
    X(rl_noninc_reverse_search)                                                                \
    X(rl_noninc_forward_search_again)                                                          \
    X(rl_noninc_reverse_search_again)                                                          \
    X(rl_vi_search)                                                                            \
    X(rl_vi_search_again)                                                                      \
    X(rl_vi_fetch_history)

/* When the user goes to another line of the history, Readline 8.2 stores the undo list of the
 * line that the user leaves in several places. Later it frees the list in one place and uses it
 * in another. To prevent this, these functions free the undo list before they move to another
 * line. Then the changes to the line that the user left cannot be undone. */
#define X(function)                                                                            \
    static int safe_##function(int count, int key)                                             \
    {                                                                                          \
        rl_free_undo_list();                                                                   \
        return function(count, key);                                                           \
    }
MOVES(X)
#undef X

static int read_bindings(int count, int key);

/* Replaces the function that records a keyboard macro. Readline 8.2 dereferences a null pointer
 * if a macro that ends with a number is played while it is recorded. */
static int refuse(int count, int key)
{
    (void)count;
    (void)key;
    return rl_ding();
}

/* Replaces the unsafe functions of readline by safe ones, for all keys that are bound to them
 * by default or in the user's inputrc. */
static void bind_safely(void)
{
    static const struct {
        rl_command_func_t *theirs, *ours;
    } functions[] = {
#define X(function) {function, safe_##function},
        MOVES(X)
#undef X
            {rl_re_read_init_file, read_bindings},
        {rl_start_kbd_macro, refuse},
        {rl_end_kbd_macro, refuse},
        {rl_call_last_kbd_macro, refuse},
    };
    Keymap maps[] = {emacs_standard_keymap, vi_insertion_keymap, vi_movement_keymap};
    for (size_t map = 0; map < sizeof maps / sizeof *maps; map++)
        for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
            char **keys = rl_invoking_keyseqs_in_map(functions[i].theirs, maps[map]);
            for (char **at = keys; at && *at; at++) {
                rl_bind_keyseq_in_map(*at, functions[i].ours, maps[map]);
                free(*at);
            }
            free(keys);
        }
}

static int read_bindings(int count, int key)
{
    int status = rl_re_read_init_file(count, key);
    bind_safely();
    return status;
}

/* Opens the editor. It is bound to C-x C-e, as in shells. */
static int open_editor(int count, int key)
{
    (void)count;
    (void)key;
    if (esp_root.input->hooks.editor)
        esp_root.input->hooks.editor(esp_root.input->hooks.user);
    return 0;
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
    bind_safely();
    rl_bind_keyseq_if_unbound("\\C-x\\C-e", open_editor);
    rl_variable_bind("bell-style", "none");
    rl_variable_bind("show-all-if-ambiguous", "on");
    rl_variable_bind("horizontal-scroll-mode", "on");
}

/* ------------------------------------------------------------------ history */

/* Creates the history file if there is none. Returns false if the path does not lead to a
 * regular file; then the history is not saved. Readline would block forever on a pipe, for
 * example. */
static bool history_is_file(struct esp_input *input)
{
    const char *wrong;
    int file = input->history_path
                   ? esp_open_regular(input->history_path, O_RDWR | O_CREAT, 0600, &wrong)
                   : -1;
    if (file >= 0) {
        close(file);
        return true;
    }
    free(input->history_path);
    input->history_path = NULL;
    return false;
}

/* Removes lines that are not UTF-8 from the history. On such a line, some functions of
 * readline's vi mode never return. */
static void forget_invalid_lines(void)
{
    for (int i = history_length - 1; i >= 0; i--) {
        const HIST_ENTRY *entry = history_get(history_base + i);
        const utf8proc_uint8_t *at = entry ? (const utf8proc_uint8_t *)entry->line : NULL;
        utf8proc_int32_t c = 1;
        utf8proc_ssize_t taken = 1;
        while (at && c != 0 && (taken = utf8proc_iterate(at, -1, &c)) > 0)
            at += taken;
        if (taken <= 0)
            free_history_entry(remove_history(i));
    }
}

/* Opens the history. If the history file cannot be used, the history lasts only for the
 * session. */
static void open_history(struct esp_input *input)
{
    stifle_history(HISTORY_LINES);
    /* An entry can have several lines. A line with '#' and the time marks its start. */
    history_comment_char = '#';
    history_write_timestamps = 1;
    history_multiline_entries = 1;
    char path[PATH_MAX];
    if (esp_user_path(path, sizeof path, ESP_USER_STATE, "history") == 0)
        input->history_path = strdup(path);
    if (!input->history_path)
        return;
    esp_make_folders(input->history_path);
    if (!history_is_file(input))
        return;
    read_history(input->history_path);
    forget_invalid_lines();
    using_history(); /* the next line is added at the end of the history */
}

void esp_input_remember(struct esp_input *input, const char *line)
{
    const HIST_ENTRY *last =
        history_length > 0 ? history_get(history_base + history_length - 1) : NULL;
    if (!*line || strlen(line) > LONGEST_REMEMBERED || (last && strcmp(last->line, line) == 0))
        return;
    add_history(line);
    using_history();
    if (history_is_file(input) && append_history(1, input->history_path) == 0)
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
    esp_choices_clear(&input->choices);
    free(input->history_path);
    free(input);
}

/* ------------------------------------------------------------------ editing */

/* Writes the bytes that a terminal sends for a key, and returns their number. Readline's
 * default bindings use these bytes. */
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

/* Copies text. Leaves out NUL and carriage return, and replaces invalid UTF-8 by U+FFFD.
 * Returns the number of bytes written. `to` must have room for 3 * length bytes. */
static size_t clean(char *to, const char *bytes, size_t length)
{
    size_t kept = 0;
    for (size_t i = 0; i < length;) {
        utf8proc_int32_t c;
        utf8proc_ssize_t taken = utf8proc_iterate((const utf8proc_uint8_t *)bytes + i,
                                                  (utf8proc_ssize_t)(length - i), &c);
        bool followed = bytes[i] == '\r' && i + 1 < length && bytes[i + 1] == '\n';
        i += taken > 0 ? (size_t)taken : 1;
        if (taken > 0 && (c == 0 || followed))
            continue;
        c = taken <= 0 ? 0xfffd : c == '\r' ? '\n' : c;
        kept += (size_t)utf8proc_encode_char(c, (utf8proc_uint8_t *)to + kept);
    }
    return kept;
}

/* Replaces the line as a single edit that can be undone. The edit must be in readline's undo
 * list: readline uses the list to restore an edited line of the history, and reads past the end
 * of the line if the list does not match it. */
static void replace(const char *line)
{
    rl_begin_undo_group();
    rl_delete_text(0, rl_end);
    rl_point = rl_mark = 0;
    rl_insert_text(line);
    rl_end_undo_group();
}

/* Repairs the line: readline's vi keys may leave half a character or a NUL in it, and some of
 * them never return on such a line. */
static void mend_line(void)
{
    const size_t length = (size_t)rl_end;
    if (rl_editing_mode != 0 || RL_ISSTATE(RL_STATE_ISEARCH | RL_STATE_NSEARCH))
        return;
    char *text = malloc(3 * length + 1);
    if (!text)
        return;
    const size_t kept = clean(text, rl_line_buffer, length);
    text[kept] = '\0';
    if (kept != length || memcmp(text, rl_line_buffer, length) != 0) {
        const int point = rl_point;
        replace(text);
        rl_point = point < rl_end ? point : rl_end;
    }
    free(text);
}

static void feed(struct esp_input *input, int key)
{
    input->taken = 0;
    input->queued = key_bytes(key, input->queue);
    while (input->taken < input->queued)
        rl_callback_read_char();
    if (rl_numeric_arg > MOST_REPEATS)
        rl_numeric_arg = MOST_REPEATS;
    mend_line();
}

/* Ends a search, a repeat count or an incomplete sequence of keys. After a search, the line
 * that was found stays on the input line. */
static void end_begun(struct esp_input *input)
{
    if (RL_ISSTATE(RL_STATE_NSEARCH | RL_STATE_NUMERICARG | RL_STATE_MULTIKEY |
                   RL_STATE_VIMOTION))
        feed(input, ABORT);
    rl_callback_sigcleanup();
}

/* Returns whether the key starts a sequence of keys. During a search, Readline 8.2 looks up the
 * sequence, and dereferences a null pointer if the search does not know it. */
static bool begins_sequence(int key)
{
    char bytes[16];
    const int count = key_bytes(key, bytes);
    return count > 0 && key != ESP_KEY_ESCAPE &&
           rl_get_keymap()[(unsigned char)bytes[0]].type == ISKMAP;
}

/* Handles the key Escape; decode.c has already found that it is not the start of a Meta key.
 * Readline handles Escape alone only in vi's insert mode and in a search. Otherwise it would
 * combine Escape and the next key into a Meta key. */
static bool escape(struct esp_input *input)
{
    const bool vi = rl_editing_mode == 0;
    const int begun = RL_STATE_NSEARCH | RL_STATE_NUMERICARG | RL_STATE_MULTIKEY |
                      (vi ? RL_STATE_VIMOTION : 0);
    if (RL_ISSTATE(RL_STATE_ISEARCH) || (vi && rl_get_keymap() == vi_insertion_keymap))
        feed(input, ESP_KEY_ESCAPE);
    else if (RL_ISSTATE(begun))
        end_begun(input);
    else
        return false;
    return true;
}

bool esp_input_escape(struct esp_input *input)
{
    input->show_choices = false;
    return escape(input);
}

void esp_input_go(struct esp_input *input, size_t point)
{
    (void)input;
    rl_point = point < (size_t)rl_end ? (int)point : rl_end;
}

void esp_input_key(struct esp_input *input, int key)
{
    input->show_choices = false;
    if ((RL_ISSTATE(RL_STATE_ISEARCH) && begins_sequence(key)) ||
        (RL_ISSTATE(RL_STATE_NUMERICARG) && (key == ESP_KEY_ENTER || key == '\n')))
        end_begun(input); /* otherwise readline would submit the line only at the next key */
    if (key == ESP_KEY_ESCAPE) {
        escape(input);
        return;
    }
    if (rl_editing_mode == 0 && key & ESP_KEY_META) { /* in vi mode: Escape, then the key */
        escape(input);
        key &= ~ESP_KEY_META;
    }
    feed(input, key);
}

void esp_input_paste(struct esp_input *input, const char *bytes, size_t length)
{
    input->show_choices = false;
    char *text = length < SIZE_MAX / 3 ? malloc(3 * length + 1) : NULL;
    if (!text)
        return;
    text[clean(text, bytes, length)] = '\0';
    end_begun(input);
    rl_insert_text(text);
    free(text);
}

void esp_input_replace(struct esp_input *input, const char *line)
{
    end_begun(input);
    input->show_choices = false;
    replace(line);
}

void esp_input_list(struct esp_input *input)
{
    end_begun(input);
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

const char *esp_input_text(const struct esp_input *input)
{
    (void)input;
    return rl_line_buffer ? rl_line_buffer : "";
}

void esp_input_show(const struct esp_input *input, struct esp_ui *ui)
{
    ui->input.prompt = rl_display_prompt ? rl_display_prompt : "> ";
    ui->input.line = rl_line_buffer ? rl_line_buffer : "";
    ui->input.length = (size_t)rl_end;
    ui->input.point =
        (size_t)(rl_point < rl_end ? rl_point : rl_end); /* rl_point can be too large */
    ui->choices = input->choices.choice;
    ui->choice_count = input->show_choices ? input->choices.count : 0;
}
