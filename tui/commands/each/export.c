/* export.c - exports the displayed data:
 *
 *     :export tree.svg                  the tree, as a picture or text
 *     :export! tree.svg                 the same, overwriting a file
 *     :export tree.svg dark 16:9 short  dark colours, aspect ratio 16:9, short caption
 *     :export thresholds chart.svg      a chart of a recording, or of the iterations in memory
 *     :export text text.svg             the text, in the colours of :heat
 *     :export page.html                 a web page that plays the iterations
 */
#include "viz/export.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tui/commands/command.h"
#include "tui/model/export_all.h"
#include "engine/support/write_file.h"
#include "viz/text_picture.h"

/* The options of a picture. The user writes them as words after the file name. */
struct look {
    const char *theme;
    double aspect;
    int caption;
};

static bool read_word(struct look *look, const char *word)
{
    const bool theme = strcmp(word, "dark") == 0 || strcmp(word, "light") == 0;
    const double aspect = esp_aspect_of(word);
    const int caption = esp_caption_find(word);
    if (theme)
        look->theme = word[0] == 'd' ? "dark" : "light";
    if (aspect > 0)
        look->aspect = aspect;
    if (caption >= 0)
        look->caption = caption;
    return theme || aspect > 0 || caption >= 0;
}

/* Reads the options of a picture, and removes their words from the end of the typed line. */
static struct look take_look(char *typed)
{
    struct look look = {.caption = ESP_CAPTION_FULL};
    for (;;) {
        char *blank = strrchr(typed, ' ');
        if (!read_word(&look, blank ? blank + 1 : typed))
            return look;
        while (blank && blank > typed && blank[-1] == ' ')
            blank--;
        *(blank ? blank : typed) = '\0';
    }
}

/* Removes a word from the start of the typed line. Returns false if the line does not begin
 * with it. */
static bool take_word(char *typed, const char *word)
{
    const size_t length = strcspn(typed, " ");
    if (strlen(word) != length || strncmp(typed, word, length) != 0)
        return false;
    const char *rest = typed + length + strspn(typed + length, " ");
    memmove(typed, rest, strlen(rest) + 1);
    return true;
}

/* Removes the name of a chart from the start of the typed line. Returns its index, or -1. */
static int take_chart(char *typed)
{
    for (int i = 0; i < ESP_COURSE_CHART_KINDS; i++)
        if (take_word(typed, esp_course_chart_name(i)))
            return i;
    return -1;
}

static int write_text(struct esp_control *control, const struct esp_export_options *options,
                      const char *path, bool over)
{
    char err[512], *bytes;
    size_t length;
    int status = esp_export(options, &bytes, &length, err, sizeof err);
    if (status == 0)
        status = esp_write_file(path, bytes, length, over, err, sizeof err);
    free(bytes);
    if (status < 0)
        return esp_refuse(control, "%s", err);
    return esp_answer(control, "iteration %d written to %s", options->iteration->index, path);
}

static int draw_picture(struct esp_control *control, const struct esp_export_options *options,
                        const char *path, bool over)
{
    char err[512];
    esp_control_end_export(control); /* only one export can run at a time */
    control->reply[0] = '\0';
    if (esp_export_job_start(&control->requests.export, options, path, over, err, sizeof err) <
        0)
        return esp_refuse(control, "%s", err);
    return esp_answer(control, "drawing iteration %d", options->iteration->index);
}

static int make_page(struct esp_control *control, const char *path, bool over)
{
    const struct esp_player *player = control->player;
    char err[512];
    if (player ? esp_player_iterations(player) == 0 : !esp_state_kept(&control->state, 0))
        return esp_refuse(control,
                          player ? "this recording has no iterations" : "there is no tree yet");
    esp_control_end_export(control); /* only one export can run at a time */
    control->reply[0] = '\0';
    if (esp_export_job_start_page(&control->requests.export, player ? player->recording : NULL,
                                  &control->state, path, over, err, sizeof err) < 0)
        return esp_refuse(control, "%s", err);
    return esp_answer(control, "making a page");
}

/* Writes the names of the models, for captions. Returns `models`. */
static const char *name_models(const struct esp_control *control, char models[256])
{
    const struct esp_setup *loaded = &control->state.loaded;
    snprintf(models, 256, loaded->draft[0] ? "%s \u2190 %s" : "%s", loaded->target,
             loaded->draft);
    return models;
}

static int write_chart(struct esp_control *control, int kind, const struct look *look,
                       const char *path, bool over)
{
    const struct esp_player *player = control->player;
    char err[512], models[256], *bytes;
    size_t length;
    const struct esp_course_chart_options options = {.kind = kind,
                                                     .theme = look->theme,
                                                     .models = name_models(control, models),
                                                     .aspect = look->aspect,
                                                     .caption = look->caption};
    const int format = esp_export_of_path(path);
    if (!esp_export_draws(format))
        return esp_refuse(
            control,
            "the name of a chart must end in .svg, .png, .pdf or .tikz, but %s does not", path);
    int status = player
                     ? esp_export_chart(player->recording, 0, esp_player_iterations(player) - 1,
                                        &options, format, &bytes, &length, err, sizeof err)
                     : esp_export_chart_of_state(&control->state, &options, format, &bytes,
                                                 &length, err, sizeof err);
    if (status == 0)
        status = esp_write_file(path, bytes, length, over, err, sizeof err);
    free(bytes);
    if (status < 0)
        return esp_refuse(control, "%s", err);
    return esp_answer(control, "chart of the %s written to %s", esp_course_chart_name(kind),
                      path);
}

/* Returns a token as the screen shows it. Its bytes end where the next token begins. */
static struct esp_picture_token picture_token(const struct esp_state *state, int index)
{
    const struct esp_text_span *span = &state->spans[index];
    const size_t end =
        index + 1 < state->span_count ? state->spans[index + 1].start : state->byte_count;
    return (struct esp_picture_token){state->bytes + span->start, end - span->start, span->kind,
                                      &span->score};
}

/* Writes the text as a picture. */
static int write_text_picture(struct esp_control *control, const struct look *look,
                              const char *path, bool over)
{
    const struct esp_state *state = &control->state;
    char err[512], models[256], *bytes = NULL;
    size_t length;
    const int format = esp_export_of_path(path);
    if (!esp_export_draws(format))
        return esp_refuse(control, "%s does not end in .svg, .png, .pdf or .tikz", path);
    struct esp_picture_token *tokens = calloc((size_t)state->span_count + 1, sizeof *tokens);
    if (!tokens)
        return esp_refuse(control, "not enough memory for the picture");
    for (int i = 0; i < state->span_count; i++)
        tokens[i] = picture_token(state, i);
    const struct esp_text_picture picture = {.heat = control->ui.look.heat,
                                             .theme = look->theme,
                                             .models = name_models(control, models),
                                             .caption = look->caption,
                                             .tokens = tokens,
                                             .count = state->span_count};
    struct esp_drawing drawing = {.latex = format == ESP_EXPORT_TIKZ};
    int status = esp_text_picture_draw(&picture, &drawing, err, sizeof err);
    if (status == 0)
        status = esp_export_drawing(&drawing, format, &bytes, &length, err, sizeof err);
    if (status == 0)
        status = esp_write_file(path, bytes, length, over, err, sizeof err);
    esp_drawing_free(&drawing);
    free(bytes);
    free(tokens);
    return status < 0 ? esp_refuse(control, "%s", err)
                      : esp_answer(control, "the text is written to %s", path);
}

static int write_tree(struct esp_control *control, const struct look *look, const char *named,
                      bool over)
{
    char path[1024], models[256];
    int stages;
    const struct esp_iteration *it =
        esp_state_iteration(&control->state, control->ui.look.iteration, &stages);
    if (!it || stages < ESP_STAGES)
        return esp_refuse(control,
                          it ? "this iteration has not ended yet" : "there is no tree yet");
    struct esp_export_options options = {.iteration = it,
                                         .tokens = control->state.tokens,
                                         .models = name_models(control, models),
                                         .theme = look->theme,
                                         .nodes = -1,
                                         .caption = look->caption,
                                         .aspect = look->aspect,
                                         .ascii = control->canvas->ascii_text};
    if (*named)
        snprintf(path, sizeof path, "%s", named);
    else
        snprintf(path, sizeof path, "iteration-%d.svg", it->index);
    options.format = esp_export_of_path(path);
    if (options.format < 0 || options.format == ESP_EXPORT_JSON)
        return esp_refuse(
            control, "%s does not end in .svg, .png, .pdf, .tikz, .dot, .txt or .html", path);
    return options.format == ESP_EXPORT_TXT ? write_text(control, &options, path, over)
                                            : draw_picture(control, &options, path, over);
}

static int run(struct esp_control *control, const char *arguments)
{
    char typed[1024], path[1024];
    const bool over = *arguments == '!';
    arguments += over;
    snprintf(typed, sizeof typed, "%s", arguments + strspn(arguments, " "));
    const bool text = take_word(typed, "text");
    const int chart = text ? -1 : take_chart(typed);
    const struct look look = take_look(typed);
    esp_typed_path(path, sizeof path, text && !*typed ? "text.svg" : typed);
    if (text)
        return write_text_picture(control, &look, path, over);
    if (chart < 0 && esp_export_of_path(path) == ESP_EXPORT_HTML)
        return make_page(control, path, over);
    if (chart < 0)
        return write_tree(control, &look, path, over);
    if (!*path)
        snprintf(path, sizeof path, "%s.svg", esp_course_chart_name(chart));
    return write_chart(control, chart, &look, path, over);
}

/* Returns the arguments that the key of this command inserts: the name of the chart that fits
 * the focused pane, or "". */
static const char *begin(const struct esp_control *control)
{
    const struct esp_layout_options *layout = &control->ui.layout;
    if (!layout->focused)
        return "";
    switch (layout->current) {
    case ESP_PANE_controller:
        return "thresholds ";
    case ESP_PANE_text:
        return "text ";
    case ESP_PANE_accepted:
        return "acceptance ";
    case ESP_PANE_timeline:
    case ESP_PANE_stats:
        return "stages ";
    default:
        return "";
    }
}

static void complete(const struct esp_control *control, struct esp_choices *choices)
{
    (void)control;
    if (!*choices->before)
        esp_choices_offer(choices, "text", "the text, in the colours of :heat");
    for (int i = 0; !*choices->before && i < ESP_COURSE_CHART_KINDS; i++)
        esp_choices_offer(choices, esp_course_chart_name(i), "a chart over all iterations");
    esp_complete_path(false, choices);
}

const struct esp_command_ops esp_command_export = {
    .name = "export",
    .usage = "[text|thresholds|acceptance|stages] [FILE.svg|png|pdf|tikz|dot|txt|html] [dark] "
             "[16:9] [short|none]",
    .summary = "save the shown tree, the text or a chart as a picture for a slide (SVG, PNG, "
               "PDF) or as "
               "text, or all trees as a page (HTML); short and none shorten the caption; "
               ":export! FILE overwrites a file",
    .in = ESP_IN_BOTH,
    .run = run,
    .complete = complete,
    .begin = begin,
};
