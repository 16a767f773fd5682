/* base.h: what every room stands on; knows nothing of machine learning.
 *
 * Memory model (read this first). All compiler memory comes from arenas; an arena takes its blocks
 * from a heap, which wraps the host's allocator. A failed allocation never returns NULL to compiler
 * code: it unwinds to the innermost frame (rx_frame) of the heap, as Lua does, and the public function
 * that opened the frame answers with a status. So passes, parsers and builders contain no check of an
 * allocation and no free. What is not arena memory (a file, a map, a thread) is tied to a frame with
 * rx_defer. The runtime (rt/, pkg/) does not use frames: it uses rx_heap_alloc and checks. */
#ifndef RX_BASE_H
#define RX_BASE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define RX_NORETURN _Noreturn
#define RX_PRINTF(f, a) __attribute__((format(printf, f, a), nonnull(f)))
#define RX_COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define RX_MIN(a, b) ((a) < (b) ? (a) : (b))
#define RX_MAX(a, b) ((a) > (b) ? (a) : (b))

/* --- check.h-like: checked arithmetic (inline). true = fits; on overflow false and *r unspecified --- */
static inline bool rx_add_ok(int64_t a, int64_t b, int64_t *r) { return !__builtin_add_overflow(a, b, r); }
static inline bool rx_sub_ok(int64_t a, int64_t b, int64_t *r) { return !__builtin_sub_overflow(a, b, r); }
static inline bool rx_mul_ok(int64_t a, int64_t b, int64_t *r) { return !__builtin_mul_overflow(a, b, r); }
static inline bool rx_size_add(size_t a, size_t b, size_t *r) { return !__builtin_add_overflow(a, b, r); }
static inline bool rx_size_mul(size_t a, size_t b, size_t *r) { return !__builtin_mul_overflow(a, b, r); }
/* round up to a power of two */
static inline bool rx_size_align(size_t a, size_t to, size_t *r)
{ if (!rx_size_add(a, to - 1, r)) return false; *r &= ~(to - 1); return true; }
/* floor division and modulo of int64 (b != 0); false on INT64_MIN / -1 or b == 0 */
bool rx_floordiv_ok(int64_t a, int64_t b, int64_t *r);
bool rx_floormod_ok(int64_t a, int64_t b, int64_t *r);
/* --- heap.c: the host's allocator, frames --- */
/* One function does all: p == NULL && n: allocate; p && n: reallocate; n == 0: free (old_n is the size). align <= 64 */
typedef void *(*rx_alloc_fn)(void *self, void *p, size_t old_n, size_t n, size_t align);

typedef struct rx_defer_node rx_defer_node;
typedef struct rx_frame {
    jmp_buf env;
    struct rx_frame *up;
    rx_defer_node *defers;           /* run newest first when the frame is left, either way */
    struct rx_arena *scratch;        /* rx_scratch; freed after the defers ran */
    int host_errno;                  /* of the thread, given back when the frame is left */
} rx_frame;

typedef struct rx_heap {
    rx_alloc_fn fn;
    void *self;
    rx_frame *top;                   /* innermost frame, NULL outside public functions */
    size_t live, peak;               /* bytes */
    void (*on_oom)(void *);          /* called once before unwinding (core records a diagnostic) */
    void *on_oom_arg;
} rx_heap;

void rx_heap_init(rx_heap *h, rx_alloc_fn fn, void *self);      /* fn NULL: malloc, realloc, free, aligned_alloc */
void *rx_heap_alloc(rx_heap *h, size_t n, size_t align);        /* NULL on failure; for code that checks */
void *rx_heap_realloc(rx_heap *h, void *p, size_t old_n, size_t n, size_t align);
void rx_heap_free(rx_heap *h, void *p, size_t n);
RX_NORETURN void rx_heap_oom(rx_heap *h);                       /* unwind: out of memory */
RX_NORETURN void rx_unwind(rx_heap *h);                         /* unwind to the innermost frame, running its defers */

/* if (RX_ENTER(h, &f)) { ...; rx_leave(h, &f); return r; } return failure;
 * Inside the block, do not change locals that are read after a failure. Never return without rx_leave. */
#define RX_ENTER(h, f) (rx_frame_push((h), (f)), setjmp((f)->env) == 0)
void rx_frame_push(rx_heap *h, rx_frame *f);
void rx_leave(rx_heap *h, rx_frame *f);                         /* pops and runs defers */
/* fn(arg) runs when the innermost frame is left (normally or by unwinding). Unwinds on OOM after running fn. */
void rx_defer(rx_heap *h, void (*fn)(void *), void *arg);

/* --- arena.c --- */
typedef struct rx_block rx_block;
typedef struct rx_arena { rx_heap *heap; rx_block *blocks; char *at, *end; size_t bytes; } rx_arena;
void rx_arena_init(rx_arena *a, rx_heap *h);
void rx_arena_free(rx_arena *a);                                /* frees all; the arena can be used again */
void *rx_arena_alloc(rx_arena *a, size_t n, size_t align);      /* zeroed; unwinds on OOM */
void *rx_arena_dup(rx_arena *a, const void *p, size_t n);
/* A scratch arena of the innermost frame: freed when the frame is left. */
rx_arena *rx_scratch(rx_heap *h);
#define RX_NEW(a, T) ((T *)rx_arena_alloc((a), sizeof(T), _Alignof(T)))
#define RX_NEWN(a, T, n) ((T *)rx_arena_array((a), (n), sizeof(T), _Alignof(T)))
void *rx_arena_array(rx_arena *a, size_t n, size_t size, size_t align);   /* checked n*size; zeroed */

/* --- vec.c: growable arrays in an arena.  RX_VEC(int) v = {0}; rx_push(arena, &v, 3); v.at[0]; v.n --- */
#define RX_VEC(T) struct { T *at; uint32_t n, cap; }
#define rx_push(a, v, x) \
    (rx_vec_room((a), (void **)&(v)->at, (v)->n, &(v)->cap, sizeof *(v)->at), (v)->at[(v)->n++] = (x))
void rx_vec_room(rx_arena *a, void **at, uint32_t n, uint32_t *cap, size_t size);

/* --- map.c: open addressing, arena memory, insertion order kept (iterate e[0..n)). Keys are compared by
 * value; a pointer key is its address, but iteration never depends on addresses. --- */
typedef struct rx_map_entry { uint64_t key; void *val; } rx_map_entry;
typedef struct rx_map { rx_arena *a; rx_map_entry *e; uint32_t *slots; uint32_t n, cap, nslots; } rx_map;
void rx_map_init(rx_map *m, rx_arena *a);
void *rx_map_get(const rx_map *m, uint64_t key);                /* NULL when absent */
bool rx_map_has(const rx_map *m, uint64_t key);
void rx_map_put(rx_map *m, uint64_t key, void *val);            /* replaces */
#define RX_KEY(p) ((uint64_t)(uintptr_t)(p))

/* --- str.c: interned strings, string builder, numbers without the locale --- */
typedef struct rx_strs { rx_arena *a; const char **slots; uint32_t n, nslots; } rx_strs;
void rx_strs_init(rx_strs *s, rx_arena *a);
const char *rx_intern(rx_strs *s, const char *p, size_t n);     /* NUL-terminated; equal strings are equal pointers */
typedef struct rx_buf { rx_arena *a; char *at; size_t n, cap; } rx_buf;   /* at is NUL-terminated after any put */
void rx_buf_init(rx_buf *b, rx_arena *a);
void rx_putc(rx_buf *b, char c);
void rx_puts(rx_buf *b, const char *s);
void rx_putn(rx_buf *b, const char *s, size_t n);
void rx_putf(rx_buf *b, const char *fmt, ...) RX_PRINTF(2, 3);  /* no %f %g %e: use rx_put_double */
void rx_putv(rx_buf *b, const char *fmt, va_list ap) RX_PRINTF(2, 0);
void rx_put_i64(rx_buf *b, int64_t v);
/* shortest text that reads back the same, with a '.' or an 'e' (1.0, 1e20); inf, -inf, nan */
void rx_put_double(rx_buf *b, double v);
void rx_put_float(rx_buf *b, float v);
/* read a number at s[0..n): returns bytes used, 0 if none. Locale-free. */
size_t rx_read_double(const char *s, size_t n, double *v);
size_t rx_read_i64(const char *s, size_t n, int64_t *v);        /* 0 also when it does not fit */
size_t rx_utf8_valid(const char *s, size_t n);                  /* length of the longest valid prefix */
uint64_t rx_hash(const void *p, size_t n, uint64_t seed);       /* XXH3 */
static inline uint64_t rx_mix(uint64_t h, uint64_t v) { h ^= v; h *= 0x9E3779B97F4A7C15ull; return h ^ (h >> 29); }
/* f16 / bf16 <-> f32, round to nearest even */
float rx_f16_to_f32(uint16_t h);
uint16_t rx_f32_to_f16(float f);
float rx_bf16_to_f32(uint16_t h);
uint16_t rx_f32_to_bf16(float f);

/* --- os_linux.c: all operating-system code --- */
typedef struct rx_file { const uint8_t *at; size_t size; } rx_file;          /* a whole file, mapped read-only */
int rx_file_map(const char *path, rx_file *f);                  /* 0 or errno; refuses what is not a regular file */
void rx_file_unmap(rx_file *f);
void rx_file_advise_willneed(const rx_file *f);
/* Writes all bytes to a temporary beside path, fsync, rename over it: path is the old file or the new, never a part.
 * 0 or errno.
 * A path that is not a regular file (/dev/full, a pipe) is written directly. */
int rx_file_write(const char *path, const void *p, size_t n);
const char *rx_os_error(int err, char *buf, size_t n);          /* text for errno */
int rx_mem_fd(const char *name, const void *p, size_t n);       /* sealed memfd holding the bytes, or -errno */
void rx_fd_close(int fd);
int rx_process_id(void);                                        /* changes in a forked child */
void *rx_dl_open(const char *path, char *err, size_t errn);     /* RTLD_NOW | RTLD_LOCAL */
void *rx_dl_open_fd(int fd, char *err, size_t errn);
void *rx_dl_sym(void *dl, const char *name);
void rx_dl_close(void *dl);
const char *rx_dl_self_dir(char *buf, size_t n);                /* folder of the shared object this code lives in */
int64_t rx_now_ns(void);
int rx_cpu_count(void);
uint64_t rx_os_hwcap(int word);                                  /* 0, 1: the kernel's capability words (aarch64) */
/* zeroed pages, 2 MiB aligned and MADV_HUGEPAGE when n is large; NULL on failure */
void *rx_pages_alloc(size_t n);
void rx_pages_free(void *p, size_t n);
typedef struct rx_thread { uintptr_t h[3]; } rx_thread;         /* must stay at its address until joined */
int rx_thread_start(rx_thread *t, void (*fn)(void *), void *arg);   /* 0 or errno */
int rx_thread_start_sized(rx_thread *t, size_t stack, void (*fn)(void *), void *arg);  /* bytes of stack */
void rx_thread_join(rx_thread *t);
void rx_futex_wait(_Atomic uint32_t *p, uint32_t seen);
void rx_futex_wake(_Atomic uint32_t *p, int n);
void rx_cpu_relax(void);
size_t rx_peak_rss(void);                                       /* bytes, 0 if unknown */

#endif
