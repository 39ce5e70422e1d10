/* lecture.h - a lesson (lesson.h) in progress: its runs, the current page, the answers.
 *
 * Text and conditions contain expressions over the runs, such as {tree[3].accepted} or
 * {plain.ms / tree.ms}; sessions/lessons/README.md lists the names.
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
    int below, screen; /* rows of the page below the screen and on it, at the last drawing */
    bool answered;     /* the question of this page was answered */
    int chosen;        /* the chosen answer, from 0; -1 if none */
    int asked, right; /* questions that the user answered; how many of the answers were right */
};

/* Reads the lesson and its recordings. The lecture is ready at once if no run must be decoded.
 * Returns 0, or a negative status with a message and no lecture. */
int esp_lecture_open(struct esp_lecture **lecture, const char *path, char *err, size_t errlen);
void esp_lecture_hold(struct esp_lecture *lecture);
void esp_lecture_release(struct esp_lecture *lecture);

/* Reports progress from the decoding thread. Phase 0: decoding, 1: ready, -1: failed. */
void esp_lecture_say(struct esp_lecture *lecture, int phase, const char *text);
/* Returns the phase. `doing`, if not NULL, gets the message. */
int esp_lecture_phase(struct esp_lecture *lecture, char *doing, size_t size);
/* Evaluates every expression of the lesson once; the runs must be complete. */
int esp_lecture_check(struct esp_lecture *lecture, char *err, size_t errlen);

const struct esp_lesson_page *esp_lecture_page(const struct esp_lecture *lecture);
/* Whether a question waits for its answer. */
bool esp_lecture_asks(const struct esp_lecture *lecture);
/* The number of answers to choose from for this page's question. */
int esp_lecture_choices(const struct esp_lecture *lecture);
/* Writes the text of one of these answers. */
void esp_lecture_choice(struct esp_lecture *lecture, int choice, char *text, size_t size);
bool esp_lecture_is_right(struct esp_lecture *lecture, int choice);
/* Answers the question; with -1, shows the answer without counting the question. */
void esp_lecture_answer(struct esp_lecture *lecture, int choice);
/* Goes to the previous (step -1) or next (1) page. Returns false if there is none. */
bool esp_lecture_turn(struct esp_lecture *lecture, int step);

/* Replaces the expressions in a text by their values. */
void esp_lecture_text(struct esp_lecture *lecture, const char *text, char *out, size_t size);

/* The iteration that this page shows, or NULL. */
const struct esp_iteration *esp_lecture_iteration(const struct esp_lecture *lecture);
/* The run that this page shows, or NULL. */
struct esp_run *esp_lecture_run(struct esp_lecture *lecture);

#endif
