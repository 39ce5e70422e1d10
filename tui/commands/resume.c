/* resume.c - see resume.h. */
#include "tui/commands/resume.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/status.h"

/* ------------------------------------------------------------------ reading */

/* Reads the last iterations of the current text. */
static int read_iterations(struct esp_resumed *r, struct esp_library *library)
{
    const struct esp_branches *b = &r->text.branches;
    struct esp_resumed_iteration *first = calloc(ESP_KEPT, sizeof *first);
    int before = -1, used = 0;
    if (!first)
        return ESP_E_MEMORY;
    /* This loop goes from the newest iteration to the oldest. It fills the array from its
     * end. */
    for (int place = b->at.length - 1; place >= 0 && used < ESP_KEPT; place--) {
        const int number = esp_branches_token(b, b->at, place)->iteration;
        const int left = place > 0 ? esp_branches_token(b, b->at, place - 1)->iteration
                                   : ESP_BY_NO_ITERATION;
        if (number < 0 || left == number || number == before)
            continue;
        before = number;
        struct esp_resumed_iteration *it = &first[ESP_KEPT - 1 - used];
        if (esp_library_iteration(library, r->session.id, number, r->text.vocabulary,
                                  &it->event, &r->names) < 0) {
            esp_recorded_event_free(&it->event);
            break;
        }
        it->event.iteration.it.index = number;
        /* This iteration can begin before `place`. Then a later iteration has generated the
         * first tokens of this iteration again. */
        const int position = it->event.iteration.it.position;
        it->place = esp_branches_before(b, b->at, position < place ? position : place);
        used++;
    }
    memmove(first, first + ESP_KEPT - used, (size_t)used * sizeof *first);
    memset(first + used, 0, (size_t)(ESP_KEPT - used) * sizeof *first);
    r->iterations = first;
    r->count = used;
    return ESP_OK;
}

static int read_session(struct esp_resumed *r, struct esp_library *library, const char *which,
                        char *err, size_t errlen)
{
    int status = esp_library_find(library, which, &r->session, err, errlen);
    if (status == ESP_OK && r->session.open)
        status = esp_fail(err, errlen, ESP_E_FILE, "session %lld is open in another program",
                          (long long)r->session.id);
    if (status == ESP_OK)
        status = esp_library_load(library, r->session.id, &r->text, err, errlen);
    if (status < 0)
        return status;
    const char *header = r->text.header;
    status = esp_header_from_json(&r->header, header, strcspn(header, "\n"), err, errlen);
    if (status < 0)
        return esp_fail(err, errlen, status, "session %lld is damaged: its settings",
                        (long long)r->session.id);
    return read_iterations(r, library) < 0 ? esp_fail(err, errlen, ESP_E_MEMORY, "no memory")
                                           : (int)ESP_OK;
}

int esp_resumed_open(struct esp_resumed **resumed, const char *path, const char *which,
                     char *err, size_t errlen)
{
    struct esp_library *library;
    struct esp_resumed *r = calloc(1, sizeof *r);
    *resumed = NULL;
    if (!r)
        return esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory for the session");
    int status = esp_library_open(&library, path, ESP_LIBRARY_READ, err, errlen);
    if (status == ESP_OK)
        status = read_session(r, library, which, err, errlen);
    esp_library_close(library);
    if (status < 0)
        esp_resumed_close(r);
    else
        *resumed = r;
    return status;
}

void esp_resumed_close(struct esp_resumed *r)
{
    if (!r)
        return;
    for (int i = 0; i < r->count; i++)
        esp_recorded_event_free(&r->iterations[i].event);
    free(r->iterations);
    esp_texts_free(&r->names);
    esp_kept_text_free(&r->text);
    free(r);
}

/* ------------------------------------------------------------------ continuing */

struct esp_text_token *esp_resumed_text(const struct esp_resumed *r, int *count)
{
    const struct esp_branches *b = &r->text.branches;
    *count = b->at.length;
    struct esp_written *written = malloc(((size_t)*count + 1) * sizeof *written);
    struct esp_text_token *text = malloc(((size_t)*count + 1) * sizeof *text);
    if (written)
        esp_branches_text(b, b->at, 0, written);
    for (int i = 0; written && text && i < *count; i++)
        text[i] = (struct esp_text_token){written[i].token, written[i].kind};
    if (!written) {
        free(text);
        text = NULL;
    }
    free(written);
    return text;
}

/* Returns the new index of the iteration that had the index `number`. `least` and `most` are
 * the smallest and the largest of the old indices. */
static int index_of(const struct esp_resumed *r, int number, int least, int most)
{
    for (int i = 0; number >= least && number <= most && i < r->count; i++)
        if (r->iterations[i].event.iteration.it.index == number)
            return i;
    return ESP_BY_FORGOTTEN;
}

/* Numbers the iterations from 0. Also changes the iteration numbers in the tokens that the
 * iterations generated. */
static void renumber(struct esp_resumed *r)
{
    struct esp_branches *b = &r->text.branches;
    int least = INT32_MAX, most = -1;
    for (int i = 0; i < r->count; i++) {
        const int number = r->iterations[i].event.iteration.it.index;
        least = number < least ? number : least;
        most = number > most ? number : most;
    }
    for (int i = 0; i < b->count; i++)
        for (int j = 0; j < b->branch[i].count; j++) {
            struct esp_written *token = &b->branch[i].tokens[j];
            if (token->iteration >= 0)
                token->iteration = index_of(r, token->iteration, least, most);
        }
}

int esp_resumed_install(struct esp_resumed *r, struct esp_state *state)
{
    struct esp_branches *b = &r->text.branches;
    int status = ESP_OK;
    renumber(r);
    for (int i = 0; i < r->count && status == ESP_OK; i++) {
        struct esp_iteration *it = &r->iterations[i].event.iteration.it;
        it->index = i;
        state->begins[i % ESP_KEPT] = (struct esp_begin){i, r->iterations[i].place};
        status = esp_trace_add(&state->trace, it, NULL, false);
    }
    esp_branches_free(&state->branches);
    state->branches = *b;
    state->branches.at = (struct esp_text_place){-1, 0};
    memset(b, 0, sizeof *b);
    esp_branches_open(b);
    return status;
}
