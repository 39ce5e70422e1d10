/* ui.c - draws the screen and moves the focus; see ui.h. */
#include "tui/view/ui.h"

#include <string.h>

#include "viz/chart.h"
#include "tui/view/input_box.h"
#include "tui/view/replay_line.h"
#include "viz/safe.h"
#include "viz/wrap.h"

void esp_ui_init(struct esp_ui *ui)
{
    *ui = (struct esp_ui){.input = {.prompt = "> ", .line = ""},
                          .look = {.iteration = -1, .match = -1, .token = -1, .branch = -1}};
    ui->layout.current = ESP_PANE_text;
    ui->view[ESP_PANE_text].anchor = -1;
}

void esp_ui_leave(struct esp_ui *ui)
{
    ui->layout.focused = ui->help = false;
}

void esp_ui_follow(struct esp_ui *ui, const struct esp_state *state)
{
    ui->view[ESP_PANE_text].anchor = -1;
    esp_look_hold(&ui->look, state, -1);
}

struct esp_layout esp_ui_layout(const struct esp_ui *ui, int width, int height)
{
    struct esp_layout_options options = ui->layout;
    options.width = width;
    options.height = height;
    if (ui->help) {
        options.current = ESP_PANE_help;
        options.zoomed = true;
    }
    return esp_layout_of(&options);
}

struct esp_shown esp_ui_shown(struct esp_ui *ui, const struct esp_state *state,
                              const struct esp_layout *layout, int pane)
{
    const struct esp_rect inside = esp_layout_inside(layout, pane);
    struct esp_shown shown = {.state = state,
                              .look = &ui->look,
                              .view = &ui->view[pane],
                              .width = inside.width,
                              .height = inside.height};
    shown.it = esp_state_iteration(state, ui->look.iteration, &shown.stages);
    return shown;
}

/* ------------------------------------------------------------------ header and footer */

/* Returns the length of the name in "name:k=v,...". */
static int name_length(const char *spec)
{
    return (int)strcspn(spec, ":");
}

/* Draws a sentence that says what speculation gains, in the longest form that fits before
 * column `end`. Returns the column where the sentence starts. */
static int draw_speed(struct esp_canvas *canvas, int end, const struct esp_state *state)
{
    struct esp_figures figures = esp_state_figures(state);
    char text[3][96];
    if (figures.speedup <= 0)
        return end;
    esp_state_worth(&figures, esp_state_baseline(state), text);
    const bool wins = esp_state_wins(&figures);
    /* Columns reserved for the other parts of the header. MODELS includes the names of the
     * models, and LEAST does not. */
    enum { LEAST = 40, MODELS = 80 };
    int form = wins || (int)strlen(text[0]) > end - MODELS;
    form += form == 1 && (int)strlen(text[1]) > end - LEAST;
    return esp_draw_right(canvas, end, 0, wins ? ESP_STYLE_GOOD : ESP_STYLE_BAD, text[form]);
}

/* Draws how much of the models is loaded. */
static int draw_loading(struct esp_canvas *canvas, int end, const struct esp_state *state)
{
    enum { BAR = 12 };
    char text[80];
    snprintf(text, sizeof text, "%3.0f %%", 100 * state->fraction);
    end = esp_draw_right(canvas, end, 0, ESP_STYLE_STATUS, text) - 1;
    if (end < 40)
        return esp_draw_right(canvas, end, 0, ESP_STYLE_STATUS, "loading");
    esp_draw_repeat(canvas, end - BAR, 0, BAR, ESP_STYLE_EDGE, canvas->glyphs->sparks[0]);
    esp_draw_bar(canvas, end - BAR, 0, BAR, ESP_STYLE_BAR_VERIFY, state->fraction);
    snprintf(text, sizeof text, "loading %.60s", state->phase_text);
    int start = end - BAR - 1 - esp_safe_width(text, strlen(text), 0);
    if (start < 12)
        return esp_draw_right(canvas, end - BAR - 1, 0, ESP_STYLE_STATUS, "loading");
    esp_draw_bytes(canvas, start, 0, end - BAR - start, ESP_STYLE_STATUS, 0, text,
                   strlen(text));
    return start;
}

static int draw_phase(struct esp_canvas *canvas, int end, const struct esp_ui *ui,
                      const struct esp_state *state)
{
    char text[96] = "";
    int style = ESP_STYLE_STATUS, stages;
    const struct esp_iteration *it = esp_state_iteration(state, -1, &stages);
    const int index = it ? it->index : 0;
    switch (state->phase) {
    case ESP_PHASE_LOADING:
        return draw_loading(canvas, end, state);
    case ESP_PHASE_PREFILL:
        snprintf(text, sizeof text, "reading the prompt");
        break;
    case ESP_PHASE_GENERATING:
        /* If the machine is slower than the pace, show the measured rate, too. */
        if (ui->pace > 0 && ui->rate > 0 && ui->rate < 0.9 * ui->pace)
            snprintf(text, sizeof text, "%s iter %d, at %.2g/s of %g/s",
                     canvas->glyphs->running, index, ui->rate, ui->pace);
        else if (ui->pace > 0)
            snprintf(text, sizeof text, "%s iter %d, paced %g/s", canvas->glyphs->running,
                     index, ui->pace);
        else if (ui->player)
            snprintf(text, sizeof text, "%s iter %d", canvas->glyphs->running, index);
        else
            snprintf(text, sizeof text, "%s iter %d, %sfull speed", canvas->glyphs->running,
                     index, canvas->width < 100 ? "" : "at ");
        break;
    case ESP_PHASE_WAITING:
        snprintf(text, sizeof text, "step mode, iter %d", index);
        style = ESP_STYLE_WARN;
        break;
    case ESP_PHASE_FAILED:
        snprintf(text, sizeof text, "not loaded");
        style = ESP_STYLE_ERROR;
        break;
    default:
        if (strcmp(state->ended, "length") == 0)
            snprintf(text, sizeof text, "%slimit reached", canvas->width < 60 ? "" : "token ");
        else
            snprintf(text, sizeof text, "%s", state->ended[0] ? state->ended : "ready");
        break;
    }
    enum { NAME = 10 }; /* columns of the program's name, with a blank on each side */
    if (end - esp_safe_width(text, strlen(text), 0) < NAME)
        return end;
    return esp_draw_right(canvas, end, 0, style, text);
}

static void draw_header(struct esp_canvas *canvas, const struct esp_ui *ui,
                        const struct esp_state *state)
{
    const struct esp_setup *loaded = &state->loaded;
    char models[256] = "", setup[320] = "";
    int width = canvas->view.rect.width, end = width - 1;
    int after = draw_speed(canvas, end, state);
    end = draw_phase(canvas, after < end ? after - 3 : end, ui, state) - 2;
    if (state->recording[0]) {
        snprintf(models, sizeof models, "%s rec", canvas->glyphs->running);
        end = esp_draw_right(canvas, end, 0, ESP_STYLE_RECORD, models) - 2;
    }
    int x = esp_draw(canvas, 1, 0, ESP_STYLE_TITLE, "espalier") + 3;
    if (!state->ready)
        return;
    if (loaded->lossy)
        x = esp_draw(canvas, x, 0, ESP_STYLE_BAD, "LOSSY") + 3;
    snprintf(models, sizeof models, loaded->draft[0] ? "%s <- %s" : "%s", loaded->target,
             loaded->draft);
    snprintf(setup, sizeof setup, "%.*s, %.*s, %s", name_length(loaded->drafter),
             loaded->drafter, name_length(loaded->verifier), loaded->verifier, loaded->backend);
    int models_width = esp_safe_width(models, strlen(models), 0);
    /* If there is room, the GPU's name, memory and driver, or the ranks, are shown, too. */
    int more = 2 + (int)strlen(loaded->device);
    if ((strcmp(loaded->backend, "cuda") == 0 || strstr(loaded->device, " ranks of ")) &&
        x + models_width + 3 + (int)strlen(setup) + more <= end)
        snprintf(setup + strlen(setup), sizeof setup - strlen(setup), ": %s", loaded->device);
    if (x + models_width + 3 + (int)strlen(setup) <= end)
        x = esp_draw(canvas, x, 0, ESP_STYLE_STATUS, models) + 3;
    if (x + (int)strlen(setup) > end)
        setup[strcspn(setup, ",")] = '\0';
    if (x + (int)strlen(setup) <= end)
        esp_draw(canvas, x, 0, ESP_STYLE_STATUS, setup);
}

/* Returns whether an action would change something. Tries the action on a copy of the view. */
static bool obeys(const struct esp_canvas *canvas, const struct esp_ui *ui,
                  const struct esp_state *state, int action)
{
    struct esp_ui copy = *ui;
    return esp_ui_act(&copy, state, action, canvas->width, canvas->height);
}

/* Returns whether the footer can show a key. It shows only keys that have an effect now. */
static bool is_valid(const struct esp_canvas *canvas, const struct esp_ui *ui,
                     const struct esp_state *state, const struct esp_binding *b)
{
    const bool pane = ui->layout.focused || ui->help;
    const bool line_is_free = pane || ui->input.length == 0;
    const bool zoomed = ui->layout.zoomed && b->action == ESP_ACTION_LEAVE_PANE;
    if (!b->label[0] || esp_own_key(&ui->own_keys, esp_key_parse(b->key)))
        return false;
    switch (b->when) {
    case ESP_WHEN_PANE:
        return (pane || zoomed) &&
               (b->action == ESP_ACTION_NONE || obeys(canvas, ui, state, b->action));
    case ESP_WHEN_BRANCH:
        return pane && !ui->help && !ui->player && state->span_count > 0 &&
               esp_panes[ui->layout.current]->point;
    case ESP_WHEN_BUSY:
        return !ui->player && esp_state_is_busy(state);
    case ESP_WHEN_STEP:
        return ui->stepping && line_is_free;
    case ESP_WHEN_EMPTY:
        return line_is_free;
    case ESP_WHEN_LIVE:
        return !ui->player;
    case ESP_WHEN_REPLAY:
        return ui->player && line_is_free &&
               (b->action != ESP_ACTION_MARKER_FORWARD || ui->player->marker_count > 0);
    default:
        return true;
    }
}

/* Returns how important a key is. The footer shows the most important keys first. These are the
 * keys that continue or stop, then the keys of the focused pane, then all other keys. */
static int urgency_of(const struct esp_binding *b)
{
    if (b->when == ESP_WHEN_STEP || b->when == ESP_WHEN_REPLAY ||
        b->action == ESP_ACTION_INTERRUPT)
        return 2;
    return b->when == ESP_WHEN_PANE || b->when == ESP_WHEN_BRANCH;
}

/* A hint in the footer, such as "Up Down move". It has a binding, a text and a position. */
struct hint {
    const struct esp_binding *binding;
    char keys[32];
    const char *label;
    int x, width;
};

enum { MOST_HINTS = 64, HINT_GAP = 3 };

static struct hint hint_of(const struct esp_ui *ui, const struct esp_binding *b)
{
    struct hint hint = {.binding = b, .label = b->label};
    const struct esp_binding *next = b + 1;
    const bool pair = next->key && !next->help[0] && next->action != b->action;
    if (b->action == ESP_ACTION_STEP_MODE && ui->stepping)
        hint.label = "run on";
    if (b->when == ESP_WHEN_BRANCH && ui->layout.current == ESP_PANE_branches)
        hint.label = "go there";
    if (b->action == ESP_ACTION_PAUSE && !ui->player->playing)
        hint.label = "play";
    if (b->action == ESP_ACTION_FULL_SPEED)
        hint.label = ui->pace > 0 ? "full speed" : "paced";
    snprintf(hint.keys, sizeof hint.keys, "%s%s%s", b->key, pair ? " " : "",
             pair ? next->key : "");
    hint.width = (int)(strlen(hint.keys) + 1 + strlen(hint.label));
    return hint;
}

/* Chooses the hints that fit in the footer. Returns their number. The key of the menu is always
 * among them, because the menu shows everything else. */
static int place_hints(const struct esp_canvas *canvas, const struct esp_ui *ui,
                       const struct esp_state *state, struct hint hints[MOST_HINTS])
{
    int count = 0, x = 1, kept = 0;
    const struct esp_binding *menu = NULL;
    for (const struct esp_binding *b = esp_bindings; b->key && !menu; b++)
        if (b->action == ESP_ACTION_PALETTE)
            menu = b;
    if (menu)
        kept = hint_of(ui, menu).width + HINT_GAP;
    for (int urgency = 2; urgency >= 0; urgency--)
        for (const struct esp_binding *b = esp_bindings; b->key; b++) {
            if (b == menu)
                continue;
            if (urgency_of(b) != urgency || count == MOST_HINTS - 1 ||
                !is_valid(canvas, ui, state, b))
                continue;
            struct hint hint = hint_of(ui, b);
            hint.x = x;
            if (x + hint.width + kept >= canvas->width)
                continue;
            hints[count++] = hint;
            x += hint.width + HINT_GAP;
        }
    if (menu) {
        hints[count] = hint_of(ui, menu);
        hints[count++].x = x;
    }
    return count;
}

/* Returns whether the message fits in the footer, which has one line. */
static bool fits_footer(const struct esp_canvas *canvas, const struct esp_ui *ui)
{
    return esp_safe_width(ui->message, strlen(ui->message), 0) < canvas->width;
}

static void draw_footer(struct esp_canvas *canvas, const struct esp_ui *ui,
                        const struct esp_state *state)
{
    struct hint hints[MOST_HINTS];
    if (ui->message && ui->message[0] && fits_footer(canvas, ui)) {
        esp_draw_bytes(canvas, 1, 0, canvas->view.rect.width - 1,
                       ui->message_is_error ? ESP_STYLE_ERROR : ESP_STYLE_STATUS, 0,
                       ui->message, strlen(ui->message));
        return;
    }
    const int count = place_hints(canvas, ui, state, hints);
    for (int i = 0; i < count; i++) {
        int x = esp_draw(canvas, hints[i].x, 0, ESP_STYLE_KEY, hints[i].keys);
        esp_draw(canvas, x + 1, 0, ESP_STYLE_LABEL, hints[i].label);
    }
}

const struct esp_binding *esp_ui_hint_at(const struct esp_canvas *canvas,
                                         const struct esp_ui *ui, const struct esp_state *state,
                                         int x, int y)
{
    struct hint hints[MOST_HINTS];
    const bool says = ui->message && ui->message[0] && fits_footer(canvas, ui);
    if (y != canvas->height - 1 || says || ui->palette.open ||
        esp_ui_layout(ui, canvas->width, canvas->height).kind == ESP_LAYOUT_TINY)
        return NULL;
    const int count = place_hints(canvas, ui, state, hints);
    for (int i = 0; i < count; i++) {
        const int at = x - hints[i].x, first = (int)strlen(hints[i].binding->key);
        if (at < 0 || at >= hints[i].width)
            continue;
        /* If the hint has two keys, such as "Up Down move", a click on the second means that
         * key. */
        return at > first && at < (int)strlen(hints[i].keys) ? hints[i].binding + 1
                                                             : hints[i].binding;
    }
    return NULL;
}

/* ------------------------------------------------------------------ input line */

static void draw_input(struct esp_canvas *canvas, const struct esp_ui *ui)
{
    if (ui->player && ui->input.length == 0)
        esp_replay_line_draw(canvas, ui->player, ui->typed);
    else
        esp_input_box_draw(canvas, &ui->input, !ui->layout.focused);
}

/* Draws the completions, in a frame above the input line. */
static void draw_choices(struct esp_canvas *canvas, const struct esp_ui *ui,
                         const struct esp_layout *layout)
{
    int room = layout->input.y - 2, width = 0, shown = ui->choice_count;
    if (shown == 0 || room < 1)
        return;
    if (shown > room)
        shown = room;
    for (int i = 0; i < ui->choice_count; i++) {
        const char *text = ui->choices[i].text;
        int wide = esp_safe_width(text, strlen(text), canvas->ascii_text ? ESP_SAFE_ASCII : 0);
        width = wide > width ? wide : width;
    }
    struct esp_rect frame = {0, layout->input.y - shown - 2, layout->input.width, shown + 2};
    struct esp_view whole = esp_canvas_enter(canvas, frame);
    esp_draw_fill(canvas, (struct esp_rect){0, 0, frame.width, frame.height}, ESP_STYLE_TEXT);
    esp_draw_frame(canvas, (struct esp_rect){0, 0, frame.width, frame.height}, ESP_STYLE_FRAME);
    for (int i = 0; i < shown; i++) {
        const struct esp_choice *choice = &ui->choices[i];
        int x = 2 + width + 2;
        esp_draw_bytes(canvas, 2, i + 1, frame.width - 4, ESP_STYLE_VALUE, 0, choice->text,
                       strlen(choice->text));
        if (i == shown - 1 && shown < ui->choice_count)
            esp_drawf(canvas, x, i + 1, ESP_STYLE_LABEL, "%d more", ui->choice_count - shown);
        else if (choice->summary && x < frame.width - 2)
            esp_draw_bytes(canvas, x, i + 1, frame.width - 1 - x, ESP_STYLE_LABEL, 0,
                           choice->summary, strlen(choice->summary));
    }
    esp_canvas_leave(canvas, whole);
}

/* Draws a message that is too long for the footer, in a frame above the input line. */
static void draw_long_message(struct esp_canvas *canvas, const struct esp_ui *ui,
                              const struct esp_layout *layout)
{
    if (!ui->message || fits_footer(canvas, ui))
        return;
    int width = layout->input.width, rows = esp_paragraph_height(ui->message, width - 4);
    if (rows > layout->input.y - 2)
        rows = layout->input.y - 2;
    struct esp_rect frame = {0, layout->input.y - rows - 2, width, rows + 2};
    struct esp_rect inside = {2, frame.y + 1, width - 4, rows};
    if (rows < 1)
        return;
    esp_draw_fill(canvas, frame, ESP_STYLE_TEXT);
    esp_draw_frame(canvas, frame, ESP_STYLE_FRAME);
    struct esp_view whole = esp_canvas_enter(canvas, inside);
    esp_draw_paragraph(canvas, 0, ui->message_is_error ? ESP_STYLE_ERROR : ESP_STYLE_STATUS,
                       ui->message);
    esp_canvas_leave(canvas, whole);
}

/* ------------------------------------------------------------------ panes */

static void draw_frames(struct esp_canvas *canvas, struct esp_ui *ui,
                        const struct esp_state *state, const struct esp_layout *layout)
{
    int focused = ui->help ? ESP_PANE_help : ui->layout.focused ? ui->layout.current : -1;
    for (int i = 0; i < ESP_PANES; i++)
        if (i != focused)
            esp_draw_frame(canvas, layout->pane[i], ESP_STYLE_FRAME);
    if (focused >= 0)
        esp_draw_frame(canvas, layout->pane[focused], ESP_STYLE_FRAME_FOCUS);
    for (int i = 0; i < ESP_PANES; i++) {
        char title[160];
        struct esp_rect rect = layout->pane[i];
        if (rect.width < 8)
            continue;
        const struct esp_shown shown = esp_ui_shown(ui, state, layout, i);
        const size_t room =
            (size_t)rect.width - 3 < sizeof title ? (size_t)rect.width - 3 : sizeof title;
        snprintf(title, room, "%s", esp_panes[i]->name);
        if (esp_panes[i]->title)
            esp_panes[i]->title(&shown, title, room);
        int style = i == focused ? ESP_STYLE_SELECTION : ESP_STYLE_TITLE;
        esp_draw(canvas, rect.x + 1, rect.y, ESP_STYLE_TITLE, " ");
        int x = esp_draw_bytes(canvas, rect.x + 2, rect.y, rect.width - 4, style, 0, title,
                               strlen(title));
        esp_draw(canvas, x, rect.y, ESP_STYLE_TITLE, " ");
    }
}

/* Lists the panes in the order in which Tab focuses them, beginning with the compare pane.
 * Returns their number. */
static int pane_order(const struct esp_ui *ui, int order[ESP_PANES])
{
    int count = 0;
    if (ui->layout.comparing && !ui->layout.hidden[ESP_PANE_compare])
        order[count++] = ESP_PANE_compare;
    for (int i = 0; i < ESP_PANES; i++)
        if (!ui->layout.hidden[i] && i != ESP_PANE_help && i != ESP_PANE_compare)
            order[count++] = i;
    return count;
}

/* Returns the first tab to draw in a row of `width` columns. If the row is too narrow for all
 * tabs, the tab of the current pane must be visible. */
static int first_tab(const struct esp_ui *ui, const int order[], int count, int width)
{
    int first = 0, end = 0;
    for (int i = 0; i < count; i++) {
        end += (int)strlen(esp_panes[order[i]]->name) + 2;
        while (end > width && first < i)
            end -= (int)strlen(esp_panes[order[first++]]->name) + 2;
        if (order[i] == ui->layout.current)
            return first;
    }
    return 0;
}

static void draw_tabs(struct esp_canvas *canvas, const struct esp_ui *ui)
{
    int order[ESP_PANES], count = pane_order(ui, order), x = 0;
    if (ui->help)
        x = esp_drawf(canvas, x, 0, ESP_STYLE_SELECTION, " %s ", esp_pane_help.name);
    for (int i = first_tab(ui, order, count, canvas->view.rect.width); i < count; i++) {
        bool current = !ui->help && order[i] == ui->layout.current;
        x = esp_drawf(canvas, x, 0, current ? ESP_STYLE_SELECTION : ESP_STYLE_LABEL, " %s ",
                      esp_panes[order[i]]->name);
    }
}

int esp_ui_tab_at(const struct esp_ui *ui, int width, int x)
{
    int order[ESP_PANES], count = pane_order(ui, order), end = 0;
    for (int i = first_tab(ui, order, count, width); i < count && !ui->help; i++) {
        end += (int)strlen(esp_panes[order[i]]->name) + 2;
        if (x < end)
            return order[i];
    }
    return -1;
}

static void draw_panes(struct esp_canvas *canvas, const struct esp_ui *ui,
                       const struct esp_state *state, const struct esp_layout *layout)
{
    struct esp_ui copy = *ui;
    copy.look.explains = layout->pane[ESP_PANE_node].width == 0;
    if (layout->framed)
        draw_frames(canvas, &copy, state, layout);
    for (int i = 0; i < ESP_PANES; i++) {
        const struct esp_shown shown = esp_ui_shown(&copy, state, layout, i);
        if (shown.width < 1 || shown.height < 1)
            continue;
        struct esp_view whole = esp_canvas_enter(canvas, esp_layout_inside(layout, i));
        esp_panes[i]->draw(canvas, &shown);
        esp_canvas_leave(canvas, whole);
    }
}

void esp_ui_draw(struct esp_canvas *canvas, const struct esp_ui *ui,
                 const struct esp_state *state)
{
    esp_canvas_clear(canvas);
    struct esp_layout layout = esp_ui_layout(ui, canvas->width, canvas->height);
    if (layout.kind == ESP_LAYOUT_TINY) {
        char text[64];
        snprintf(text, sizeof text, "espalier needs 20 x 5, has %d x %d", canvas->width,
                 canvas->height);
        esp_draw_paragraph(canvas, 0, ESP_STYLE_WARN, text);
        return;
    }
    struct esp_view whole;
    if (layout.header.width > 0) {
        whole = esp_canvas_enter(canvas, layout.header);
        draw_header(canvas, ui, state);
        esp_canvas_leave(canvas, whole);
    }
    if (layout.tabs.width > 0) {
        whole = esp_canvas_enter(canvas, layout.tabs);
        draw_tabs(canvas, ui);
        esp_canvas_leave(canvas, whole);
    }
    draw_panes(canvas, ui, state, &layout);
    draw_choices(canvas, ui, &layout);
    draw_long_message(canvas, ui, &layout);
    whole = esp_canvas_enter(canvas, layout.input);
    draw_input(canvas, ui);
    esp_canvas_leave(canvas, whole);
    whole = esp_canvas_enter(canvas, layout.footer);
    draw_footer(canvas, ui, state);
    esp_canvas_leave(canvas, whole);
    if (ui->palette.open)
        esp_palette_draw(canvas, &ui->palette);
}

/* ------------------------------------------------------------------ actions */

/* Moves the focus to the next pane in direction `step`. After the last pane, moves it to the
 * input line. */
static void move_focus(struct esp_ui *ui, int step)
{
    int order[ESP_PANES], count = pane_order(ui, order), at = step > 0 ? -1 : count;
    for (int i = 0; i < count; i++)
        if (ui->layout.focused && order[i] == ui->layout.current)
            at = i;
    at += step;
    ui->layout.focused = at >= 0 && at < count;
    if (ui->layout.focused)
        ui->layout.current = order[at];
}

void esp_ui_compare(struct esp_ui *ui, bool on)
{
    if (ui->layout.comparing == on)
        return;
    ui->layout.comparing = on;
    ui->layout.hidden[ESP_PANE_compare] = false;
    ui->view[ESP_PANE_compare].anchor = -1;
    if (on && !ui->layout.focused)
        ui->layout.current = ESP_PANE_compare;
    if (on || ui->layout.current != ESP_PANE_compare)
        return;
    ui->layout.current = ESP_PANE_text;
    ui->layout.focused = false;
}

void esp_ui_focus(struct esp_ui *ui, int pane)
{
    ui->help = ui->layout.hidden[pane] = false;
    ui->layout.current = pane;
    ui->layout.focused = true;
}

/* Hides the focused pane and focuses the next one. Does nothing if the text and the tree would
 * both be hidden. Returns whether the pane was hidden. */
static bool hide(struct esp_ui *ui)
{
    const int pane = ui->layout.current, other = pane == ESP_PANE_text   ? ESP_PANE_tree
                                                 : pane == ESP_PANE_tree ? ESP_PANE_text
                                                                         : pane;
    if (ui->help || !ui->layout.focused || (other != pane && ui->layout.hidden[other]))
        return false;
    ui->layout.zoomed = false;
    move_focus(ui, 1);
    ui->layout.hidden[pane] = true;
    return true;
}

bool esp_ui_act(struct esp_ui *ui, const struct esp_state *state, int action, int width,
                int height)
{
    switch (action) {
    case ESP_ACTION_HELP:
        ui->help = !ui->help;
        ui->view[ESP_PANE_help].scroll = 0;
        return true;
    case ESP_ACTION_STACK:
        ui->layout.stacked = !ui->layout.stacked;
        return true;
    case ESP_ACTION_NEXT_PANE:
        move_focus(ui, 1);
        return true;
    case ESP_ACTION_PREVIOUS_PANE:
        move_focus(ui, -1);
        return true;
    case ESP_ACTION_ZOOM:
        ui->layout.zoomed = !ui->layout.zoomed;
        return true;
    case ESP_ACTION_EARLIER:
    case ESP_ACTION_LATER:
        esp_look_step(&ui->look, state, action == ESP_ACTION_EARLIER ? -1 : 1);
        return true;
    case ESP_ACTION_BRANCHES:
        esp_ui_focus(ui, ESP_PANE_branches);
        return true;
    case ESP_ACTION_HEAT:
        ui->look.heat = (ui->look.heat + 1) % ESP_HEATS;
        return true;
    case ESP_ACTION_TREE_LAYOUT:
        ui->look.grows_right = !ui->look.grows_right;
        return true;
    case ESP_ACTION_HIDE:
        return hide(ui);
    default:
        break;
    }
    int pane = ui->help             ? ESP_PANE_help
               : ui->layout.focused ? ui->layout.current
                                    : ESP_PANE_text;
    const struct esp_layout layout = esp_ui_layout(ui, width, height);
    const struct esp_shown shown = esp_ui_shown(ui, state, &layout, pane);
    bool obeyed = esp_panes[pane]->request && esp_panes[pane]->request(&shown, action);
    if (obeyed || action != ESP_ACTION_LEAVE_PANE)
        return obeyed;
    ui->help = ui->layout.focused = ui->layout.zoomed = false;
    return true;
}

struct esp_search_result esp_ui_find(struct esp_ui *ui, const struct esp_state *state, int pane,
                                     int step, int width, int height)
{
    if (!esp_panes[pane]->find)
        pane = ESP_PANE_text;
    ui->help = false;
    ui->layout.focused = true;
    ui->layout.current = pane;
    const struct esp_layout layout = esp_ui_layout(ui, width, height);
    const struct esp_shown shown = esp_ui_shown(ui, state, &layout, pane);
    return esp_panes[pane]->find(&shown, step);
}
