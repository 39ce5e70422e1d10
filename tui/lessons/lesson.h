/* lesson.h - reads a lesson file: pages with text, a picture and a question.
 *
 * sessions/lessons/README.md describes the format. The text of a lesson contains no fixed
 * numbers. Instead, it contains expressions that are computed from its runs
 * (tui/lessons/lecture.h). Therefore the numbers are correct on other models and machines, too.
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

/* Says where a run of the lesson comes from. It is read from a recording, or decoded with a
 * drafter when the lesson begins. */
struct esp_lesson_run {
    char name[ESP_LESSON_NAME];
    char *recording; /* file name of the recording; NULL if the run is decoded */
    char *drafter;   /* specification of the drafter; NULL for a recording */
    char branch[48]; /* "": the run starts from the prompt. "RUN[N]": it continues from the
                        likeliest rejected node of that iteration */
};

enum esp_lesson_picture {
    ESP_PICTURE_NONE,
    ESP_PICTURE_TREE,
    ESP_PICTURE_MASK,
    ESP_PICTURE_WALK,
    ESP_PICTURE_TEXT,
    ESP_PICTURE_GAUGE,
};

struct esp_lesson_choice {
    char *text;
    char *condition; /* the answer is right if this expression is not 0. NULL: the answer is
                        right if no other answer is right */
};

struct esp_lesson_page {
    char *text;                /* the paragraphs, separated by newlines */
    int picture;               /* enum esp_lesson_picture */
    char run[ESP_LESSON_NAME]; /* the run that the picture shows */
    int iteration;             /* the iteration of that run, counted from 0 */
    int stages;                /* number of stages shown before the question is answered */
    char gauge[32];
    char *question; /* NULL if the page asks nothing */
    struct esp_lesson_choice choices[ESP_LESSON_CHOICES];
    int choice_count;
    bool branches; /* the user chooses among the children of the root instead of `choices` */
    char *answer;  /* the text that explains the answer, or NULL */
};

struct esp_lesson {
    char path[PATH_MAX];
    char *title;
    char *prompt; /* prompt of the decoded runs; NULL means the default prompt */
    int tokens;   /* number of tokens that each decoded run generates */
    double pass;  /* seconds that a pass of the enlarged target takes; 0: it is not enlarged */
    struct esp_lesson_run runs[ESP_LESSON_RUNS];
    int run_count;
    struct esp_lesson_page *pages; /* (page_count) */
    int page_count;
};

/* Reads and checks a lesson. Returns 0, or a negative status with a message that names the file
 * and the line. After an error there is nothing to free. */
int esp_lesson_read(struct esp_lesson *lesson, const char *path, char *err, size_t errlen);
void esp_lesson_free(struct esp_lesson *lesson);

/* Finds a lesson by its path ("./mine.lesson"), its name, or the start of its name ("3"). */
int esp_lesson_find(char path[PATH_MAX], const char *name, char *err, size_t errlen);
/* Writes the name and the title of bundled lesson `index`. Returns false if there are fewer
 * lessons. */
bool esp_lesson_list(int index, char *name, size_t size, char *title, size_t title_size);

/* Returns the number of stages up to and including the stage `name`. For "all", returns the
 * number of all stages. Returns -1 if there is no such stage. */
int esp_lesson_stages(const char *name);
/* Returns the index of the run with this name, or -1. */
int esp_lesson_run_find(const struct esp_lesson *lesson, const char *name, size_t length);

#endif
