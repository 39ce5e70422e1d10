/* lesson.h - a lesson as its file says it: pages of text, something to look at, a question.
 *
 * sessions/lessons/README.md describes the file. Numbers in a lesson are not written down: they
 * are expressions over the runs that it names (tui/model/lecture.h), so that a lesson stays
 * right when models or machines change.
 */
#ifndef ESP_LESSON_H
#define ESP_LESSON_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

enum {
    ESP_LESSON_RUNS = 6,
    ESP_LESSON_CHOICES = 8,
    ESP_LESSON_PAGES = 64,
    ESP_LESSON_NAME = 24,
};

/* What a run comes from: a recording, or a drafter that decodes now. */
struct esp_lesson_run {
    char name[ESP_LESSON_NAME];
    char *recording; /* file name, or NULL */
    char *drafter;   /* specification, or NULL */
};

enum esp_lesson_picture {
    ESP_PICTURE_NONE,
    ESP_PICTURE_TREE,
    ESP_PICTURE_MASK,
    ESP_PICTURE_TEXT,
    ESP_PICTURE_GAUGE,
};

struct esp_lesson_choice {
    char *text;
    char *condition; /* right where this is true; NULL: where no other one is */
};

struct esp_lesson_page {
    char *text;                /* paragraphs, a newline before each but the first */
    int picture;               /* enum esp_lesson_picture */
    char run[ESP_LESSON_NAME]; /* that it shows */
    int iteration;             /* of the run */
    int stages;                /* of it that are shown until the question is answered */
    char gauge[32];
    char *question; /* NULL: none */
    struct esp_lesson_choice choices[ESP_LESSON_CHOICES];
    int choice_count;
    bool branches; /* the choices are the children of the root */
    char *answer;  /* NULL: none */
};

struct esp_lesson {
    char path[PATH_MAX];
    char *title;
    char *prompt; /* of runs that decode; NULL: the program's */
    int tokens;   /* that they write */
    double pass;  /* seconds that a pass of the target is made to take; 0: as it is */
    struct esp_lesson_run runs[ESP_LESSON_RUNS];
    int run_count;
    struct esp_lesson_page *pages; /* (page_count) */
    int page_count;
};

/* Reads and checks a lesson. Returns 0 or a negative status with a sentence that names file and
 * line; then there is nothing to free. */
int esp_lesson_read(struct esp_lesson *lesson, const char *path, char *err, size_t errlen);
void esp_lesson_free(struct esp_lesson *lesson);

/* Finds a lesson: a path ("./mine.lesson"), its name, the start of it ("3"). */
int esp_lesson_find(char path[PATH_MAX], const char *name, char *err, size_t errlen);
/* Writes the name of the `index`-th lesson that comes with the program and its title; false
 * past the last one. */
bool esp_lesson_list(int index, char *name, size_t size, char *title, size_t title_size);

/* The run of this name; -1: none. */
int esp_lesson_run_find(const struct esp_lesson *lesson, const char *name, size_t length);

#endif
