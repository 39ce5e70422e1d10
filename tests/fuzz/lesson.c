/* Fuzzes a lesson and the recordings that it names. Opening the lesson must give an error
 * message or a lecture. If no page needs a model, every page is drawn on a small and a wide
 * screen, and its question is answered. A drawn page must contain nothing that is unsafe for a
 * terminal. The input has the part x.lesson and the recordings. */
#include "tui/lessons/lecture.h"

#include <stdio.h>
#include <stdlib.h>

#include "tests/fuzz/support/fuzz.h"
#include "tui/lessons/lesson_view.h"

static void draw(struct esp_canvas *canvas, struct esp_lecture *lecture)
{
    char *text;
    size_t length;
    FILE *file = open_memstream(&text, &length);
    FUZZ_REQUIRE(file, "there is memory");
    esp_canvas_clear(canvas);
    esp_lesson_draw(canvas, lecture, true);
    esp_canvas_dump(canvas, file, false);
    fclose(file);
    fuzz_require_safe(text, length, "a page of a lesson");
    free(text);
}

static void walk(struct esp_lecture *lecture, int width, int height, int chosen)
{
    struct esp_canvas canvas;
    FUZZ_REQUIRE(esp_canvas_open(&canvas, width, height) == 0, "there is memory");
    do {
        draw(&canvas, lecture);
        if (esp_lecture_asks(lecture)) {
            const int choices = esp_lecture_choices(lecture);
            esp_lecture_answer(lecture, chosen < choices ? chosen : -1);
            draw(&canvas, lecture);
        }
    } while (esp_lecture_turn(lecture, 1));
    while (esp_lecture_turn(lecture, -1))
        ;
    FUZZ_REQUIRE(lecture->right <= lecture->asked, "%d of %d are right", lecture->right,
                 lecture->asked);
    esp_canvas_close(&canvas);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    struct esp_lecture *lecture;
    struct fuzz_part part;
    char path[300], err[512] = "";
    fuzz_folder_empty();
    for (size_t at = 0; fuzz_next_part(bytes, length, &at, &part);)
        fuzz_folder_write(part.name, part.bytes, part.length, 0);
    snprintf(path, sizeof path, "%s/x.lesson", fuzz_folder());
    if (esp_lecture_open(&lecture, path, err, sizeof err) < 0) {
        FUZZ_REQUIRE(*err && !lecture, "a refused lesson gives a message");
        return 0;
    }
    if (esp_lecture_phase(lecture, NULL, 0) > 0) { /* the lecture needs no model */
        walk(lecture, 80, 24, 0);
        walk(lecture, 130, 12, 1);
    }
    esp_lecture_release(lecture);
    return 0;
}
