/* lesson.c - reads lessons; see lesson.h.
 *
 * A line that starts with a full stop is an instruction; all other lines are text. After
 * ".answer", the text is the answer to the page's question. Before that, it is the text of the
 * page.
 */
#include "tui/lessons/lesson.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/support/paths.h"
#include "tui/model/line_file.h"

static const char ENDING[] = ".lesson";
enum { TOKENS = 48, MOST_TOKENS = 512, MOST_PASS_MS = 1000 };

/* The lesson must be the first member. The table `head` contains offsets of members of struct
 * esp_lesson, but they are added to a pointer to this struct. */
struct reading {
    struct esp_lesson lesson;
    bool answering; /* lines of text are added to the answer, not to the page */
};

static int no_memory(const struct esp_file_line *line)
{
    return esp_fail(line->err, line->errlen, ESP_E_MEMORY, "not enough memory for %s",
                    line->path);
}

static int append(const struct esp_file_line *line, char **text, const char *between,
                  const char *more)
{
    const size_t used = *text ? strlen(*text) : 0;
    const size_t size = used + strlen(between) + strlen(more) + 1;
    char *grown = realloc(*text, size);
    if (!grown)
        return no_memory(line);
    snprintf(grown + used, size - used, "%s%s", used ? between : "", more);
    *text = grown;
    return ESP_OK;
}

static struct esp_lesson_page *page_of(struct reading *r)
{
    return r->lesson.page_count > 0 ? &r->lesson.pages[r->lesson.page_count - 1] : NULL;
}

/* Returns the text to which lines are added at present. This is the text of the page or of its
 * answer. Returns NULL if there is no page yet. */
static char **text_of(struct reading *r)
{
    struct esp_lesson_page *page = page_of(r);
    return !page ? NULL : r->answering ? &page->answer : &page->text;
}

/* ------------------------------------------------------------------ before the first page */

/* Reads the rest of a line .record ("NAME FILE") or .run ("NAME DRAFTER"). */
static int add_run(struct esp_lesson *lesson, struct esp_file_line *line, bool recorded)
{
    char name[ESP_LESSON_NAME], value[512];
    if (sscanf(line->text, "%23s %511[^\n]", name, value) != 2)
        return esp_wrong_line(line,
                              recorded ? "write .record NAME FILE" : "write .run NAME DRAFTER");
    if (recorded && strchr(value, '/'))
        return esp_wrong_line(
            line,
            "a recording must be in the lesson's folder or be a bundled recording; write its "
            "name without a folder, not %.100s",
            value);
    if (lesson->run_count == ESP_LESSON_RUNS)
        return esp_wrong_line(line, "a lesson has at most %d runs", ESP_LESSON_RUNS);
    if (esp_lesson_run_find(lesson, name, strlen(name)) >= 0)
        return esp_wrong_line(line, "there are two runs named %s", name);
    struct esp_lesson_run *run = &lesson->runs[lesson->run_count++];
    *run = (struct esp_lesson_run){.recording = NULL};
    snprintf(run->name, sizeof run->name, "%s", name);
    return esp_put_text(line, recorded ? &run->recording : &run->drafter, value);
}

/* Reads the rest of a line .branch: "NAME RUN[N] DRAFTER". */
static int take_branch(void *user, struct esp_file_line *line)
{
    struct esp_lesson *lesson = user;
    char name[ESP_LESSON_NAME], from[48], drafter[512], both[640], *typed = line->text;
    if (sscanf(typed, "%23s %47s %511[^\n]", name, from, drafter) != 3)
        return esp_wrong_line(line, "write .branch NAME RUN[N] DRAFTER");
    if (esp_lesson_run_find(lesson, from, strcspn(from, "[")) < 0 || !strchr(from, '['))
        return esp_wrong_line(
            line, "a branch must begin at an iteration RUN[N] of an earlier run, not at %s",
            from);
    snprintf(both, sizeof both, "%s %s", name, drafter);
    line->text = both;
    const int status = add_run(lesson, line, false);
    line->text = typed;
    if (status == ESP_OK)
        strcpy(lesson->runs[lesson->run_count - 1].branch, from);
    return status;
}

static int take_record(void *user, struct esp_file_line *line)
{
    return add_run(user, line, true);
}

static int take_run(void *user, struct esp_file_line *line)
{
    return add_run(user, line, false);
}

/* Reads a number above 0 and at most `most`. Returns the number, or a negative status. */
static double number_of(const struct esp_file_line *line, double most)
{
    char *end;
    const double value = strtod(line->text, &end);
    if (end == line->text || *end || !(value > 0 && value <= most))
        return esp_wrong_line(line, "write a number above 0, at most %g, not '%.40s'", most,
                              line->text);
    return value;
}

static int take_tokens(void *user, struct esp_file_line *line)
{
    const double value = number_of(line, MOST_TOKENS);
    ((struct esp_lesson *)user)->tokens = (int)value;
    return value < 0 ? (int)value : ESP_OK;
}

static int take_pass(void *user, struct esp_file_line *line)
{
    const double value = number_of(line, MOST_PASS_MS);
    ((struct esp_lesson *)user)->pass = value / 1e3;
    return value < 0 ? (int)value : ESP_OK;
}

/* ------------------------------------------------------------------ pages */

static int take_page(void *user, struct esp_file_line *line)
{
    struct reading *r = user;
    struct esp_lesson *lesson = &r->lesson;
    if (lesson->page_count == ESP_LESSON_PAGES)
        return esp_wrong_line(line, "a lesson has at most %d pages", ESP_LESSON_PAGES);
    struct esp_lesson_page *grown =
        realloc(lesson->pages, ((size_t)lesson->page_count + 1) * sizeof *grown);
    if (!grown)
        return no_memory(line);
    lesson->pages = grown;
    grown[lesson->page_count++] = (struct esp_lesson_page){.stages = ESP_STAGES};
    r->answering = false;
    return ESP_OK;
}

static int take_paragraph(void *user, struct esp_file_line *line)
{
    char **text = text_of(user);
    return *text ? append(line, text, "\n", "\n") : ESP_OK;
}

int esp_lesson_stages(const char *name)
{
    for (int i = 0; i < ESP_STAGES; i++)
        if (strcmp(esp_stage_name(i), name) == 0)
            return i + 1;
    return strcmp(name, "all") == 0 ? (int)ESP_STAGES : -1;
}

/* Reads the rest of a line .show: "tree RUN[N] [STAGE]", "mask RUN[N]", "walk RUN[N]",
 * "text RUN" or "gauge RUN NAME". */
static int take_show(void *user, struct esp_file_line *line)
{
    static const char *const kinds[] = {"", "tree", "mask", "walk", "text", "gauge"};
    struct reading *r = user;
    struct esp_lesson_page *page = page_of(r);
    char kind[16], what[64] = "", third[32] = "";
    if (sscanf(line->text, "%15s %63s %31s", kind, what, third) < 2)
        return esp_wrong_line(line, "write .show tree|mask|walk|text|gauge RUN");
    for (int i = ESP_PICTURE_TREE; i <= ESP_PICTURE_GAUGE; i++)
        if (strcmp(kind, kinds[i]) == 0)
            page->picture = i;
    if (page->picture == ESP_PICTURE_NONE)
        return esp_wrong_line(
            line, "there is no picture '%s'; choose tree, mask, walk, text or gauge", kind);
    const size_t length = strcspn(what, "[");
    if (length >= sizeof page->run || esp_lesson_run_find(&r->lesson, what, length) < 0)
        return esp_wrong_line(line, "there is no run '%s'", what);
    snprintf(page->run, sizeof page->run, "%.*s", (int)length, what);
    page->iteration = what[length] ? atoi(what + length + 1) : 0;
    if (page->picture == ESP_PICTURE_GAUGE)
        snprintf(page->gauge, sizeof page->gauge, "%s", third);
    else if (*third && (page->stages = esp_lesson_stages(third)) < 0)
        return esp_wrong_line(line, "there is no stage '%s'", third);
    return ESP_OK;
}

static int take_ask(void *user, struct esp_file_line *line)
{
    return esp_put_text(line, &page_of(user)->question, line->text);
}

/* Reads the rest of a line .choice: "TEXT" or "TEXT | CONDITION". */
static int take_choice(void *user, struct esp_file_line *line)
{
    struct esp_lesson_page *page = page_of(user);
    char *rest = line->text, *bar = strrchr(rest, '|');
    if (!page->question)
        return esp_wrong_line(line, ".choice must follow .ask");
    if (page->choice_count == ESP_LESSON_CHOICES)
        return esp_wrong_line(line, "a question has at most %d choices", ESP_LESSON_CHOICES);
    struct esp_lesson_choice *choice = &page->choices[page->choice_count++];
    *choice = (struct esp_lesson_choice){.text = NULL};
    if (bar)
        for (char *end = bar++; end >= rest && strchr(" |", *end); end--)
            *end = '\0';
    int status = esp_put_text(line, &choice->text, rest);
    return status == ESP_OK && bar ? esp_put_text(line, &choice->condition, bar) : status;
}

static int take_branches(void *user, struct esp_file_line *line)
{
    struct esp_lesson_page *page = page_of(user);
    page->branches = true;
    return page->question && page->picture == ESP_PICTURE_TREE
               ? (int)ESP_OK
               : esp_wrong_line(line,
                                ".branches must follow .ask, on a page that shows a tree");
}

static int take_answer(void *user, struct esp_file_line *line)
{
    struct reading *r = user;
    r->answering = true;
    return page_of(r)->question ? (int)ESP_OK
                                : esp_wrong_line(line, ".answer must follow .ask");
}

static const struct esp_line_kind head[] = {
    {"page", .take = take_page},
    {"title", .offset = offsetof(struct esp_lesson, title)},
    {"prompt", .offset = offsetof(struct esp_lesson, prompt)},
    {"record", .take = take_record},
    {"run", .take = take_run},
    {"branch", .take = take_branch},
    {"tokens", .take = take_tokens},
    {"pass", .take = take_pass},
};

static const struct esp_line_kind in_page[] = {
    {"page", .take = take_page},     {"p", .take = take_paragraph},
    {"show", .take = take_show},     {"ask", .take = take_ask},
    {"choice", .take = take_choice}, {"branches", .take = take_branches},
    {"answer", .take = take_answer},
};

static int take_line(void *user, struct esp_file_line *line)
{
    char **text = text_of(user);
    if (*line->text != '.') {
        if (!text)
            return esp_wrong_line(
                line, "text must follow a .page line; start the first page with .page");
        const size_t used = *text ? strlen(*text) : 0;
        return append(line, text, used && (*text)[used - 1] != '\n' ? " " : "", line->text);
    }
    line->text++;
    int status = text ? esp_take_kind(in_page, sizeof in_page / sizeof *in_page, user, line)
                      : esp_take_kind(head, sizeof head / sizeof *head, user, line);
    return status == 1 ? esp_wrong_line(line, "there is no instruction .%.40s%s", line->text,
                                        text ? "" : " here; start the first page with .page")
                       : status;
}

static int check(const struct esp_lesson *lesson, char *err, size_t errlen)
{
    if (!lesson->title || lesson->page_count == 0)
        return esp_fail(err, errlen, ESP_E_FORMAT, "%s has no %s", lesson->path,
                        lesson->title ? ".page" : ".title");
    for (int i = 0; i < lesson->page_count; i++) {
        const struct esp_lesson_page *page = &lesson->pages[i];
        if (page->question && !page->branches && page->choice_count < 2)
            return esp_fail(err, errlen, ESP_E_FORMAT,
                            "%s: the question on page %d has fewer than two choices",
                            lesson->path, i + 1);
    }
    return ESP_OK;
}

int esp_lesson_read(struct esp_lesson *lesson, const char *path, char *err, size_t errlen)
{
    struct reading r = {.lesson = {.tokens = TOKENS}};
    snprintf(r.lesson.path, sizeof r.lesson.path, "%s", path);
    int status = esp_line_file_read(path, take_line, &r, err, errlen);
    if (status == ESP_OK)
        status = check(&r.lesson, err, errlen);
    *lesson = r.lesson;
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
