/* lesson_screen.c - see lesson_screen.h. */
#include "tui/lessons/lesson_screen.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/status.h"
#include "tui/lessons/lecture_run.h"
#include "tui/lessons/lesson_view.h"
#include "tui/view/keys.h"

struct esp_lesson_screen {
    struct esp_worker *worker; /* NULL in a replay, which cannot decode */
    const struct esp_engine_options *options;
    struct esp_lecture *lecture; /* the open lesson; NULL while the list is shown */
    int selected;                /* index of the selected lesson in the list */
    bool listed; /* the lesson was opened from the list, and returns to it */
    bool drawn;  /* the screen needs no redraw until a key is pressed */
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

/* ------------------------------------------------------------------ the screen */

static bool settled(void *user)
{
    const struct esp_lesson_screen *screen = user;
    return !screen->lecture || esp_lecture_phase(screen->lecture, NULL, 0) != 0;
}

static void draw(void *user, struct esp_canvas *canvas)
{
    struct esp_lesson_screen *screen = user;
    screen->drawn = settled(screen);
    if (screen->lecture)
        esp_lesson_draw(canvas, screen->lecture, true);
    else
        esp_lesson_draw_list(canvas, screen->selected);
}

static int due(void *user)
{
    enum { LOOK_MS = 50 };
    const struct esp_lesson_screen *screen = user;
    return screen->drawn && settled(user) ? -1 : LOOK_MS;
}

static void leave_lecture(struct esp_lesson_screen *screen)
{
    if (screen->lecture)
        atomic_store(&screen->lecture->stopped, true);
    esp_lecture_release(screen->lecture);
    screen->lecture = NULL;
}

static void close_screen(void *user)
{
    leave_lecture(user);
    free(user);
}

static int begin(struct esp_lesson_screen *screen, const char *name, char *err, size_t errlen)
{
    char path[PATH_MAX];
    int status = esp_lesson_find(path, name, err, errlen);
    if (status == ESP_OK)
        status = esp_lecture_open(&screen->lecture, path, err, errlen);
    if (status < 0 || esp_lecture_phase(screen->lecture, NULL, 0) > 0)
        return status;
    if (!screen->worker) {
        leave_lecture(screen);
        return esp_fail(err, errlen, ESP_E_ARGUMENT,
                        "this lesson decodes a text, but a replay has no models; open it with "
                        "espalier learn");
    }
    struct decoding *d = malloc(sizeof *d);
    if (!d) {
        leave_lecture(screen);
        return esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory for the lesson");
    }
    *d = (struct decoding){screen->lecture, *screen->options};
    esp_lecture_hold(screen->lecture);
    ESP_WORKER_POST(screen->worker, JOB, .job = {decode, release, d});
    return ESP_OK;
}

/* Selects lesson `lesson` of the list and writes its name to `name`. Returns false if there is
 * no such lesson. */
static bool select_lesson(struct esp_lesson_screen *screen, int lesson, char name[256])
{
    char title[200];
    if (lesson < 0 || !esp_lesson_list(lesson, name, 256, title, sizeof title))
        return false;
    screen->selected = lesson;
    return true;
}

/* Handles a key in the list. Up and Down select a lesson, and Space or Enter starts the
 * selected lesson. A digit selects a lesson and starts it. */
static bool list_key(struct esp_lesson_screen *screen, int pressed)
{
    char name[256], err[512];
    const bool digit = pressed >= '1' && pressed <= '9';
    if (pressed == ESP_KEY_UP || pressed == ESP_KEY_DOWN) {
        select_lesson(screen, screen->selected + (pressed == ESP_KEY_DOWN ? 1 : -1), name);
    } else if (digit || pressed == ' ' || pressed == ESP_KEY_ENTER) {
        if (select_lesson(screen, digit ? pressed - '1' : screen->selected, name) &&
            begin(screen, name, err, sizeof err) < 0)
            leave_lecture(screen);
        screen->listed = true;
    } else {
        return pressed != ESP_KEY_ESCAPE && pressed != 'q';
    }
    return true;
}

/* Shows the list after the last page of a lesson, and selects the next lesson in it. */
static void end_lecture(struct esp_lesson_screen *screen)
{
    char name[256], title[200];
    const char *done = screen->lecture->lesson.title;
    int at = 0;
    while (esp_lesson_list(at, name, sizeof name, title, sizeof title) &&
           strcmp(title, done) != 0)
        at++;
    select_lesson(screen, at + 1, name);
    leave_lecture(screen);
}

/* Handles the keys that scroll a page. Up and Down scroll by a row. Space scrolls by a screen,
 * but not when the end of the page is already visible. */
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
    struct esp_lesson_screen *screen = user;
    struct esp_lecture *lecture = screen->lecture;
    screen->drawn = false;
    if (!lecture)
        return list_key(screen, pressed);
    if (pressed == ESP_KEY_ESCAPE || pressed == 'q') {
        leave_lecture(screen);
        return screen->listed;
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
        end_lecture(screen);
    return true;
}

const struct esp_page_ops esp_lesson_screen_ops = {draw, key, due, settled, close_screen};

struct esp_lesson_screen *esp_lesson_screen_open(struct esp_worker *worker,
                                                 const struct esp_engine_options *options,
                                                 const char *name, char *err, size_t errlen)
{
    struct esp_lesson_screen *screen = calloc(1, sizeof *screen);
    if (!screen) {
        esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory for the lesson");
        return NULL;
    }
    screen->worker = worker;
    screen->options = options;
    if (*name && begin(screen, name, err, errlen) < 0) {
        close_screen(screen);
        return NULL;
    }
    return screen;
}
