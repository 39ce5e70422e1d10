/* Fuzzes a recording. Every event of an accepted file must be readable, with its text, sums and
 * steps. The export of an iteration must be safe for a terminal, and the line that is written
 * for an iteration must be readable again. The harness also makes a page and charts from the
 * recording. The input is the file. */
#include "sessions/recording.h"

#include <stdlib.h>
#include <string.h>

#include "sessions/event_json.h"
#include "tests/fuzz/support/fuzz.h"
#include "tui/cli/recordings/figure_facts.h"
#include "tui/model/export_all.h"
#include "viz/export.h"

static void export(const struct esp_export_options *options, const char *what)
{
    char *bytes, err[512];
    size_t size;
    FUZZ_REQUIRE(esp_export(options, &bytes, &size, err, sizeof err) == 0, "%s", err);
    fuzz_require_safe(bytes, options->format == ESP_EXPORT_TXT ? size : 0, what);
    free(bytes);
}

static void write_again(const struct esp_event *event, const struct esp_tokens *tokens)
{
    struct esp_line line = {.length = 0};
    struct esp_recorded_event recorded = {.texts = {NULL}};
    struct esp_texts texts = {.name_count = 0};
    char err[512];
    FUZZ_REQUIRE(esp_event_to_json(&line, event, NULL, tokens) == 0, "there is memory");
    if (memchr(line.text, '\n', line.length) == line.text + line.length - 1)
        FUZZ_REQUIRE(esp_event_from_json(&recorded, &texts, line.text, line.length - 1, 0, err,
                                         sizeof err) == 1,
                     "%s", err);
    esp_recorded_event_free(&recorded);
    esp_texts_free(&texts);
    esp_line_free(&line);
}

static void look(struct esp_recording *recording, int number)
{
    const struct esp_tokens tokens = {esp_recording_token_text, recording};
    const struct esp_text_token *text;
    const struct esp_event *event;
    char err[512];
    FUZZ_REQUIRE(esp_recording_read(recording, number, &event, err, sizeof err) == 0, "%s",
                 err);
    FUZZ_REQUIRE(esp_recording_text(recording, number, &text) >= 0 &&
                     esp_recording_added(recording, number, &text) >= 0,
                 "event %d has a text", number);
    esp_recording_iterations_of_text(recording, number);
    esp_recording_baseline(recording, number);
    for (int step = 0; step < esp_recording_steps(recording); step++)
        FUZZ_REQUIRE(esp_recording_step(recording, step), "there is step %d", step);
    FUZZ_REQUIRE(esp_recording_read(recording, number, &event, err, sizeof err) == 0, "%s",
                 err);
    if (event->type <= ESP_EVENT_REWIND)
        write_again(event, &tokens);
    if (event->type != ESP_EVENT_ITERATION)
        return;
    struct esp_export_options options = {.iteration = event->iteration, .tokens = tokens};
    options.format = ESP_EXPORT_TXT;
    export(&options, "an exported text");
    options.format = ESP_EXPORT_JSON;
    options.line = esp_recording_line(recording, number, &options.line_length);
    FUZZ_REQUIRE(options.line, "event %d has a line", number);
    export(&options, "an exported line");
}

/* Draws figures of an iteration. The program can refuse a figure, for example a timeline
 * without times. A figure in TikZ must be ASCII. */
static void draw_figures(struct esp_recording *recording, int iteration)
{
    const int number = esp_recording_iteration_event(recording, iteration);
    const struct esp_event *event;
    struct esp_export_facts facts;
    char *bytes, err[512];
    size_t size;
    FUZZ_REQUIRE(cli_figure_facts(recording, number, &facts, err, sizeof err) == 0, "%s", err);
    FUZZ_REQUIRE(esp_recording_read(recording, number, &event, err, sizeof err) == 0, "%s",
                 err);
    struct esp_export_options options = {.iteration = event->iteration,
                                         .tokens = {esp_recording_token_text, recording},
                                         .facts = &facts,
                                         .nodes = -1};
    for (int i = 2 * (ESP_FIGURE_NONE + 1); i < 2 * ESP_FIGURE_KINDS; i++) {
        options.figure = i / 2;
        options.format = i % 2 ? ESP_EXPORT_TIKZ : ESP_EXPORT_SVG;
        if (esp_export(&options, &bytes, &size, err, sizeof err) == 0)
            fuzz_require_safe(bytes, size, "a figure");
        for (size_t at = 0; bytes && i % 2 && at < size; at++)
            FUZZ_REQUIRE((unsigned char)bytes[at] < 0x7f,
                         "TikZ must be ASCII, but has byte %02x at %zu",
                         (unsigned char)bytes[at], at);
        free(bytes);
    }
    cli_figure_facts_free(&facts);
}

/* Makes a page, charts and figures. The program can refuse a chart if there is nothing to draw.
 */
static void draw_all(struct esp_recording *recording)
{
    const int last = esp_recording_iterations(recording) - 1;
    char *bytes, err[512];
    size_t size;
    if (last < 0)
        return;
    FUZZ_REQUIRE(esp_export_page(recording, 0, last, &bytes, &size, err, sizeof err) == 0, "%s",
                 err);
    fuzz_require_safe(bytes, size, "a page");
    free(bytes);
    for (int kind = 0; kind < ESP_COURSE_CHART_KINDS; kind++) {
        const struct esp_course_chart_options options = {.kind = kind};
        if (esp_export_chart(recording, 0, last, &options, ESP_EXPORT_SVG, &bytes, &size, err,
                             sizeof err) == 0)
            fuzz_require_safe(bytes, size, "a chart");
        free(bytes);
    }
    draw_figures(recording, 0);
    draw_figures(recording, last);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    struct esp_recording *recording;
    char err[512];
    struct fuzz_file file = fuzz_file_open(bytes, length);
    int status = esp_recording_open(&recording, file.path, err, sizeof err);
    fuzz_file_close(&file);
    if (status < 0)
        return 0;
    for (int i = 0; i < esp_recording_events(recording); i++)
        look(recording, i);
    draw_all(recording);
    esp_recording_close(recording);
    return 0;
}
