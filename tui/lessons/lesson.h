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
        [48]; /* "RUN[N]": it continues from that iteration's likeliest rejected node; "": it
                        starts from the prompt */
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
    char *condition; /* the answer is right if this is true; NULL: if no other one is right */
};

struct esp_lesson_page {
    char *text;                /* paragraphs, with a newline before each but the first */
    int picture;               /* enum esp_lesson_picture */
    char run[ESP_LESSON_NAME]; /* the run that the picture shows */
    int iteration;             /* the iteration of that run */
    int stages;                /* how many stages are shown before the question is answered */
    char gauge[32];
    char *question; /* or NULL */
    struct esp_lesson_choice choices[ESP_LESSON_CHOICES];
    int choice_count;
    bool branches; /* the answers to choose from are the children of the root */
    char *answer;  /* or NULL */
};

struct esp_lesson {
    char path[PATH_MAX];
    char *title;
    char *prompt; /* for runs that are decoded; NULL means the program's own */
    int tokens;   /* new tokens of runs that are decoded */
    double pass;  /* seconds per pass of the enlarged target; 0 means it is unchanged */
    struct esp_lesson_run runs[ESP_LESSON_RUNS];
    int run_count;
    struct esp_lesson_page *pages; /* (page_count) */
    int page_count;
};

/* Reads and checks a lesson. Returns 0, or a negative status with a message that names the
 * file and the line; then there is nothing to free. */
int esp_lesson_read(struct esp_lesson *lesson, const char *path, char *err, size_t errlen);
void esp_lesson_free(struct esp_lesson *lesson);

/* Finds a lesson by its path ("./mine.lesson"), its name, or the start of its name ("3"). */
int esp_lesson_find(char path[PATH_MAX], const char *name, char *err, size_t errlen);
/* Writes the name and title of bundled lesson `index`. Returns false past the last one. */
bool esp_lesson_list(int index, char *name, size_t size, char *title, size_t title_size);

/* The number of stages up to the one with this name, or of all stages for "all"; -1 if there
 * is no such stage. */
int esp_lesson_stages(const char *name);
/* The index of the run with this name, or -1. */
int esp_lesson_run_find(const struct esp_lesson *lesson, const char *name, size_t length);

#endif
