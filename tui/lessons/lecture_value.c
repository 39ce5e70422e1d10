/* lecture_value.c - see lecture_value.h. This is the grammar of expressions:
 *
 *     comparison   sum [< | > | <= | >= | == | != sum]
 *     sum          product {+ | - product}
 *     product      factor {* | / factor}
 *     factor       NUMBER | ( comparison ) | RUN.NUMBER | RUN[N].NUMBER
 */
#include "tui/lessons/lecture_value.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "viz/walk_view.h"

enum { MOST_DEPTH = 16 };

struct parse {
    const struct esp_lecture *lecture;
    const char *at;
    int depth;
    bool failed;
    char *err;
    size_t errlen;
};

/* ------------------------------------------------------------------ numbers of a run */

struct number {
    const char *name;
    double value;
};

static bool pick(const struct number *numbers, int count, const char *name, double *value)
{
    for (int i = 0; i < count; i++)
        if (strcmp(numbers[i].name, name) == 0) {
            *value = numbers[i].value;
            return true;
        }
    return false;
}

static double milliseconds(const struct esp_iteration *it)
{
    double seconds = 0;
    for (int i = 0; i < ESP_STAGES; i++)
        seconds += it->seconds[i];
    return 1e3 * seconds;
}

int esp_lecture_road(const struct esp_iteration *it, int path[ESP_MAX_NODES])
{
    const struct esp_node *nodes = it->tree.nodes;
    int best = 0, length = 0;
    for (int i = 1; i < it->tree.count; i++)
        if (nodes[i].verdict == ESP_REJECTED && isfinite(nodes[i].p) &&
            (best == 0 || nodes[i].p > nodes[best].p))
            best = i;
    for (int node = best; node > 0 && length < ESP_MAX_NODES; node = nodes[node].parent)
        length++;
    for (int node = best, at = length; at > 0; node = nodes[node].parent)
        path[--at] = node;
    return length;
}

/* Returns the target's probability of the last node of the likeliest rejected path, or 0 if
 * nothing was rejected. */
static double road_p(const struct esp_iteration *it)
{
    int path[ESP_MAX_NODES];
    const int length = esp_lecture_road(it, path);
    return length > 0 ? (double)it->tree.nodes[path[length - 1]].p : 0;
}

/* Returns the target's perplexity over the generated tokens, or 0 if it is unknown. */
static double perplexity(const struct esp_run *run)
{
    double sum = 0;
    int count = 0;
    for (int i = 0; i < esp_run_steps(run); i++) {
        const struct esp_iteration *it = esp_trace_at(&run->trace, i);
        for (int j = 0; it && it->scores && j < it->committed_count; j++)
            if (it->scores[j].p > 0) {
                sum -= log((double)it->scores[j].p);
                count++;
            }
    }
    return count > 0 ? exp(sum / count) : 0;
}

static bool of_iteration(const struct esp_iteration *it, const char *name, double *value)
{
    const int drafted = it->tree.verified > 0 ? it->tree.verified - 1 : 0;
    const double draft = 1e3 * it->seconds[ESP_STAGE_DRAFT];
    const double verify = 1e3 * it->seconds[ESP_STAGE_VERIFY];
    const struct number numbers[] = {
        {"index", it->index},
        {"drafted", drafted},
        {"rows", it->tree.verified},
        {"cut", it->tree.count - 1 - drafted},
        {"deepest", it->deepest},
        {"accepted", it->path_length},
        {"committed", it->committed_count},
        {"passes", it->draft_passes},
        {"draft_ms", draft},
        {"verify_ms", verify},
        {"ms", milliseconds(it)},
        {"token_ms", milliseconds(it) / fmax(it->committed_count, 1)},
        {"plain_ms", 1e3 * it->baseline},
        {"state_bytes", (double)it->state_bytes},
        {"state_read", (double)it->state_read},
        {"state_written", (double)it->state_written},
        {"levels", esp_walk_levels(it)},
        {"road_p", road_p(it)},
        {"bonus_p", it->scores ? (double)it->scores[it->committed_count - 1].p : 0}};
    for (int i = 0; i < it->gauge_count; i++) {
        const struct esp_gauge *gauge = &it->gauges[i];
        const size_t length = strlen(gauge->name);
        if (strcmp(gauge->name, name) == 0) {
            *value = gauge->after;
            return true;
        }
        if (strncmp(gauge->name, name, length) == 0 && strcmp(name + length, "_before") == 0) {
            *value = gauge->before;
            return true;
        }
    }
    return pick(numbers, sizeof numbers / sizeof *numbers, name, value);
}

static bool of_run(const struct esp_run *run, const char *name, double *value)
{
    const struct esp_totals *all = &run->trace.since;
    const double drafted = (double)all->drafted, accepted = (double)all->accepted;
    const double draft = 1e3 * all->seconds[ESP_STAGE_DRAFT],
                 verify = 1e3 * all->seconds[ESP_STAGE_VERIFY];
    const double written = esp_run_written(run), steps = fmax(esp_run_steps(run), 1);
    const double ms = 1e3 * esp_run_seconds(run);
    const struct number numbers[] = {{"tokens", written},
                                     {"iterations", esp_run_steps(run)},
                                     {"ms", ms},
                                     {"seconds", ms / 1e3},
                                     {"token_ms", ms / fmax(written, 1)},
                                     {"pass_ms", verify / steps},
                                     {"draft_ms", draft / steps},
                                     {"per_iteration", written / steps},
                                     {"per_second", ms > 0 ? 1e3 * written / ms : 0},
                                     {"drafted", drafted},
                                     {"accepted", accepted},
                                     {"acceptance", drafted > 0 ? accepted / drafted : 0},
                                     {"temperature", run->temperature},
                                     {"perplexity", perplexity(run)}};
    return pick(numbers, sizeof numbers / sizeof *numbers, name, value);
}

/* ------------------------------------------------------------------ expressions */

static double fail(struct parse *p, const char *what, const char *about)
{
    if (!p->failed)
        snprintf(p->err, p->errlen, "%s '%.60s'", what, about);
    p->failed = true;
    return 0;
}

static char next(struct parse *p)
{
    p->at += strspn(p->at, " ");
    return *p->at;
}

static double operation(struct parse *p, int level);

/* Reads "[N]" at *at, and moves *at past the bracket. Returns iteration N of the run, or NULL
 * if there is none. */
static const struct esp_iteration *step_at(const struct esp_run *run, const char **at)
{
    char *end;
    const long number = strtol(*at + 1, &end, 10);
    if (*end != ']')
        return NULL;
    *at = end + 1;
    return number >= 0 && number < esp_run_steps(run) ? esp_trace_at(&run->trace, (int)number)
                                                      : NULL;
}

static double named(struct parse *p)
{
    const char *start = p->at;
    size_t length = 0;
    char name[40];
    double value = 0;
    while (isalnum((unsigned char)start[length]) || start[length] == '_' ||
           start[length] == '-')
        length++;
    const int index = esp_lesson_run_find(&p->lecture->lesson, start, length);
    p->at = start + length;
    if (length == 0 || index < 0)
        return fail(p, "there is no run or number at", start);
    const struct esp_run *run = &p->lecture->runs[index];
    const bool one = *p->at == '[';
    const struct esp_iteration *step = one ? step_at(run, &p->at) : NULL;
    if (one && !step)
        return fail(p, "there is no such iteration:", start);
    if (*p->at != '.')
        return fail(p, "a full stop and the name of a number must follow the run in", start);
    p->at++;
    for (length = 0; (isalnum((unsigned char)p->at[length]) || p->at[length] == '_') &&
                     length + 1 < sizeof name;
         length++)
        name[length] = p->at[length];
    name[length] = '\0';
    p->at += length;
    if (!(step ? of_iteration(step, name, &value) : of_run(run, name, &value)))
        return fail(p, step ? "an iteration has no value" : "a run has no value", name);
    return value;
}

static double factor(struct parse *p)
{
    const char c = next(p);
    if (c == '(') {
        if (++p->depth > MOST_DEPTH)
            return fail(p, "too many brackets:", p->at);
        p->at++;
        const double value = operation(p, 0);
        p->depth--;
        if (next(p) != ')')
            return fail(p, "a bracket is not closed:", p->at);
        p->at++;
        return value;
    }
    if (isdigit((unsigned char)c)) {
        char *end;
        const double value = strtod(p->at, &end);
        p->at = end;
        return value;
    }
    return named(p);
}

static double apply(char sign, bool or_equal, double left, double right)
{
    switch (sign) {
    case '+':
        return left + right;
    case '-':
        return left - right;
    case '*':
        return left * right;
    case '/':
        return right != 0 ? left / right : 0;
    case '<':
        return left < right || (or_equal && left == right);
    case '>':
        return left > right || (or_equal && left == right);
    case '=':
        return left == right;
    default:
        return left != right;
    }
}

/* Evaluates a comparison (level 0), a sum (level 1) or a product (level 2). A comparison has
 * sums as operands, a sum has products, and a product has factors. */
static double operation(struct parse *p, int level)
{
    static const char *const signs[] = {"<>=!", "+-", "*/"};
    if (level == sizeof signs / sizeof *signs)
        return factor(p);
    double value = operation(p, level + 1);
    while (!p->failed && next(p) && strchr(signs[level], *p->at)) {
        const char sign = *p->at;
        const bool equal = level == 0 && p->at[1] == '=';
        if ((sign == '=' || sign == '!') && !equal)
            return fail(p, "write == or !=, not", p->at);
        p->at += 1 + equal;
        value = apply(sign, equal, value, operation(p, level + 1));
        if (level == 0)
            break;
    }
    return value;
}

int esp_lecture_value(const struct esp_lecture *lecture, const char *expression, double *value,
                      char *err, size_t errlen)
{
    struct parse p = {.lecture = lecture, .at = expression, .err = err, .errlen = errlen};
    *value = operation(&p, 0);
    if (!p.failed && next(&p))
        fail(&p, "this is not part of an expression:", p.at);
    return p.failed ? ESP_E_FORMAT : ESP_OK;
}

const struct esp_iteration *esp_lecture_named(const struct esp_lecture *lecture,
                                              const char *name, struct esp_run **run)
{
    const size_t length = strcspn(name, "[");
    const int index = esp_lesson_run_find(&lecture->lesson, name, length);
    if (index < 0 || name[length] != '[')
        return NULL;
    *run = (struct esp_run *)&lecture->runs[index];
    const char *at = name + length;
    return step_at(*run, &at);
}
