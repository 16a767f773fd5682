/* api.h: what the bodies of relax.h share. A public function checks its handles, opens a frame, calls the rooms and
 * answers:
 *
 *     relax_status relax_thing(relax_module *m, …)
 *     {
 *         if (!api_module(m)) return RELAX_E_INVALID;
 *         API_TRY(m->ctx) {
 *             …;
 *             API_RETURN(RELAX_OK);
 *         }
 *         return api_failed(m->ctx);
 *     }
 *
 * Inside the block nothing may be returned but through API_RETURN, and locals of the function are not changed. */
#ifndef RX_API_H
#define RX_API_H
#include "core/core.h"

#define API_TRY(c) rx_frame api_frame; relax_context *const api_ctx = (c); if (RX_ENTER(&api_ctx->heap, &api_frame))
#define API_RETURN(x) do { rx_leave(&api_ctx->heap, &api_frame); return x; } while (0)
/* the status of the error that closed a frame */
relax_status api_failed(const relax_context *ctx);
/* a NULL or foreign argument: records RX1002 / RX1003 and gives its status; ctx may be NULL */
relax_status api_null(relax_context *ctx, const char *what);
relax_status api_foreign(relax_context *ctx, const char *what);
/* An options struct of the host: copies the part that this library knows over defaults in *own; refuses an unknown tail
 * that is not zero. */
relax_status api_options(relax_context *ctx, const void *given, void *own, size_t size, const char *what);
/* text into the host's buffer: at most size bytes with the NUL; the length needed (without NUL) */
size_t api_text(const char *s, size_t n, char *out, size_t size);
#endif
