/* lecture_run.c - see lecture_run.h. */
#include "tui/lessons/lecture_run.h"

#include <stdio.h>
#include <string.h>

#include "tui/worker/decode_run.h"
#include "tui/worker/race_run.h"

static bool goes_on(void *user, bool practice, double share)
{
    struct esp_lecture *lecture = user;
    (void)practice;
    (void)share;
    return !atomic_load(&lecture->stopped);
}

/* The prompt for lessons that have none. */
static const char tale[] =
    "There was once upon a time a fisherman who lived with his wife in a "
    "little hut close by the sea.";

static bool progress(void *user, const char *what, size_t done, size_t total)
{
    (void)what;
    (void)done;
    (void)total;
    return goes_on(user, false, 0);
}

static int decode(struct esp_lecture *lecture, int index, struct esp_engine *engine, char *err,
                  size_t errlen)
{
    enum { PRACTICE = 4 };
    const struct esp_lesson *lesson = &lecture->lesson;
    const struct esp_decode_options options = {
        .session = {.drafter = lesson->runs[index].drafter, .repeatable = true},
        .prompt = lesson->prompt ? lesson->prompt : tale,
        .tokens = lesson->tokens,
        .practice = PRACTICE,
        .goes_on = goes_on,
        .user = lecture};
    char doing[160];
    snprintf(doing, sizeof doing, "%s decodes %d tokens for this lesson",
             lesson->runs[index].drafter, lesson->tokens);
    esp_lecture_say(lecture, 0, doing);
    return esp_decode_run(&lecture->runs[index], engine, &options, err, errlen);
}

void esp_lecture_decode(struct esp_lecture *lecture, const struct esp_engine_options *options,
                        struct esp_engine *engine)
{
    const struct esp_lesson *lesson = &lecture->lesson;
    struct esp_engine_options models = *options;
    struct esp_engine *own = NULL;
    char err[512] = "";
    double took;
    int status = ESP_OK;
    models.progress = progress;
    models.user = lecture;
    esp_lecture_say(lecture, 0, "loading the models");
    if (lesson->pass > 0)
        status = esp_engine_open_slow(&own, &models, lesson->pass, &took, err, sizeof err);
    else if (!engine)
        status = esp_engine_open(&own, &models, err, sizeof err);
    for (int i = 0; i < lesson->run_count && status == ESP_OK; i++)
        if (lesson->runs[i].drafter)
            status = decode(lecture, i, own ? own : engine, err, sizeof err);
    esp_engine_close(own);
    if (status == ESP_OK && !atomic_load(&lecture->stopped))
        status = esp_lecture_check(lecture, err, sizeof err);
    esp_lecture_say(lecture, status < 0 ? -1 : 1,
                    status < 0 && !*err ? esp_status_message(status) : err);
}
