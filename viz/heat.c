/* heat.c - see heat.h. */
#include "viz/heat.h"

#include <math.h>
#include <stddef.h>

#include "viz/style.h"

enum { LIMITS = ESP_HEAT_STEPS - 1 };

/* Values below limit[i] belong to step i or to a lower step. */
static const struct {
    const char *title;
    double limit[LIMITS];
    const char *words[ESP_HEAT_STEPS];
} heats[ESP_HEATS] = {
    [ESP_HEAT_SURPRISAL] = {"surprisal, bits", {1, 2, 4, 8}, {"<1", "1-2", "2-4", "4-8", "8+"}},
    [ESP_HEAT_ENTROPY] = {"entropy, bits", {0.5, 1, 2, 4}, {"<.5", ".5-1", "1-2", "2-4", "4+"}},
    [ESP_HEAT_RANK] = {"rank", {2, 3, 5, 9}, {"1", "2", "3-4", "5-8", "9+"}},
    [ESP_HEAT_ORIGIN] = {"written by", {0}, {"draft", NULL, "target", NULL, "you"}},
};

double esp_surprisal(const struct esp_token_score *score)
{
    return score->count > 0 && score->p > 0 ? fmax(-log2((double)score->p), 0) : NAN;
}

static int origin(int kind)
{
    return kind == ESP_TEXT_DRAFTED  ? 0
           : kind == ESP_TEXT_BONUS  ? 2
           : kind == ESP_TEXT_PROMPT ? 4
           : kind == ESP_TEXT_CHOSEN ? 4
                                     : -1;
}

int esp_heat_step(int heat, int kind, const struct esp_token_score *score)
{
    const double rank = score->rank > 0 ? score->rank : ESP_LIKELY + 1;
    const double value = heat == ESP_HEAT_SURPRISAL ? esp_surprisal(score)
                         : heat == ESP_HEAT_ENTROPY ? (double)score->entropy
                                                    : rank;
    int step = 0;
    if (heat == ESP_HEAT_ORIGIN)
        return origin(kind);
    if (heat == ESP_HEAT_OFF || kind == ESP_TEXT_MARK || score->count == 0)
        return -1;
    if (isnan(value)) /* the token's probability is 0 */
        return ESP_HEAT_STEPS - 1;
    while (step < LIMITS && value >= heats[heat].limit[step])
        step++;
    return step;
}

int esp_heat_style(int step)
{
    return ESP_STYLE_HEAT_1 + step;
}

const double *esp_heat_limits(int heat)
{
    return heats[heat].limit;
}

const char *esp_heat_title(int heat)
{
    return heats[heat].title;
}

const char *esp_heat_words(int heat, int step)
{
    return heats[heat].words[step];
}
