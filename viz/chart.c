/* chart.c - draws numbers, bars and sparklines; see chart.h. */
#include "viz/chart.h"

#include <math.h>
#include <string.h>

const char *esp_probability(char text[8], double p)
{
    if (!isfinite(p))
        return strcpy(text, "  -");
    if (p >= 0.995)
        return strcpy(text, "1.0");
    if (p > 0 && p < 0.005)
        return strcpy(text, "<.01");
    snprintf(text, 8, "%.2f", p < 0 ? 0 : p);
    memmove(text, text + 1, strlen(text));
    return text;
}

int esp_draw_probability(struct esp_canvas *canvas, int x, int y, int style, double p)
{
    char text[8];
    esp_probability(text, p);
    esp_draw(canvas, text[0] == '<' ? x - 1 : x, y, style, text);
    return x + 3;
}

const char *esp_probability_exact(char text[16], double p)
{
    if (p >= 0.995 || !isfinite(p))
        return strcpy(text, p >= 0.995 ? "1.0" : "-");
    return esp_number(text, p < 1e-5 ? 0 : p, 2);
}

/* Writes a probability without the 0 before the decimal point. */
static void write_decimals(char text[16], double p, int decimals)
{
    snprintf(text, 16, "%.*f", decimals, p < 0 ? 0 : p > 1 ? 1 : p);
    if (text[0] == '0')
        memmove(text, text + 1, strlen(text));
}

void esp_probabilities_apart(char a_text[16], double a, char b_text[16], double b)
{
    enum { MOST = 12 };
    esp_probability_exact(a_text, a);
    esp_probability_exact(b_text, b);
    for (int decimals = 3; strcmp(a_text, b_text) == 0 && a != b && decimals <= MOST;
         decimals++) {
        write_decimals(a_text, a, decimals);
        write_decimals(b_text, b, decimals);
    }
}

const char *esp_number(char text[16], double value, int digits)
{
    if (!isfinite(value))
        return strcpy(text, "-");
    int whole = value == 0 ? 0 : 1 + (int)floor(log10(fabs(value)));
    int decimals = whole >= digits ? 0 : digits - whole;
    decimals = decimals > 5 ? 5 : decimals;
    snprintf(text, 16, "%.*f", decimals, value);
    for (size_t end = strlen(text); decimals > digits && text[end - 1] == '0'; decimals--)
        text[--end] = '\0';
    if (strncmp(text, "0.", 2) == 0)
        memmove(text, text + 1, strlen(text));
    return text;
}

int esp_draw_bar(struct esp_canvas *canvas, int x, int y, int width, int style, double fraction)
{
    if (!(fraction > 0) || width < 1)
        return x;
    int eighths = (int)lround((fraction > 1 ? 1 : fraction) * width * 8);
    if (eighths == 0)
        eighths = 1;
    x = esp_draw_repeat(canvas, x, y, eighths / 8, style, canvas->glyphs->eighths[8]);
    if (eighths % 8)
        x = esp_draw_repeat(canvas, x, y, 1, style, canvas->glyphs->eighths[eighths % 8]);
    return x;
}

void esp_axis_include(struct esp_axis *axis, double value)
{
    if (!isfinite(value))
        return;
    axis->low = fmin(axis->low, value);
    axis->high = fmax(axis->high, value);
}

struct esp_axis esp_axis_of(const float *values, int count)
{
    struct esp_axis axis = {INFINITY, -INFINITY};
    for (int i = 0; i < count; i++)
        esp_axis_include(&axis, (double)values[i]);
    return axis;
}

bool esp_axis_is_log(const struct esp_axis *axis)
{
    return axis->low > 0 && axis->high > 8 * axis->low;
}

double esp_axis_place(const struct esp_axis *axis, double value)
{
    const double low = axis->low, high = axis->high;
    if (!isfinite(value))
        return NAN;
    if (!(high > low))
        return 0.5;
    const double clipped = fmin(fmax(value, low), high);
    return esp_axis_is_log(axis) ? log(clipped / low) / log(high / low)
                                 : (clipped - low) / (high - low);
}

void esp_axis_ends(const struct esp_axis *axis, char low[16], char high[16])
{
    enum { LEAST = 2, MOST = 5 };
    for (int digits = LEAST; digits <= MOST; digits++) {
        esp_number(low, axis->low, digits);
        esp_number(high, axis->high, digits);
        if (strcmp(low, high) != 0 || !(axis->high > axis->low))
            return;
    }
}

double esp_axis_step(double raw)
{
    const double power = pow(10, floor(log10(raw))), lead = raw / power;
    return power * (lead <= 1 ? 1 : lead <= 2 ? 2 : lead <= 5 ? 5 : 10);
}

double esp_measured(double seconds)
{
    return isfinite(seconds) && seconds > 0 ? seconds : 0;
}

int esp_draw_columns(struct esp_canvas *canvas, struct esp_rect rect, int style,
                     const float *values, int count, const struct esp_axis *axis)
{
    enum { WIDEST = 4 };
    const int first = count > rect.width ? count - rect.width : 0;
    int each = count > 0 ? rect.width / count : 0;
    each = each > WIDEST ? WIDEST : each < 1 ? 1 : each;
    for (int i = first; i < count; i++) {
        const double place = esp_axis_place(axis, (double)values[i]);
        int eighths = isfinite(place) ? (int)lround(place * rect.height * 8) : 0;
        for (int row = 0; isfinite(place) && row < rect.height && (eighths > 0 || row == 0);
             row++, eighths -= 8)
            esp_draw_repeat(canvas, rect.x + (i - first) * each, rect.y + rect.height - 1 - row,
                            each, style,
                            canvas->glyphs->sparks[eighths >= 8  ? 7
                                                   : eighths > 1 ? eighths - 1
                                                                 : 0]);
    }
    return (count - first) * each;
}

void esp_draw_spark(struct esp_canvas *canvas, int x, int y, int width, int style,
                    const float *values, int count, const struct esp_axis *axis)
{
    int first = count > width ? count - width : 0;
    for (int i = first; i < count; i++, x++) {
        const double place = esp_axis_place(axis, (double)values[i]);
        const int level = isfinite(place) ? (int)(place * 8) : 0;
        if (isfinite(place))
            esp_draw_repeat(canvas, x, y, 1, style,
                            canvas->glyphs->sparks[level > 7 ? 7 : level]);
    }
}
