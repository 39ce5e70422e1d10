/* web_page.c - writes the page of a recording; see web_page.h.
 *
 * Iterations are written into memory one after the other, while their strings are collected
 * (web_strings.h). The page is assembled at the end.
 */
#include "viz/page/page_writer.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/support/utf8_stream.h"
#include "kernels/status.h"
#include "kernels/version.h"
#include "engine/text_token.h"
#include "viz/page/page_strings.h"
#include "viz/decision.h"
#include "viz/explain.h"
#include "viz/gauges.h"
#include "viz/page/page_parts.h"
#include "viz/safe.h"

enum { SENTENCE = 1024, GAUGES = 256, SHOWN_STAGES = 5 };

struct gauge {
    int owner, symbol, name, meaning; /* string indices */
    int goal;                         /* a gauge, or -1 */
};

struct web_page {
    struct esp_tokens tokens;
    struct esp_web_strings strings;
    FILE *events;
    char *event_bytes;
    size_t event_length;
    struct gauge gauges[GAUGES];
    int gauge_count;
    struct esp_utf8_stream stream; /* of the text: a character may span several tokens */
    char *piece;                   /* (piece_capacity) text of a token */
    size_t piece_capacity;
    int iterations, earlier;
    int changes; /* changes written before the next iteration */
    bool failed; /* out of memory */
};

/* ------------------------------------------------------------------ strings */

static int name_of(struct web_page *page, const char *text)
{
    return esp_web_strings_add(&page->strings, text ? text : "", text ? strlen(text) : 0,
                               ESP_SAFE_ESCAPED);
}

/* The index of a sentence of viz/explain.h, with its tokens quoted and escaped. */
static int sentence_of(struct web_page *page, const char *sentence)
{
    return esp_web_strings_add(&page->strings, sentence, strlen(sentence), 0);
}

/* The index of a token as a tree shows it, in quotes. */
static int token_of(struct web_page *page, int32_t token)
{
    enum { MOST = 200 };
    struct esp_safe_unit shown;
    char quoted[MOST * sizeof shown.text + 2] = "\"";
    size_t length = 0, used = 1;
    const char *bytes =
        page->tokens.text ? page->tokens.text(page->tokens.user, token, &length) : NULL;
    length = !bytes ? 0 : length < MOST ? length : MOST;
    for (size_t i = 0; i < length; used += strlen(shown.text)) {
        i += esp_safe_next(bytes + i, length - i, ESP_SAFE_QUOTED, &shown);
        strcpy(quoted + used, shown.text);
    }
    quoted[used++] = '"';
    return esp_web_strings_add(&page->strings, quoted, used, 0);
}

/* ------------------------------------------------------------------ numbers */

/* Writes a number with four digits; nothing shows more. */
static void put_number(FILE *file, double value)
{
    if (!isfinite(value))
        fputs("null", file);
    else
        fprintf(file, "%.4g", value);
}

/* ------------------------------------------------------------------ text */

/* The index of a text token: the characters that are complete by then. */
static int piece_of(struct web_page *page, int32_t token)
{
    size_t length = 0;
    const char *bytes =
        page->tokens.text ? page->tokens.text(page->tokens.user, token, &length) : NULL;
    if (ESP_UTF8_ROOM(length) > page->piece_capacity) {
        free(page->piece);
        page->piece = malloc(ESP_UTF8_ROOM(length));
        page->piece_capacity = page->piece ? ESP_UTF8_ROOM(length) : 0;
        page->failed = page->failed || !page->piece;
    }
    if (!page->piece)
        return 0;
    length = esp_utf8_stream_push(&page->stream, bytes ? bytes : "", bytes ? length : 0,
                                  page->piece);
    return esp_web_strings_add(&page->strings, page->piece, length, 0);
}

static void put_text(struct web_page *page, const struct esp_text_token *tokens, int count)
{
    putc('[', page->events);
    for (int i = 0; i < count; i++)
        fprintf(page->events, "%s%d,%d", i ? "," : "", piece_of(page, tokens[i].token),
                tokens[i].kind);
    putc(']', page->events);
}

/* Starts or continues the changes before the next iteration. */
static void begin_change(struct web_page *page)
{
    if (page->changes++ == 0)
        fprintf(page->events, "%s\n{\"before\":[", page->iterations ? "," : "");
    else
        putc(',', page->events);
}

/* Adds text after the first `keep` tokens of the text so far; -1: after all. */
static void add_text(struct web_page *page, int keep, const struct esp_text_token *tokens,
                     int count)
{
    begin_change(page);
    putc('{', page->events);
    if (keep >= 0)
        fprintf(page->events, "\"keep\":%d,", keep);
    fputs("\"text\":", page->events);
    put_text(page, tokens, count);
    putc('}', page->events);
}

__attribute__((format(printf, 2, 3))) static void add_note(struct web_page *page,
                                                           const char *format, ...)
{
    char text[SENTENCE];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    begin_change(page);
    fprintf(page->events, "{\"note\":%d}", name_of(page, text));
}

/* ------------------------------------------------------------------ a tree */

static int falling(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x < y) - (x > y);
}

/* Numbers the nodes that the page shows, the others get -1; returns their number. Of a large
 * tree it shows the most probable nodes, their ancestors and the accepted path. */
static int number_nodes(const struct esp_tree *tree, int *number)
{
    float least = -INFINITY;
    int shown = 0;
    if (tree->count > ESP_WEB_NODES) {
        float *all = calloc((size_t)tree->count, sizeof *all);
        if (!all)
            return ESP_E_MEMORY;
        for (int i = 0; i < tree->count; i++)
            all[i] = isfinite(tree->nodes[i].cumulative_log_q) ? tree->nodes[i].cumulative_log_q
                                                               : -INFINITY;
        qsort(all, (size_t)tree->count, sizeof *all, falling);
        least = all[ESP_WEB_NODES - 1];
        free(all);
    }
    for (int i = 0; i < tree->count; i++) {
        const struct esp_node *n = &tree->nodes[i];
        const bool likely = tree->count <= ESP_WEB_NODES ||
                            (n->cumulative_log_q >= least && shown < ESP_WEB_NODES);
        const bool wanted =
            i == 0 || ((n->verdict == ESP_ACCEPTED || likely) && number[n->parent] >= 0);
        number[i] = wanted ? shown++ : -1;
    }
    return shown;
}

static void put_node(struct web_page *page, const struct esp_iteration *it, int index,
                     const int *number)
{
    const struct esp_node *n = &it->tree.nodes[index];
    struct esp_decision decision;
    char said[SENTENCE];
    esp_explain_node(said, sizeof said, it, ESP_STAGES, index, &page->tokens);
    fprintf(page->events, "%s[%d,%d,%d,", index ? "," : "", token_of(page, n->token),
            index ? number[n->parent] : -1, n->verdict & 3);
    esp_decision_of(&decision, it, index);
    const bool test = decision.kind == ESP_DECISION_TEST,
               draw = decision.kind == ESP_DECISION_DRAW;
    const double values[] = {esp_draft_probability(it, index),
                             n->p,
                             n->confidence,
                             esp_path_probability(it, index),
                             test ? decision.u : NAN,
                             test || draw ? decision.chance : NAN};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        put_number(page->events, values[i]);
        putc(',', page->events);
    }
    fprintf(page->events, "%d,%d,%d]", n->copies, sentence_of(page, said),
            !esp_is_copied(it, index) ? 0
            : n->copied > 0           ? n->copied
                                      : -1);
}

static int put_tree(struct web_page *page, const struct esp_iteration *it)
{
    int *number = malloc((size_t)it->tree.count * sizeof *number);
    int shown = number ? number_nodes(&it->tree, number) : ESP_E_MEMORY;
    const int telling = esp_telling_node(it);
    if (shown >= 0) {
        fputs(",\"nodes\":[", page->events);
        for (int i = 0; i < it->tree.count; i++)
            if (number[i] >= 0)
                put_node(page, it, i, number);
        fprintf(page->events, "],\"telling\":%d", number[telling] > 0 ? number[telling] : 0);
        if (shown < it->tree.count)
            fprintf(page->events, ",\"hidden\":%d", it->tree.count - shown);
    }
    free(number);
    return shown < 0 ? shown : (int)ESP_OK;
}

/* ------------------------------------------------------------------ a controller */

/* The index of a gauge with the same owner and words; GAUGES if there are too many. */
static int gauge_of(struct web_page *page, const struct esp_iteration *it, const char *symbol)
{
    char name[64];
    const struct gauge new = {name_of(page, esp_gauge_owner(it, symbol)), name_of(page, symbol),
                              name_of(page, esp_gauge_full_name(name, it, symbol)),
                              name_of(page, esp_gauge_meaning(it, symbol)), -1};
    int at = 0;
    while (at < page->gauge_count &&
           (page->gauges[at].owner != new.owner || page->gauges[at].symbol != new.symbol ||
            page->gauges[at].name != new.name))
        at++;
    if (at == page->gauge_count && at < GAUGES)
        page->gauges[page->gauge_count++] = new;
    return at;
}

static void put_gauges(struct web_page *page, const struct esp_iteration *it)
{
    int written = 0;
    fputs(",\"gauges\":[", page->events);
    for (int i = 0; i < it->gauge_count && i < ESP_MAX_GAUGES; i++) {
        const struct esp_gauge *g = &it->gauges[i], *goal = esp_gauge_goal(it, g->name);
        const int at = gauge_of(page, it, g->name);
        char why[SENTENCE];
        if (at == GAUGES)
            continue;
        if (goal && page->gauges[at].goal < 0) {
            const int steered_to = gauge_of(page, it, goal->name);
            page->gauges[at].goal = steered_to < GAUGES ? steered_to : -1;
        }
        fprintf(page->events, "%s[%d,", written++ ? "," : "", at);
        put_number(page->events, g->before);
        putc(',', page->events);
        put_number(page->events, g->after);
        esp_gauge_why(why, sizeof why, it, i);
        if (*why)
            fprintf(page->events, ",%d", name_of(page, why));
        putc(']', page->events);
    }
    putc(']', page->events);
}

/* ------------------------------------------------------------------ an iteration */

static void put_said(struct web_page *page, const struct esp_iteration *it)
{
    static const int stages[SHOWN_STAGES] = {
        ESP_STAGE_DRAFT, ESP_STAGE_VERIFY, ESP_STAGE_SELECT, ESP_STAGE_COMMIT, ESP_STAGE_ADAPT};
    char said[SENTENCE];
    fputs(",\"said\":[", page->events);
    for (int i = 0; i < SHOWN_STAGES; i++) {
        esp_explain_stop(said, sizeof said, it, ESP_EVENT_STAGE, stages[i] + 1, &page->tokens);
        fprintf(page->events, "%s%d", i ? "," : "", sentence_of(page, said));
    }
    putc(']', page->events);
}

static void put_times(struct web_page *page, const struct esp_iteration *it, double baseline)
{
    fputs(",\"seconds\":[", page->events);
    for (int i = 0; i < ESP_STAGES; i++) {
        fputs(i ? "," : "", page->events);
        put_number(page->events, isfinite(it->seconds[i]) ? it->seconds[i] : 0);
    }
    fputs("],\"baseline\":", page->events);
    put_number(page->events, isfinite(baseline) ? baseline : 0);
}

static int add_iteration(struct web_page *page, const struct esp_iteration *it, double time,
                         double baseline, const struct esp_text_token *text, int count)
{
    FILE *file = page->events;
    if (page->changes > 0)
        fputs("],", file);
    else
        fprintf(file, "%s\n{", page->iterations ? "," : "");
    page->changes = 0;
    page->iterations++;
    fprintf(file, "\"index\":%d,\"time\":%.3f", it->index, isfinite(time) ? time : 0);
    fprintf(file, ",\"drafter\":%d,\"verifier\":%d", name_of(page, it->drafter),
            name_of(page, it->verifier));
    fputs(it->lossy ? ",\"lossy\":true" : "", file);
    put_times(page, it, baseline);
    fputs(",\"text\":", file);
    put_text(page, text, count);
    int status = put_tree(page, it);
    if (it->committed_count > it->path_length)
        fprintf(file, ",\"bonus\":%d", token_of(page, it->bonus));
    put_gauges(page, it);
    put_said(page, it);
    putc('}', file);
    return status < 0                                             ? status
           : page->failed || page->strings.failed || ferror(file) ? (int)ESP_E_MEMORY
                                                                  : (int)ESP_OK;
}

/* ------------------------------------------------------------------ the whole */

static int open_page(struct web_page *page, struct esp_tokens tokens)
{
    *page = (struct web_page){.tokens = tokens,
                              .strings = {.key = esp_hash_key()},
                              .stream = {.mode = ESP_UTF8_TEXT}};
    page->events = open_memstream(&page->event_bytes, &page->event_length);
    return page->events ? ESP_OK : ESP_E_MEMORY;
}

static void close_page(struct web_page *page)
{
    if (page->events)
        fclose(page->events);
    esp_web_strings_free(&page->strings);
    free(page->event_bytes);
    free(page->piece);
}

/* Whether the page so far is about too large. */
static bool is_too_large(struct web_page *page)
{
    return (size_t)ftell(page->events) + page->strings.length > ESP_WEB_BYTES - (1 << 20);
}

static int too_large(char *err, size_t errlen)
{
    return esp_fail(err, errlen, ESP_E_ARGUMENT,
                    "the page would be larger than %d MB; choose fewer iterations, such as "
                    "--iteration 0-999",
                    ESP_WEB_BYTES >> 20);
}

struct about {
    int program, target, draft, device, started; /* string indices */
};

static void put_data(FILE *file, const struct web_page *page, const struct about *about)
{
    fprintf(file,
            "{\"version\":1,\n\"program\":%d,\"target\":%d,\"draft\":%d,\"device\":%d,"
            "\"started\":%d,\"earlier\":%d,\n\"stages\":[",
            about->program, about->target, about->draft, about->device, about->started,
            page->earlier);
    for (int i = 0; i < ESP_STAGES; i++)
        fprintf(file, "%s\"%s\"", i ? "," : "", esp_stage_name(i));
    fputs("],\n\"gauges\":[", file);
    for (int i = 0; i < page->gauge_count; i++) {
        const struct gauge *g = &page->gauges[i];
        fprintf(file, "%s{\"symbol\":%d,\"name\":%d,\"meaning\":%d", i ? "," : "", g->symbol,
                g->name, g->meaning);
        if (g->goal >= 0)
            fprintf(file, ",\"goal\":%d", g->goal);
        putc('}', file);
    }
    fputs("],\n\"strings\":[", file);
    for (int i = 0; i < page->strings.count; i++) {
        const struct esp_web_string *s = &page->strings.string[i];
        fputs(i ? ",\n" : "\n", file);
        fwrite(page->strings.bytes + s->start, 1, s->length, file);
    }
    fputs("],\n\"iterations\":[", file);
    fwrite(page->event_bytes, 1, page->event_length, file);
    fputs("]}\n", file);
}

/* Writes the content security policy: only the page's own script and style may run, identified
 * by their hashes. */
static void put_policy(FILE *file)
{
    fprintf(
        file,
        "default-src 'none'; script-src 'sha256-%s'; style-src 'sha256-%s'; base-uri 'none'; "
        "form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
        esp_page_script_hash, esp_page_style_hash);
}

/* Copies page.html and replaces each mark by its part. */
static void put_page(FILE *file, const struct web_page *page, const struct about *about)
{
    for (const char *at = esp_page_html, *mark; *at; at = mark) {
        mark = strchr(at, '@');
        fwrite(at, 1, mark ? (size_t)(mark - at) : strlen(at), file);
        if (!mark)
            return;
        if (strncmp(mark, "@POLICY@", 8) == 0)
            put_policy(file);
        else if (strncmp(mark, "@STYLE@", 7) == 0)
            fputs(esp_page_style, file);
        else if (strncmp(mark, "@SCRIPT@", 8) == 0)
            fputs(esp_page_script, file);
        else if (strncmp(mark, "@DATA@", 6) == 0)
            put_data(file, page, about);
        mark = strchr(mark + 1, '@') + 1;
    }
}

static int put_together(struct web_page *page, const struct about *about, char **bytes,
                        size_t *length, char *err, size_t errlen)
{
    if (page->failed || page->strings.failed || fflush(page->events) != 0)
        return esp_fail(err, errlen, ESP_E_MEMORY, "no memory for the page");
    FILE *file = open_memstream(bytes, length);
    if (file)
        put_page(file, page, about);
    const bool bad = !file || ferror(file);
    if ((file && fclose(file) != 0) || bad) {
        if (file)
            free(*bytes);
        *bytes = NULL;
        return esp_fail(err, errlen, ESP_E_MEMORY, "no memory for the page");
    }
    return *length > ESP_WEB_BYTES ? too_large(err, errlen) : (int)ESP_OK;
}

/* ------------------------------------------------------------------ of a recording */

/* What an event does to the text: the tokens that stay, and the added ones. `length`: the
 * length of the text before it; becomes the length after it. */
static int add_event_text(struct web_page *page, struct esp_recording *recording, int event,
                          int *length)
{
    const struct esp_recording_entry entry = esp_recording_entry(recording, event);
    const struct esp_text_token *tokens;
    const int added = esp_recording_added(recording, event, &tokens);
    int after = *length + added;
    if (entry.type != ESP_EVENT_PROMPT && entry.type != ESP_EVENT_ITERATION) {
        const struct esp_text_token *all;
        after = esp_recording_text(recording, event, &all);
        if (after < 0)
            return after;
        esp_recording_added(recording, event, &tokens);
    }
    const int keep = after - added;
    if (added > 0 || keep != *length)
        add_text(page, keep == *length ? -1 : keep, tokens, added);
    *length = after;
    return ESP_OK;
}

static void add_event_note(struct web_page *page, const struct esp_event *event)
{
    const char *text = event->text ? event->text : "";
    switch (event->type) {
    case ESP_EVENT_SETTING:
        add_note(page, "%s %s", event->key ? event->key : "", text);
        break;
    case ESP_EVENT_MARKER:
        add_note(page, *text ? "marked: %s" : "marked%s", text);
        break;
    case ESP_EVENT_CLEAR:
        add_note(page, "a new text");
        break;
    case ESP_EVENT_REWIND:
        add_note(page, "part of the text was taken back");
        break;
    case ESP_EVENT_DROP:
        add_note(page, "the oldest turns were dropped");
        break;
    default:
        break;
    }
}

static int add_event(struct web_page *page, struct esp_recording *recording, int number,
                     int *length, char *err, size_t errlen)
{
    const struct esp_event *event;
    const struct esp_text_token *tokens;
    int status = esp_recording_read(recording, number, &event, err, errlen);
    if (status == ESP_OK && event->type == ESP_EVENT_ITERATION) {
        const int added = esp_recording_added(recording, number, &tokens);
        *length += added;
        return add_iteration(page, event->iteration, event->time,
                             esp_recording_baseline(recording, number), tokens, added);
    }
    if (status == ESP_OK)
        add_event_note(page, event);
    return status == ESP_OK ? add_event_text(page, recording, number, length) : status;
}

static int add_events(struct web_page *page, struct esp_recording *recording, int first,
                      int last, char *err, size_t errlen)
{
    const int start = first > 0 ? esp_recording_iteration_event(recording, first - 1) : -1,
              end = esp_recording_iteration_event(recording, last);
    int length = 0, status = ESP_OK;
    page->earlier = first;
    if (start >= 0) {
        const struct esp_text_token *tokens;
        length = esp_recording_text(recording, start, &tokens);
        if (length < 0)
            return length;
        add_text(page, -1, tokens, length);
    }
    for (int i = start + 1; status == ESP_OK && i <= end; i++) {
        status = add_event(page, recording, i, &length, err, errlen);
        if (status == ESP_OK && is_too_large(page))
            status = too_large(err, errlen);
    }
    return status;
}

/* Returns the bytes of the page if `status` is OK so far; closes it. */
static int finish_page(struct web_page *page, const struct about *about, int status,
                       char **bytes, size_t *length, char *err, size_t errlen)
{
    if (status == ESP_OK)
        status = put_together(page, about, bytes, length, err, errlen);
    close_page(page);
    if (status < 0) {
        free(*bytes);
        *bytes = NULL;
    }
    if (status < 0 && !*err)
        esp_fail(err, errlen, status, "the page cannot be written: %s",
                 esp_status_message(status));
    return status;
}

int esp_web_page(struct esp_recording *recording, int first, int last, char **bytes,
                 size_t *length, char *err, size_t errlen)
{
    const struct esp_recording_header *header = esp_recording_header(recording);
    struct web_page page;
    int status = open_page(&page, (struct esp_tokens){esp_recording_token_text, recording});
    const struct about about = {
        name_of(&page, header->program), name_of(&page, header->target.name),
        name_of(&page, header->draft.name), name_of(&page, header->device),
        name_of(&page, header->started)};
    *bytes = NULL;
    *err = '\0';
    if (status == ESP_OK)
        status = add_events(&page, recording, first, last, err, errlen);
    return finish_page(&page, &about, status, bytes, length, err, errlen);
}

/* ------------------------------------------------------------------ of a live session */

/* Whether the tokens that an iteration committed are in the text at its position. */
static bool is_in_text(const struct esp_state *state, const struct esp_iteration *it)
{
    if (it->position < 0 || it->committed_count > state->span_count - it->position)
        return false;
    for (int i = 0; i < it->committed_count; i++)
        if (state->spans[it->position + i].token != it->committed[i])
            return false;
    return true;
}

/* The number of newest iterations that follow each other in the text. */
static int count_kept(const struct esp_state *state)
{
    int count = 0, end = state->span_count;
    const struct esp_iteration *it;
    while ((it = esp_state_kept(state, count)) && is_in_text(state, it) &&
           it->position + it->committed_count <= end) {
        end = it->position;
        count++;
    }
    return count;
}

/* The tokens of the text from `start` to `end`. The caller frees them; NULL: no memory. */
static struct esp_text_token *copy_spans(const struct esp_state *state, int start, int end)
{
    struct esp_text_token *tokens = malloc((size_t)(end - start + 1) * sizeof *tokens);
    for (int i = start; tokens && i < end; i++)
        tokens[i - start] =
            (struct esp_text_token){state->spans[i].token, state->spans[i].kind};
    return tokens;
}

static int add_kept(struct web_page *page, const struct esp_state *state, int back, int *end,
                    double *time)
{
    const struct esp_iteration *it = esp_state_kept(state, back);
    const int stop = it->position + it->committed_count;
    struct esp_text_token *text = copy_spans(state, *end, stop);
    if (!text)
        return ESP_E_MEMORY;
    if (it->position > *end)
        add_text(page, -1, text, it->position - *end);
    int status = add_iteration(page, it, *time, it->baseline, text + (it->position - *end),
                               it->committed_count);
    for (int i = 0; i < ESP_STAGES; i++)
        *time += it->seconds[i];
    *end = stop;
    free(text);
    return status;
}

int esp_web_page_of_state(const struct esp_state *state, char **bytes, size_t *length,
                          int *iterations, char *err, size_t errlen)
{
    const struct esp_setup *loaded = &state->loaded;
    struct web_page page;
    int end = 0, status = open_page(&page, state->tokens);
    const struct about about = {name_of(&page, "espalier " ESP_VERSION),
                                name_of(&page, loaded->target), name_of(&page, loaded->draft),
                                name_of(&page, loaded->device), name_of(&page, "")};
    double time = 0;
    *bytes = NULL;
    *err = '\0';
    *iterations = count_kept(state);
    if (status == ESP_OK && *iterations == 0)
        status = esp_fail(err, errlen, ESP_E_ARGUMENT, "there is no tree yet");
    if (status == ESP_OK) {
        const struct esp_iteration *first = esp_state_kept(state, *iterations - 1);
        page.earlier = first->index;
    }
    for (int back = *iterations - 1; status == ESP_OK && back >= 0; back--)
        status = add_kept(&page, state, back, &end, &time);
    return finish_page(&page, &about, status, bytes, length, err, errlen);
}
