/* statistics.h - computes chi-square tests of counts. They check that a sample follows a
 * distribution. */
#ifndef ESP_STATISTICS_H
#define ESP_STATISTICS_H

/* Holds the result of a test. `p` is the probability that chance alone gives a chi-square this
 * large. */
struct esp_chi_square {
    double value;
    int freedom; /* degrees of freedom; 0 means there was nothing to test, and p is 1 */
    double p;
};

/* Returns the upper tail of the chi-square distribution with `freedom` degrees of freedom. */
double esp_chi_square_tail(double value, int freedom);

/* Tests whether the counts of `bins` bins follow the weights. If a bin has weight 0 and a count
 * above 0, p is 0. */
struct esp_chi_square esp_chi_square_fit(const double *count, const double *weight, int bins);

/* Tests whether two samples come from one distribution. Bins that are empty in both are
 * ignored. */
struct esp_chi_square esp_chi_square_two(const double *one, const double *other, int bins);

/* Returns the total variation distance between counts and weights, each normalised. */
double esp_total_variation(const double *count, const double *weight, int bins);

#endif
