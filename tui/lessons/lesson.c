/* lesson.c - reads lessons; see lesson.h.
 *
 * A line that starts with a full stop is an instruction, all others are text. Text belongs to
 * the page, or after ".answer" to its answer.
 */
#include "tui/lessons/lesson.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/espalier.h"
#include "engine/support/paths.h"
#include "tui/model/line_file.h"

static const char ENDING[] = ".lesson";
enum { TOKENS = 48, MOST_TOKENS = 512, MOST_PASS_MS = 1000 };

struct reading {
    struct esp_lesson *lesson;
    bool answering; /* text belongs to the answer */
    int line;
    char *err;
    size_t errlen;
};

__attribute__((format(printf, 2, 3))) static int wrong(const struct reading *r,
                                                       const char *format, ...)
{
    char what[300];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    return esp_fail(r->err, r->errlen, ESP_E_FORMAT, "%s, line %d: %s", r->lesson->path,
                    r->line, what);
}

static int no_memory(const struct reading *r)
{
    return esp_fail(r->err, r->errlen, ESP_E_MEMORY, "no memory for %s", r->lesson->path);
}

static int put(const struct reading *r, char **text, const char *value)
{
    free(*text);
    *text = strdup(value);
    return *text ? (int)ESP_OK : no_memory(r);
}

static int append(const struct reading *r, char **text, const char *between, const char *more)
{
    const size_t used = *text ? strlen(*text) : 0;
    const size_t size = used + strlen(between) + strlen(more) + 1;
    char *grown = realloc(*text, size);
    if (!grown)
        return no_memory(r);
    snprintf(grown + used, size - used, "%s%s", used ? between : "", more);
    *text = grown;
    return ESP_OK;
}

static struct esp_lesson_page *page_of(const struct reading *r)
{
    return r->lesson->page_count > 0 ? &r->lesson->pages[r->lesson->page_count - 1] : NULL;
}

/* ------------------------------------------------------------------ instructions */

static int add_page(struct reading *r)
{
    struct esp_lesson *lesson = r->lesson;
    if (lesson->page_count == ESP_LESSON_PAGES)
        return wrong(r, "a lesson has at most %d pages", ESP_LESSON_PAGES);
    struct esp_lesson_page *grown =
        realloc(lesson->pages, ((size_t)lesson->page_count + 1) * sizeof *grown);
    if (!grown)
        return no_memory(r);
    lesson->pages = grown;
    grown[lesson->page_count++] = (struct esp_lesson_page){.stages = ESP_STAGES};
    r->answering = false;
    return ESP_OK;
}

/* ".record NAME FILE" or ".run NAME DRAFTER" */
static int add_run(struct reading *r, const char *rest, bool recorded)
{
    struct esp_lesson *lesson = r->lesson;
    char name[ESP_LESSON_NAME], value[512];
    if (sscanf(rest, "%23s %511[^\n]", name, value) != 2)
        return wrong(r, recorded ? "write .record NAME FILE" : "write .run NAME DRAFTER");
    if (recorded && strchr(value, '/'))
        return wrong(r,
                     "a recording must lie beside the lesson or be a bundled one; its name has "
                     "no folder: %.100s",
                     value);
    if (lesson->run_count == ESP_LESSON_RUNS)
        return wrong(r, "a lesson has at most %d runs", ESP_LESSON_RUNS);
    if (esp_lesson_run_find(lesson, name, strlen(name)) >= 0)
        return wrong(r, "there are two runs named %s", name);
    struct esp_lesson_run *run = &lesson->runs[lesson->run_count++];
    *run = (struct esp_lesson_run){.recording = NULL};
    snprintf(run->name, sizeof run->name, "%s", name);
    return put(r, recorded ? &run->recording : &run->drafter, value);
}

static int stages_of(const char *name)
{
    for (int i = 0; i < ESP_STAGES; i++)
        if (strcmp(esp_stage_name(i), name) == 0)
            return i + 1;
    return strcmp(name, "all") == 0 ? (int)ESP_STAGES : -1;
}

/* ".show tree RUN[N] [STAGE]", ".show mask RUN[N]", ".show text RUN", ".show gauge RUN NAME" */
static int show(const struct reading *r, struct esp_lesson_page *page, const char *rest)
{
    static const char *const kinds[] = {"", "tree", "mask", "text", "gauge"};
    char kind[16], what[64] = "", third[32] = "";
    if (sscanf(rest, "%15s %63s %31s", kind, what, third) < 2)
        return wrong(r, "write .show tree|mask|text|gauge RUN");
    for (int i = ESP_PICTURE_TREE; i <= ESP_PICTURE_GAUGE; i++)
        if (strcmp(kind, kinds[i]) == 0)
            page->picture = i;
    if (page->picture == ESP_PICTURE_NONE)
        return wrong(r, "there is no picture '%s'; choose tree, mask, text or gauge", kind);
    const size_t length = strcspn(what, "[");
    if (length >= sizeof page->run || esp_lesson_run_find(r->lesson, what, length) < 0)
        return wrong(r, "there is no run '%s'", what);
    snprintf(page->run, sizeof page->run, "%.*s", (int)length, what);
    page->iteration = what[length] ? atoi(what + length + 1) : 0;
    if (page->picture == ESP_PICTURE_GAUGE)
        snprintf(page->gauge, sizeof page->gauge, "%s", third);
    else if (*third && (page->stages = stages_of(third)) < 0)
        return wrong(r, "there is no stage '%s'", third);
    return ESP_OK;
}

/* ".choice TEXT" or ".choice TEXT | CONDITION" */
static int add_choice(const struct reading *r, struct esp_lesson_page *page, char *rest)
{
    char *bar = strrchr(rest, '|');
    if (!page->question)
        return wrong(r, ".choice must follow .ask");
    if (page->choice_count == ESP_LESSON_CHOICES)
        return wrong(r, "a question has at most %d choices", ESP_LESSON_CHOICES);
    struct esp_lesson_choice *choice = &page->choices[page->choice_count++];
    *choice = (struct esp_lesson_choice){.text = NULL};
    if (bar)
        for (char *end = bar++; end >= rest && strchr(" |", *end); end--)
            *end = '\0';
    int status = put(r, &choice->text, rest);
    if (status == ESP_OK && bar)
        status = put(r, &choice->condition, bar);
    return status;
}

static int set_number(const struct reading *r, const char *rest, double most, double *value)
{
    char *end;
    *value = strtod(rest, &end);
    if (end == rest || *end || !(*value > 0 && *value <= most))
        return wrong(r, "write a number from 0 to %g, not '%.40s'", most, rest);
    return ESP_OK;
}

/* Handles the instructions before the first page. */
static int obey_head(struct reading *r, const char *name, char *rest)
{
    double value;
    int status;
    if (strcmp(name, "title") == 0)
        return put(r, &r->lesson->title, rest);
    if (strcmp(name, "record") == 0 || strcmp(name, "run") == 0)
        return add_run(r, rest, name[2] == 'c');
    if (strcmp(name, "prompt") == 0)
        return put(r, &r->lesson->prompt, rest);
    if (strcmp(name, "tokens") == 0) {
        if ((status = set_number(r, rest, MOST_TOKENS, &value)) == ESP_OK)
            r->lesson->tokens = (int)value;
        return status;
    }
    if (strcmp(name, "pass") == 0) {
        if ((status = set_number(r, rest, MOST_PASS_MS, &value)) == ESP_OK)
            r->lesson->pass = value / 1e3;
        return status;
    }
    return wrong(r, "there is no instruction .%.40s here; start the first page with .page",
                 name);
}

static int obey_page(struct reading *r, struct esp_lesson_page *page, const char *name,
                     char *rest)
{
    char **text = r->answering ? &page->answer : &page->text;
    if (strcmp(name, "p") == 0)
        return *text ? append(r, text, "\n", "\n") : ESP_OK;
    if (strcmp(name, "show") == 0)
        return show(r, page, rest);
    if (strcmp(name, "ask") == 0)
        return put(r, &page->question, rest);
    if (strcmp(name, "choice") == 0)
        return add_choice(r, page, rest);
    if (strcmp(name, "branches") == 0) {
        page->branches = true;
        return page->question && page->picture == ESP_PICTURE_TREE
                   ? (int)ESP_OK
                   : wrong(r, ".branches must follow .ask, on a page that shows a tree");
    }
    if (strcmp(name, "answer") == 0) {
        r->answering = true;
        return page->question ? (int)ESP_OK : wrong(r, ".answer must follow .ask");
    }
    return wrong(r, "there is no instruction .%.40s", name);
}

static int take_line(void *user, char *line, int number, char *err, size_t errlen)
{
    struct reading *r = user;
    struct esp_lesson_page *page = page_of(r);
    r->line = number;
    r->err = err;
    r->errlen = errlen;
    if (*line != '.') {
        char **text = page ? (r->answering ? &page->answer : &page->text) : NULL;
        if (!text)
            return wrong(r, "text belongs to a page; start one with .page");
        const size_t used = *text ? strlen(*text) : 0;
        return append(r, text, used && (*text)[used - 1] != '\n' ? " " : "", line);
    }
    char *name = line + 1, *rest = name + strcspn(name, " ");
    if (*rest)
        *rest++ = '\0';
    rest += strspn(rest, " ");
    if (strcmp(name, "page") == 0)
        return add_page(r);
    return page ? obey_page(r, page, name, rest) : obey_head(r, name, rest);
}

static int check(const struct reading *r)
{
    const struct esp_lesson *lesson = r->lesson;
    if (!lesson->title || lesson->page_count == 0)
        return esp_fail(r->err, r->errlen, ESP_E_FORMAT, "%s has no %s", lesson->path,
                        lesson->title ? ".page" : ".title");
    for (int i = 0; i < lesson->page_count; i++) {
        const struct esp_lesson_page *page = &lesson->pages[i];
        if (page->question && !page->branches && page->choice_count < 2)
            return esp_fail(r->err, r->errlen, ESP_E_FORMAT,
                            "%s: the question on page %d has less than two choices",
                            lesson->path, i + 1);
    }
    return ESP_OK;
}

int esp_lesson_read(struct esp_lesson *lesson, const char *path, char *err, size_t errlen)
{
    struct reading r = {.lesson = lesson, .err = err, .errlen = errlen};
    *lesson = (struct esp_lesson){.tokens = TOKENS};
    snprintf(lesson->path, sizeof lesson->path, "%s", path);
    int status = esp_line_file_read(path, take_line, &r, err, errlen);
    r.err = err;
    r.errlen = errlen;
    if (status == ESP_OK)
        status = check(&r);
    if (status < 0)
        esp_lesson_free(lesson);
    return status;
}

void esp_lesson_free(struct esp_lesson *lesson)
{
    for (int i = 0; i < lesson->page_count; i++) {
        struct esp_lesson_page *page = &lesson->pages[i];
        for (int j = 0; j < page->choice_count; j++) {
            free(page->choices[j].text);
            free(page->choices[j].condition);
        }
        free(page->text);
        free(page->question);
        free(page->answer);
    }
    for (int i = 0; i < lesson->run_count; i++) {
        free(lesson->runs[i].recording);
        free(lesson->runs[i].drafter);
    }
    free(lesson->pages);
    free(lesson->title);
    free(lesson->prompt);
    *lesson = (struct esp_lesson){.page_count = 0};
}

int esp_lesson_run_find(const struct esp_lesson *lesson, const char *name, size_t length)
{
    for (int i = 0; i < lesson->run_count; i++)
        if (strncmp(lesson->runs[i].name, name, length) == 0 && !lesson->runs[i].name[length])
            return i;
    return -1;
}

/* ------------------------------------------------------------------ bundled lessons */

bool esp_lesson_list(int index, char *name, size_t size, char *title, size_t title_size)
{
    char folder[PATH_MAX], path[PATH_MAX], file[256], err[300];
    struct esp_lesson lesson;
    if (esp_find_data(folder, sizeof folder, "lessons", "") < 0 ||
        esp_list_folder(folder, ENDING, index, name, size) < 0)
        return false;
    snprintf(file, sizeof file, "%.240s%s", name, ENDING);
    snprintf(title, title_size, "%s", name);
    if (esp_find_data(path, sizeof path, "lessons", file) == 0 &&
        esp_lesson_read(&lesson, path, err, sizeof err) == 0) {
        snprintf(title, title_size, "%s", lesson.title);
        esp_lesson_free(&lesson);
    }
    return true;
}

int esp_lesson_find(char path[PATH_MAX], const char *name, char *err, size_t errlen)
{
    char known[256], folder[PATH_MAX];
    if (strchr(name, '/') || strstr(name, ENDING)) {
        snprintf(path, PATH_MAX, "%s", name);
        return ESP_OK;
    }
    const bool there = esp_find_data(folder, sizeof folder, "lessons", "") == 0;
    for (int i = 0;
         *name && there && esp_list_folder(folder, ENDING, i, known, sizeof known) == 0; i++)
        if (strncmp(known, name, strlen(name)) == 0) {
            const int length = snprintf(path, PATH_MAX, "%s/%s%s", folder, known, ENDING);
            if (length < PATH_MAX)
                return ESP_OK;
        }
    return esp_fail(
        err, errlen, ESP_E_FILE,
        "there is no lesson '%.60s'; list them with espalier learn, or give the path of a file",
        name);
}
