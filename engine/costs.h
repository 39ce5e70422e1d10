/* costs.h - learns how long passes take on this machine. Passes are timed while text is
 * generated, and the times are stored in a file.
 *
 * There are two curves, in seconds:
 * - draft: the time of a draft pass, as a function of its number of rows. This includes drawing
 *   tokens, and the drafter's own work until the next pass.
 * - verify: the time of the other stages of an iteration (target pass, selection, commit), as a
 *   function of the number of rows that the target verifies. Plain decoding is verify(1).
 *
 * Row counts are grouped into classes. A class stores its last samples and uses their lower
 * quartile, because interruptions only ever make a pass slower. Three steps turn classes into a
 * curve. Each class is shrunk towards a straight line fitted to all of them. Neighbouring
 * classes are pooled until the curve never falls (isotonic regression). Between classes the
 * curve is interpolated. Beyond the largest measured class a curve continues with a fraction of
 * the line's slope. Larger trees therefore look cheap enough to be tried and measured. Classes
 * with few or old samples have a smaller weight, so that a size that was slow by chance is
 * tried again. When the machine gets slower or faster, classes without recent samples are
 * scaled by the same factor as classes with recent samples.
 *
 * A program's first passes are slow (first access to memory, processor clock ramping up).
 * Passes of the first ESP_COST_WARM_UP seconds are not counted.
 *
 * A pass over a long text takes longer, so there is a pair of curves for each octave of text
 * length. Drafters read these curves and never the clock, so a test can set the curves
 * (`planted`) and run the same code.
 */
#ifndef ESP_COSTS_H
#define ESP_COSTS_H

#include "engine/espalier_event.h"

enum {
    ESP_COST_CLASSES = 48,
    ESP_COST_SAMPLES = 8,
    ESP_COST_RECENT = 16,
    ESP_COST_OCTAVES = 12,
};

#define ESP_COST_WARM_UP 0.008

struct esp_cost_class {
    double sample[ESP_COST_SAMPLES]; /* ring buffer of seconds */
    int count, next;
    double weight;
    bool fresh; /* true if this session has measured some of the samples */
};

struct esp_cost_curve {
    struct esp_cost_class class[ESP_COST_CLASSES];
    int recent[ESP_COST_RECENT]; /* ring buffer of the classes of the last samples */
    unsigned added;              /* number of samples so far */
    /* The curve has a knot for each class with samples. Knots are ordered by rows, and the
     * seconds never fall from one knot to the next. */
    int knots;
    double rows[ESP_COST_CLASSES], seconds[ESP_COST_CLASSES];
    double one, slope; /* fitted line: seconds of a one-row pass, and of each further row */
};

enum esp_cost { ESP_COST_DRAFT, ESP_COST_VERIFY, ESP_COSTS };

struct esp_costs {
    struct esp_cost_curve curve[ESP_COSTS][ESP_COST_OCTAVES];
    int octave;         /* octave of the current text length */
    double relative;    /* assumed ratio of a draft pass to a target pass, until a draft pass is
                           measured */
    bool nominal;       /* the curves are fixed, so that the same seed gives the same trees */
    double nominal_row; /* if nominal: cost of a further row, as a fraction of a one-row pass */
    double (*planted[ESP_COSTS])(int rows); /* a test's own curves, in seconds; or NULL */
    double warm; /* seconds of passes so far, until the warm-up ends */
    char key[384], file[64];
    bool learned;
};

/* These two functions work like esp_calibration_turn() and esp_calibration_save(). */
void esp_costs_turn(struct esp_costs *costs, const char *key);
void esp_costs_save(struct esp_costs *costs);

struct esp_nominal_costs;
/* Uses `given` from now on and measures nothing. If it is NULL, a further row costs 1/16 of a
 * one-row pass, and a one-row draft pass costs `relative`. */
void esp_costs_nominal(struct esp_costs *costs, const struct esp_nominal_costs *given);

/* Sets the length of the text, in tokens. */
void esp_costs_at(struct esp_costs *costs, int length);

/* Records the time of a pass. Does nothing if the curve is planted or nominal. */
void esp_costs_took(struct esp_costs *costs, enum esp_cost of, int rows, double seconds);

/* The first function returns the estimated seconds of a draft pass with this many rows. The
 * second returns the estimated seconds of all other stages of an iteration. Both return 0 until
 * something has been measured. In nominal mode the unit is not a second but a one-row target
 * pass. */
double esp_costs_draft(const struct esp_costs *costs, int rows);
double esp_costs_verify(const struct esp_costs *costs, int rows);

#endif
