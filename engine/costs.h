/* costs.h - the time that passes take on this machine, measured while text is written, and
 * kept.
 *
 * Two curves, in seconds:
 * - draft: a draft pass by its rows. It includes the draws and the drafter's own work until the
 *   next pass.
 * - verify: the rest of an iteration by the rows that the target verifies (target pass,
 *   selection, commit). Plain decoding is verify(1).
 *
 * Row counts are grouped into classes. A class keeps its last samples and uses their lower
 * quartile, because interruptions only ever make a pass slower. Three steps turn classes into a
 * curve: shrink each towards a straight line fitted to all of them, pool neighbours until the
 * curve never falls (isotonic regression), interpolate. Beyond the largest measured class a
 * curve continues with a part of the line's slope, so that a size that may pay is tried and
 * measured. Classes with few or old samples have a smaller weight, so that a size that was slow
 * by chance is tried again. When the machine gets slower or faster, classes without recent
 * samples move along with those that have some.
 *
 * A program's first passes are slow (first access to memory, processor clock ramping up).
 * Passes of the first ESP_COST_WARM_UP seconds are not counted.
 *
 * A pass over a long text takes longer, so each octave of text length has its own pair of
 * curves. Drafters see no clock: a test plants curves, and the same code runs on them.
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
    double sample[ESP_COST_SAMPLES]; /* a ring */
    int count, next;
    double weight;
    bool fresh; /* has samples newer than the file */
};

struct esp_cost_curve {
    struct esp_cost_class class[ESP_COST_CLASSES];
    int recent[ESP_COST_RECENT]; /* classes of the last samples, a ring */
    unsigned added;              /* samples so far */
    /* Knots, one per class with samples, in order: rows, and seconds that never fall. */
    int knots;
    double rows[ESP_COST_CLASSES], seconds[ESP_COST_CLASSES];
    double one, slope; /* line through all classes: a row, and each further row */
};

enum esp_cost { ESP_COST_DRAFT, ESP_COST_VERIFY, ESP_COSTS };

struct esp_costs {
    struct esp_cost_curve curve[ESP_COSTS][ESP_COST_OCTAVES];
    int octave;         /* of the current text length */
    double relative;    /* draft pass / target pass, assumed until a draft pass is measured */
    bool nominal;       /* fixed curves, so that a seed repeats its trees */
    double nominal_row; /* then the share of a pass that a further row costs */
    double (*planted[ESP_COSTS])(int rows); /* by a test: seconds; NULL: none */
    double warm; /* seconds of passes so far, until the warm-up ends */
    char key[384], file[64];
    bool learned;
};

/* As esp_calibration_turn() and _save(). */
void esp_costs_turn(struct esp_costs *costs, const char *key);
void esp_costs_save(struct esp_costs *costs);

struct esp_nominal_costs;
/* Uses these costs from now on and measures none; NULL: a sixteenth for a row. */
void esp_costs_nominal(struct esp_costs *costs, const struct esp_nominal_costs *given);

/* Sets the length of the text, in tokens. */
void esp_costs_at(struct esp_costs *costs, int length);

/* Records the time of a pass. Does nothing if curves are planted. */
void esp_costs_took(struct esp_costs *costs, enum esp_cost of, int rows, double seconds);

/* Seconds; 0 before the target was measured. */
double esp_costs_draft(const struct esp_costs *costs, int rows);
double esp_costs_verify(const struct esp_costs *costs, int rows);

#endif
