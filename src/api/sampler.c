/* sampler.c: repetition penalty, top-k, top-p, min-p, temperature, in this order; or the best token.
 *
 * Deterministic: equal logits are ordered by id, sums run in order in double, random numbers are SplitMix64 (Steele,
 * Lea, Flood 2014) from the seed. Candidates stand in a binary max-heap; popping moves the best ones to the end of the
 * array, so that top-k and top-p sort no more than what they keep. NaN counts as minus infinity. */
#include <math.h>

#include "api/sampler.h"

void api_sampler_init(api_sampler *p, int64_t vocab, void *memory)
{
    *p = (api_sampler){ .s = RELAX_SAMPLING_INIT, .vocab = vocab, .at = memory };
    p->seen = (uint8_t *)(p->at + vocab);
    api_sampler_restart(p);
}

void api_sampler_restart(api_sampler *p) { p->state = p->s.seed; }

static bool within(double v, double lo, double hi) { return v >= lo && v <= hi; }

relax_status api_sampler_set(relax_context *ctx, api_sampler *p, const relax_sampling *given)
{
    relax_sampling s = RELAX_SAMPLING_INIT;
    relax_status st = api_options(ctx, given, &s, sizeof s, "relax_sampling");
    if (st != RELAX_OK)
        return st;
    const char *bad = !within(s.temperature, 0, 1e6)          ? "temperature must be 0 or more"
                      : s.top_k < 0                            ? "top_k must be 0 (off) or more"
                      : !(s.top_p > 0) || !within(s.top_p, 0, 1) ? "top_p must be more than 0 and at most 1 (off)"
                      : !within(s.min_p, 0, 1)                 ? "min_p must be within 0 (off) and 1"
                      : !(s.repetition_penalty > 0) || !within(s.repetition_penalty, 0, 1e6)
                          ? "repetition_penalty must be more than 0; 1 is off"
                      : s.penalty_window < 0 ? "penalty_window must be 0 (off) or more"
                                             : NULL;
    if (bad)
        return rx_error(ctx, RXE_BAD_VALUE, NULL, NULL, "relax_sampling: %s", bad);
    p->s = s;
    api_sampler_restart(p);
    return RELAX_OK;
}

/* uniform in 0 .. 1, 1 excluded */
static double uniform(api_sampler *p)
{
    uint64_t z = p->state += 0x9E3779B97F4A7C15ull;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

static bool better(const api_candidate *a, const api_candidate *b)
{
    return a->logit != b->logit ? a->logit > b->logit : a->id < b->id;
}

static void sift(api_candidate *c, int64_t i, int64_t n)
{
    for (int64_t k; (k = 2 * i + 1) < n; i = k) {
        if (k + 1 < n && better(&c[k + 1], &c[k]))
            k++;
        if (!better(&c[k], &c[i]))
            return;
        api_candidate t = c[i];
        c[i] = c[k];
        c[k] = t;
    }
}

/* the best of a heap of n goes to c[n - 1] */
static void pop(api_candidate *c, int64_t n)
{
    api_candidate t = c[0];
    c[0] = c[n - 1];
    c[n - 1] = t;
    sift(c, 0, n - 1);
}

/* each token of the window once */
static void penalise(api_sampler *p, const int32_t *history, int64_t n)
{
    int64_t from = RX_MAX(n - p->s.penalty_window, (int64_t)0);
    float by = p->s.repetition_penalty;
    for (int64_t i = from; i < n && by != 1; i++) {
        int32_t id = history[i];
        if (p->seen[id / 8] >> (id % 8) & 1)
            continue;
        p->seen[id / 8] |= (uint8_t)(1u << (id % 8));
        float *l = &p->at[id].logit;
        *l = *l > 0 ? *l / by : *l * by;
    }
    for (int64_t i = from; i < n; i++)
        p->seen[history[i] / 8] = 0;
}

static int32_t best(const api_sampler *p)
{
    const api_candidate *b = &p->at[0];
    for (int64_t i = 1; i < p->vocab; i++)
        if (better(&p->at[i], b))
            b = &p->at[i];
    return b->id;
}

static double mass(const api_candidate *c, int64_t n, double top)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += exp(c[i].logit - top);
    return sum;
}

/* Narrows the heap at[0 .. vocab) to the candidates that stay: a range of the array, given back as *from, *n. */
static void narrow(api_sampler *p, double top, int64_t *from, int64_t *n)
{
    int64_t v = p->vocab, kept = v;
    bool sorted = false;
    *from = 0;
    if (p->s.top_k > 0 && p->s.top_k < v) {
        kept = p->s.top_k;
        for (int64_t i = 0; i < kept; i++)
            pop(p->at, v - i);
        sorted = true;
    }
    if (p->s.top_p < 1) {
        double sum = mass(p->at + (sorted ? v - kept : 0), kept, top), have = 0;
        int64_t i = 0;
        for (; i < kept && (i == 0 || have < p->s.top_p * sum); i++) {
            if (!sorted)
                pop(p->at, v - i);
            have += exp(p->at[v - 1 - i].logit - top);
        }
        kept = i;
        sorted = true;
    }
    *from = sorted ? v - kept : 0;
    *n = kept;
}

static int32_t draw(api_sampler *p, const api_candidate *c, int64_t n, double top)
{
    double least = p->s.min_p > 0 ? top + log(p->s.min_p) : -INFINITY, sum = 0, t = p->s.temperature;
    for (int64_t i = 0; i < n; i++)
        sum += c[i].logit >= least ? exp((c[i].logit - top) / t) : 0;
    double u = uniform(p) * sum, have = 0;
    int32_t id = -1;
    for (int64_t i = n; i-- > 0;) {
        double w = c[i].logit >= least ? exp((c[i].logit - top) / t) : 0;
        if (w <= 0)
            continue;
        id = c[i].id;
        have += w;
        if (u < have)
            break;
    }
    return id;
}

int32_t api_sample(api_sampler *p, const float *logits, const int32_t *history, int64_t n_history)
{
    for (int64_t i = 0; i < p->vocab; i++)
        p->at[i] = (api_candidate){ isnan(logits[i]) ? -INFINITY : logits[i], (int32_t)i };
    penalise(p, history, n_history);
    int32_t id = best(p);
    if (p->s.temperature == 0)
        return id;
    double top = p->at[id].logit;
    if (isinf(top))
        return id;
    for (int64_t i = p->vocab / 2; i-- > 0;)
        sift(p->at, i, p->vocab);
    int64_t from, n;
    narrow(p, top, &from, &n);
    int32_t drawn = draw(p, p->at + from, n, top);
    return drawn < 0 ? id : drawn;
}
