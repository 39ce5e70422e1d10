/* Tests chi-square statistics. Tail probabilities are compared with closed forms, and results
 * for given counts are checked. */
#include <math.h>

#include "tests/check.h"
#include "engine/support/statistics.h"

/* Returns the tail probability for an even number of degrees of freedom, which is a Poisson
 * sum. */
static double even_tail(double value, int freedom)
{
    double term = exp(-value / 2), sum = 0;
    for (int i = 0; i < freedom / 2; i++) {
        sum += term;
        term *= value / 2 / (i + 1);
    }
    return sum;
}

TEST(the_tail_equals_closed_forms)
{
    for (double x = 0.01; x < 300; x *= 1.3) {
        double one = erfc(sqrt(x / 2));
        CHECK(fabs(esp_chi_square_tail(x, 1) - one) < 1e-12 * (1 + one) + 1e-10 * one);
        for (int k = 2; k <= 200; k += 2) {
            double want = even_tail(x, k), got = esp_chi_square_tail(x, k);
            CHECK(fabs(got - want) < 1e-11 + 1e-9 * want, "%g with %d: %g, want %g", x, k, got,
                  want);
        }
    }
    CHECK(esp_chi_square_tail(0, 3) == 1);
    CHECK(esp_chi_square_tail(5, 0) == 1);
    CHECK(esp_chi_square_tail(1e5, 10) < 1e-300);
}

TEST(counts_are_tested_against_weights)
{
    double fair[4] = {25, 25, 25, 25}, skew[4] = {40, 30, 20, 10}, even[4] = {1, 1, 1, 1};
    double holes[4] = {50, 50, 0, 0}, half[4] = {1, 1, 0, 0};
    struct esp_chi_square test = esp_chi_square_fit(fair, even, 4);
    CHECK(test.value == 0 && test.freedom == 3 && test.p == 1);
    test = esp_chi_square_fit(skew, even, 4);
    CHECK(fabs(test.value - 20) < 1e-12 && test.p < 2e-4 && test.p > 1e-4, "%g", test.p);
    test = esp_chi_square_fit(holes, half, 4);
    CHECK(test.value == 0 && test.freedom == 1);
    CHECK(esp_chi_square_fit(fair, half, 4).p == 0);
    CHECK(fabs(esp_total_variation(skew, even, 4) - 0.2) < 1e-12);
}

TEST(two_samples_are_tested_against_each_other)
{
    double one[3] = {10, 20, 30}, twice[3] = {20, 40, 60}, other[3] = {60, 40, 20};
    CHECK(esp_chi_square_two(one, twice, 3).value < 1e-12);
    CHECK(esp_chi_square_two(one, other, 3).p < 1e-4);
    CHECK(esp_chi_square_two(one, one, 3).freedom == 2);
}

/* If the null hypothesis is true, p values must be uniformly distributed. */
TEST(p_values_are_uniform_under_the_null_hypothesis)
{
    unsigned long long seed = 11;
    double weight[5] = {1, 2, 3, 4, 10}, tenth[10] = {0}, even[10];
    for (int i = 0; i < 10; i++)
        even[i] = 1;
    for (int trial = 0; trial < 4000; trial++) {
        double count[5] = {0};
        for (int i = 0; i < 400; i++) {
            double u = check_uniform(&seed) * 20;
            int bin = 0;
            while (bin < 4 && u >= weight[bin])
                u -= weight[bin++];
            count[bin]++;
        }
        double p = esp_chi_square_fit(count, weight, 5).p;
        tenth[p < 1 ? (int)(p * 10) : 9]++;
    }
    CHECK(esp_chi_square_fit(tenth, even, 10).p > 1e-3);
}
