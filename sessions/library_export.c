/* library_export.c - writes a text as the lines of a recording; see library_export.h. */
#include "sessions/library_export.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/status.h"
#include "sessions/event_json.h"

struct export
{
    struct esp_library *library;
    int64_t id;
    FILE *file;
    const struct esp_kept_text *text;
    struct esp_written *tokens; /* (length) the tokens of the exported text */
    int length;
    struct esp_tokens pieces;
    struct esp_texts names; /* names of gauges in the iterations that were read */
    struct esp_line line;
    double time; /* time of the last iteration that was written, in seconds */
};

static const char *piece(void *user, int32_t token, size_t *length)
{
    const struct export *e = user;
    return esp_library_piece(e->library, e->text->vocabulary_hash, token, length);
}

static int write_event(struct export *e, struct esp_event event)
{
    event.time = e->time;
    e->line.length = 0;
    const int status = esp_event_to_json(&e->line, &event, NULL, &e->pieces);
    if (status == ESP_OK)
        fwrite(e->line.text, 1, e->line.length, e->file);
    return status;
}

/* Writes tokens [from, to) of the text as a prompt. */
static int write_prompt(struct export *e, int from, int to)
{
    int32_t *ids = malloc((size_t)(to - from) * sizeof *ids);
    int marks = 0, after = 0;
    if (!ids)
        return ESP_E_MEMORY;
    for (int i = from; i < to; i++)
        ids[i - from] = e->tokens[i].token;
    while (from + marks < to && e->tokens[from + marks].kind == ESP_TEXT_MARK)
        marks++;
    while (to - after > from + marks && e->tokens[to - after - 1].kind == ESP_TEXT_MARK)
        after++;
    const int status = write_event(e, (struct esp_event){.type = ESP_EVENT_PROMPT,
                                                         .tokens = ids,
                                                         .token_count = to - from,
                                                         .marks = marks,
                                                         .marks_after = after});
    free(ids);
    return status;
}

static bool is_prompt(const struct export *e, int at, bool mark)
{
    return at < e->length && e->tokens[at].iteration < 0 &&
           (e->tokens[at].kind == ESP_TEXT_MARK) == mark;
}

/* Returns the end of the prompt that begins at `from`. A prompt consists of control tokens,
 * then other tokens, then control tokens; any of these can be missing. */
static int prompt_end(const struct export *e, int from)
{
    int to = from;
    while (is_prompt(e, to, true))
        to++;
    while (is_prompt(e, to, false))
        to++;
    while (is_prompt(e, to, true))
        to++;
    return to;
}

/* Returns how many tokens, beginning with token `from`, were written by the same iteration. */
static int run_of(const struct export *e, int from)
{
    int count = 1;
    while (from + count < e->length &&
           e->tokens[from + count].iteration == e->tokens[from].iteration)
        count++;
    return count;
}

/* Returns the token that this iteration wrote at index `place` of a text, or NULL if no branch
 * has it. */
static const struct esp_written *written_by(const struct export *e, int iteration, int place)
{
    const struct esp_branches *b = &e->text->branches;
    if (place < e->length && e->tokens[place].iteration == iteration)
        return &e->tokens[place];
    for (int i = 0; i < b->count; i++) {
        const int own = place - b->branch[i].fork;
        if (own >= 0 && own < b->branch[i].count &&
            b->branch[i].tokens[own].iteration == iteration)
            return &b->branch[i].tokens[own];
    }
    return NULL;
}

/* Copies the scores of an iteration's tokens from the branches to the iteration. If one of
 * these scores is unknown, the iteration gets no scores. */
static int take_scores(const struct export *e, int from, struct esp_iteration_copy *copy)
{
    struct esp_iteration *it = &copy->it;
    if (esp_iteration_reserve_scores(copy, it->committed_count) < 0)
        return ESP_E_MEMORY;
    for (int i = 0; i < it->committed_count; i++) {
        const struct esp_written *token = written_by(e, e->tokens[from].iteration, from + i);
        if (!token || token->score.count == 0 || token->token != it->committed[i])
            return ESP_OK;
        copy->scores[i] = token->score;
    }
    it->scores = copy->scores;
    return ESP_OK;
}

/* Writes an iteration as a line of a recording, with the texts and scores of its tokens. */
static int write_line(struct export *e, int from, struct esp_recorded_event *event)
{
    int status = take_scores(e, from, &event->iteration);
    e->line.length = 0;
    if (status == ESP_OK)
        status = esp_event_to_json(&e->line, &event->event, &event->layers, &e->pieces);
    if (status == ESP_OK)
        fwrite(e->line.text, 1, e->line.length, e->file);
    return status;
}

/* Exports the iteration that wrote token `from` of the text as its first token. Sets *count to
 * the number of its tokens in the text. If the iteration is not kept, sets *count to 0. */
static int write_iteration(struct export *e, int from, int *count)
{
    struct esp_recorded_event event = {.event = {.type = 0}};
    const int run = run_of(e, from);
    *count = 0;
    int status = esp_library_iteration(e->library, e->id, e->tokens[from].iteration,
                                       e->text->vocabulary, &event, &e->names);
    const struct esp_iteration *it = &event.iteration.it;
    bool fits = status == ESP_OK && it->committed_count >= run;
    for (int i = 0; i < run && fits; i++)
        fits = it->committed[i] == e->tokens[from + i].token;
    status = ESP_OK;
    if (fits) {
        status = write_line(e, from, &event);
        e->time = event.event.time > e->time ? event.event.time : e->time;
        *count = run;
        if (status == ESP_OK && it->committed_count > run)
            status = write_event(
                e, (struct esp_event){.type = ESP_EVENT_REWIND, .token_count = from + run});
    }
    esp_recorded_event_free(&event);
    return status;
}

static int write_text(struct export *e)
{
    const char *header = e->text->header ? e->text->header : "";
    int status = ESP_OK, count;
    fprintf(e->file, "%.*s\n", (int)strcspn(header, "\n"), header);
    for (int at = 0, end; at < e->length && status == ESP_OK; at = end) {
        count = 0;
        if (e->tokens[at].iteration >= 0)
            status = write_iteration(e, at, &count);
        end = count > 0                      ? at + count
              : e->tokens[at].iteration >= 0 ? at + run_of(e, at)
                                             : prompt_end(e, at);
        if (count == 0 && status == ESP_OK)
            status = write_prompt(e, at, end);
    }
    if (status == ESP_OK)
        status = write_event(e, (struct esp_event){.type = ESP_EVENT_END, .text = ""});
    return status;
}

int esp_library_export(struct esp_library *library, int64_t id, int branch, FILE *file,
                       char *err, size_t errlen)
{
    struct esp_kept_text text;
    struct export e = {.library = library, .id = id, .file = file, .text = &text};
    const int loaded = esp_library_load(library, id, &text, err, errlen);
    const struct esp_branches *b = &text.branches;
    int status = loaded == ESP_E_FORMAT && text.header && b->count > 0 ? (int)ESP_OK : loaded;
    if (status == ESP_OK && branch >= b->count)
        status =
            esp_fail(err, errlen, ESP_E_ARGUMENT, "session %lld has no branch %d; it has %d",
                     (long long)id, branch + 1, b->count);
    if (status == ESP_OK) {
        const struct esp_text_place place = branch < 0 ? b->at : esp_branches_end(b, branch);
        e.length = place.length;
        e.pieces = (struct esp_tokens){piece, &e};
        e.tokens = malloc(((size_t)e.length + 1) * sizeof *e.tokens);
        if (e.tokens)
            esp_branches_text(b, place, 0, e.tokens);
        status = e.tokens ? write_text(&e) : (int)ESP_E_MEMORY;
        if (status < 0)
            esp_fail(err, errlen, status, "session %lld: %s", (long long)id,
                     esp_status_message(status));
    }
    esp_texts_free(&e.names);
    esp_line_free(&e.line);
    free(e.tokens);
    esp_kept_text_free(&text);
    return status < 0 ? status : loaded;
}

int esp_library_export_path(const char *path, int64_t id, int branch, FILE *file, char *err,
                            size_t errlen)
{
    struct esp_library *library;
    int status = esp_library_open(&library, path, ESP_LIBRARY_READ, err, errlen);
    if (status == ESP_OK)
        status = esp_library_export(library, id, branch, file, err, errlen);
    esp_library_close(library);
    return status;
}
