/* sampler.h: picks a token from logits (sampler.c). */
#ifndef RX_API_SAMPLER_H
#define RX_API_SAMPLER_H
#include "api/api.h"

typedef struct api_candidate { float logit; int32_t id; } api_candidate;
typedef struct api_sampler {
    relax_sampling s;
    uint64_t state;                    /* of the random numbers */
    int64_t vocab;
    api_candidate *at;                 /* vocab of them */
    uint8_t *seen;                     /* a bit for each token, all 0 between calls */
} api_sampler;
#define API_SAMPLER_BYTES(vocab) ((size_t)(vocab) * sizeof(api_candidate) + ((size_t)(vocab) + 7) / 8)
/* memory: API_SAMPLER_BYTES(vocab), zeroed, aligned as api_candidate */
void api_sampler_init(api_sampler *p, int64_t vocab, void *memory);
/* refuses values out of range; restarts the random numbers from the seed */
relax_status api_sampler_set(relax_context *ctx, api_sampler *p, const relax_sampling *s);
void api_sampler_restart(api_sampler *p);
/* history: tokens so far, oldest first */
int32_t api_sample(api_sampler *p, const float *logits, const int32_t *history, int64_t n_history);
#endif
