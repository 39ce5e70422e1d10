/* app.c - runs the action of each key, runs typed lines as commands or prompts, and applies the
 * engine thread's reports to the state; see app.h. */
#include "tui/app/app_parts.h"
#include "tui/app/editor.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tui/commands/branching.h"
#include "tui/commands/command.h"
#include "kernels/clock.h"
#include "tui/commands/palette_items.h"
#include "tui/commands/prompts.h"
#include "tui/commands/replay.h"
#include "viz/safe.h"
#include "tui/commands/settings.h"
#include "tui/view/input_box.h"

/* ------------------------------------------------------------------ lines */

void esp_app_say(struct esp_app *app, bool error, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(app->message, sizeof app->message, format, args);
    va_end(args);
    app->control.ui.message = app->message;
    app->control.ui.message_is_error = error;
    app->control.requests.changed = true;
}

void esp_app_show_reply(struct esp_app *app, int status)
{
    struct esp_control *control = &app->control;
    if (*control->reply)
        esp_app_say(app, status < 0, "%s", control->reply);
    control->reply[0] = '\0';
}

static void run_line(struct esp_app *app, const char *line)
{
    esp_app_show_reply(app, esp_command_run(&app->control, line));
}

/* Measures the number of iterations per second. Updates it once a second. */
static void measure_rate(struct esp_app *app)
{
    const struct esp_iteration *it = esp_state_kept(&app->control.state, 0);
    const double now = esp_clock();
    const bool running = app->control.state.phase == ESP_PHASE_GENERATING && it;
    if (!running || app->rated_at < 0 || it->index < app->rated_at) {
        app->control.ui.rate = 0;
        app->rated_at = running ? it->index : -1;
        app->rated = now;
    } else if (now - app->rated >= 1) {
        app->control.ui.rate = (it->index - app->rated_at) / (now - app->rated);
        app->rated_at = it->index;
        app->rated = now;
    }
}

static bool is_command_line(const char *line)
{
    return line[0] == ':' || line[0] == '/';
}

/* Starts a command line. Saves the prompt that is on the input line, to restore it when the
 * command line ends. */
static void begin_command(struct esp_app *app, const char *line)
{
    const char *typed = esp_input_text(app->input);
    if (*typed && !is_command_line(typed)) {
        free(app->prompt);
        app->prompt = strdup(typed);
    }
    esp_ui_leave(&app->control.ui);
    esp_input_replace(app->input, line);
}

/* Ends the command line and restores the prompt. */
static void end_command(struct esp_app *app)
{
    esp_input_replace(app->input, app->prompt ? app->prompt : "");
    free(app->prompt);
    app->prompt = NULL;
}

/* Replaces the text of the input line. Adds the previous text to the history. The key Up brings
 * it back. */
static void put_line(struct esp_app *app, const char *line)
{
    char *typed = strdup(esp_input_text(app->input));
    if (typed && !is_command_line(typed))
        esp_input_remember(app->input, typed);
    free(typed);
    esp_input_replace(app->input, line);
}

/* Called after the user has submitted a line, when readline's own line is empty. Ends the
 * command line or, if a command has requested a new input line, shows that line instead. */
static void take_line(struct esp_app *app)
{
    struct esp_control *control = &app->control;
    if (app->ended && !control->requests.line && app->prompt)
        end_command(app);
    app->ended = false;
    if (!control->requests.line)
        return;
    if (!control->requests.line_if_empty || esp_input_is_empty(app->input))
        put_line(app, control->requests.line);
    free(control->requests.line);
    control->requests.line = NULL;
}

/* Goes to the next match of the search. Reports which match this is, and how many matches there
 * are. */
static void find(struct esp_app *app, int pane, int step)
{
    const char *what = app->control.ui.look.search;
    if (!*what) {
        esp_app_say(app, true, "no search yet: type / and a text, then Enter");
        return;
    }
    if (app->control.player && pane != ESP_PANE_tree) {
        esp_app_show_reply(app, esp_replay_find(&app->control, step));
        return;
    }
    struct esp_search_result found = esp_ui_find(&app->control.ui, &app->control.state, pane,
                                                 step, app->canvas.width, app->canvas.height);
    const char *where = esp_panes[app->control.ui.layout.current]->name, *round = "";
    const bool is_name = esp_command_is(&app->control, what);
    if (found.round && found.count > 1)
        round = step > 0 ? ", continued from the start" : ", continued from the end";
    if (found.count == 0)
        esp_app_say(app, true, "not found: '%s' is not in the %s%s%s", what, where,
                    is_name ? "; the command is :" : "", is_name ? what : "");
    else
        esp_app_say(app, false, "'%s' in the %s: %d of %d%s; n: next, N: previous", what, where,
                    found.index, found.count, round);
}

/* Runs a line "/TEXT", which starts a search. "/" alone ends the search and removes the
 * highlighting. */
static void search(struct esp_app *app, const char *what)
{
    struct esp_look *look = &app->control.ui.look;
    snprintf(look->search, sizeof look->search, "%s", what);
    look->match = -1;
    if (*what)
        find(app, app->searched < 0 ? ESP_PANE_text : app->searched, 1);
}

/* Returns whether the line is "/NAME VALUE" with the name of a setting, which means ":NAME
 * VALUE". Any other line with a slash is a search. It never runs a command, because the user
 * may want to search for a word that is also the name of a command. */
static bool is_slash_setting(const struct esp_app *app, const char *line)
{
    return line[0] == '/' && app->searched < 0 && esp_command_sets(&app->control, line + 1);
}

static void run_slash_setting(struct esp_app *app, const char *line)
{
    char *copy = strdup(line);
    if (!copy)
        return;
    copy[0] = ':';
    run_line(app, copy);
    free(copy);
}

void esp_app_submit(void *user, const char *line)
{
    struct esp_app *app = user;
    app->ended = is_command_line(line);
    if (line[0] == '/') {
        esp_input_remember(app->input, line);
        if (is_slash_setting(app, line))
            run_slash_setting(app, line);
        else
            search(app, line + 1);
        app->searched = -1;
        return;
    }
    if (line[0] == ':') {
        esp_input_remember(app->input, line);
        run_line(app, line);
        return;
    }
    if (app->control.player)
        return;
    const char *why = esp_prompts_refusal(&app->control);
    if (why) {
        esp_request_line(&app->control.requests, line, false);
        esp_app_say(app, true, "%s", why);
        return;
    }
    esp_input_remember(app->input, line);
    esp_prompts_send(&app->control, line);
    esp_ui_follow(&app->control.ui, &app->control.state);
}

/* Completes "/NAME VALUE" as ":NAME VALUE" if NAME is a setting. Completes "/NAME" as a single
 * word. */
static void complete_slash(struct esp_app *app, struct esp_choices *choices)
{
    static struct esp_choices names;
    char line[1024], text[128];
    if (choices->before[0]) {
        const char *name = choices->before + 1;
        snprintf(line, sizeof line, ":%s", name);
        choices->before = line;
        if (esp_setting_find(name, strcspn(name, " =")) >= 0)
            esp_command_complete(&app->control, choices);
        choices->before = "";
        return;
    }
    esp_choices_clear(&names);
    names.before = ":";
    names.word = choices->word + 1;
    esp_command_complete(&app->control, &names);
    for (int i = 0; i < names.count; i++) {
        const struct esp_choice *name = &names.choice[i];
        if (esp_setting_find(name->text, strlen(name->text)) < 0)
            continue;
        snprintf(text, sizeof text, "/%s", name->text);
        esp_choices_add(choices, text, name->summary);
    }
    esp_choices_clear(&names);
}

void esp_app_complete(void *user, const char *before, const char *word,
                      struct esp_choices *choices)
{
    struct esp_app *app = user;
    choices->before = before;
    choices->word = word;
    if (before[0] == ':')
        esp_command_complete(&app->control, choices);
    else if (app->searched < 0 && (before[0] ? before[0] : word[0]) == '/')
        complete_slash(app, choices);
}

/* Runs a command. A line that ends with a blank or '=' is put on the input line instead. */
static void run_command(struct esp_app *app, const char *line)
{
    if (!strchr(" =", line[strlen(line) - 1])) {
        run_line(app, line);
        return;
    }
    char begun[256];
    snprintf(begun, sizeof begun, "%s%s", line, esp_command_begin(&app->control, line));
    begin_command(app, begun);
    esp_input_list(app->input);
}

/* ------------------------------------------------------------------ keys */

/* Leaves a page. If the program was started only to show that page, leaves the program, too. */
static void leave_page(struct esp_app *app)
{
    const struct esp_interface_options *options = &app->control.settings.options;
    esp_control_page(&app->control, NULL, NULL);
    app->control.requests.leaving =
        app->control.requests.leaving || options->race || options->lesson;
}

void esp_app_interrupt(struct esp_app *app)
{
    app->control.requests.changed = true;
    app->control.question.text[0] = '\0';
    if (app->control.page.ops) {
        leave_page(app);
        return;
    }
    if (app->interrupts++ > 0) {
        app->control.requests.leaving = true;
        return;
    }
    if (app->control.player && app->control.player->playing) {
        esp_replay_play(&app->control, false);
        esp_app_say(app, false, "paused; C-c again leaves");
        return;
    }
    if (app->control.worker &&
        (esp_state_is_busy(&app->control.state) ||
         (app->control.state.phase == ESP_PHASE_LOADING && app->control.state.ready))) {
        esp_control_stop_engine(&app->control);
        esp_app_say(app, false, "stopped; C-c again leaves");
        return;
    }
    put_line(app, "");
    esp_app_say(app, false, "C-c again leaves");
}

/* Handles Escape. It ends an operation of the input line, the command line, the zoom or the
 * generation. If several of these are active, it ends only the first one in this order. */
static void cancel(struct esp_app *app)
{
    const char *line = esp_input_text(app->input);
    if (esp_input_escape(app->input))
        return;
    if (is_command_line(line) || (!*line && app->prompt)) {
        end_command(app);
        app->searched = -1;
    } else if (app->control.ui.layout.zoomed) {
        app->control.ui.layout.zoomed = false;
    } else if (app->control.worker && esp_state_is_busy(&app->control.state)) {
        esp_control_stop_engine(&app->control);
        esp_app_say(app, false, "stopped");
    }
}

/* Handles a key while the interface asks a yes-or-no question. y runs the command of the
 * question, and any other key cancels it. Returns true if the key has no other effect: this
 * holds for y, n, Escape and Enter. All other keys also have their usual effect. */
static bool answer_question(struct esp_app *app, int key)
{
    struct esp_control *control = &app->control;
    if (!*control->question.text)
        return false;
    control->question.text[0] = '\0';
    control->requests.changed = true;
    control->ui.message = NULL;
    if (key == 'y' || key == 'Y') {
        run_line(app, control->question.if_yes);
        take_line(app);
        return true;
    }
    return key == 'n' || key == 'N' || key == ESP_KEY_ESCAPE || key == ESP_KEY_ENTER;
}

/* Starts a new line in the prompt. In a command line, C-j means Enter. */
static void new_line(struct esp_app *app)
{
    esp_ui_leave(&app->control.ui);
    if (is_command_line(esp_input_text(app->input)))
        esp_input_key(app->input, ESP_KEY_ENTER);
    else if (!app->control.player)
        esp_input_paste(app->input, "\n", 1);
    take_line(app);
}

/* Handles Up and Down. They move between the rows of the input line. From its first or last row
 * they go to another line of the history. */
static bool move_in_line(struct esp_app *app, int key)
{
    struct esp_ui *ui = &app->control.ui;
    if (key != ESP_KEY_UP && key != ESP_KEY_DOWN)
        return false;
    esp_input_show(app->input, ui);
    const long point =
        esp_input_box_move(&ui->input, app->canvas.width, key == ESP_KEY_UP ? -1 : 1);
    if (point >= 0)
        esp_input_go(app->input, (size_t)point);
    return point >= 0;
}

bool esp_app_wants_background(const struct esp_app *app)
{
    const int theme = esp_setting_find("theme", strlen("theme"));
    return !app->control.settings.options.theme && !app->control.settings.chosen[theme];
}

void esp_app_background(struct esp_app *app, int rgb)
{
    char err[256];
    const int light = 3 * (rgb >> 16 & 255) + 6 * (rgb >> 8 & 255) + (rgb & 255);
    if (esp_app_wants_background(app))
        esp_control_theme(&app->control, light >= 10 * 128 ? "light" : "dark", err, sizeof err);
}

static void step(struct esp_app *app)
{
    if (esp_state_is_busy(&app->control.state))
        esp_mailbox_step(esp_worker_mailbox(app->control.worker));
    else
        esp_app_say(app, false, "submit a prompt first; an empty line continues the text");
}

static bool act_on_view(struct esp_app *app, int action)
{
    return esp_ui_act(&app->control.ui, &app->control.state, action, app->canvas.width,
                      app->canvas.height);
}

/* Handles q. It leaves the help, the pane or the zoom. If none of them is open, it leaves the
 * program. */
static void go_back(struct esp_app *app)
{
    struct esp_ui *ui = &app->control.ui;
    if (ui->help || ui->layout.focused || ui->layout.zoomed)
        act_on_view(app, ESP_ACTION_LEAVE_PANE);
    else
        app->control.requests.leaving = true;
}

/* Handles Enter if the pane itself did not handle it. In the text pane, Enter goes to the
 * alternatives for the token at the cursor. In the alternatives pane, it begins a branch with
 * the chosen alternative. In the branches pane, it goes to the chosen branch. */
static void enter_pane(struct esp_app *app)
{
    struct esp_ui *ui = &app->control.ui;
    if (!ui->layout.focused || ui->help || app->control.player)
        return;
    if (ui->layout.current == ESP_PANE_text && ui->look.of_token)
        ui->layout.current = ESP_PANE_node;
    else if (ui->layout.current == ESP_PANE_branches ||
             (ui->layout.current == ESP_PANE_node && ui->look.of_token))
        run_line(app, ":branch");
}

static void act(struct esp_app *app, int action, int key)
{
    if (app->control.player) {
        int status = esp_replay_act(&app->control, action, key);
        esp_app_show_reply(app, status);
        if (status != ESP_REPLAY_IGNORES)
            return;
    }
    switch (action) {
    case ESP_ACTION_STEP_MODE:
        esp_app_show_reply(app,
                           esp_control_step_mode(&app->control, !app->control.ui.stepping));
        break;
    case ESP_ACTION_STEP:
        step(app);
        break;
    case ESP_ACTION_FULL_SPEED:
        esp_control_pace(&app->control, app->control.ui.pace > 0 ? 0 : app->control.pace);
        break;
    case ESP_ACTION_QUIT:
    case ESP_ACTION_EOF:
        app->control.requests.leaving = true;
        break;
    case ESP_ACTION_BACK:
        go_back(app);
        break;
    case ESP_ACTION_SUSPEND:
        app->suspend = true;
        break;
    case ESP_ACTION_REDRAW:
        app->redraw = true;
        break;
    case ESP_ACTION_SEARCH:
        app->searched = app->control.ui.layout.focused ? app->control.ui.layout.current : -1;
        begin_command(app, "/");
        break;
    case ESP_ACTION_NEW_LINE:
        new_line(app);
        break;
    case ESP_ACTION_CANCEL:
        cancel(app);
        break;
    case ESP_ACTION_DRAFTERS:
        esp_palette_menu(&app->control, ESP_DRAFTERS);
        break;
    case ESP_ACTION_VERIFIERS:
        esp_palette_menu(&app->control, ESP_VERIFIERS);
        break;
    case ESP_ACTION_SEARCH_NEXT:
    case ESP_ACTION_SEARCH_BACK:
        find(app,
             app->control.ui.layout.focused ? app->control.ui.layout.current : ESP_PANE_text,
             action == ESP_ACTION_SEARCH_NEXT ? 1 : -1);
        break;
    case ESP_ACTION_PALETTE:
        esp_palette_fill(&app->control);
        break;
    case ESP_ACTION_TOGGLE:
        if (!act_on_view(app, action))
            enter_pane(app);
        break;
    case ESP_ACTION_HIDE:
        if (act_on_view(app, action))
            esp_app_say(app, false, "to show all panes again: :hidden none");
        else
            esp_app_say(app, true,
                        app->control.ui.layout.focused && !app->control.ui.help
                            ? "text and tree cannot both be hidden"
                            : "focus a pane with Tab, then hide it with x");
        break;
    default:
        act_on_view(app, action);
        break;
    }
}

/* Called for every input. Hides the message and resets the count of C-c presses. */
static void touch(struct esp_app *app)
{
    app->control.requests.changed = true;
    app->control.ui.message = NULL;
    app->interrupts = 0;
}

/* Runs the action that is bound to a key. */
static void obey(struct esp_app *app, const struct esp_binding *binding, int key)
{
    if (binding->command)
        run_command(app, binding->command);
    else if (binding->action == ESP_ACTION_INTERRUPT)
        esp_app_interrupt(app);
    else if (binding->action != ESP_ACTION_NONE)
        act(app, binding->action, key);
    else
        esp_input_key(app->input, key);
    take_line(app);
}

/* Runs the selected item of the palette. If the item is a key, its action runs, no matter which
 * pane has the focus. */
static void choose(struct esp_app *app)
{
    const struct esp_palette_item item = *esp_palette_selected(&app->control.ui.palette);
    char line[128];
    if (item.refused) {
        esp_app_say(app, true, "%s", item.summary);
        return;
    }
    snprintf(line, sizeof line, "%s", item.text);
    esp_palette_close(&app->control.ui.palette);
    if (item.binding)
        obey(app, item.binding, esp_key_parse(item.binding->key));
    else
        run_command(app, line);
    take_line(app);
}

static void palette_key(struct esp_app *app, int key)
{
    touch(app);
    switch (esp_palette_key(&app->control.ui.palette, key)) {
    case ESP_PALETTE_LEFT:
        esp_palette_close(&app->control.ui.palette);
        break;
    case ESP_PALETTE_CHOSE:
        choose(app);
        break;
    default:
        break;
    }
}

/* Handles the keys that mean the same on every page. */
static void page_key(struct esp_app *app, int key)
{
    const struct esp_binding *binding =
        esp_key_binding(key, (struct esp_key_when){.pane = true}, &app->control.ui.own_keys);
    const int action = binding ? binding->action : ESP_ACTION_NONE;
    app->control.requests.changed = true;
    app->interrupts = 0;
    if (action == ESP_ACTION_SUSPEND)
        app->suspend = true;
    else if (action == ESP_ACTION_REDRAW)
        app->redraw = true;
    else if (action == ESP_ACTION_INTERRUPT ||
             !app->control.page.ops->key(app->control.page.data, key))
        leave_page(app);
}

void esp_app_key(struct esp_app *app, int key)
{
    if (app->control.page.ops) {
        page_key(app, key);
        return;
    }
    if (app->control.ui.palette.open) {
        palette_key(app, key);
        return;
    }
    if (answer_question(app, key))
        return;
    const int width = app->canvas.width, height = app->canvas.height;
    const bool tiny = esp_ui_layout(&app->control.ui, width, height).kind == ESP_LAYOUT_TINY;
    const bool empty = esp_input_is_empty(app->input), replay = app->control.player != NULL;
    struct esp_key_when when = {.pane = app->control.ui.layout.focused ||
                                        app->control.ui.help || tiny || (replay && empty),
                                .empty = empty,
                                .step = app->control.ui.stepping,
                                .replay = replay};
    const struct esp_binding *binding = esp_key_binding(key, when, &app->control.ui.own_keys);
    int action = binding ? binding->action : ESP_ACTION_NONE;
    app->control.requests.changed = true;
    app->control.ui.message = NULL;
    esp_input_unlist(app->input);
    if (action != ESP_ACTION_INTERRUPT)
        app->interrupts = 0;
    if (binding && (binding->command || action != ESP_ACTION_NONE)) {
        obey(app, binding, key);
        return;
    }
    if (replay && empty && key != ':')
        return; /* a replay has no input line for prompts */
    esp_ui_leave(&app->control.ui);
    if (!move_in_line(app, key))
        esp_input_key(app->input, key);
    take_line(app);
}

/* A click in the palette chooses an item. A click outside closes the palette. */
static void click_palette(struct esp_app *app, struct esp_mouse mouse)
{
    struct esp_palette *palette = &app->control.ui.palette;
    const int at =
        esp_palette_at(palette, app->canvas.width, app->canvas.height, mouse.x, mouse.y);
    if (at == ESP_PALETTE_OUTSIDE)
        esp_palette_close(palette);
    if (at < 0)
        return;
    palette->selected = at;
    palette_key(app, ESP_KEY_ENTER);
}

void esp_app_mouse(struct esp_app *app, struct esp_mouse mouse)
{
    const struct esp_binding *hint = mouse.button == 0
                                         ? esp_ui_hint_at(&app->canvas, &app->control.ui,
                                                          &app->control.state, mouse.x, mouse.y)
                                         : NULL;
    app->control.requests.changed = true;
    app->control.question.text[0] = '\0';
    if (!hint || hint->action != ESP_ACTION_INTERRUPT)
        app->interrupts = 0;
    app->control.ui.message = NULL;
    esp_input_unlist(app->input);
    if (app->control.page.ops)
        return;
    if (app->control.ui.palette.open && mouse.button == 0)
        click_palette(app, mouse);
    else if (hint)
        obey(app, hint, esp_key_parse(hint->key));
    else if (!app->control.ui.palette.open)
        esp_ui_mouse(&app->control.ui, &app->control.state, mouse, app->canvas.width,
                     app->canvas.height);
    else if (mouse.button >= 64)
        esp_palette_key(&app->control.ui.palette,
                        mouse.button == 64 ? ESP_KEY_UP : ESP_KEY_DOWN);
}

void esp_app_paste(struct esp_app *app, const char *bytes, size_t length)
{
    if (app->control.page.ops || (app->control.player && esp_input_is_empty(app->input)))
        return;
    esp_ui_leave(&app->control.ui);
    touch(app);
    app->control.question.text[0] = '\0';
    esp_palette_close(&app->control.ui.palette);
    esp_input_paste(app->input, bytes, length);
}

/* ------------------------------------------------------------------ time, reports, drawing */

int esp_app_wake_fd(const struct esp_app *app)
{
    return app->control.player ? -1 : esp_worker_report(app->control.worker)->wake[0];
}

/* Returns the milliseconds until the page must be drawn again, or -1 if it will not change. */
static int page_due(const struct esp_app *app)
{
    const struct esp_page *page = &app->control.page;
    const int period = page->ops->due(page->data);
    const double left = period - 1e3 * (esp_clock() - app->page_drawn);
    return period < 0 ? -1 : left <= 0 ? 0 : (int)left + 1;
}

int esp_app_due(const struct esp_app *app)
{
    enum { LOOK_MS = 30 }; /* interval of checks for a finished export */
    int due = app->control.player ? esp_replay_wait(app->control.player) : -1;
    if (app->control.page.ops)
        due = page_due(app);
    if (!app->control.requests.export)
        return due;
    if (esp_export_job_is_done(app->control.requests.export))
        return 0;
    return due >= 0 && due < LOOK_MS ? due : LOOK_MS;
}

bool esp_app_settled(struct esp_app *app)
{
    const struct esp_page *page = &app->control.page;
    return (!page->ops || page->ops->settled(page->data)) && !app->control.requests.export &&
           (app->control.player ? !app->control.player->playing
                                : esp_worker_settled(app->control.worker));
}

/* Requests scores from the engine thread for tokens that have none yet: the token at the cursor
 * and, if the text is coloured by scores, all tokens. Requests each score only once. */
static void ask_scores(struct esp_app *app)
{
    enum { MOST = 64 /* tokens per request; a prompt has to wait until the request is done */ };
    const struct esp_state *state = &app->control.state;
    const struct esp_look *look = &app->control.ui.look;
    const bool all = look->heat != ESP_HEAT_OFF && look->heat != ESP_HEAT_ORIGIN;
    int first = esp_looked_token(look, state), count = 1;
    if (first < 1 || state->spans[first].score.count > 0)
        first = all && !esp_state_is_busy(state) ? esp_state_unscored(state, app->scored) : -1;
    else
        app->scored = app->scored > first ? first : app->scored;
    if (first < 1 || !app->control.worker || app->asked == first + 1)
        return;
    while (all && count < MOST && first + count < state->span_count &&
           state->spans[first + count].score.count == 0)
        count++;
    app->asked = first + 1;
    app->scored = first + count;
    ESP_WORKER_POST(app->control.worker, SCORES, .number = {first, count});
}

/* Called when different models have been loaded and the screen shows their tokens. */
static void see_models(struct esp_app *app)
{
    esp_look_hold(&app->control.ui.look, &app->control.state, -1);
    if (app->control.requests.export) /* the export may still read the old models' tokens */
        esp_app_show_reply(app, esp_control_end_export(&app->control));
    if (app->control.state.loaded.anew)
        esp_prompts_retokenized(&app->control.prompts);
    ESP_WORKER_POST(app->control.worker, RETIRE, .number = {app->control.state.loaded.serial});
}

static bool changes_text(int type)
{
    return type == ESP_EVENT_PROMPT || type == ESP_EVENT_REWIND || type == ESP_EVENT_DROP ||
           type == ESP_SNAPSHOT_FORK || type == ESP_SNAPSHOT_CLEAR;
}

void esp_app_receive(struct esp_app *app)
{
    if (app->control.requests.export && esp_export_job_is_done(app->control.requests.export))
        esp_app_show_reply(app, esp_control_end_export(&app->control));
    if (app->control.page.ops && page_due(app) == 0)
        app->control.requests.changed = true;
    if (app->control.player) {
        esp_app_show_reply(app, esp_replay_receive(&app->control));
        return;
    }
    struct esp_reporter *report = esp_worker_report(app->control.worker);
    const struct esp_snapshot *snapshot;
    bool waited = app->control.state.phase == ESP_PHASE_WAITING;
    esp_reporter_rest(report);
    while ((snapshot = esp_ring_front(report->ring))) {
        const int serial = app->control.state.loaded.serial;
        const unsigned forks = app->control.state.forks;
        if (snapshot->type == ESP_EVENT_DROP)
            esp_prompts_taken_out(&app->control.prompts, app->control.state.span_count,
                                  snapshot->start, snapshot->kept);
        if (snapshot->type == ESP_EVENT_REWIND)
            esp_prompts_shortened(&app->control.prompts, snapshot->kept);
        if (changes_text(snapshot->type))
            app->asked = app->scored = 0;
        if (snapshot->type == ESP_SNAPSHOT_FORK && snapshot->stage == ESP_FORK_RESUME)
            esp_resumed_install(app->control.settings.options.resumed, &app->control.state);
        int status = esp_state_apply(&app->control.state, snapshot);
        if (snapshot->type == ESP_SNAPSHOT_REFUSED)
            esp_prompts_refused(&app->control);
        esp_ring_pop(report->ring);
        if (serial != app->control.state.loaded.serial)
            see_models(app);
        if (forks != app->control.state.forks)
            esp_app_show_reply(app, esp_branching_done(&app->control));
        if (app->control.state.span_count <= app->control.prompts.kept)
            app->control.prompts.kept = -1;
        app->control.requests.changed = true;
        if (status < 0)
            esp_app_say(app, true, "out of memory: not everything can be shown");
    }
    measure_rate(app);
    take_line(app);
    esp_ui_compare(&app->control.ui, app->control.state.compared != NULL);
    if (!waited && app->control.state.phase == ESP_PHASE_WAITING)
        app->control.ui.stepping =
            true; /* a breakpoint was reached, or the user switched step mode on */
    if (app->control.state.message_count != app->seen_messages) {
        app->seen_messages = app->control.state.message_count;
        esp_app_say(app, app->control.state.message_is_error, "%s", app->control.state.message);
    }
}

int esp_app_resize(struct esp_app *app, int width, int height)
{
    if (width == app->canvas.width && height == app->canvas.height)
        return 0;
    app->control.requests.changed = true;
    return esp_canvas_resize(&app->canvas, width, height);
}

void esp_app_draw(struct esp_app *app)
{
    struct esp_ui *ui = &app->control.ui;
    if (*app->control.question.text)
        esp_app_say(app, false, "%s", app->control.question.text);
    app->control.requests.changed = false;
    if (app->control.page.ops) {
        esp_canvas_clear(&app->canvas);
        app->control.page.ops->draw(app->control.page.data, &app->canvas);
        app->page_drawn = esp_clock();
        return;
    }
    ask_scores(app);
    esp_input_show(app->input, ui);
    ui->layout.input_rows =
        esp_input_box_rows(&ui->input, app->canvas.width, app->canvas.height);
    esp_ui_draw(&app->canvas, &app->control.ui, &app->control.state);
}

void esp_app_open_editor(void *user)
{
    struct esp_app *app = user;
    app->control.requests.edit = app->control.player == NULL;
}

void esp_app_edit(struct esp_app *app)
{
    char err[512], *text;
    app->control.requests.edit = false;
    app->control.requests.changed = true;
    if (esp_editor_run(esp_input_text(app->input), &text, err, sizeof err) < 0) {
        esp_app_say(app, true, "%s", err);
        return;
    }
    esp_input_replace(app->input, "");
    esp_input_paste(app->input, text, strlen(text));
    free(text);
}
