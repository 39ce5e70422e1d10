/* learn.c - ":learn" runs a lesson: it shows, asks, and answers with its own numbers. */
#include "tui/commands/command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tui/commands/learn_page.h"
#include "tui/view/keys.h"
#include "tui/view/lesson_view.h"
#include "tui/worker/lecture_run.h"

struct learn_page {
    struct esp_control *control;
    struct esp_lecture *lecture; /* NULL: the list of lessons */
    int selected;                /* in the list */
    bool listed;                 /* started from the list; the end returns there */
    bool drawn;                  /* the drawing is final until a key is pressed */
};

/* ------------------------------------------------------------------ in the engine thread */

struct decoding {
    struct esp_lecture *lecture;
    struct esp_engine_options options;
};

static void decode(void *user, struct esp_models *models)
{
    struct decoding *d = user;
    esp_lecture_decode(d->lecture, &d->options, models->engine);
}

static void release(void *user)
{
    struct decoding *d = user;
    esp_lecture_release(d->lecture);
    free(d);
}

/* ------------------------------------------------------------------ the page */

static bool settled(void *user)
{
    const struct learn_page *page = user;
    return !page->lecture || esp_lecture_phase(page->lecture, NULL, 0) != 0;
}

static void draw(void *user, struct esp_canvas *canvas)
{
    struct learn_page *page = user;
    page->drawn = settled(page);
    if (page->lecture)
        esp_lesson_draw(canvas, page->lecture, true);
    else
        esp_lesson_draw_list(canvas, page->selected);
}

static int due(void *user)
{
    enum { LOOK_MS = 50 };
    const struct learn_page *page = user;
    return page->drawn && settled(user) ? -1 : LOOK_MS;
}

static void leave_lecture(struct learn_page *page)
{
    if (page->lecture)
        atomic_store(&page->lecture->stopped, true);
    esp_lecture_release(page->lecture);
    page->lecture = NULL;
}

static void close_page(void *user)
{
    leave_lecture(user);
    free(user);
}

static int begin(struct learn_page *page, const char *name, char *err, size_t errlen)
{
    char path[PATH_MAX];
    int status = esp_lesson_find(path, name, err, errlen);
    if (status == ESP_OK)
        status = esp_lecture_open(&page->lecture, path, err, errlen);
    if (status < 0 || esp_lecture_phase(page->lecture, NULL, 0) > 0)
        return status;
    if (!page->control->worker) {
        leave_lecture(page);
        return esp_fail(err, errlen, ESP_E_ARGUMENT,
                        "this lesson decodes a text, and a replay has no models");
    }
    struct decoding *d = malloc(sizeof *d);
    if (!d) {
        leave_lecture(page);
        return esp_fail(err, errlen, ESP_E_MEMORY, "no memory for the lesson");
    }
    *d = (struct decoding){page->lecture, page->control->settings.options.engine};
    esp_lecture_hold(page->lecture);
    ESP_WORKER_POST(page->control->worker, JOB, .job = {decode, release, d});
    return ESP_OK;
}

/* Selects a lesson of the list, if it exists; writes its name to `name`. */
static bool select_lesson(struct learn_page *page, int lesson, char name[256])
{
    char title[200];
    if (lesson < 0 || !esp_lesson_list(lesson, name, 256, title, sizeof title))
        return false;
    page->selected = lesson;
    return true;
}

/* Keys in the list: arrows select a lesson, Space or Enter starts it, a digit does both. */
static bool list_key(struct learn_page *page, int pressed)
{
    char name[256], err[512];
    const bool digit = pressed >= '1' && pressed <= '9';
    if (pressed == ESP_KEY_UP || pressed == ESP_KEY_DOWN) {
        select_lesson(page, page->selected + (pressed == ESP_KEY_DOWN ? 1 : -1), name);
    } else if (digit || pressed == ' ' || pressed == ESP_KEY_ENTER) {
        if (select_lesson(page, digit ? pressed - '1' : page->selected, name) &&
            begin(page, name, err, sizeof err) < 0)
            leave_lecture(page);
        page->listed = true;
    } else {
        return pressed != ESP_KEY_ESCAPE && pressed != 'q';
    }
    return true;
}

/* After the last page: shows the list with the next lesson selected. */
static void end_lecture(struct learn_page *page)
{
    char name[256], title[200];
    const char *done = page->lecture->lesson.title;
    int at = 0;
    while (esp_lesson_list(at, name, sizeof name, title, sizeof title) &&
           strcmp(title, done) != 0)
        at++;
    select_lesson(page, at + 1, name);
    leave_lecture(page);
}

/* Up and Down scroll by a row. Space scrolls to the end of the page before it turns. */
static bool scrolls(struct esp_lecture *lecture, int pressed)
{
    int step = 0;
    if (pressed == ESP_KEY_UP && lecture->scroll > 0)
        step = -1;
    else if (pressed == ESP_KEY_DOWN && lecture->below > 0)
        step = 1;
    else if (pressed == ' ' && lecture->below > 0)
        step = lecture->below < lecture->screen ? lecture->below : lecture->screen;
    lecture->scroll += step;
    lecture->below -= step;
    return step != 0 || pressed == ESP_KEY_UP || pressed == ESP_KEY_DOWN;
}

static bool key(void *user, int pressed)
{
    struct learn_page *page = user;
    struct esp_lecture *lecture = page->lecture;
    page->drawn = false;
    if (!lecture)
        return list_key(page, pressed);
    if (pressed == ESP_KEY_ESCAPE || pressed == 'q') {
        leave_lecture(page);
        return page->listed;
    }
    if (esp_lecture_phase(lecture, NULL, 0) <= 0)
        return true;
    if (scrolls(lecture, pressed))
        return true;
    const bool asks = esp_lecture_asks(lecture);
    if (asks && pressed >= '1' && pressed <= '9')
        esp_lecture_answer(lecture, pressed - '1');
    else if (asks && pressed == '?')
        esp_lecture_answer(lecture, -1);
    else if (pressed == ESP_KEY_LEFT || pressed == ESP_KEY_PAGE_UP)
        esp_lecture_turn(lecture, -1);
    else if (!asks &&
             (pressed == ' ' || pressed == ESP_KEY_ENTER || pressed == ESP_KEY_RIGHT ||
              pressed == ESP_KEY_PAGE_DOWN) &&
             !esp_lecture_turn(lecture, 1))
        end_lecture(page);
    return true;
}

static const struct esp_page_ops page_ops = {draw, key, due, settled, close_page};

int esp_learn_page_open(struct esp_control *control, const char *name)
{
    char err[512] = "";
    struct learn_page *page = calloc(1, sizeof *page);
    if (!page)
        return esp_refuse(control, "no memory for the lesson");
    page->control = control;
    if (*name && begin(page, name, err, sizeof err) < 0) {
        close_page(page);
        return esp_refuse(control, "%s", err);
    }
    esp_control_page(control, &page_ops, page);
    return ESP_OK;
}

/* ------------------------------------------------------------------ the command */

static int run(struct esp_control *control, const char *arguments)
{
    const int status = esp_learn_page_open(control, arguments);
    if (status == ESP_OK)
        esp_control_stop(control);
    return status;
}

static void complete(const struct esp_control *control, struct esp_choices *choices)
{
    char name[256], title[200];
    (void)control;
    if (*choices->before)
        return;
    for (int i = 0; esp_lesson_list(i, name, sizeof name, title, sizeof title); i++)
        esp_choices_offer(choices, name, NULL);
}

const struct esp_command_ops esp_command_learn = {
    .name = "learn",
    .usage = "[LESSON|FILE]",
    .summary = "a short lesson: predict, then see the answer; without a name: the list",
    .in = ESP_IN_BOTH,
    .run = run,
    .complete = complete,
};
