/* Tests the table of settings. Every setting must be read, printed, checked, copied to other
 * sessions and recorded. The tests name no setting, so they work for any table. */
#include "engine/espalier_settings.h"

#include <stdio.h>
#include <string.h>

#include "engine/compare.h"
#include "sessions/recorder.h"
#include "tests/check.h"
#include "tests/recorded.h"
#include "tests/toy.h"
#include "tui/commands/settings.h"

enum { VOCABULARY = 12, CONTEXT = 64 };

static struct toy toy;
static char err[512];

/* Writes a text that gives the setting a value that differs from its default. */
static void another(int index, char *text, size_t size)
{
    struct esp_value_info info;
    struct esp_session_values zeros = {.baseline = false}, values = zeros;
    char now[64];
    CHECK(esp_value_info(index, &info));
    CHECK(esp_values_check(&zeros, err, sizeof err) == ESP_OK, "%s", err);
    esp_value_print(&zeros, index, now, sizeof now);
    /* a setting that takes a FILE needs a readable file */
    const bool of_file = strstr(info.values, "FILE") != NULL;
    const char *const tried[] = {of_file ? check_path("prompts.txt") : "1", "0.5", "7"};
    for (size_t i = 0; i < sizeof tried / sizeof *tried; i++) {
        snprintf(text, size, "%s", tried[i]);
        if (strcmp(text, now) != 0 &&
            esp_value_parse(&values, index, info.name, text, err, sizeof err) == ESP_OK)
            return;
    }
    const char *words = info.values;
    do { /* finds the first word that is not the default */
        snprintf(text, size, "%.*s", (int)strcspn(words, "|"), words);
        words += strcspn(words, "|");
        words += *words == '|';
    } while (strcmp(text, now) == 0 && *words);
    CHECK(esp_value_parse(&values, index, info.name, text, err, sizeof err) == ESP_OK, "%s",
          err);
}

static struct esp_session_values others(void)
{
    struct esp_session_values values = {.baseline = false};
    static char text[ESP_VALUES][64]; /* static, because values point to their texts */
    for (int i = 0; i < ESP_VALUES; i++) {
        another(i, text[i], sizeof text[i]);
        CHECK(esp_value_parse(&values, i, "it", text[i], err, sizeof err) == ESP_OK);
    }
    return values;
}

static void check_same(const struct esp_session_values *a, const struct esp_session_values *b,
                       int but)
{
    struct esp_value_info info;
    char one[64], other[64];
    for (int i = 0; esp_value_info(i, &info); i++) {
        esp_value_print(a, i, one, sizeof one);
        esp_value_print(b, i, other, sizeof other);
        CHECK(i == but || strcmp(one, other) == 0, "%s: %s and %s", info.name, one, other);
    }
}

/* ------------------------------------------------------------------ the table */

TEST(zeros_are_the_defaults)
{
    struct esp_session_values values = {.baseline = false};
    struct esp_value_info info;
    char text[64], want[64];
    CHECK(esp_values_check(&values, err, sizeof err) == ESP_OK, "%s", err);
    for (int i = 0; esp_value_info(i, &info); i++) {
        esp_value_print(&values, i, text, sizeof text);
        snprintf(want, sizeof want, "%g", info.value);
        CHECK(!strstr(info.values, "NUMBER") || strcmp(text, want) == 0 ||
                  strstr(info.values, text),
              "%s is %s", info.name, text);
        CHECK(esp_value_find(info.name) == i);
        CHECK(*info.help && !strchr(info.help, '\n'));
        struct esp_session_values zeros = {.baseline = false};
        CHECK(info.value == 0 ||
                  esp_value_parse(&zeros, i, info.name, "0", err, sizeof err) == ESP_E_ARGUMENT,
              "0 is a value of %s, so it cannot mean the default", info.name);
    }
    CHECK(!esp_value_info(-1, &info) && !esp_value_info(ESP_VALUES, &info));
    CHECK(esp_value_find("nothing") == -1);
}

TEST(printed_values_can_be_read_again)
{
    struct esp_session_values values = {.baseline = false}, again = values;
    struct esp_value_info info;
    unsigned long long random = 1;
    char text[64], printed[64];
    for (int trial = 0; trial < 2000; trial++)
        for (int i = 0; esp_value_info(i, &info); i++) {
            const double low = info.minimum, high = info.maximum < 1e6 ? info.maximum : 1e6;
            const double any = low + (high - low) * check_uniform(&random);
            snprintf(text, sizeof text, trial % 2 ? "%.0f" : "%.17g", any);
            if (esp_value_parse(&values, i, info.name, text, err, sizeof err) < 0)
                another(i, text, sizeof text);
            CHECK(esp_value_parse(&values, i, info.name, text, err, sizeof err) == ESP_OK);
            esp_value_print(&values, i, printed, 24);
            CHECK(esp_value_parse(&again, i, info.name, printed, err, sizeof err) == ESP_OK,
                  "%s", err);
            if (info.kind == ESP_KIND_text) {
                CHECK(strncmp(text, printed, 23) == 0, "%s is printed as %s", text, printed);
                /* The two sets of values have copies of the text at different addresses. The
                 * comparison below includes addresses, so the addresses are made equal
                 * first. */
                *esp_value_text(&info, &values) = *esp_value_text(&info, &again);
            }
            CHECK(memcmp(&values, &again, sizeof values) == 0, "%s = %s", info.name, text);
        }
}

TEST(invalid_values_are_reported_and_change_nothing)
{
    static const char *const wrong[] = {
        "",   "x",  "-2",       "1e400",  "1e40", "nan",   "1x",
        "ON", "0x", "auto|off", "NUMBER", " ",    "-1e-9", "99999999999999999999"};
    struct esp_session_values values = others();
    struct esp_value_info info;
    const struct esp_session_values before = values;
    for (int i = 0; esp_value_info(i, &info); i++)
        for (size_t j = 0; j < sizeof wrong / sizeof *wrong; j++) {
            if (info.kind == ESP_KIND_text)
                continue; /* any text is valid */
            CHECK(esp_value_parse(&values, i, "--it", wrong[j], err, sizeof err) ==
                      ESP_E_ARGUMENT,
                  "%s takes '%s'", info.name, wrong[j]);
            CHECK(strncmp(err, "--it takes ", 11) == 0 && strstr(err, wrong[j]), "%s", err);
            CHECK(memcmp(&values, &before, sizeof values) == 0);
        }
}

TEST(values_out_of_range_open_no_session)
{
    static const struct esp_session_values wrong[] = {
        {.temperature = -1}, {.temperature = 101}, {.draft_temp = -2},
        {.top_p = 1.5},      {.top_k = -1},        {.order = 3},
    };
    struct esp_session *session;
    toy_open(&toy, VOCABULARY, CONTEXT, 64, 1);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct esp_session_options options = {.values = wrong[i]};
        CHECK(esp_session_open(&session, &toy.engine, &options, err, sizeof err) ==
                  ESP_E_ARGUMENT,
              "case %zu", i);
        CHECK(session == NULL && strstr(err, " takes "), "%s", err);
    }
    toy_close(&toy);
}

/* ------------------------------------------------------------------ options of an engine */

/* Returns a value of an option that differs from its default. */
static const char *option_text(const struct esp_value_info *option)
{
    switch (option->kind) {
    case ESP_KIND_text:
        return "some";
    case ESP_KIND_size:
        return "600M";
    case ESP_KIND_flag:
        return "on";
    case ESP_KIND_choice:
        return strrchr(option->values, '|') + 1;
    default:
        return "3";
    }
}

TEST(options_of_an_engine_are_read_and_written)
{
    const struct esp_engine_options none = {.threads = 0};
    const struct esp_value_info *option;
    char text[64];
    for (int i = 0; (option = esp_engine_option(i)); i++) {
        struct esp_engine_options one = none;
        CHECK(esp_engine_option_find(option->name) == option);
        CHECK(esp_value_read(option, &one, "--it", option_text(option), err, sizeof err) == 0);
        CHECK(memcmp(&one, &none, sizeof one) != 0, "%s", option->name);
        esp_value_write(option, &one, text, sizeof text);
        CHECK(strcmp(text, option_text(option)) == 0, "%s = %s", option->name, text);
        if (strncmp(option->values, "auto|", 5) == 0) {
            CHECK(esp_value_read(option, &one, "--it", "auto", err, sizeof err) == 0);
            CHECK(memcmp(&one, &none, sizeof one) == 0, "%s", option->name);
        }
        if (option->kind == ESP_KIND_text)
            continue;
        CHECK(esp_value_read(option, &one, "--it", "-7", err, sizeof err) == ESP_E_ARGUMENT);
        CHECK(strncmp(err, "--it takes ", 11) == 0 && strstr(err, "-7"), "%s", err);
    }
    CHECK(!esp_engine_option_find("nothing") && !esp_engine_option(-1) &&
          !esp_engine_option(ESP_OPTIONS));
}

/* ------------------------------------------------------------------ users of the table */

static struct esp_session *open_session(const struct esp_session_options *options)
{
    struct esp_session *session;
    CHECK(esp_session_open(&session, &toy.engine, options, err, sizeof err) == ESP_OK, "%s",
          err);
    return session;
}

TEST(another_session_can_take_over_all_settings)
{
    struct esp_session_options options = {.values = others()}, now, then;
    struct esp_value_info info;
    char text[64], got[64];
    toy_open(&toy, VOCABULARY, CONTEXT, 64, 1);
    struct esp_session *session = open_session(NULL);
    for (int i = 0; esp_value_info(i, &info); i++) {
        another(i, text, sizeof text);
        CHECK(esp_session_set(session, info.name, text, err, sizeof err) == ESP_OK, "%s", err);
        CHECK(esp_session_get(session, info.name, got, sizeof got) == ESP_OK);
        CHECK(strcmp(got, text) == 0, "%s = %s", info.name, got);
    }
    esp_session_current(session, &now);
    check_same(&now.values, &options.values, -1);
    struct esp_session *next = open_session(&now);
    esp_session_current(next, &then);
    check_same(&then.values, &options.values, -1);
    esp_session_close(next);
    esp_session_close(session);
    toy_close(&toy);
}

/* The value "auto" means that the user has not chosen. So if the settings are passed to a
 * session with other models, that session uses the default of its own models. */
TEST(automatic_choices_are_not_passed_to_another_session)
{
    struct esp_session_options options = {.drafter = "auto", .verifier = "auto"}, now;
    toy_open(&toy, VOCABULARY, CONTEXT, 64, 1);
    struct esp_session *session = open_session(&options);
    esp_session_current(session, &now);
    CHECK(!now.drafter && !now.verifier && !now.observer);
    CHECK(esp_session_set(session, "drafter", "linear:K=3", err, sizeof err) == ESP_OK);
    CHECK(esp_session_set(session, "K", "4", err, sizeof err) == ESP_OK);
    CHECK(esp_session_set(session, "verifier", "greedy", err, sizeof err) == ESP_OK);
    esp_session_current(session, &now);
    CHECK(strcmp(now.drafter, "linear:K=4") == 0 && strcmp(now.verifier, "greedy") == 0);
    CHECK(esp_session_set(session, "drafter", "auto", err, sizeof err) == ESP_OK);
    /* verifier greedy works only at temperature 0 */
    CHECK(esp_session_set(session, "temp", "0.5", err, sizeof err) < 0);
    CHECK(esp_session_set(session, "verifier", "auto", err, sizeof err) == ESP_OK);
    esp_session_current(session, &now);
    CHECK(!now.drafter && !now.verifier);
    esp_session_close(session);
    toy_close(&toy);
}

/* In a comparison, the second session has the settings of the first session from the start, and
 * follows their changes. Only the first session measures plain decoding. */
TEST(the_other_session_of_a_comparison_has_the_settings_of_the_first)
{
    struct esp_session_options options = {.values = others()}, second = {.drafter = "linear"},
                               now;
    struct esp_value_info info;
    struct esp_compare compare;
    const int own = ESP_VALUE_OF_baseline;
    toy_open(&toy, VOCABULARY, CONTEXT, 64, 1);
    struct esp_session *first = open_session(&options);
    CHECK(esp_compare_open(&compare, first, &second, err, sizeof err) == ESP_OK, "%s", err);
    esp_session_current(compare.second, &now);
    check_same(&now.values, &options.values, own);
    CHECK(!now.values.baseline);
    struct esp_session_values zeros = {.baseline = false};
    CHECK(esp_values_check(&zeros, err, sizeof err) == ESP_OK);
    for (int i = 0; esp_value_info(i, &info); i++) {
        char text[64];
        esp_value_print(&zeros, i, text, sizeof text);
        CHECK(esp_session_set(first, info.name, text, err, sizeof err) == ESP_OK, "%s", err);
        CHECK(esp_compare_set(&compare, info.name, text, err, sizeof err) == (i != own));
    }
    CHECK(esp_compare_set(&compare, "drafter", "ar", err, sizeof err) == 0);
    CHECK(esp_compare_set(&compare, "K", "3", err, sizeof err) == 0);
    esp_session_current(compare.second, &now);
    check_same(&now.values, &zeros, own);
    CHECK(strncmp(now.drafter, "linear", 6) == 0);
    esp_compare_close(&compare);
    esp_session_close(first);
    toy_close(&toy);
}

TEST(a_recording_has_all_settings)
{
    struct esp_recording_header header = {.values = others()};
    struct esp_recorder_options options = {.path = recorded_path(), .force = true};
    struct esp_recorder *recorder;
    esp_values_forget_texts(&header.values); /* recorded prompts contain these texts */
    CHECK(esp_recorder_open(&recorder, &options, &header, err, sizeof err) == 0, "%s", err);
    CHECK(esp_recorder_close(recorder, err, sizeof err) == 0, "%s", err);
    struct esp_recording *recording = recorded_open();
    check_same(&esp_recording_header(recording)->values, &header.values, -1);
    esp_recording_close(recording);
}

/* If a recording is older than a setting, the setting has its default. Values that cannot be
 * read are ignored. */
TEST(an_old_recording_has_the_defaults)
{
    static const char *const headers[] = {
        "{\"format\":\"espalier-session\",\"version\":\"1.0\"}\n",
        "{\"format\":\"espalier-session\",\"version\":\"1.7\",\"order\":\"zigzag\","
        "\"settings\":{\"draft_temp\":\"hot\",\"later\":\"7\",\"temp\":3,\"top_k\":[]}}\n",
        "{\"format\":\"espalier-session\",\"version\":\"1.0\",\"settings\":[1,2]}\n",
    };
    struct esp_session_values zeros = {.baseline = false};
    CHECK(esp_values_check(&zeros, err, sizeof err) == ESP_OK);
    for (int i = 0; i < 3; i++) {
        recorded_write(headers[i], strlen(headers[i]));
        struct esp_recording *recording = recorded_open();
        check_same(&esp_recording_header(recording)->values, &zeros, -1);
        esp_recording_close(recording);
    }
}

TEST(the_interface_knows_all_settings)
{
    struct esp_value_info info;
    for (int i = 0; esp_value_info(i, &info); i++) {
        const struct esp_setting *setting =
            esp_setting(esp_setting_find(info.name, strlen(info.name)));
        CHECK(setting && setting->kind == ESP_SETTING_SESSION, "%s", info.name);
        CHECK(strcmp(setting->values, info.values) == 0);
        CHECK(strcmp(setting->summary, info.help) == 0);
    }
}
