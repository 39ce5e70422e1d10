/* result_table.h - a table of words and numbers. It can be written as Markdown, CSV or JSON, or
 * drawn as a plot. */
#ifndef ESP_CLI_RESULT_TABLE_H
#define ESP_CLI_RESULT_TABLE_H

#include <cJSON.h>
#include <stdbool.h>
#include <stdio.h>

#include "viz/drawing.h"

enum { TABLE_COLUMNS = 48 };

struct cli_cell {
    char *text;    /* the displayed text; if NULL, the number is displayed */
    double number; /* NaN if there is none */
    double spread; /* standard deviation of the values if the number is a mean; 0: unknown */
};

struct cli_table {
    int columns;
    struct {
        const char *name, *heading; /* `heading` is displayed; both must outlive the table */
        int digits;                 /* digits after the decimal point */
        bool key;                   /* the values of the key columns identify a row */
    } column[TABLE_COLUMNS];
    int rows, room;
    struct cli_cell *cell; /* (rows, columns) */
};

void cli_table_free(struct cli_table *table);
/* Adds a column to a table without rows. Returns false if there is no room. */
bool cli_table_column(struct cli_table *table, const char *name, const char *heading,
                      int digits, bool key);
/* Adds an empty row. Returns its first cell, or NULL if there is no memory. */
struct cli_cell *cli_table_row(struct cli_table *table);
/* Sets the text of a cell. Returns false if there is no memory. */
bool cli_cell_text(struct cli_cell *cell, const char *text);
int cli_table_find(const struct cli_table *table, const char *name); /* -1 if none */

/* Writes a text in one line, escaped for Markdown. */
void cli_markdown_text(FILE *file, const char *text);
/* Puts an apostrophe before each cell that a spreadsheet would read as a formula. */
void cli_table_csv(const struct cli_table *table, FILE *file);
void cli_table_markdown(const struct cli_table *table, FILE *file);
/* Writes the values of one column as a Markdown table. This table has a column for each value
 * of `across`, and a line for each combination of the other keys. */
void cli_table_pivot(const struct cli_table *table, const char *across, const char *column,
                     FILE *file);
/* Copies the rows that meet all conditions "KEY=VALUE ..." to `part`. A key column of the table
 * is not a key of `part` if a condition names it, or if it is empty in all of these rows.
 * `part` points to the table's texts; free it with free(part->cell). Returns false if there is
 * no memory. */
bool cli_table_part(struct cli_table *part, const struct cli_table *table, const char *where);
cJSON *cli_table_json(const struct cli_table *table);
/* Fills an empty drawing with column y over column x. Each combination of the other keys has a
 * line or, if x is not a number, bars. The spread of y gives error bars. If one of a row's
 * keys equals `reference`, the row is drawn as the reference for the other rows. If `reference`
 * is NULL, there is no reference. */
void cli_table_plot(const struct cli_table *table, const char *title, const char *x,
                    const char *y, const char *reference, struct esp_drawing *drawing);

#endif
