/* Choosing tokens: what is cut, how often each is drawn, what is refused. */
#include "nn/nn_check.h"

static int64_t draw(const float *logits, int64_t count, tk_sampling sampling, uint64_t number) {
    int64_t token = -1;
    assert_ok(tk_sample(logits, count, &sampling, number, &token));
    assert_true(token >= 0 && token < count);
    return token;
}

static const float logits[] = {0.5f, 2, -1, 2, 1};
#define N_LOGITS 5

static void test_zero_temperature(void **state) {
    (void)state;
    tk_sampling sampling = {.top_p = 1};
    for (uint64_t i = 0; i < 20; i++)
        assert_int_equal(draw(logits, N_LOGITS, sampling, i), 1); /* the first of equal ones */
    sampling.temperature = 1;
    sampling.top_k = 1;
    for (uint64_t i = 0; i < 20; i++) assert_int_equal(draw(logits, N_LOGITS, sampling, i), 1);
    const float low[] = {-INFINITY, -INFINITY, -3};
    sampling.top_k = 0;
    for (uint64_t i = 0; i < 20; i++) assert_int_equal(draw(low, 3, sampling, i), 2);
}

/* Counts of 40,000 draws within six deviations of softmax(logits / temperature), renormalised over
 * what is not cut. */
static void check_shares(tk_sampling sampling, const bool *kept) {
    const int n = 40000;
    int counts[N_LOGITS] = {0};
    double weights[N_LOGITS], sum = 0;
    for (int i = 0; i < N_LOGITS; i++) {
        weights[i] = kept[i] ? exp((double)logits[i] / sampling.temperature) : 0;
        sum += weights[i];
    }
    for (int i = 0; i < n; i++) counts[draw(logits, N_LOGITS, sampling, (uint64_t)i)]++;
    for (int i = 0; i < N_LOGITS; i++) {
        double share = weights[i] / sum, deviation = sqrt(n * share * (1 - share));
        assert_near(counts[i], n * share, 6 * deviation);
    }
}

static void test_shares(void **state) {
    (void)state;
    const bool all[] = {true, true, true, true, true};
    const bool three[] = {false, true, false, true, true};
    const bool two[] = {false, true, false, true, false};
    check_shares((tk_sampling){.temperature = 1, .top_p = 1, .seed = 1}, all);
    check_shares((tk_sampling){.temperature = 0.5, .top_p = 1, .seed = 2}, all);
    check_shares((tk_sampling){.temperature = 3, .top_p = 1, .seed = 3}, all);
    check_shares((tk_sampling){.temperature = 1, .top_k = 3, .top_p = 1, .seed = 4}, three);
    check_shares((tk_sampling){.temperature = 1, .top_k = 9, .top_p = 1, .seed = 5}, all);
    /* the two likeliest have 0.376 each, the third 0.138 */
    check_shares((tk_sampling){.temperature = 1, .top_p = 0.7, .seed = 6}, two);
    check_shares((tk_sampling){.temperature = 1, .top_p = 0.8, .seed = 7}, three);
    check_shares((tk_sampling){.temperature = 1, .top_k = 3, .top_p = 0.8, .seed = 8}, two);
}

static void test_draws_are_functions(void **state) {
    (void)state;
    tk_sampling sampling = {.temperature = 1, .top_p = 1, .seed = 11}, other = sampling;
    other.seed = 12;
    int differ = 0;
    for (uint64_t i = 0; i < 200; i++) {
        assert_int_equal(draw(logits, N_LOGITS, sampling, i), draw(logits, N_LOGITS, sampling, i));
        differ += draw(logits, N_LOGITS, sampling, i) != draw(logits, N_LOGITS, other, i);
    }
    assert_true(differ > 50);
}

static void test_refusals(void **state) {
    (void)state;
    int64_t token;
    tk_sampling s = {.temperature = -1, .top_p = 1};
    assert_fails(tk_sample(logits, 5, &s, 0, &token), TK_INVALID_ARGUMENT, "temperature");
    s = (tk_sampling){.temperature = 1, .top_p = 0};
    assert_fails(tk_sample(logits, 5, &s, 0, &token), TK_INVALID_ARGUMENT, "top_p");
    s = (tk_sampling){.temperature = NAN, .top_p = 1};
    assert_fails(tk_sample(logits, 5, &s, 0, &token), TK_INVALID_ARGUMENT, "temperature");
    s = (tk_sampling){.temperature = 1, .top_p = 1, .top_k = -1};
    assert_fails(tk_sample(logits, 5, &s, 0, &token), TK_INVALID_ARGUMENT, "top_k");
    s = (tk_sampling){.temperature = 1, .top_p = 1};
    assert_fails(tk_sample(logits, 0, &s, 0, &token), TK_INVALID_ARGUMENT, "no logits");
    const float wrong[] = {1, NAN};
    assert_fails(tk_sample(wrong, 2, &s, 0, &token), TK_NAN_TRAPPED, "logit 1");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_zero_temperature),
        cmocka_unit_test(test_shares),
        cmocka_unit_test(test_draws_are_functions),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
