/* lecture.h - a lesson (lesson.h) that somebody walks through: its runs, the page, the answers.
 *
 * Text and conditions hold expressions over the runs, such as {tree[3].accepted} or
 * {plain.ms / tree.ms}; sessions/lessons/README.md lists what they can name.
 *
 * Two threads hold a lecture while its runs decode, the one that decodes and the one that
 * draws; the last one that lets go frees it.
 */
#ifndef ESP_LECTURE_H
#define ESP_LECTURE_H

#include <stdatomic.h>

#include "tui/model/lesson.h"
#include "tui/model/run.h"

enum { ESP_LECTURE_TEXT = 4096 };

struct esp_lecture {
    struct esp_lesson lesson;
    struct esp_run runs[ESP_LESSON_RUNS]; /* as in the lesson */
    atomic_bool stopped;                  /* nobody looks any more */
    atomic_int holders;

    pthread_mutex_t lock; /* of the next three */
    bool ready;           /* all runs are there */
    bool failed;          /* `doing` says why */
    char doing[512];      /* while runs decode */

    int page;
    int scroll; /* rows of the page above the screen; -1: as many as it takes to see the end of
                   its words */
    int below, screen; /* rows below the screen and on it, when it was drawn last */
    bool answered;     /* the question of this page */
    int chosen;        /* its choice, from 0; -1: none was made */
    int asked, right;  /* questions that were answered with a choice, and rightly */
};

/* Reads the lesson and its recordings. Is ready if nothing has to decode. Returns 0 or a
 * negative status with a sentence; then there is no lecture. */
int esp_lecture_open(struct esp_lecture **lecture, const char *path, char *err, size_t errlen);
void esp_lecture_hold(struct esp_lecture *lecture);
void esp_lecture_release(struct esp_lecture *lecture);

/* What the thread that decodes says. `phase`: 0 it goes on, 1 ready, -1 failed. */
void esp_lecture_say(struct esp_lecture *lecture, int phase, const char *text);
/* 0: runs decode, 1: ready, -1: failed. `doing`, if given, gets the sentence. */
int esp_lecture_phase(struct esp_lecture *lecture, char *doing, size_t size);
/* Checks every expression of the lesson, now that its runs are there. */
int esp_lecture_check(struct esp_lecture *lecture, char *err, size_t errlen);

const struct esp_lesson_page *esp_lecture_page(const struct esp_lecture *lecture);
/* Is a question waiting for its answer? */
bool esp_lecture_asks(const struct esp_lecture *lecture);
/* How many choices the question of this page has; and one of them as text. */
int esp_lecture_choices(const struct esp_lecture *lecture);
void esp_lecture_choice(struct esp_lecture *lecture, int choice, char *text, size_t size);
bool esp_lecture_is_right(struct esp_lecture *lecture, int choice);
/* Answers the question; -1: without a choice. */
void esp_lecture_answer(struct esp_lecture *lecture, int choice);
/* To the page before or after; false if there is none. */
bool esp_lecture_turn(struct esp_lecture *lecture, int step);

/* Text with its expressions replaced by what they are. */
void esp_lecture_text(struct esp_lecture *lecture, const char *text, char *out, size_t size);

/* The iteration that this page shows; NULL: none. */
const struct esp_iteration *esp_lecture_iteration(const struct esp_lecture *lecture);
/* The run that this page shows; NULL: none. */
struct esp_run *esp_lecture_run(struct esp_lecture *lecture);

#endif
