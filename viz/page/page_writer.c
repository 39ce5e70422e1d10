/* page_writer.c - writes the page; see page_writer.h.
 *
 * Iterations are written into memory one after the other, while their strings are collected
 * (page_strings.h). The page is assembled at the end.
 */
#include "viz/page/page_writer.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/support/utf8_stream.h"
#include "kernels/status.h"
#include "viz/decision.h"
#include "viz/explain.h"
#include "viz/gauges.h"
#include "viz/heat.h"
#include "viz/page/page_parts.h"
#include "viz/page/page_strings.h"
#include "viz/safe.h"

enum { SENTENCE = 1024, GAUGES = 256, SHOWN_STAGES = 5 };

struct gauge {
    int owner, symbol, name, meaning; /* string indices */
    int goal;                         /* index of the goal, which is another gauge; -1: none */
};

struct esp_page_writer {
    struct esp_tokens tokens;
    struct esp_page_strings strings;
    FILE *events;
    char *event_bytes;
    size_t event_length;
    struct gauge gauges[GAUGES];
    int gauge_count;
    struct esp_utf8_stream stream; /* the text so far: a character can span several tokens */
    char *piece;                   /* (piece_capacity) text of a token */
    size_t piece_capacity;
    int iterations, earlier;
    int program, target, draft, device, started; /* string indices */
    int changes;                                 /* count of changes since the last iteration */
    bool failed;                                 /* true: memory ran out */
    bool too_large;                              /* true: the page exceeds ESP_PAGE_BYTES */
};

/* ------------------------------------------------------------------ strings */

static int name_of(struct esp_page_writer *page, const char *text)
{
    return esp_page_strings_add(&page->strings, text ? text : "", text ? strlen(text) : 0,
                                ESP_SAFE_ESCAPED);
}

/* Returns the string index of a sentence of viz/explain.h. The tokens in the sentence are
 * already quoted and escaped. */
static int sentence_of(struct esp_page_writer *page, const char *sentence)
{
    return esp_page_strings_add(&page->strings, sentence, strlen(sentence), 0);
}

/* Returns the string index of a token in quotes, as a tree shows it. */
static int token_of(struct esp_page_writer *page, int32_t token)
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
    return esp_page_strings_add(&page->strings, quoted, used, 0);
}

/* ------------------------------------------------------------------ numbers */

/* Writes a number with four digits; the page never shows more. */
static void put_number(FILE *file, double value)
{
    if (!isfinite(value))
        fputs("null", file);
    else
        fprintf(file, "%.4g", value);
}

/* ------------------------------------------------------------------ text */

/* Returns the string index of a token of the text. The string has the characters that this
 * token completes. */
static int piece_of(struct esp_page_writer *page, int32_t token)
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
    return esp_page_strings_add(&page->strings, page->piece, length, 0);
}

static void put_text(struct esp_page_writer *page, const struct esp_text_token *tokens,
                     int count)
{
    putc('[', page->events);
    for (int i = 0; i < count; i++)
        fprintf(page->events, "%s%d,%d", i ? "," : "", piece_of(page, tokens[i].token),
                tokens[i].kind);
    putc(']', page->events);
}

static void put_score(struct esp_page_writer *page, const struct esp_token_score *score)
{
    if (score->count == 0) {
        putc('0', page->events);
        return;
    }
    putc('[', page->events);
    put_number(page->events, esp_surprisal(score));
    putc(',', page->events);
    put_number(page->events, (double)score->entropy);
    fprintf(page->events, ",%d,[", score->rank);
    for (int i = 0; i < score->count && i < ESP_LIKELY; i++) {
        fprintf(page->events, "%s%d,", i ? "," : "", token_of(page, score->likely[i]));
        put_number(page->events, (double)score->likely_p[i]);
    }
    fputs("]]", page->events);
}

static void put_scores(struct esp_page_writer *page, const struct esp_iteration *it)
{
    if (!it->scores)
        return;
    fputs(",\"scores\":[", page->events);
    for (int i = 0; i < it->committed_count; i++) {
        fputs(i ? "," : "", page->events);
        put_score(page, &it->scores[i]);
    }
    putc(']', page->events);
}

/* Starts an entry in the list of changes before the next iteration. */
static void begin_change(struct esp_page_writer *page)
{
    if (page->changes++ == 0)
        fprintf(page->events, "%s\n{\"before\":[", page->iterations ? "," : "");
    else
        putc(',', page->events);
}

void esp_page_add_text(struct esp_page_writer *page, int keep,
                       const struct esp_text_token *tokens, int count)
{
    begin_change(page);
    putc('{', page->events);
    if (keep >= 0)
        fprintf(page->events, "\"keep\":%d,", keep);
    fputs("\"text\":", page->events);
    put_text(page, tokens, count);
    putc('}', page->events);
}

void esp_page_add_note(struct esp_page_writer *page, const char *format, ...)
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

/* Numbers the nodes that the page shows. All other nodes get -1. Returns how many are shown.
 * If a tree is large, the page shows only the most probable nodes, their ancestors and the
 * accepted path. */
static int number_nodes(const struct esp_tree *tree, int *number)
{
    float least = -INFINITY;
    int shown = 0;
    if (tree->count > ESP_PAGE_NODES) {
        float *all = calloc((size_t)tree->count, sizeof *all);
        if (!all)
            return ESP_E_MEMORY;
        for (int i = 0; i < tree->count; i++)
            all[i] = isfinite(tree->nodes[i].cumulative_log_q) ? tree->nodes[i].cumulative_log_q
                                                               : -INFINITY;
        qsort(all, (size_t)tree->count, sizeof *all, falling);
        least = all[ESP_PAGE_NODES - 1];
        free(all);
    }
    for (int i = 0; i < tree->count; i++) {
        const struct esp_node *n = &tree->nodes[i];
        const bool likely = tree->count <= ESP_PAGE_NODES ||
                            (n->cumulative_log_q >= least && shown < ESP_PAGE_NODES);
        const bool wanted =
            i == 0 || ((n->verdict == ESP_ACCEPTED || likely) && number[n->parent] >= 0);
        number[i] = wanted ? shown++ : -1;
    }
    return shown;
}

static void put_node(struct esp_page_writer *page, const struct esp_iteration *it, int index,
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
    const int source = esp_source_of(it, index);
    fprintf(page->events, "%d,%d,%d]", n->copies, sentence_of(page, said),
            source == ESP_SOURCE_COPIED && n->copied > 0 ? n->copied : -source);
}

static int put_tree(struct esp_page_writer *page, const struct esp_iteration *it)
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

/* Returns the index of the gauge with this owner, symbol and texts; GAUGES if there are too
 * many gauges. Adds the gauge if it is new. */
static int gauge_of(struct esp_page_writer *page, const struct esp_iteration *it,
                    const char *symbol)
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

static void put_gauges(struct esp_page_writer *page, const struct esp_iteration *it)
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

static void put_said(struct esp_page_writer *page, const struct esp_iteration *it)
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

static void put_times(struct esp_page_writer *page, const struct esp_iteration *it,
                      double baseline)
{
    fputs(",\"seconds\":[", page->events);
    for (int i = 0; i < ESP_STAGES; i++) {
        fputs(i ? "," : "", page->events);
        put_number(page->events, isfinite(it->seconds[i]) ? it->seconds[i] : 0);
    }
    fputs("],\"baseline\":", page->events);
    put_number(page->events, isfinite(baseline) ? baseline : 0);
}

/* Returns the status of the page so far. The size limit leaves some room for the other parts
 * of the file. */
static int status_of(struct esp_page_writer *page)
{
    page->too_large =
        (size_t)ftell(page->events) + page->strings.length > ESP_PAGE_BYTES - (1 << 20);
    return page->failed || page->strings.failed || ferror(page->events) ? ESP_E_MEMORY
           : page->too_large                                            ? ESP_E_ARGUMENT
                                                                        : ESP_OK;
}

int esp_page_add(struct esp_page_writer *page, const struct esp_iteration *it, double time,
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
    put_scores(page, it);
    int status = put_tree(page, it);
    if (it->committed_count > it->path_length)
        fprintf(file, ",\"bonus\":%d", token_of(page, it->bonus));
    put_gauges(page, it);
    put_said(page, it);
    putc('}', file);
    return status < 0 ? status : status_of(page);
}

/* ------------------------------------------------------------------ the whole page */

struct esp_page_writer *esp_page_open(struct esp_tokens tokens,
                                      const struct esp_page_head *head)
{
    struct esp_page_writer *page = calloc(1, sizeof *page);
    if (!page)
        return NULL;
    page->tokens = tokens;
    page->stream.mode = ESP_UTF8_TEXT;
    page->program = name_of(page, head->program);
    page->target = name_of(page, head->target);
    page->draft = name_of(page, head->draft);
    page->device = name_of(page, head->device);
    page->started = name_of(page, head->started);
    page->earlier = head->earlier;
    page->events = open_memstream(&page->event_bytes, &page->event_length);
    if (!page->events) {
        esp_page_strings_free(&page->strings);
        free(page);
        return NULL;
    }
    return page;
}

static void put_heat(FILE *file, int heat)
{
    const double *limits = esp_heat_limits(heat);
    fprintf(file, "%s{\"title\":\"%s\",\"limits\":[", heat > ESP_HEAT_OFF + 1 ? "," : "",
            esp_heat_title(heat));
    for (int i = 0; i < ESP_HEAT_STEPS - 1; i++)
        fprintf(file, "%s%g", i ? "," : "", limits[i]);
    fputs("],\"words\":[", file);
    for (int i = 0; i < ESP_HEAT_STEPS; i++) {
        const char *words = esp_heat_words(heat, i);
        const bool less = words && *words == '<'; /* '<' would look like an element */
        fprintf(file, words ? "%s\"%s%s\"" : "%snull%s%s", i ? "," : "", less ? "\\u003c" : "",
                words ? words + less : "");
    }
    fputs("]}", file);
}

static void put_data(FILE *file, const struct esp_page_writer *page)
{
    fprintf(file,
            "{\"version\":1,\n\"program\":%d,\"target\":%d,\"draft\":%d,\"device\":%d,"
            "\"started\":%d,\"earlier\":%d,\n\"stages\":[",
            page->program, page->target, page->draft, page->device, page->started,
            page->earlier);
    for (int i = 0; i < ESP_STAGES; i++)
        fprintf(file, "%s\"%s\"", i ? "," : "", esp_stage_name(i));
    fputs("],\n\"heats\":[", file);
    for (int i = ESP_HEAT_OFF + 1; i < ESP_HEATS; i++)
        put_heat(file, i);
    fputs("],\n\"gauges\":[", file);
    for (int i = 0; i < page->gauge_count; i++) {
        const struct gauge *g = &page->gauges[i];
        fprintf(file, "%s{\"symbol\":%d,\"name\":%d,\"meaning\":%d", i ? "," : "", g->symbol,
                g->name, g->meaning);
        if (g->goal >= 0)
            fprintf(file, ",\"goal\":%d", g->goal);
        putc('}', file);
    }
    fputs("],\n\"strings\":[\n", file);
    fwrite(page->strings.bytes, 1, page->strings.length - strlen(",\n"), file);
    fputs("],\n\"iterations\":[", file);
    fwrite(page->event_bytes, 1, page->event_length, file);
    fputs("]}\n", file);
}

/* Writes the content security policy: only the page's own script and style, identified by their
 * hashes, are allowed. */
static void put_policy(FILE *file)
{
    fprintf(
        file,
        "default-src 'none'; script-src 'sha256-%s'; style-src 'sha256-%s'; base-uri 'none'; "
        "form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
        esp_page_script_hash, esp_page_style_hash);
}

/* Copies page.html and replaces each @NAME@ by its part. */
static void put_page(FILE *file, const struct esp_page_writer *page)
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
            put_data(file, page);
        mark = strchr(mark + 1, '@') + 1;
    }
}

static int make_page(struct esp_page_writer *page, char **bytes, size_t *length)
{
    if (page->failed || page->strings.failed || fflush(page->events) != 0)
        return ESP_E_MEMORY;
    FILE *file = open_memstream(bytes, length);
    if (!file)
        return ESP_E_MEMORY;
    put_page(file, page);
    const bool bad = ferror(file);
    if (fclose(file) != 0 || bad)
        return ESP_E_MEMORY;
    page->too_large = *length > ESP_PAGE_BYTES;
    return page->too_large ? ESP_E_ARGUMENT : ESP_OK;
}

int esp_page_close(struct esp_page_writer *page, int status, char **bytes, size_t *length,
                   char *err, size_t errlen)
{
    *bytes = NULL;
    status = !page ? (int)ESP_E_MEMORY : status < 0 ? status : make_page(page, bytes, length);
    const bool too_large = page && page->too_large;
    if (page) {
        fclose(page->events);
        esp_page_strings_free(&page->strings);
        free(page->event_bytes);
        free(page->piece);
        free(page);
    }
    if (status == ESP_OK)
        return ESP_OK;
    free(*bytes);
    *bytes = NULL;
    if (too_large)
        esp_fail(err, errlen, status,
                 "the page would be larger than %d MB; choose fewer iterations, such as "
                 "--iteration 0-999",
                 ESP_PAGE_BYTES >> 20);
    else if (status == ESP_E_MEMORY)
        esp_fail(err, errlen, status, "not enough memory for the page");
    else if (!*err)
        esp_fail(err, errlen, status, "the page cannot be written: %s",
                 esp_status_message(status));
    return status;
}
