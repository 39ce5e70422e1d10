/* lesson.c - tests lessons and the expressions in them. Damaged files must do no harm. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/check.h"
#include "tui/lessons/lecture_value.h"
#include "tui/lessons/lesson_view.h"

static const char head[] = ".title T\n.record r same-text-linear.esp.jsonl\n";

static char path[64];

static void write_lesson(const char *text, size_t length)
{
    strcpy(path, "/tmp/espalier-lesson-XXXXXX");
    const int file = mkstemp(path);
    CHECK(file >= 0 && write(file, text, length) == (ssize_t)length);
    close(file);
}

static struct esp_lecture *open_text(const char *pages, char *err, size_t errlen)
{
    struct esp_lecture *lecture;
    char text[8192];
    snprintf(text, sizeof text, "%s%s", head, pages);
    write_lesson(text, strlen(text));
    esp_lecture_open(&lecture, path, err, errlen);
    unlink(path);
    return lecture;
}

TEST(expressions_are_evaluated)
{
    static const struct {
        const char *text;
        double value;
    } cases[] = {
        {"1 + 2 * 3", 7},
        {"(1 + 2) * 3", 9},
        {"10 - 4 - 3", 3},
        {"8 / 4 / 2", 1},
        {"2 < 3", 1},
        {"3 <= 2", 0},
        {"2 == 2", 1},
        {"2 != 2", 0},
        {"(1 < 2) * (3 > 4)", 0},
        {"1 / 0", 0},
        {"r.tokens", 60},
        {"r.iterations", 25},
        {"r[0].accepted", 6},
        {"r[0].rows - r[0].drafted", 1},
        {"r.accepted + r.iterations == r.tokens", 1},
    };
    char err[300];
    double value;
    struct esp_lecture *lecture = open_text(".page\nx\n", err, sizeof err);
    CHECK(lecture, "%s", err);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CHECK(esp_lecture_value(lecture, cases[i].text, &value, err, sizeof err) == 0, "%s: %s",
              cases[i].text, err);
        CHECK(value == cases[i].value, "%s is %g", cases[i].text, value);
    }
    static const char *const bad[] = {"",         "1 +",      "(1",    "1 2",   "x.tokens",
                                      "r",        "r.",       "r.x",   "r[0]",  "r[999].ms",
                                      "r[-1].ms", "r[0.ms",   "1 = 2", "1 ! 2", "r[].",
                                      "{",        "r.tokens)"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK(esp_lecture_value(lecture, bad[i], &value, err, sizeof err) < 0, "%s", bad[i]);
    esp_lecture_release(lecture);
}

TEST(questions_have_right_answers)
{
    char err[300], text[200];
    struct esp_lecture *lecture = open_text(".page\n.ask Which?\n.choice a | r.tokens == 1\n"
                                            ".choice b {r.tokens}\n.choice c | 0\n.answer\n"
                                            "{path r[12]}\n.page\n.show tree r[0] draft\n"
                                            ".ask And?\n.branches\n",
                                            err, sizeof err);
    CHECK(lecture, "%s", err);
    CHECK(esp_lecture_asks(lecture) && esp_lecture_choices(lecture) == 3);
    CHECK(!esp_lecture_is_right(lecture, 0) && esp_lecture_is_right(lecture, 1) &&
          !esp_lecture_is_right(lecture, 2));
    esp_lecture_choice(lecture, 1, text, sizeof text);
    CHECK(strcmp(text, "b 60") == 0, "%s", text);
    esp_lecture_answer(lecture, 7);
    CHECK(esp_lecture_asks(lecture), "an answer that is not a choice leaves the question open");
    esp_lecture_answer(lecture, 1);
    CHECK(!esp_lecture_asks(lecture) && lecture->asked == 1 && lecture->right == 1);
    esp_lecture_answer(lecture, 0);
    CHECK(lecture->asked == 1, "a question can be answered only once");
    esp_lecture_text(lecture, esp_lecture_page(lecture)->answer, text, sizeof text);
    CHECK(strcmp(text, "nothing") == 0, "%s", text);
    CHECK(!esp_lecture_turn(lecture, -1) && esp_lecture_turn(lecture, 1));
    CHECK(esp_lecture_choices(lecture) == 2,
          "the question about the branches of a chain has two choices");
    CHECK(esp_lecture_is_right(lecture, 0) && !esp_lecture_is_right(lecture, 1));
    CHECK(!esp_lecture_turn(lecture, 1));
    esp_lecture_release(lecture);
}

static void walk(struct esp_lecture *lecture, struct esp_canvas *canvas)
{
    do {
        esp_canvas_clear(canvas);
        esp_lesson_draw(canvas, lecture, true);
        esp_lecture_answer(lecture, 0);
        esp_canvas_clear(canvas);
        esp_lesson_draw(canvas, lecture, false);
    } while (esp_lecture_turn(lecture, 1));
}

/* Returns whether the current page shows the verdict of a node. */
static bool tells_outcome(struct esp_lecture *lecture, struct esp_canvas *canvas)
{
    bool tells = false;
    esp_canvas_clear(canvas);
    esp_lesson_draw(canvas, lecture, false);
    for (int i = 0; i < canvas->width * canvas->height; i++)
        tells = tells || strcmp(canvas->cells[i].text, canvas->glyphs->accepted) == 0 ||
                strcmp(canvas->cells[i].text, canvas->glyphs->rejected) == 0;
    return tells;
}

/* If a page asks about an iteration, no earlier page may show the outcome of this iteration. */
TEST(no_page_shows_the_answer_of_a_later_one)
{
    struct esp_canvas canvas;
    char name[256], title[200], found[PATH_MAX], err[600];
    int asked = 0, shown = 0;
    CHECK(esp_canvas_open(&canvas, 80, 60) == 0);
    for (int i = 0; esp_lesson_list(i, name, sizeof name, title, sizeof title); i++) {
        struct esp_lecture *lecture;
        CHECK(esp_lesson_find(found, name, err, sizeof err) == 0);
        CHECK(esp_lecture_open(&lecture, found, err, sizeof err) == 0, "%s", err);
        const struct esp_lesson_page *pages = lecture->lesson.pages;
        const bool recorded = esp_lecture_phase(lecture, NULL, 0) > 0;
        for (int page = 0; page < lecture->lesson.page_count; page++) {
            const struct esp_lesson_page *asks = &pages[page];
            if (!asks->question || asks->picture != ESP_PICTURE_TREE ||
                asks->stages > ESP_STAGE_SELECT)
                continue;
            asked++;
            for (int before = 0; before <= page; before++) {
                if (strcmp(pages[before].run, asks->run) != 0 ||
                    pages[before].iteration != asks->iteration)
                    continue;
                CHECK(before == page || !pages[before].question,
                      "%s: the answer on page %d shows the answer of page %d", name, before + 1,
                      page + 1);
                shown += before < page;
                lecture->page = before;
                CHECK(!recorded || !tells_outcome(lecture, &canvas),
                      "%s, page %d shows the answer of page %d", name, before + 1, page + 1);
            }
            lecture->page = page;
            esp_lecture_answer(lecture, -1);
            CHECK(!recorded || tells_outcome(lecture, &canvas), "%s, page %d: no answer", name,
                  page + 1);
            lecture->answered = false;
        }
        esp_lecture_release(lecture);
    }
    CHECK(asked > 6 && shown > 1, "only %d questions and %d earlier pages were tested", asked,
          shown);
    esp_canvas_close(&canvas);
}

/* A lesson with random changes must be refused with an error message, or must open. If it
 * opens, all its pages must be drawn. */
TEST(damaged_lessons_never_crash)
{
    static char text[16384];
    unsigned long long random = 17;
    struct esp_canvas canvas;
    char name[256], title[200], found[PATH_MAX], err[600];
    int opened = 0, refused = 0;
    CHECK(esp_canvas_open(&canvas, 80, 24) == 0);
    for (int i = 1; i < 7; i++) { /* these lessons use recordings */
        CHECK(esp_lesson_list(i, name, sizeof name, title, sizeof title));
        CHECK(esp_lesson_find(found, name, err, sizeof err) == 0);
        FILE *file = fopen(found, "r");
        CHECK(file != NULL);
        const size_t length = fread(text, 1, sizeof text, file);
        fclose(file);
        for (int round = 0; round < 12; round++) {
            static char changed[sizeof text];
            struct esp_lecture *lecture;
            memcpy(changed, text, length);
            for (int j = 0; j < round; j++) {
                const size_t at = (size_t)(check_uniform(&random) * (double)length);
                changed[at] = (char)(round % 2 ? 32 + (int)(check_uniform(&random) * 95)
                                               : (int)(check_uniform(&random) * 256));
            }
            write_lesson(changed, length);
            if (esp_lecture_open(&lecture, path, err, sizeof err) == 0) {
                CHECK(esp_canvas_resize(&canvas, 10 + 13 * round, 5 + 4 * round) == 0);
                walk(lecture, &canvas);
                esp_lecture_release(lecture);
                opened++;
            } else {
                CHECK(strstr(err, "espalier-lesson"), "%s", err);
                refused++;
            }
            unlink(path);
        }
    }
    CHECK(opened > 6 && refused > 6, "%d opened, %d refused", opened, refused);
    esp_canvas_close(&canvas);
}
