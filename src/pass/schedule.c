/* schedule.c, guard: gives each tensor program the default schedule of the target (sched/), and a check to each access
 * that is not proved. A program that has a parallel loop is scheduled already and stays. Without a target nothing is
 * scheduled. */
#include "pass/private.h"
#include "sched/sched.h"

static void has_mark(void *arg, rx_stmt *s)
{
    if (s->kind == RX_S_FOR && s->u.loop.how == RX_PARALLEL) *(bool *)arg = true;
}

void rx_pass_schedule(rx_pass_run *r)
{
    if (!r->target) return;
    for (relax_function *f = r->m->first; f; f = f->next) {
        bool marked = false;
        if (!f->is_prim) continue;
        rx_stmt_visit(f->prim->body, has_mark, &marked);
        if (marked) continue;
        rx_tb tb = { r->ctx, &r->m->arena };
        f->prim = rx_schedule_default(&tb, f->prim, r->target);
    }
}

void rx_pass_guard(rx_pass_run *r)
{
    rx_tb tb = { r->ctx, &r->m->arena };
    for (relax_function *f = r->m->first; f; f = f->next)
        if (f->is_prim) f->prim = rx_prim_guard(&tb, f->prim);
}
