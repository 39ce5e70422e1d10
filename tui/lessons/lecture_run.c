/* lecture_run.c - see lecture_run.h. */
#include "tui/lessons/lecture_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/status.h"
#include "tui/lessons/lecture_value.h"
#include "tui/worker/decode_run.h"

static bool goes_on(void *user, bool practice, double share)
{
    struct esp_lecture *lecture = user;
    (void)practice;
    (void)share;
    return !atomic_load(&lecture->stopped);
}

/* The prompt of a lesson that does not set a prompt. */
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

/* Returns the text from which a branch continues, in allocated memory. It is the text before
 * iteration `from` ("RUN[N]"), followed by the likeliest path that this iteration rejected.
 * Returns NULL with a message if that iteration rejected nothing. */
static struct esp_text_token *begin_branch(struct esp_lecture *lecture, const char *from,
                                           int *count, char *err, size_t errlen)
{
    int path[ESP_MAX_NODES];
    struct esp_run *run;
    const struct esp_iteration *it = esp_lecture_named(lecture, from, &run);
    const int length = it ? esp_lecture_road(it, path) : 0;
    if (length == 0 || it->position > run->token_count) {
        esp_fail(err, errlen, ESP_E_FORMAT,
                 "%s: no branch can begin at %s, where nothing was rejected",
                 lecture->lesson.path, from);
        return NULL;
    }
    *count = it->position + length;
    struct esp_text_token *text = malloc((size_t)*count * sizeof *text);
    if (!text) {
        esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory for a branch");
        return NULL;
    }
    memcpy(text, run->tokens, (size_t)it->position * sizeof *text);
    for (int i = 0; i < length; i++)
        text[it->position + i] =
            (struct esp_text_token){it->tree.nodes[path[i]].token, ESP_TEXT_CHOSEN};
    return text;
}

static bool has_branches(const struct esp_lesson *lesson)
{
    for (int i = 0; i < lesson->run_count; i++)
        if (*lesson->runs[i].branch)
            return true;
    return false;
}

static int decode(struct esp_lecture *lecture, int index, struct esp_engine *engine, char *err,
                  size_t errlen)
{
    enum { PRACTICE = 4 };
    const struct esp_lesson *lesson = &lecture->lesson;
    const struct esp_lesson_run *run = &lesson->runs[index];
    int count = 0;
    struct esp_text_token *text =
        *run->branch ? begin_branch(lecture, run->branch, &count, err, errlen) : NULL;
    if (*run->branch && !text)
        return ESP_E_FORMAT;
    const struct esp_decode_options options = {
        .session = {.drafter = run->drafter, .repeatable = true},
        .prompt = lesson->prompt ? lesson->prompt : tale,
        .text = text,
        .text_count = count,
        .scores = has_branches(lesson),
        .tokens = lesson->tokens,
        .practice = PRACTICE,
        .goes_on = goes_on,
        .user = lecture};
    char doing[160];
    snprintf(doing, sizeof doing, "%s decodes %d tokens for this lesson", run->drafter,
             lesson->tokens);
    esp_lecture_say(lecture, 0, doing);
    const int status = esp_decode_run(&lecture->runs[index], engine, &options, err, errlen);
    free(text);
    return status;
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
