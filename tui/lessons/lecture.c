/* lecture.c - see lecture.h. */
#include "tui/lessons/lecture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/support/paths.h"
#include "kernels/status.h"
#include "tui/lessons/lecture_value.h"
#include "viz/chart.h"
#include "viz/explain.h"
#include "viz/say.h"

/* ------------------------------------------------------------------ opening */

/* Finds a recording by its name. A recording in the lesson's folder takes precedence over a
 * bundled recording of the same name. */
static int find_recording(const struct esp_lecture *lecture, const char *name,
                          char path[PATH_MAX], char *err, size_t errlen)
{
    const char *slash = strrchr(lecture->lesson.path, '/');
    const int folder = slash ? (int)(slash - lecture->lesson.path) + 1 : 0;
    FILE *file = NULL;
    if (snprintf(path, PATH_MAX, "%.*s%s", folder, lecture->lesson.path, name) < PATH_MAX)
        file = fopen(path, "r");
    if (file) {
        fclose(file);
        return ESP_OK;
    }
    if (esp_find_data(path, PATH_MAX, "samples", name) == 0 ||
        esp_find_data(path, PATH_MAX, "sessions", name) == 0)
        return ESP_OK;
    return esp_fail(
        err, errlen, ESP_E_FILE,
        "%s: the lesson's folder has no recording %s, and no bundled recording has this name",
        lecture->lesson.path, name);
}

static int read_recordings(struct esp_lecture *lecture, char *err, size_t errlen)
{
    char path[PATH_MAX];
    lecture->ready = true;
    for (int i = 0; i < lecture->lesson.run_count; i++) {
        const char *name = lecture->lesson.runs[i].recording;
        lecture->ready = lecture->ready && name;
        int status = name ? find_recording(lecture, name, path, err, errlen) : ESP_OK;
        if (status == ESP_OK && name)
            status = esp_run_read(&lecture->runs[i], path, err, errlen);
        if (status < 0)
            return status;
    }
    return lecture->ready ? esp_lecture_check(lecture, err, errlen) : ESP_OK;
}

int esp_lecture_open(struct esp_lecture **opened, const char *path, char *err, size_t errlen)
{
    struct esp_lecture *lecture = calloc(1, sizeof *lecture);
    *opened = NULL;
    if (!lecture)
        return esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory for a lesson");
    int status = esp_lesson_read(&lecture->lesson, path, err, errlen);
    if (status < 0) {
        free(lecture);
        return status;
    }
    pthread_mutex_init(&lecture->lock, NULL);
    atomic_store(&lecture->holders, 1);
    lecture->chosen = -1;
    for (int i = 0; i < ESP_LESSON_RUNS; i++)
        esp_run_init(&lecture->runs[i]);
    status = read_recordings(lecture, err, errlen);
    if (status < 0)
        esp_lecture_release(lecture);
    else
        *opened = lecture;
    return status;
}

void esp_lecture_hold(struct esp_lecture *lecture)
{
    atomic_fetch_add(&lecture->holders, 1);
}

void esp_lecture_release(struct esp_lecture *lecture)
{
    if (!lecture || atomic_fetch_sub(&lecture->holders, 1) > 1)
        return;
    for (int i = 0; i < ESP_LESSON_RUNS; i++)
        esp_run_free(&lecture->runs[i]);
    esp_lesson_free(&lecture->lesson);
    pthread_mutex_destroy(&lecture->lock);
    free(lecture);
}

void esp_lecture_say(struct esp_lecture *lecture, int phase, const char *text)
{
    pthread_mutex_lock(&lecture->lock);
    lecture->ready = phase > 0;
    lecture->failed = phase < 0;
    snprintf(lecture->doing, sizeof lecture->doing, "%s", text);
    pthread_mutex_unlock(&lecture->lock);
}

int esp_lecture_phase(struct esp_lecture *lecture, char *doing, size_t size)
{
    pthread_mutex_lock(&lecture->lock);
    const int phase = lecture->failed ? -1 : lecture->ready;
    if (doing)
        snprintf(doing, size, "%s", lecture->doing);
    pthread_mutex_unlock(&lecture->lock);
    return phase;
}

/* ------------------------------------------------------------------ text */

static void write_number(double value, bool percent, char *out, size_t size)
{
    char text[16];
    if (percent)
        snprintf(out, size, "%.0f %%", 100 * value);
    else if (fabs(value - nearbyint(value)) < 1e-9 && fabs(value) < 1e9)
        snprintf(out, size, "%.0f", value);
    else
        snprintf(out, size, "%s", esp_number(text, value, 3));
}

/* Writes the tokens of the accepted path, each in quotes. */
static void write_path(const struct esp_iteration *it, const struct esp_tokens *tokens,
                       char *out, size_t size)
{
    char quoted[48];
    out[0] = '\0';
    for (int i = 0; i < it->path_length; i++)
        esp_say(out, size, "%s%s", i ? " " : "",
                esp_quote_token(quoted, tokens, it->tree.nodes[it->path[i]].token));
    if (it->path_length == 0)
        esp_say(out, size, "nothing");
}

/* Writes the tokens of the likeliest rejected path (esp_lecture_road()), each in quotes. */
static void write_road(const struct esp_iteration *it, const struct esp_tokens *tokens,
                       char *out, size_t size)
{
    int path[ESP_MAX_NODES];
    char quoted[48];
    const int length = esp_lecture_road(it, path);
    out[0] = '\0';
    for (int i = 0; i < length; i++)
        esp_say(out, size, "%s%s", i ? " " : "",
                esp_quote_token(quoted, tokens, it->tree.nodes[path[i]].token));
    if (length == 0)
        esp_say(out, size, "nothing");
}

/* Writes the value of an expression or of one of these phrases: "path RUN[N]", "road RUN[N]",
 * "bonus RUN[N]", "root RUN[N]" and "explain RUN[N] STAGE". */
static int write_value(const struct esp_lecture *lecture, const char *what, char *out,
                       size_t size, char *err, size_t errlen)
{
    char word[16], about[64], stage[16] = "", expression[256];
    struct esp_run *run = NULL;
    const int count = sscanf(what, "%15s %63s %15s", word, about, stage);
    const struct esp_iteration *it = count > 1 ? esp_lecture_named(lecture, about, &run) : NULL;
    char quoted[48];
    double value;
    if (it) {
        const struct esp_tokens tokens = esp_run_tokens(run);
        if (strcmp(word, "path") == 0) {
            write_path(it, &tokens, out, size);
            return ESP_OK;
        }
        if (strcmp(word, "road") == 0) {
            write_road(it, &tokens, out, size);
            return ESP_OK;
        }
        if (strcmp(word, "bonus") == 0 || strcmp(word, "root") == 0) {
            const int32_t token = *word == 'b' ? it->bonus : it->tree.nodes[0].token;
            snprintf(out, size, "%s", esp_quote_token(quoted, &tokens, token));
            return ESP_OK;
        }
        if (strcmp(word, "explain") == 0 && esp_lesson_stages(stage) > 0) {
            esp_explain_stop(out, size, it, ESP_EVENT_STAGE, esp_lesson_stages(stage), &tokens);
            return ESP_OK;
        }
    }
    snprintf(expression, sizeof expression, "%s", what);
    char *percent = strrchr(expression, '%');
    if (percent)
        *percent = '\0';
    int status = esp_lecture_value(lecture, expression, &value, err, errlen);
    if (status == ESP_OK)
        write_number(value, percent != NULL, out, size);
    return status;
}

/* Copies a text and replaces every expression in braces with its value. Returns 0, or a
 * negative status; then `err` describes the first error. */
static int expand(const struct esp_lecture *lecture, const char *text, char *out, size_t size,
                  char *err, size_t errlen)
{
    size_t used = 0;
    int status = ESP_OK;
    out[0] = '\0';
    while (*text && used + 1 < size) {
        const size_t plain = strcspn(text, "{");
        char what[256], value[1024] = "";
        int n = snprintf(out + used, size - used, "%.*s", (int)plain, text);
        used += (size_t)n < size - used ? (size_t)n : size - used - 1;
        text += plain;
        if (!*text)
            break;
        const size_t length = strcspn(text, "}");
        snprintf(what, sizeof what, "%.*s", (int)length - 1, text + 1);
        int wrong = text[length]
                        ? write_value(lecture, what, value, sizeof value, err, errlen)
                        : esp_fail(err, errlen, ESP_E_FORMAT, "a } is missing: '%.40s'", what);
        status = status < 0 ? status : wrong;
        n = snprintf(out + used, size - used, "%s", wrong < 0 ? "?" : value);
        used += (size_t)n < size - used ? (size_t)n : size - used - 1;
        text += length + (text[length] == '}');
    }
    return status;
}

void esp_lecture_text(struct esp_lecture *lecture, const char *text, char *out, size_t size)
{
    char err[200];
    expand(lecture, text ? text : "", out, size, err, sizeof err);
}

/* ------------------------------------------------------------------ checking */

static int check_page(struct esp_lecture *lecture, const struct esp_lesson_page *page,
                      char *err, size_t errlen)
{
    const char *const texts[] = {page->text, page->question, page->answer};
    char out[ESP_LECTURE_TEXT];
    double value;
    int status = ESP_OK;
    for (size_t i = 0; i < sizeof texts / sizeof *texts && status == ESP_OK; i++)
        if (texts[i])
            status = expand(lecture, texts[i], out, sizeof out, err, errlen);
    for (int i = 0; i < page->choice_count && status == ESP_OK; i++) {
        status = expand(lecture, page->choices[i].text, out, sizeof out, err, errlen);
        if (status == ESP_OK && page->choices[i].condition)
            status =
                esp_lecture_value(lecture, page->choices[i].condition, &value, err, errlen);
    }
    return status;
}

int esp_lecture_check(struct esp_lecture *lecture, char *err, size_t errlen)
{
    char what[300];
    for (int i = 0; i < lecture->lesson.page_count; i++) {
        const struct esp_lesson_page *page = &lecture->lesson.pages[i];
        int status = check_page(lecture, page, what, sizeof what);
        const int run = esp_lesson_run_find(&lecture->lesson, page->run, strlen(page->run));
        if (status == ESP_OK && run >= 0 &&
            (page->iteration < 0 || page->iteration >= esp_run_steps(&lecture->runs[run]))) {
            snprintf(what, sizeof what,
                     "the page shows iteration %d, but the run has only %d iterations",
                     page->iteration, esp_run_steps(&lecture->runs[run]));
            status = ESP_E_FORMAT;
        }
        if (status < 0)
            return esp_fail(err, errlen, status, "%s, page %d: %s", lecture->lesson.path, i + 1,
                            what);
    }
    return ESP_OK;
}

/* ------------------------------------------------------------------ pages */

const struct esp_lesson_page *esp_lecture_page(const struct esp_lecture *lecture)
{
    return &lecture->lesson.pages[lecture->page];
}

bool esp_lecture_asks(const struct esp_lecture *lecture)
{
    return esp_lecture_page(lecture)->question && !lecture->answered;
}

struct esp_run *esp_lecture_run(struct esp_lecture *lecture)
{
    const char *name = esp_lecture_page(lecture)->run;
    const int index = esp_lesson_run_find(&lecture->lesson, name, strlen(name));
    return index < 0 ? NULL : &lecture->runs[index];
}

const struct esp_iteration *esp_lecture_iteration(const struct esp_lecture *lecture)
{
    const struct esp_run *run = esp_lecture_run((struct esp_lecture *)lecture);
    const int iteration = esp_lecture_page(lecture)->iteration;
    return run ? esp_trace_at(&run->trace, iteration) : NULL;
}

bool esp_lecture_turn(struct esp_lecture *lecture, int step)
{
    const int page = lecture->page + step;
    if (page < 0 || page >= lecture->lesson.page_count)
        return false;
    lecture->page = page;
    lecture->scroll = 0;
    lecture->answered = false;
    lecture->chosen = -1;
    return true;
}

/* ------------------------------------------------------------------ questions */

/* Returns the node of child `index` of the root, or -1 if there are fewer children. Children
 * that were not verified are not counted. */
static int branch(const struct esp_iteration *it, int index)
{
    for (int i = 1; it && i < it->tree.count; i++)
        if (it->tree.nodes[i].parent == 0 && it->tree.nodes[i].verdict != ESP_CUT &&
            index-- == 0)
            return i;
    return -1;
}

static int branch_count(const struct esp_iteration *it)
{
    int count = 0;
    while (count < ESP_LESSON_CHOICES - 1 && branch(it, count) >= 0)
        count++;
    return count;
}

int esp_lecture_choices(const struct esp_lecture *lecture)
{
    const struct esp_lesson_page *page = esp_lecture_page(lecture);
    return page->branches ? branch_count(esp_lecture_iteration(lecture)) + 1
                          : page->choice_count;
}

void esp_lecture_choice(struct esp_lecture *lecture, int choice, char *text, size_t size)
{
    const struct esp_lesson_page *page = esp_lecture_page(lecture);
    const struct esp_iteration *it = esp_lecture_iteration(lecture);
    char quoted[48], probability[8];
    if (!page->branches) {
        esp_lecture_text(lecture, page->choices[choice].text, text, size);
    } else if (choice == branch_count(it)) {
        snprintf(text, size, "none of them");
    } else {
        const struct esp_tokens tokens = esp_run_tokens(esp_lecture_run(lecture));
        const struct esp_node *node = &it->tree.nodes[branch(it, choice)];
        snprintf(text, size, "%s, draft probability %s",
                 esp_quote_token(quoted, &tokens, node->token),
                 esp_probability(probability, node->q));
    }
}

bool esp_lecture_is_right(struct esp_lecture *lecture, int choice)
{
    const struct esp_lesson_page *page = esp_lecture_page(lecture);
    const struct esp_iteration *it = esp_lecture_iteration(lecture);
    char err[200];
    double value;
    if (page->branches)
        return it && (choice == branch_count(it)
                          ? esp_lecture_choices(lecture) > 0 && it->path_length == 0
                          : it->path_length > 0 && it->path[0] == branch(it, choice));
    if (page->choices[choice].condition)
        return esp_lecture_value(lecture, page->choices[choice].condition, &value, err,
                                 sizeof err) == ESP_OK &&
               value != 0;
    for (int i = 0; i < page->choice_count; i++)
        if (page->choices[i].condition && esp_lecture_is_right(lecture, i))
            return false;
    return true;
}

void esp_lecture_answer(struct esp_lecture *lecture, int choice)
{
    if (!esp_lecture_asks(lecture) || choice >= esp_lecture_choices(lecture))
        return;
    lecture->answered = true;
    lecture->scroll = -1;
    lecture->chosen = choice;
    if (choice < 0)
        return;
    lecture->asked++;
    lecture->right += esp_lecture_is_right(lecture, choice);
}
