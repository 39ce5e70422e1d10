/* costs.h - what passes cost on this machine: measured while text is written, and kept.
 *
 * Two curves, in seconds: a draft pass by the rows it computes (the pass, the draws and the
 * drafter's own work until the next pass), and the rest of an iteration by the rows that the
 * target verifies (the target's pass, the choice, the commit). Plain decoding is verify(1).
 *
 * A class of row counts stands for a few samples, of which the lower quartile counts (nothing
 * makes a pass quicker than it is); they are drawn towards a line through all classes, pooled
 * until more rows never cost less, and interpolated between. Beyond what was measured a curve
 * goes on with a part of that line's slope, so that a size is tried if it may pay, and then is
 * known. Few or old samples count less, so that a size that was slow by chance is tried again.
 *
 * A program's first passes are slow (memory is touched for the first time, the processor speeds
 * up): those of the first ESP_COST_WARM_UP seconds do not count.
 *
 * A pass over a long text takes longer, so there is a pair of curves for each octave of the
 * text's length. Drafters see no clock: a test plants curves, and the same code runs on them.
 */
#ifndef ESP_COSTS_H
#define ESP_COSTS_H

#include "engine/espalier_event.h"

enum {
    ESP_COST_CLASSES = 48,
    ESP_COST_SAMPLES = 8,
    ESP_COST_OCTAVES = 12,
    ESP_COST_PASSES = 64, /* draft passes of one iteration that are timed */
};

#define ESP_COST_WARM_UP 0.008

struct esp_cost_class {
    double sample[ESP_COST_SAMPLES]; /* a ring */
    int count, next;
    double weight;
    bool fresh; /* sampled since the file was read */
};

struct esp_cost_curve {
    struct esp_cost_class class[ESP_COST_CLASSES];
    /* Of the classes seen, in order: rows, and seconds that never fall. */
    int knots;
    double rows[ESP_COST_CLASSES], seconds[ESP_COST_CLASSES];
    double one, slope; /* of a line through all classes: one row, and each row more */
};

struct esp_costs {
    struct esp_cost_curve draft[ESP_COST_OCTAVES], verify[ESP_COST_OCTAVES];
    int octave;      /* of the text that is being written */
    double relative; /* a guess: a draft pass over a target pass, before one was measured */
    bool nominal; /* curves are fixed, not measured, so that a given seed repeats its trees */
    double nominal_row; /* what a further row then costs of a pass */
    /* Planted by a test: seconds of a draft pass and of the rest of an iteration. NULL: none.
     */
    double (*planted_draft)(int rows);
    double (*planted_verify)(int rows);
    double warm; /* seconds of passes that were timed, while those are not believed yet */
    char key[384], file[64];
    bool learned;
};

/* As esp_calibration_turn() and _save(). */
void esp_costs_turn(struct esp_costs *costs, const char *key);
void esp_costs_save(struct esp_costs *costs);

struct esp_nominal_costs;
/* From now on these costs are believed, and none is measured; NULL: a sixteenth for a row. */
void esp_costs_nominal(struct esp_costs *costs, const struct esp_nominal_costs *given);

/* The text has `length` tokens now. */
void esp_costs_at(struct esp_costs *costs, int length);

/* A pass took so long. Nothing happens where curves are planted. */
void esp_costs_draft_took(struct esp_costs *costs, int rows, double seconds);
void esp_costs_verify_took(struct esp_costs *costs, int rows, double seconds);

/* Seconds; 0 while nothing is known of the target. */
double esp_costs_draft(const struct esp_costs *costs, int rows);
double esp_costs_verify(const struct esp_costs *costs, int rows);

/* Has a draft pass been measured? */
bool esp_costs_draft_known(const struct esp_costs *costs);

#endif
