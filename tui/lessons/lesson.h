/* lesson.h - reads a lesson file: pages with text, a picture and a question.
 *
 * sessions/lessons/README.md describes the format. A lesson contains no fixed numbers. Its
 * numbers are expressions over its runs (tui/lessons/lecture.h), so they stay correct on other
 * models and machines.
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

/* The source of a run: a recording, or a drafter that decodes now. */
struct esp_lesson_run {
    char name[ESP_LESSON_NAME];
    char *recording; /* file name, or NULL */
    char *drafter;   /* specification, or NULL */
    char branch
        [48]; /* "RUN[N]": it goes on from the likeliest rejected node of that iteration; "":
                        from the prompt */
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
    char *condition; /* correct if this is true; NULL: if no other choice is */
};

struct esp_lesson_page {
    char *text;                /* paragraphs, a newline before each but the first */
    int picture;               /* enum esp_lesson_picture */
    char run[ESP_LESSON_NAME]; /* run of the picture */
    int iteration;             /* of the run */
    int stages;                /* shown before the question is answered */
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
    char *prompt; /* for decoded runs; NULL: the program's */
    int tokens;   /* new tokens of decoded runs */
    double pass;  /* seconds per target pass, by enlarging the target; 0: unchanged */
    struct esp_lesson_run runs[ESP_LESSON_RUNS];
    int run_count;
    struct esp_lesson_page *pages; /* (page_count) */
    int page_count;
};

/* Reads and checks a lesson. Returns 0, or a negative status with a message that names file and
 * line; then nothing is to be freed. */
int esp_lesson_read(struct esp_lesson *lesson, const char *path, char *err, size_t errlen);
void esp_lesson_free(struct esp_lesson *lesson);

/* Finds a lesson by path ("./mine.lesson"), name, or start of the name ("3"). */
int esp_lesson_find(char path[PATH_MAX], const char *name, char *err, size_t errlen);
/* Writes name and title of bundled lesson `index`; false past the last one. */
bool esp_lesson_list(int index, char *name, size_t size, char *title, size_t title_size);

/* The number of stages up to one by its name, or "all"; -1: there is no such stage. */
int esp_lesson_stages(const char *name);
/* The index of a run by name; -1: none. */
int esp_lesson_run_find(const struct esp_lesson *lesson, const char *name, size_t length);

#endif
