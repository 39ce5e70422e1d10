/* Lines of JSON: what is read is what cJSON reads, of recordings and of whatever mutations make
 * of them; what no JSON may hold is refused; memory is used again. */
#include "json_values.h"

#include <cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "espalier.h"

enum { DEPTH = 64 };

static struct esp_values json;

static int read_text(const char *text)
{
    return esp_values_read(&json, text, strlen(text), DEPTH);
}

/* ------------------------------------------------------------------ as cJSON reads it */

static void same(const struct esp_value *a, const cJSON *b, const char *line)
{
    const struct esp_value *inside = esp_value_first(a);
    CHECK(cJSON_IsNull(b) == (a->kind == ESP_VALUE_NULL) &&
              cJSON_IsFalse(b) == (a->kind == ESP_VALUE_FALSE) &&
              cJSON_IsTrue(b) == (a->kind == ESP_VALUE_TRUE) &&
              cJSON_IsNumber(b) == (a->kind == ESP_VALUE_NUMBER) &&
              cJSON_IsString(b) == (a->kind == ESP_VALUE_STRING) &&
              cJSON_IsArray(b) == (a->kind == ESP_VALUE_ARRAY) &&
              cJSON_IsObject(b) == (a->kind == ESP_VALUE_OBJECT),
          "kind %d: %.300s", a->kind, line);
    CHECK(!a->name == !b->string && (!a->name || strcmp(a->name, b->string) == 0), "%.300s",
          line);
    if (a->kind == ESP_VALUE_NUMBER)
        CHECK(memcmp(&a->number, &b->valuedouble, sizeof a->number) == 0, "%.17g, not %.17g",
              a->number, b->valuedouble);
    if (a->kind == ESP_VALUE_STRING)
        CHECK(strcmp(a->text, b->valuestring) == 0, "%s, not %s", a->text, b->valuestring);
    const cJSON *item = b->child;
    for (; inside && item; inside = esp_value_next(a, inside), item = item->next) {
        same(inside, item, line);
        if (a->kind == ESP_VALUE_OBJECT) {
            const cJSON *first = cJSON_GetObjectItemCaseSensitive(b, item->string);
            const struct esp_value *found = esp_value_member(a, item->string);
            CHECK(found && (first == item) == (found == inside), "%s", item->string);
        }
    }
    CHECK(!inside && !item, "other counts: %.300s", line);
}

/* Returns whether it was read. What cJSON takes besides are numbers like 01 and 1. */
static bool compare(const char *line, size_t length)
{
    const char *end = NULL;
    cJSON *tree = cJSON_ParseWithLengthOpts(line, length, &end, 0);
    while (tree && end < line + length && (unsigned char)*end <= ' ')
        end++;
    bool read = esp_values_read(&json, line, length, DEPTH) == ESP_OK;
    CHECK(!read || (tree && end == line + length), "cJSON refuses %.300s", line);
    if (read)
        same(json.values, tree, line);
    cJSON_Delete(tree);
    return read;
}

static const char *const samples[] = {"dynatree-adapting", "traversal-sampling", "dyspec"};

TEST(recordings_are_read_as_by_cjson)
{
    static char line[1 << 18];
    char path[128];
    int lines = 0;
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        snprintf(path, sizeof path, "../sessions/samples/%s.esp.jsonl", samples[i]);
        FILE *file = fopen(check_path(path), "r");
        CHECK(file, "%s", path);
        for (; fgets(line, sizeof line, file); lines++)
            CHECK(compare(line, strlen(line)), "%.100s", line);
        fclose(file);
    }
    CHECK(lines > 100);
}

static size_t below(unsigned long long *random, size_t limit)
{
    return (size_t)(check_uniform(random) * (double)limit);
}

TEST(mutations_are_read_as_by_cjson_or_refused)
{
    static const char letters[] = "{}[]\",:\\u0123456789.eE+-ntfabdrl/\x01 \xc3\xa9";
    static const char line[] =
        "{\"t\":0.016203,\"type\":\"iteration\",\"a\":[1,-2.5e-3,1e22,true,false,null,[],{}],"
        "\"s\":\"x\\u00e9\\ud83c\\udf33\\n\\\"\\\\\\/"
        "\\b\\f\\r\\t\",\"n\":{\"q\":0.71,\"p\":1}}";
    unsigned long long random = 3;
    int read = 0, trials = check_quick() ? 20000 : 200000;
    CHECK(compare(line, strlen(line)));
    for (int trial = 0; trial < trials; trial++) {
        char changed[sizeof line];
        memcpy(changed, line, sizeof line);
        for (size_t n = 1 + below(&random, 3); n > 0; n--) {
            size_t at = below(&random, sizeof line - 1);
            changed[at] = check_uniform(&random) < 0.1
                              ? (char)below(&random, 256)
                              : letters[below(&random, sizeof letters - 1)];
        }
        read += compare(changed, sizeof line - 1);
    }
    CHECK(read > trials / 10 && read < trials, "%d of %d", read, trials);
}

/* Numbers of any length and size, as strtod() reads them. */
TEST(numbers_are_rounded_once)
{
    unsigned long long random = 5;
    for (int trial = 0; trial < (check_quick() ? 20000 : 200000); trial++) {
        char text[64];
        double value = check_uniform(&random) - 0.5;
        switch (trial % 4) {
        case 0:
            snprintf(text, sizeof text, "%.*g", 1 + (int)below(&random, 20), value);
            break;
        case 1:
            snprintf(text, sizeof text, "%.*e", (int)below(&random, 20),
                     ldexp(value, (int)below(&random, 2000) - 1000));
            break;
        case 2:
            snprintf(text, sizeof text, "%.*f", (int)below(&random, 30), 1e6 * value);
            break;
        default:
            snprintf(text, sizeof text, "%.0fE%+d", ldexp(value, (int)below(&random, 60)),
                     (int)below(&random, 60) - 30);
        }
        CHECK(read_text(text) == ESP_OK, "%s", text);
        double want = strtod(text, NULL);
        CHECK(memcmp(&json.values->number, &want, sizeof want) == 0, "%s is %.17g, not %.17g",
              text, json.values->number, want);
    }
}

/* ------------------------------------------------------------------ what is none */

TEST(what_is_no_json_is_refused)
{
    static const char *const wrong[] = {
        "",
        " ",
        "{",
        "}",
        "[",
        "[1",
        "[1,",
        "[1,]",
        "[,1]",
        "[1 2]",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1",
        "{\"a\":1,}",
        "{a:1}",
        "{1:1}",
        "\"a",
        "\"\\",
        "\"\\x\"",
        "\"\\u12\"",
        "\"\\u12g4\"",
        "01",
        "-",
        "-01",
        "1.",
        ".5",
        "+1",
        "1e",
        "1e+",
        "0x10",
        "inf",
        "-inf",
        "nan",
        "tru",
        "nul",
        "True",
        "1 2",
        "{} {}",
        "[]]",
        "\"\\ud800\"",
        "\"\\udc00\"",
        "\"\\ud800\\u0041\"",
        "\"\\ud800x\"",
        "'a'",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CHECK(read_text(wrong[i]) == ESP_E_FORMAT, "%s", wrong[i]);
}

TEST(brackets_nest_as_deep_as_they_may)
{
    char text[2 * DEPTH + 3];
    for (int depth = 1; depth <= DEPTH + 1; depth++) {
        memset(text, '[', (size_t)depth);
        memset(text + depth, ']', (size_t)depth);
        text[2 * depth] = '\0';
        CHECK((read_text(text) == ESP_OK) == (depth <= DEPTH), "%d", depth);
    }
}

TEST(members_are_found)
{
    CHECK(read_text("{\"a\":1,\"b\":{\"a\":2,\"c\":[3,{\"a\":4}]},\"d\":5,\"a\":6}") == 0);
    const struct esp_value *all = json.values, *b = esp_value_member(all, "b");
    CHECK(esp_value_member(all, "a")->number == 1, "the first of two");
    CHECK(esp_value_member(all, "d")->number == 5, "behind what is inside another");
    CHECK(!esp_value_member(all, "c") && !esp_value_member(all, "") &&
          !esp_value_member(NULL, "a"));
    CHECK(esp_value_member(b, "a")->number == 2 && !esp_value_member(b, "d"));
    const struct esp_value *c = esp_value_member(b, "c"), *last = esp_value_first(c);
    CHECK(last->number == 3 && !esp_value_member(c, "a"));
    last = esp_value_next(c, last);
    CHECK(esp_value_member(last, "a")->number == 4 && !esp_value_next(c, last));
    CHECK(!esp_value_first(NULL) && !esp_value_first(esp_value_first(c)));
    esp_values_free(&json);
    CHECK(json.values == NULL && read_text("[]") == ESP_OK && !esp_value_first(json.values));
    esp_values_free(&json);
}
