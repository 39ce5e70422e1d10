/* lecture.h - the state of a lesson that a user is working through: its runs, the current page
 * and the answers given. lesson.h reads the lesson file.
 *
 * The text and the conditions contain expressions such as {tree[3].accepted} or
 * {plain.ms / tree.ms}. Their values are computed from the runs. sessions/lessons/README.md
 * lists the names that expressions can use.
 *
 * The lecture is reference-counted: the decoding thread and the drawing thread share it.
 */
#ifndef ESP_LECTURE_H
#define ESP_LECTURE_H

#include <stdatomic.h>

#include "tui/lessons/lesson.h"
#include "tui/model/run.h"

enum { ESP_LECTURE_TEXT = 4096 };

struct esp_lecture {
    struct esp_lesson lesson;
    struct esp_run runs[ESP_LESSON_RUNS]; /* in the order of lesson.runs */
    atomic_bool stopped;                  /* the page was closed */
    atomic_int holders;

    pthread_mutex_t lock; /* protects the next three members */
    bool ready;           /* all runs are complete */
    bool failed;          /* `doing` gives the reason */
    char doing[512];      /* progress of the decoding, or the error */

    int page;
    int scroll; /* rows of the page above the screen; -1 means scroll to the end of its text */
    int below, screen; /* number of rows below the screen and on it, when last drawn */
    bool answered;     /* the question of this page was answered */
    int chosen;        /* the chosen answer, from 0; -1 if none */
    int asked, right;  /* number of answered questions; number of right answers among them */
};

/* Reads the lesson and its recordings. If no run must be decoded, the lecture is ready on
 * return. Returns 0, or a negative status with a message; then *lecture is NULL. */
int esp_lecture_open(struct esp_lecture **lecture, const char *path, char *err, size_t errlen);
void esp_lecture_hold(struct esp_lecture *lecture);
void esp_lecture_release(struct esp_lecture *lecture);

/* The decoding thread calls this to report its progress. The phase is 0 (decoding), 1 (ready)
 * or -1 (failed). `text` is shown on the page. */
void esp_lecture_say(struct esp_lecture *lecture, int phase, const char *text);
/* Returns the phase that was reported last. If `doing` is not NULL, copies the text to it. */
int esp_lecture_phase(struct esp_lecture *lecture, char *doing, size_t size);
/* Evaluates every expression of the lesson once, to find errors in the file. All runs must be
 * complete. */
int esp_lecture_check(struct esp_lecture *lecture, char *err, size_t errlen);

const struct esp_lesson_page *esp_lecture_page(const struct esp_lecture *lecture);
/* Returns whether the page has a question that is not answered yet. */
bool esp_lecture_asks(const struct esp_lecture *lecture);
/* Returns the number of answers that the user can choose from on this page. */
int esp_lecture_choices(const struct esp_lecture *lecture);
/* Writes the text of answer `choice`, counted from 0. */
void esp_lecture_choice(struct esp_lecture *lecture, int choice, char *text, size_t size);
bool esp_lecture_is_right(struct esp_lecture *lecture, int choice);
/* Answers the question with `choice`. -1 shows the right answer and does not count the question
 * as answered by the user. */
void esp_lecture_answer(struct esp_lecture *lecture, int choice);
/* Goes to the previous (step -1) or next (1) page. Returns false if there is none. */
bool esp_lecture_turn(struct esp_lecture *lecture, int step);

/* Copies `text` to `out` and replaces the expressions in it with their values. */
void esp_lecture_text(struct esp_lecture *lecture, const char *text, char *out, size_t size);

/* Returns the iteration that this page shows, or NULL. */
const struct esp_iteration *esp_lecture_iteration(const struct esp_lecture *lecture);
/* Returns the run that this page shows, or NULL. */
struct esp_run *esp_lecture_run(struct esp_lecture *lecture);

#endif
