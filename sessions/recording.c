/* recording.c - makes the index of a recorded session and reads its events; see recording.h.
 *
 * Opening a recording reads the whole file. It checks every line and builds the index: offsets
 * of lines, tokens of the text, and sums over iterations. Afterwards, going to any event reads
 * only the line of this event. The line is checked again, because the file may have changed.
 */
#include "sessions/recording.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernels/status.h"
#include "sessions/event_json.h"
#include "sessions/grow.h"

/* Holds the index entry of an event. */
struct index_entry {
    off_t offset;
    uint32_t length; /* number of bytes in the line, without its newline */
    uint8_t type;
    int line;
    int iterations; /* number of iterations before the event */
    int text;       /* number of tokens in the text after the event */
    int tokens_end; /* length of the array `tokens` after this event added its tokens */
    double time;
};

struct iteration {
    int event;       /* index of the event in `entries` */
    int of_text;     /* number of iterations since the text was last cleared, including
                        this iteration */
    double baseline; /* latest measured time of a plain decoding step in seconds; 0
                        means not measured yet */
};

struct esp_recording {
    int fd;
    char *path;
    struct esp_recording_header header;
    struct esp_texts texts;
    struct index_entry *entries; /* (count) */
    int count, capacity;
    struct iteration *iterations; /* (iteration_count) */
    int iteration_count, iteration_capacity;
    struct esp_text_token *tokens; /* (token_count) tokens that events added, in order */
    int token_count, token_capacity;
    int dropped;  /* number of tokens that add_rest() has added again after DROP events */
    bool writing; /* a generation has begun, and no event has ended it yet */
    bool cut;     /* the last line is incomplete and was ignored */

    struct esp_text_token *text; /* (text_capacity) the result of esp_recording_text() */
    int text_capacity;
    char *line;                         /* (ESP_RECORDING_LINE + 1) the last line read */
    struct esp_recorded_event recorded; /* the event in `line` */
    bool has_iteration;                 /* `recorded` is an iteration */
    struct esp_iteration_copy stepped;  /* used by the result of esp_recording_step() */
    struct esp_event event;
};

/* ------------------------------------------------------------------ building the index */

static int add_token(struct esp_recording *r, int32_t token, int kind)
{
    if (esp_grow(&r->tokens, r->token_count, &r->token_capacity, sizeof *r->tokens) < 0)
        return ESP_E_MEMORY;
    r->tokens[r->token_count++] = (struct esp_text_token){token, (uint8_t)kind};
    return ESP_OK;
}

static int add_text(struct esp_recording *r, const struct esp_event *event)
{
    int status = ESP_OK, prompt = event->type == ESP_EVENT_PROMPT ? event->token_count : 0;
    for (int i = 0; i < prompt && status == ESP_OK; i++)
        status = add_token(r, event->tokens[i], esp_text_kind_of(event, i));
    const struct esp_iteration *it = event->iteration;
    for (int i = 0; it && i < it->committed_count && status == ESP_OK; i++)
        status = add_token(r, it->committed[i], esp_text_kind_of(event, i));
    return status;
}

/* Maximum number of tokens that DROP events may add again, see add_rest(). Without this limit,
 * a file of a few megabytes could need gigabytes of memory. */
enum { DROPPED_MOST = 8 << 20 };

/* Handles a DROP event, which removes tokens from the middle of the text. The caller shortens
 * the text to the tokens before the removed tokens. This function appends again the tokens that
 * followed the removed tokens. `before` is the length of the text before the event. */
static int add_rest(struct esp_recording *r, const struct esp_event *event, int before)
{
    const struct esp_text_token *text;
    const int start = event->token_start, count = event->token_count;
    int status = ESP_OK;
    if (start > before || count > before - start)
        return ESP_E_FORMAT;
    const int rest = before - start - count;
    if (rest > DROPPED_MOST - r->dropped)
        return ESP_E_UNSUPPORTED;
    r->dropped += rest;
    if (rest > 0 && esp_recording_text(r, r->count - 1, &text) < 0)
        return ESP_E_MEMORY;
    for (int i = 0; i < rest && status == ESP_OK; i++)
        status =
            add_token(r, r->text[start + count + i].token, r->text[start + count + i].kind);
    return status;
}

static int add_iteration(struct esp_recording *r, const struct esp_iteration *it)
{
    struct iteration next = {.event = r->count};
    if (esp_grow(&r->iterations, r->iteration_count, &r->iteration_capacity,
                 sizeof *r->iterations) < 0)
        return ESP_E_MEMORY;
    next.of_text = esp_recording_iterations_of_text(r, r->count - 1) + 1;
    next.baseline = it->baseline > 0 ? it->baseline : esp_recording_baseline(r, r->count - 1);
    r->iterations[r->iteration_count++] = next;
    return ESP_OK;
}

/* Adds the event that was just read to the index. */
static int add_event(struct esp_recording *r, struct index_entry entry)
{
    const struct esp_event *event = &r->recorded.event;
    const struct index_entry *last = r->count > 0 ? &r->entries[r->count - 1] : NULL;
    entry.type = (uint8_t)event->type;
    entry.time = last && last->time > event->time ? last->time : event->time;
    entry.iterations = r->iteration_count;
    int before = last ? last->text : 0, first = r->token_count, status;
    if (event->type == ESP_EVENT_REWIND && event->token_count > before)
        return ESP_E_FORMAT;
    if (event->type == ESP_EVENT_REWIND || event->type == ESP_EVENT_CLEAR)
        before = event->token_count;
    if (event->type == ESP_EVENT_DROP) {
        if ((status = add_rest(r, event, before)) < 0)
            return status;
        before = event->token_start;
    }
    if (event->type != ESP_EVENT_SETTING && event->type != ESP_EVENT_MARKER &&
        event->type != ESP_EVENT_NOTE)
        r->writing = event->type == ESP_EVENT_ITERATION;
    status = add_text(r, event);
    entry.tokens_end = r->token_count;
    entry.text = before + r->token_count - first;
    if (status == ESP_OK && event->type == ESP_EVENT_ITERATION)
        status = add_iteration(r, event->iteration);
    if (status == ESP_OK)
        status = esp_grow(&r->entries, r->count, &r->capacity, sizeof *r->entries);
    if (status == ESP_OK)
        r->entries[r->count++] = entry;
    return status;
}

/* Adds a line of the file, which is the header or an event. `whole` says whether the line ends
 * with a newline. */
static int add_line(struct esp_recording *r, struct index_entry entry, const char *line,
                    bool whole, char *err, size_t errlen)
{
    char why[256] = "";
    int status;
    if (entry.line == 1) {
        status = esp_header_from_json(&r->header, line, entry.length, why, sizeof why);
        return status < 0
                   ? esp_fail(err, errlen, status, "%s cannot be replayed: %s", r->path, why)
                   : ESP_OK;
    }
    status = esp_event_from_json(&r->recorded, &r->texts, line, entry.length,
                                 r->header.vocabulary, why, sizeof why);
    if (status > 0)
        status = add_event(r, entry);
    if (status == ESP_E_UNSUPPORTED && !*why)
        snprintf(why, sizeof why, "the DROP events so far move too many tokens");
    if (status == ESP_E_FORMAT && !*why)
        snprintf(why, sizeof why, "it does not fit the length of the text");
    if (status < 0 && status != ESP_E_MEMORY && !whole) {
        r->cut = true;
        return ESP_OK;
    }
    if (status < 0)
        return esp_fail(err, errlen, status, "line %d of %s cannot be read: %s", entry.line,
                        r->path, *why ? why : esp_status_message(status));
    return ESP_OK;
}

/* Adds the lines in `text`, which begins at `offset` in the file. If `last` is true, the text
 * ends at the end of the file, and a last line without a newline is added, too. Returns the
 * number of bytes in the added lines, or a negative status. */
static long add_lines(struct esp_recording *r, const char *text, size_t length, off_t offset,
                      bool last, int *lines, char *err, size_t errlen)
{
    size_t at = 0;
    while (at < length) {
        const char *end = memchr(text + at, '\n', length - at);
        if (!end && !last)
            break;
        size_t n = end ? (size_t)(end - text) - at : length - at;
        struct index_entry entry = {.offset = offset + (off_t)at, .length = (uint32_t)n};
        entry.line = ++*lines;
        int status = add_line(r, entry, text + at, end != NULL, err, errlen);
        if (status < 0)
            return status;
        at += n + (end != NULL);
    }
    return (long)at;
}

static int build_index(struct esp_recording *r, char *err, size_t errlen)
{
    size_t size = 2 * (size_t)ESP_RECORDING_LINE, held = 0;
    char *buffer = malloc(size);
    off_t offset = 0;
    int lines = 0, status = buffer ? ESP_OK : ESP_E_MEMORY;
    for (bool last = false; !last && status == ESP_OK;) {
        ssize_t count = read(r->fd, buffer + held, size - held);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0) {
            status = esp_fail(err, errlen, ESP_E_FILE, "cannot read %s: %s", r->path,
                              strerror(errno));
            break;
        }
        last = count == 0;
        held += (size_t)count;
        long taken = add_lines(r, buffer, held, offset, last, &lines, err, errlen);
        if (taken < 0)
            status = (int)taken;
        else if (taken == 0 && held == size)
            status =
                esp_fail(err, errlen, ESP_E_FORMAT, "line %d of %s is longer than %d bytes",
                         lines + 1, r->path, ESP_RECORDING_LINE);
        else {
            held -= (size_t)taken;
            offset += taken;
            memmove(buffer, buffer + taken, held);
        }
    }
    free(buffer);
    if (status == ESP_OK && lines == 0)
        status = esp_fail(err, errlen, ESP_E_FORMAT,
                          "%s is empty; a recording begins with a header", r->path);
    return status;
}

/* Opens the file. `again` is the descriptor of the file if it is already open, or -1. */
static int open_file(struct esp_recording *r, const char *path, int again, char *err,
                     size_t errlen)
{
    struct stat info;
    r->path = strdup(path);
    r->line = malloc(ESP_RECORDING_LINE + 1);
    if (!r->path || !r->line)
        return esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory to open %s", path);
    r->fd = again < 0 ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
                      : fcntl(again, F_DUPFD_CLOEXEC, 0);
    if (r->fd >= 0 && again >= 0) /* harmless, because the other reader uses only pread() */
        lseek(r->fd, 0, SEEK_SET);
    if (r->fd < 0 || fstat(r->fd, &info) < 0)
        return esp_fail(err, errlen, ESP_E_FILE, "cannot open %s: %s", path, strerror(errno));
    if (!S_ISREG(info.st_mode))
        return esp_fail(err, errlen, ESP_E_FILE, "%s is not a regular file", path);
    return ESP_OK;
}

static int open_recording(struct esp_recording **recording, const char *path, int again,
                          char *err, size_t errlen)
{
    struct esp_recording *r = calloc(1, sizeof *r);
    *recording = NULL;
    if (!r)
        return esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory to open %s", path);
    r->fd = -1;
    int status = open_file(r, path, again, err, errlen);
    if (status == ESP_OK)
        status = build_index(r, err, errlen);
    if (status < 0) {
        esp_recording_close(r);
        return status;
    }
    *recording = r;
    return ESP_OK;
}

int esp_recording_open(struct esp_recording **recording, const char *path, char *err,
                       size_t errlen)
{
    return open_recording(recording, path, -1, err, errlen);
}

int esp_recording_open_again(struct esp_recording **recording, const struct esp_recording *of,
                             char *err, size_t errlen)
{
    return open_recording(recording, of->path, of->fd, err, errlen);
}

void esp_recording_close(struct esp_recording *r)
{
    if (!r)
        return;
    if (r->fd >= 0)
        close(r->fd);
    esp_texts_free(&r->texts);
    esp_recorded_event_free(&r->recorded);
    esp_iteration_free(&r->stepped);
    free(r->entries);
    free(r->iterations);
    free(r->tokens);
    free(r->text);
    free(r->line);
    free(r->path);
    free(r);
}

/* ------------------------------------------------------------------ looking things up */

const struct esp_recording_header *esp_recording_header(const struct esp_recording *r)
{
    return &r->header;
}

bool esp_recording_is_cut(const struct esp_recording *r)
{
    return r->cut || r->writing;
}

const char *esp_recording_token_text(void *user, int32_t token, size_t *length)
{
    struct esp_recording *r = user;
    return esp_texts_find(&r->texts, token, length);
}

int esp_recording_events(const struct esp_recording *r)
{
    return r->count;
}

int esp_recording_iterations(const struct esp_recording *r)
{
    return r->iteration_count;
}

struct esp_recording_entry esp_recording_entry(const struct esp_recording *r, int event)
{
    const struct index_entry *e = &r->entries[event];
    return (struct esp_recording_entry){e->type, e->time, e->iterations, e->line};
}

int esp_recording_iteration_event(const struct esp_recording *r, int iteration)
{
    return r->iterations[iteration].event;
}

/* Fills the text from its end, going backwards through the events. Skips tokens that a later
 * event removed. */
int esp_recording_text(struct esp_recording *r, int event, const struct esp_text_token **tokens)
{
    int count = event < 0 ? 0 : r->entries[event].text, left = count;
    if (esp_reserve(&r->text, count, &r->text_capacity, sizeof *r->text) < 0)
        return ESP_E_MEMORY;
    for (; left > 0; event--) {
        const struct index_entry *e = &r->entries[event];
        int first = event > 0 ? e[-1].tokens_end : 0;
        int before = e->text - (e->tokens_end - first);
        if (before >= left || e->tokens_end == first)
            continue;
        memcpy(r->text + before, r->tokens + first, (size_t)(left - before) * sizeof *r->text);
        left = before;
    }
    *tokens = r->text;
    return count;
}

int esp_recording_added(const struct esp_recording *r, int event,
                        const struct esp_text_token **tokens)
{
    int first = event > 0 ? r->entries[event - 1].tokens_end : 0;
    *tokens = r->tokens ? r->tokens + first : NULL; /* NULL if no event has added a token */
    return r->entries[event].tokens_end - first;
}

int esp_recording_iterations_of_text(const struct esp_recording *r, int event)
{
    for (; event >= 0 && r->entries[event].type != ESP_EVENT_CLEAR; event--)
        if (r->entries[event].type == ESP_EVENT_ITERATION)
            return r->iterations[r->entries[event].iterations].of_text;
    return 0;
}

double esp_recording_baseline(const struct esp_recording *r, int event)
{
    int iterations = 0;
    if (event >= 0)
        iterations =
            r->entries[event].iterations + (r->entries[event].type == ESP_EVENT_ITERATION);
    return iterations > 0 ? r->iterations[iterations - 1].baseline : 0;
}

/* ------------------------------------------------------------------ events */

const char *esp_recording_line(struct esp_recording *r, int event, size_t *length)
{
    const struct index_entry *e = &r->entries[event];
    size_t got = 0;
    while (got < e->length) {
        ssize_t n = pread(r->fd, r->line + got, e->length - got, e->offset + (off_t)got);
        if (n == 0 || (n < 0 && errno != EINTR))
            return NULL;
        got += n > 0 ? (size_t)n : 0;
    }
    r->line[got] = '\0';
    *length = got;
    return r->line;
}

int esp_recording_read(struct esp_recording *r, int event, const struct esp_event **found,
                       char *err, size_t errlen)
{
    size_t length;
    char why[256] = "it is gone";
    const char *line = esp_recording_line(r, event, &length);
    r->has_iteration = false;
    int status = !line ? ESP_E_FILE
                       : esp_event_from_json(&r->recorded, &r->texts, line, length,
                                             r->header.vocabulary, why, sizeof why);
    if (status <= 0 || r->recorded.event.type != r->entries[event].type)
        return esp_fail(err, errlen, status < 0 ? status : ESP_E_FORMAT,
                        "line %d of %s has changed since it was opened: %s",
                        r->entries[event].line, r->path, why);
    r->has_iteration = r->recorded.event.type == ESP_EVENT_ITERATION;
    *found = &r->recorded.event;
    return ESP_OK;
}

int esp_recording_steps(const struct esp_recording *r)
{
    return r->has_iteration ? r->recorded.layers.count + ESP_STAGES : 0;
}

const struct esp_event *esp_recording_step(struct esp_recording *r, int step)
{
    const struct esp_layers *layers = &r->recorded.layers;
    int stage = step - layers->count;
    struct esp_iteration *it = &r->stepped.it;
    if (step < 0 || step >= esp_recording_steps(r) ||
        esp_iteration_copy(&r->stepped, &r->recorded.iteration.it) < 0)
        return NULL;
    r->event = (struct esp_event){.iteration = it, .time = r->recorded.event.time};
    if (stage < 0) {
        r->event.type = ESP_EVENT_LAYER;
        r->event.time = layers->layers[step].time;
        esp_iteration_at_layer(it, layers, step);
    } else {
        r->event.type = ESP_EVENT_STAGE;
        r->event.stage = stage;
        for (int later = stage + 1; later < ESP_STAGES; later++)
            r->event.time -= it->seconds[later];
        esp_iteration_at_stage(it, (enum esp_stage)stage);
    }
    return &r->event;
}
