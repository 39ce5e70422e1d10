/* Fuzzes a suite and the results of its runs, which are read from a journal. The suite is
 * planned, and every run gets the results of the input. The tables and plots that are written
 * must be safe to show. The input has the parts x.suite, prompts and figures. */
#include "tui/cli/bench/suite.h"

#include <stdio.h>
#include <stdlib.h>

#include "tests/fuzz/support/fuzz.h"
#include "tui/cli/cli.h"
#include "viz/safe.h"

enum {
    MOST_CASES = 400 /* only this many cases get results; more would test nothing new */
};

static void give_figures(struct cli_suite_plan *plan, const cJSON *figures)
{
    for (int i = 0; i < plan->count && i < MOST_CASES; i++)
        for (int j = 0; j < plan->prompts->count; j++)
            if ((i + j) % 5 != 4) /* some results are missing */
                plan->cases[i].run[j] = cJSON_Duplicate(figures, true);
}

/* Checks that a text is safe to show. Files can contain any bytes, so all text from a file must
 * have passed through esp_safe_write(). */
static void require_shown(const char *text, size_t length, const char *what)
{
    char *shown;
    size_t size;
    FILE *file = open_memstream(&shown, &size);
    FUZZ_REQUIRE(file, "there is memory");
    esp_safe_write(file, text, length);
    fclose(file);
    fuzz_require_safe(shown, size, what);
    free(shown);
}

static void write_forms(const struct cli_suite *suite, const struct cli_table *table)
{
    char *text;
    size_t length;
    FILE *file = open_memstream(&text, &length);
    FUZZ_REQUIRE(file, "there is memory");
    cli_table_markdown(table, file);
    cli_table_csv(table, file);
    for (int i = 0; i < suite->pivots; i++) {
        struct cli_table part;
        FUZZ_REQUIRE(cli_table_part(&part, table, suite->pivot[i].where), "there is memory");
        cli_table_pivot(&part, suite->pivot[i].across, suite->pivot[i].column, file);
        free(part.cell);
    }
    fclose(file);
    require_shown(text, length, "a table");
    free(text);
    for (int i = 0; i < suite->plots; i++) {
        struct esp_drawing drawing = {.latex = false};
        cli_table_plot(table, suite->title, suite->plot[i].across, suite->plot[i].column,
                       SUITE_PLAIN, &drawing);
        FUZZ_REQUIRE(esp_drawing_write(&drawing, &text, &length) == 0, "there is memory");
        esp_drawing_free(&drawing);
        require_shown(text, length, "a plot");
        free(text);
    }
    cJSON_Delete(cli_table_json(table));
}

static void lay_out(struct cli_suite *suite, struct cli_prompts *prompts, const cJSON *figures)
{
    static const struct cli_options options = {.tokens = 16, .prompt_tokens = 1 << 20};
    struct cli_suite_plan plan;
    struct cli_table table;
    char err[1024] = "";
    if (cli_suite_plan(&plan, suite, prompts, &options, err, sizeof err) < 0) {
        FUZZ_REQUIRE(*err, "a refusal is a sentence");
    } else {
        FUZZ_REQUIRE(plan.count <= SUITE_GRID && plan.rows <= SUITE_GRID,
                     "there are at most SUITE_GRID cases and rows");
        give_figures(&plan, figures);
        FUZZ_REQUIRE(cli_suite_table(&table, &plan) == 0, "there is a table");
        write_forms(suite, &table);
        cli_table_free(&table);
    }
    cli_suite_plan_free(&plan);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    static struct cli_suite suite;
    struct cli_prompts prompts;
    struct fuzz_part part;
    char path[300], err[1024] = "";
    size_t size;
    fuzz_folder_empty();
    for (size_t at = 0; fuzz_next_part(bytes, length, &at, &part);)
        fuzz_folder_write(part.name, part.bytes, part.length, 0);
    snprintf(path, sizeof path, "%s/x.suite", fuzz_folder());
    if (cli_suite_read(&suite, path, err, sizeof err) < 0) {
        FUZZ_REQUIRE(*err, "a refusal is a sentence");
        return 0;
    }
    char *text = fuzz_part_text(bytes, length, "prompts", &size);
    if (cli_prompts_take(&prompts, text, size, "prompts", err, sizeof err) == 0) {
        char *json = fuzz_part_text(bytes, length, "figures", &size);
        cJSON *figures = cJSON_Parse(json);
        if (cJSON_IsObject(figures))
            lay_out(&suite, &prompts, figures);
        cJSON_Delete(figures);
        free(json);
    }
    cli_prompts_free(&prompts);
    free(text);
    return 0;
}
