/* Tests calibration. It must find the draft temperature that a test has chosen, make
 * predictions accurate, and store what it has learned. It must not use a damaged file. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/check.h"
#include "tests/drafting.h"
#include "tests/each_backend.h"
#include "engine/support/paths.h"

/* ------------------------------------------------------------------ sums over a row */

EACH_BACKEND(the_mean_log_and_the_sum_of_powers_of_rows_are_right)
{
    static const int sizes[] = {1, 15, 16, 17, 333, 4096};
    static float x[4096];
    unsigned long long state = 3;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct esp_rows *rows;
        char err[200] = "";
        double sum = 0, mean[2], power[2];
        const int n = sizes[i];
        CHECK(backend->ops->rows_open(&rows, backend, 3, n, err, sizeof err) == 0, "%s", err);
        for (int j = 0; j < n; j++)
            sum += x[j] = (float)exp(-30 * check_uniform(&state));
        for (int j = 0; j < n; j++)
            /* every seventh probability of a long row is 0 */
            x[j] = n > 20 && j % 7 == 0 ? 0 : (float)(x[j] / sum);
        CHECK(backend->ops->write_row(rows, 2, x) == 0);
        CHECK(backend->ops->write_row(rows, 0, x) == 0);
        for (double a = 0.125; a <= 4; a *= 2) {
            double want_mean = 0, want_power = 0;
            for (int j = 0; j < n; j++) {
                want_mean += x[j] > 0 ? x[j] * log(x[j]) : 0;
                want_power += x[j] > 0 ? pow(x[j], a) : 0;
            }
            CHECK(backend->ops->temper(rows, (int32_t[]){2, 0}, 2, a, mean, power, ESP_NOW) ==
                  0);
            for (int k = 0; k < 2; k++)
                CHECK(fabs(mean[k] - want_mean) < 2e-5 * (1 + fabs(want_mean)) &&
                          fabs(power[k] - want_power) < 2e-5 * want_power,
                      "%d values to the power of %g: %.9g and %.9g, not %.9g and %.9g", n, a,
                      mean[k], power[k], want_mean, want_power);
        }
        CHECK(backend->ops->temper(rows, (int32_t[]){3}, 1, 1, mean, power, ESP_NOW) ==
              ESP_E_ARGUMENT);
        CHECK(backend->ops->temper(rows, (int32_t[]){0}, 1, 0, mean, power, ESP_NOW) ==
              ESP_E_ARGUMENT);
        backend->ops->rows_close(rows);
    }
}

/* ------------------------------------------------------------------ known temperatures */

/* The draft equals the target, except that its logits are divided by `beta`. At temperature 0,
 * the target's likeliest token is random, and differs from text to text. Returns the beta that
 * the session has learned after `texts` texts. */
static double learned_beta(const char *drafter, double beta, double temperature, int texts,
                           struct esp_stats *stats)
{
    struct drafting d;
    drafting_open(&d, &(struct drafting_setup){.drafter = drafter,
                                               .draft_temp = "auto",
                                               .temperature = temperature,
                                               .toy_seed = 9,
                                               .sharpness = 5});
    d.toy.closeness = 1;
    d.toy.dulled = beta;
    d.toy.chancy = temperature == 0;
    for (int text = 0; text < texts; text++) {
        /* with the same seed, every text would be the same */
        d.toy.seed = 9 + 1000 * (unsigned long long)text;
        drafting_restart(&d, (unsigned long long)text);
        while (drafting_step(&d))
            continue;
    }
    esp_session_stats(d.session, stats);
    double learned = esp_session_beta(d.session);
    drafting_close(&d);
    return learned;
}

TEST(a_planted_beta_is_found_within_5_percent)
{
    static const char *const drafters[] = {"fixed:D=3,B=3", "linear:K=4", "iid:K=3,L=3",
                                           "sequoia:N=10,learn=off"};
    static const double betas[] = {0.6, 1, 1.7, 3};
    const int texts = check_quick() ? 10 : 120;
    for (size_t i = 0; i < sizeof drafters / sizeof *drafters; i++)
        for (size_t j = 0; j < sizeof betas / sizeof *betas; j++)
            for (int sampled = 0; sampled < 2; sampled++) {
                struct esp_stats stats;
                double found =
                    learned_beta(drafters[i], betas[j], sampled ? 0.9 : 0, texts, &stats);
                CHECK(fabs(found / betas[j] - 1) < (check_quick() ? 0.15 : 0.05),
                      "%s at temperature %g: beta is %g, not %g", drafters[i],
                      sampled ? 0.9 : 0.0, found, betas[j]);
                CHECK(fabs(stats.draft_temp - (sampled ? 0.9 : 1) / found) < 1e-9);
            }
}

TEST(tempered_probabilities_are_calibrated)
{
    for (int sampled = 0; sampled < 2; sampled++) {
        struct esp_stats stats;
        learned_beta("fixed:D=3,B=3", 3, sampled ? 0.9 : 0, 40, &stats);
        CHECK(stats.calibration_error_raw > 0.1, "%g", stats.calibration_error_raw);
        CHECK(stats.calibration_error < stats.calibration_error_raw / 3 &&
                  stats.calibration_error < 0.06,
              "%g after %g", stats.calibration_error, stats.calibration_error_raw);
    }
}

/* A draft temperature that the user has set must not change, and the calibration error must
 * still be reported. */
TEST(a_draft_temperature_set_by_the_user_stays)
{
    struct drafting d;
    struct esp_stats stats;
    char value[32];
    drafting_open(&d, &(struct drafting_setup){.drafter = "fixed", .draft_temp = "0.5"});
    for (int i = 0; i < 30; i++)
        CHECK(drafting_step(&d));
    esp_session_stats(d.session, &stats);
    CHECK(stats.draft_temp == 0.5 && isfinite(stats.calibration_error));
    CHECK(esp_session_get(d.session, "draft_temp", value, sizeof value) == ESP_OK &&
              strcmp(value, "0.5") == 0,
          "%s", value);
    drafting_set(&d, "draft_temp", "off");
    esp_session_stats(d.session, &stats);
    CHECK(stats.draft_temp == 1);
    drafting_set(&d, "temp", "0.7");
    esp_session_stats(d.session, &stats);
    CHECK(stats.draft_temp == 0.7);
    static const char *const wrong[] = {"", "0", "-1", "1e9", "nan", "hot", "0.5x"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CHECK(esp_session_set(d.session, "draft_temp", wrong[i], d.err, sizeof d.err) ==
                      ESP_E_ARGUMENT &&
                  strstr(d.err, "draft_temp"),
              "'%s': %s", wrong[i], d.err);
    drafting_close(&d);
}

/* ------------------------------------------------------------- the file with learned values */

static struct esp_calibration one, other;

static void in_fresh_home(char home[128])
{
    const char *base = getenv("TMPDIR");
    snprintf(home, 128, "%s/esp-calibration-XXXXXX", base ? base : P_tmpdir);
    CHECK(mkdtemp(home));
    setenv("XDG_STATE_HOME", home, 1);
}

static void leave_home(const char *home)
{
    char command[200];
    snprintf(command, sizeof command, "rm -r '%s'", home);
    CHECK(system(command) == 0);
    unsetenv("XDG_STATE_HOME");
}

TEST(learned_values_are_stored_and_damaged_files_do_no_harm)
{
    static const char *const files[] = {
        "",
        "{",
        "[]",
        "null",
        "{\"key\":\"a\"}",
        "{\"key\":\"a\",\"log_beta\":9}",
        "{\"key\":\"a\",\"log_beta\":\"x\",\"information\":1}",
        "{\"key\":\"a\",\"log_beta\":0.5,\"information\":-1}",
        "{\"key\":\"a\",\"log_beta\":0.5,\"information\":1,\"raw\":{\"tried\":[1]}}",
    };
    char home[128];
    in_fresh_home(home);
    memset(&one, 0, sizeof one);
    esp_calibration_turn(&one, "a", true);
    one.log_beta = 0.7;
    one.likely.tried[3] = 5;
    one.likely.predicted[3] = 2;
    one.likely.found[3] = 4;
    one.learned = true;
    esp_calibration_turn(&one, "b", true); /* this saves the values of key a */
    CHECK(one.log_beta == 0 && one.likely.tried[3] == 0);
    memset(&other, 0, sizeof other);
    esp_calibration_turn(&other, "a", true);
    CHECK(fabs(other.log_beta - 0.7) < 1e-12 && other.likely.found[3] == 4);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        CHECK(esp_state_write(other.file, files[i]) == ESP_OK);
        memset(&one, 0, sizeof one);
        esp_calibration_turn(&one, "a", true);
        CHECK(one.log_beta == 0 && one.raw.tried[0] == 0, "%s", files[i]);
    }
    one.log_beta = 0.5;
    one.learned = true;
    esp_calibration_save(&one);
    memset(&other, 0, sizeof other);
    esp_calibration_turn(&other, "a", false); /* a repeatable session reads no file */
    CHECK(other.log_beta == 0 && !*other.file);
    leave_home(home);
}
