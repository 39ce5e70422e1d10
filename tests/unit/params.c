/* Tests parameters of drafters and verifiers. They must be parsed, and values out of range must
 * be refused. Parameters that were printed must be readable again. */
#include <stdio.h>
#include <string.h>

#include "tests/check.h"
#include "engine/drafters/drafter.h"
#include "engine/verifiers/verifier.h"

enum { SIZE, RATE, ON, WAY, SHAPE };

static const struct esp_param table[] = {
    [SIZE] = {"size", ESP_INT, 1, 64, 6, .help = "an integer"},
    [RATE] = {"rate", ESP_REAL, 0, 1, 0.1, .help = "a number"},
    [ON] = {"on", ESP_FLAG, 0, 1, 1, .help = "a flag"},
    [WAY] = {"way", ESP_CHOICE, 0, 2, 1, .choices = "left|middle|right", .help = "a choice"},
    [SHAPE] = {"shape", ESP_TEXT, .text = "1.2.3", .help = "a text"},
    {0},
};

TEST(values_are_read)
{
    struct esp_params p;
    char err[256] = "", text[256];
    esp_params_init(&p, table);
    CHECK(esp_param(&p, SIZE) == 6 && esp_param(&p, WAY) == 1 && strcmp(p.text, "1.2.3") == 0);
    esp_params_spec(&p, "x", text, sizeof text);
    CHECK(strcmp(text, "x") == 0, "%s", text);
    CHECK(esp_params_parse(&p, "x", "size=9,rate=0.25,on=off,way=right,shape=4.5", err,
                           sizeof err) == ESP_OK,
          "%s", err);
    CHECK(esp_param(&p, SIZE) == 9 && esp_param(&p, RATE) == 0.25 && esp_param(&p, ON) == 0 &&
          esp_param(&p, WAY) == 2 && strcmp(p.text, "4.5") == 0);
    esp_params_spec(&p, "x", text, sizeof text);
    CHECK(strcmp(text, "x:size=9,rate=0.25,on=off,way=right,shape=4.5") == 0, "%s", text);
}

TEST(numbers_are_written_plainly)
{
    static const char *const numbers[] = {"30", "60", "7"};
    struct esp_params p;
    char text[64];
    esp_params_init(&p, table);
    for (int i = 0; i < 3; i++) {
        CHECK(esp_params_set(&p, "x", "size", numbers[i], NULL, 0) == SIZE);
        esp_params_format(&p, SIZE, text, sizeof text);
        CHECK(strcmp(text, numbers[i]) == 0, "%s", text);
    }
}

TEST(wrong_values_are_named)
{
    static const char *const wrong[] = {
        "size=0",
        "size=65",
        "size=2.5",
        "size=x",
        "size=",
        "rate=nan",
        "rate=inf",
        "rate=-0.1",
        "rate=1e999",
        "on=maybe",
        "way=up",
        "way=",
        "nothing=1",
        "size",
        "=3",
        "shape=0123456789012345678901234567890123456789012345678901234567890123456789",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct esp_params p;
        char err[256] = "";
        esp_params_init(&p, table);
        CHECK(esp_params_parse(&p, "drafter", wrong[i], err, sizeof err) == ESP_E_ARGUMENT,
              "%s", wrong[i]);
        CHECK(strncmp(err, "drafter", 6) == 0 && !strchr(err, '\n'), "%s: %s", wrong[i], err);
    }
}

/* Checks the parameters of a drafter or verifier: names are unique, defaults are within range,
 * and a spec that was written can be read again. */
static void check_table(const char *owner, const struct esp_param *rows)
{
    struct esp_params p, again;
    char spec[ESP_SPEC_TEXT], value[ESP_PARAM_TEXT], err[256];
    esp_params_init(&p, rows);
    for (int i = 0; rows && rows[i].name; i++) {
        CHECK(i < ESP_MAX_PARAMS && rows[i].help, "%s %s", owner, rows[i].name);
        CHECK(esp_params_find(&p, rows[i].name) == i, "%s has two %s", owner, rows[i].name);
        if (rows[i].type != ESP_TEXT)
            CHECK(rows[i].value >= rows[i].minimum && rows[i].value <= rows[i].maximum, "%s %s",
                  owner, rows[i].name);
        esp_params_format(&p, i, value, sizeof value);
        esp_params_init(&again, rows);
        CHECK(esp_params_set(&again, owner, rows[i].name, value, err, sizeof err) == i, "%s",
              err);
        CHECK(again.value[i] == p.value[i]);
    }
    esp_params_spec(&p, owner, spec, sizeof spec);
    CHECK(strcmp(spec, owner) == 0, "%s", spec);
}

TEST(all_tables_are_consistent)
{
    for (int i = 0; esp_drafters[i]; i++) {
        check_table(esp_drafters[i]->name, esp_drafters[i]->params);
        CHECK(esp_drafter_find(esp_drafters[i]->name) == esp_drafters[i]);
    }
    for (int i = 0; esp_verifiers[i]; i++) {
        check_table(esp_verifiers[i]->name, esp_verifier_params);
        CHECK(esp_verifier_find(esp_verifiers[i]->name) == esp_verifiers[i]);
    }
}
