/* Choosing the next token on the host: a few hundred thousand numbers at most, once a token.
 *
 * The draw is a function of seed and number (splitmix64, Steele et al. 2014), not of a generator's
 * state, so a text can be continued anywhere. */
#include <math.h>
#include <stdlib.h>

#include "nn/need.h"
#include "tiki/model.h"

typedef struct candidate {
    double logit; /* then its probability, unnormalised */
    int64_t token;
} candidate;

static double uniform(uint64_t seed, uint64_t draw) {
    uint64_t z = seed * 0x9e3779b97f4a7c15u + (draw + 1) * 0xd1342543de82ef95u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

/* Larger logits first; equal ones by token, so that the order is one. */
static int by_logit(const void *left, const void *right) {
    const candidate *a = left, *b = right;
    if (a->logit != b->logit) return a->logit < b->logit ? 1 : -1;
    return a->token < b->token ? -1 : a->token > b->token;
}

static tk_status check(const float *logits, int64_t count, const tk_sampling *s) {
    if (count < 1) return tk_error_set(TK_INVALID_ARGUMENT, "no logits to choose from");
    if (!(s->temperature >= 0) || s->top_k < 0 || !(s->top_p > 0 && s->top_p <= 1))
        return tk_error_set(TK_INVALID_ARGUMENT,
                            "temperature %g, top_k %lld, top_p %g: expected 0 or more, 0 or more, "
                            "above 0 to 1",
                            s->temperature, (long long)s->top_k, s->top_p);
    for (int64_t i = 0; i < count; i++)
        if (isnan(logits[i]))
            return tk_error_set(TK_NAN_TRAPPED, "logit %lld is NaN", (long long)i);
    return TK_OK;
}

static int64_t most_likely(const float *logits, int64_t count) {
    int64_t best = 0;
    for (int64_t i = 1; i < count; i++)
        if (logits[i] > logits[best]) best = i;
    return best;
}

/* Turns logits into weights; gives how many candidates stay within top_k and top_p, and their sum.
 */
static int64_t cut(candidate *candidates, int64_t count, const tk_sampling *s, double *out_sum) {
    double top = candidates[0].logit, all = 0, kept = 0;
    if (s->top_k && s->top_k < count) count = s->top_k;
    for (int64_t i = 0; i < count; i++) {
        double below = candidates[i].logit - top;
        candidates[i].logit = below == 0 ? 1 : exp(below / s->temperature);
        all += candidates[i].logit;
    }
    int64_t n = 0;
    while (n < count && (n == 0 || kept < s->top_p * all)) kept += candidates[n++].logit;
    *out_sum = kept;
    return n;
}

tk_status tk_sample(const float *logits, int64_t count, const tk_sampling *sampling, uint64_t draw,
                    int64_t *out_token) {
    NN_NEED(logits);
    NN_NEED(sampling);
    NN_NEED(out_token);
    tk_status status = check(logits, count, sampling);
    if (status != TK_OK) return status;
    if (sampling->temperature == 0) {
        *out_token = most_likely(logits, count);
        return TK_OK;
    }
    candidate *candidates = malloc((size_t)count * sizeof *candidates);
    if (!candidates)
        return tk_error_set(TK_OUT_OF_MEMORY, "no memory to choose among %lld tokens",
                            (long long)count);
    for (int64_t i = 0; i < count; i++) candidates[i] = (candidate){logits[i], i};
    qsort(candidates, (size_t)count, sizeof *candidates, by_logit);
    double sum, at;
    int64_t n = cut(candidates, count, sampling, &sum), chosen = 0;
    at = uniform(sampling->seed, draw) * sum;
    while (chosen + 1 < n && at >= candidates[chosen].logit) at -= candidates[chosen++].logit;
    *out_token = candidates[chosen].token;
    free(candidates);
    return TK_OK;
}
