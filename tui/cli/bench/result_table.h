/* result_table.h - a table of words and numbers, written as Markdown, CSV or JSON, or drawn. */
#ifndef ESP_CLI_RESULT_TABLE_H
#define ESP_CLI_RESULT_TABLE_H

#include <cJSON.h>
#include <stdbool.h>
#include <stdio.h>

#include "viz/drawing.h"

enum { TABLE_COLUMNS = 48 };

struct cli_cell {
    char *text;    /* as it is shown; NULL: as the number */
    double number; /* NaN: it is none */
    double spread; /* of a mean: the deviation of what it is the mean of; 0: not known */
};

struct cli_table {
    int columns;
    struct {
        const char *name, *heading; /* for programs, for people; static, or the caller's */
        int digits;                 /* behind the point */
        bool key;                   /* says what the row is of, and is no figure */
    } column[TABLE_COLUMNS];
    int rows, room;
    struct cli_cell *cell; /* (rows, columns) */
};

void cli_table_free(struct cli_table *table);
/* Adds a column to a table without rows; false: there is no room. */
bool cli_table_column(struct cli_table *table, const char *name, const char *heading,
                      int digits, bool key);
/* Adds a row without values. Returns its first cell, or NULL without memory. */
struct cli_cell *cli_table_row(struct cli_table *table);
/* Copies a word into a cell; false without memory. */
bool cli_cell_text(struct cli_cell *cell, const char *text);
int cli_table_find(const struct cli_table *table, const char *name); /* or -1 */

/* Writes text on one line that Markdown shows as it is. */
void cli_markdown_text(FILE *file, const char *text);
/* A cell that a spreadsheet would take as a formula begins with an apostrophe. */
void cli_table_csv(const struct cli_table *table, FILE *file);
void cli_table_markdown(const struct cli_table *table, FILE *file);
/* The values of one column, those of `across` side by side; the other keys are the lines. */
void cli_table_pivot(const struct cli_table *table, const char *across, const char *column,
                     FILE *file);
/* The rows whose key has a value, by conditions "KEY=VALUE ...". Those keys, and such as none
 * of the rows has, are none any more. `part` refers to the table's cells; free(part->cell) is
 * all that it takes. False: no memory. */
bool cli_table_part(struct cli_table *part, const struct cli_table *table, const char *where);
cJSON *cli_table_json(const struct cli_table *table);
/* Fills an empty drawing: column y over column x, a line (or bars, where x is no number) for
 * each of the other keys' values, with the spread of y as error bars. Rows with the word
 * `reference` (or NULL) as a key are what the others are compared with. */
void cli_table_plot(const struct cli_table *table, const char *title, const char *x,
                    const char *y, const char *reference, struct esp_drawing *drawing);

#endif
