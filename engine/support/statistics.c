/* statistics.c - computes chi-square tests; see statistics.h.
 *
 * The tail is the regularised incomplete gamma function Q(k/2, x/2). If x < k + 2, the lower
 * part is computed as a power series; otherwise the upper part is computed as a continued
 * fraction (Lentz). Both converge quickly in these ranges (Abramowitz and Stegun 6.5.29 and
 * 6.5.31).
 */
#include "engine/support/statistics.h"

#include <math.h>

enum { MOST_TERMS = 10000 };
static const double ENOUGH = 1e-15;

/* x^a e^-x / Gamma(a + 1) */
static double front(double a, double x)
{
    return exp(a * log(x) - x - lgamma(a + 1));
}

static double lower_series(double a, double x)
{
    double term = 1, sum = 1;
    for (int n = 1; n < MOST_TERMS && term > sum * ENOUGH; n++) {
        term *= x / (a + n);
        sum += term;
    }
    return front(a, x) * sum;
}

static double upper_fraction(double a, double x)
{
    double b = x + 1 - a, c = 1e300, d = 1 / b, product = d;
    for (int n = 1; n < MOST_TERMS; n++) {
        double numerator = -n * (n - a);
        b += 2;
        d = 1 / (numerator * d + b);
        c = b + numerator / c;
        product *= c * d;
        if (fabs(c * d - 1) < ENOUGH)
            break;
    }
    return front(a, x) * a * product;
}

double esp_chi_square_tail(double value, int freedom)
{
    double a = freedom / 2.0, x = value / 2;
    if (freedom < 1 || !(x > 0))
        return 1;
    return x < a + 1 ? 1 - lower_series(a, x) : upper_fraction(a, x);
}

static double sum_of(const double *v, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += v[i];
    return sum;
}

struct esp_chi_square esp_chi_square_fit(const double *count, const double *weight, int bins)
{
    struct esp_chi_square test = {.freedom = -1, .p = 1};
    double counts = sum_of(count, bins), weights = sum_of(weight, bins);
    for (int i = 0; i < bins; i++) {
        double expected = counts * weight[i] / weights;
        if (expected > 0) {
            test.value += (count[i] - expected) * (count[i] - expected) / expected;
            test.freedom++;
        } else if (count[i] > 0) {
            return (struct esp_chi_square){INFINITY, bins, 0};
        }
    }
    test.freedom = test.freedom > 0 ? test.freedom : 0;
    test.p = esp_chi_square_tail(test.value, test.freedom);
    return test;
}

struct esp_chi_square esp_chi_square_two(const double *one, const double *other, int bins)
{
    struct esp_chi_square test = {.freedom = -1, .p = 1};
    double ones = sum_of(one, bins), others = sum_of(other, bins);
    double a = sqrt(others / ones), b = sqrt(ones / others);
    for (int i = 0; i < bins && ones > 0 && others > 0; i++) {
        double difference = a * one[i] - b * other[i];
        if (!(one[i] + other[i] > 0))
            continue;
        test.value += difference * difference / (one[i] + other[i]);
        test.freedom++;
    }
    test.freedom = test.freedom > 0 ? test.freedom : 0;
    test.p = esp_chi_square_tail(test.value, test.freedom);
    return test;
}

double esp_total_variation(const double *count, const double *weight, int bins)
{
    double counts = sum_of(count, bins), weights = sum_of(weight, bins), distance = 0;
    for (int i = 0; i < bins && counts > 0 && weights > 0; i++)
        distance += fabs(count[i] / counts - weight[i] / weights) / 2;
    return distance;
}
