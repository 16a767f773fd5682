/* os_linux.c: all operating-system code: files, shared objects, pages, threads, futexes, clock. A port to another
 * system replaces this file alone. Errors are returned as errno values; the thread's own errno stays as it was. */
#define _GNU_SOURCE
#include "base/base.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* declares that errno is what it was when the block is left; `return errno` still returns the error */
#define KEEP_ERRNO __attribute__((cleanup(give_back))) const int kept_errno = errno

static void give_back(const int *saved)
{
    errno = *saved;
}

/* --- files --- */
int rx_file_map(const char *path, rx_file *f)
{
    KEEP_ERRNO;
    *f = (rx_file){NULL, 0};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);   /* a FIFO must not block us */
    if (fd < 0)
        return errno;
    struct stat st;
    int err = 0;
    if (fstat(fd, &st) != 0)
        err = errno;
    else if (!S_ISREG(st.st_mode))
        err = S_ISDIR(st.st_mode) ? EISDIR : EINVAL;
    else if (st.st_size == 0)
        f->at = (const uint8_t *)"";
    else {
        void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (p == MAP_FAILED)
            err = errno;
        else
            *f = (rx_file){p, (size_t)st.st_size};
    }
    close(fd);
    return err;
}

void rx_file_unmap(rx_file *f)
{
    KEEP_ERRNO;
    if (f->size)
        munmap((void *)(uintptr_t)f->at, f->size);
    *f = (rx_file){NULL, 0};
}

void rx_file_advise_willneed(const rx_file *f)
{
    KEEP_ERRNO;
    if (f->size)
        madvise((void *)(uintptr_t)f->at, f->size, MADV_WILLNEED);
}

static int write_all(int fd, const void *p, size_t n)
{
    const char *s = p;
    while (n) {
        ssize_t k = write(fd, s, RX_MIN(n, (size_t)1 << 30));
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            return k < 0 ? errno : EIO;
        s += k;
        n -= (size_t)k;
    }
    return 0;
}

/* what fsync answers where there is nothing to sync (a pipe, a device) is no failure */
static int sync_fd(int fd)
{
    return fsync(fd) == 0 || errno == EINVAL || errno == EROFS || errno == ENOTSUP ? 0 : errno;
}

static int write_direct(const char *path, const void *p, size_t n)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return errno;
    int err = write_all(fd, p, n);
    if (close(fd) != 0 && !err)
        err = errno;
    return err;
}

/* creates a new file in the folder of real (a path of `dir` bytes and a name); its path to tmp */
static int temp_create(const char *real, size_t dir, char *tmp, size_t tmpn)
{
    for (uint64_t i = 0; i < 100; i++) {
        uint64_t tag = rx_mix((uint64_t)rx_now_ns() + i, (uint64_t)getpid());
        int k = snprintf(tmp, tmpn, "%.*s.relax-%016llx.tmp", (int)dir, real, (unsigned long long)tag);
        if (k < 0 || (size_t)k >= tmpn)
            return -ENAMETOOLONG;
        int fd = open(tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0 || errno != EEXIST)
            return fd >= 0 ? fd : -errno;
    }
    return -EEXIST;
}

static void sync_folder(const char *real, size_t dir)
{
    char name[PATH_MAX];
    snprintf(name, sizeof name, "%.*s", (int)dir, real);
    int fd = open(dir ? name : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        fsync(fd);
        close(fd);
    }
}

int rx_file_write(const char *path, const void *p, size_t n)
{
    KEEP_ERRNO;
    char real[PATH_MAX], tmp[PATH_MAX];
    struct stat st;
    bool exists = stat(path, &st) == 0;
    if (exists && !S_ISREG(st.st_mode))
        return S_ISDIR(st.st_mode) ? EISDIR : write_direct(path, p, n);
    /* follow a symbolic link: its target is replaced, not the link */
    if (exists ? !realpath(path, real) : snprintf(real, sizeof real, "%s", path) >= (int)sizeof real)
        return exists ? errno : ENAMETOOLONG;
    const char *slash = strrchr(real, '/');
    size_t dir = slash ? (size_t)(slash - real) + 1 : 0;
    int fd = temp_create(real, dir, tmp, sizeof tmp);
    if (fd < 0)
        return -fd;
    int err = write_all(fd, p, n);
    if (!err && exists && fchmod(fd, st.st_mode & 07777) != 0)
        err = errno;
    if (!err)
        err = sync_fd(fd);
    if (close(fd) != 0 && !err)
        err = errno;
    if (!err && rename(tmp, real) != 0)
        err = errno;
    if (err)
        unlink(tmp);
    else
        sync_folder(real, dir);
    return err;
}

const char *rx_os_error(int err, char *buf, size_t n)
{
    KEEP_ERRNO;
#ifdef __GLIBC__
    const char *text = strerrordesc_np(err);     /* never translated */
    snprintf(buf, n, "%s", text ? text : "unknown error");
#else
    if (strerror_r(err, buf, n) != 0)
        snprintf(buf, n, "error %d", err);
#endif
    return buf;
}

int rx_mem_fd(const char *name, const void *p, size_t n)
{
    KEEP_ERRNO;
    int fd = (int)syscall(SYS_memfd_create, name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return -errno;
    int err = write_all(fd, p, n);
    if (!err && fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) != 0)
        err = errno;
    if (err) {
        close(fd);
        return -err;
    }
    return fd;
}

void rx_fd_close(int fd)
{
    KEEP_ERRNO;
    close(fd);
}

int rx_process_id(void)
{
    return (int)getpid();
}

/* --- shared objects --- */
void *rx_dl_open(const char *path, char *err, size_t errn)
{
    KEEP_ERRNO;
    void *dl = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!dl && errn) {
        const char *why = dlerror();
        snprintf(err, errn, "%s", why ? why : "unknown reason");
    }
    return dl;
}

/* The loader takes two objects for one when their paths are equal, and a number of a file descriptor is used again
 * after close. So the path spells the file's inode, which is unique while the object is mapped, in slashes and dots
 * that the kernel ignores: "/." for a bit that is set, "/" for one that is not. */
void *rx_dl_open_fd(int fd, char *err, size_t errn)
{
    KEEP_ERRNO;
    struct stat st;
    char path[256];
    if (fstat(fd, &st) != 0) {
        snprintf(err, errn, "the file descriptor is not open");
        return NULL;
    }
    size_t k = (size_t)snprintf(path, sizeof path, "/proc/self/fd");
    for (int i = 0; i < 64; i++) {
        path[k++] = '/';
        if ((uint64_t)st.st_ino >> i & 1)
            path[k++] = '.';
    }
    snprintf(path + k, sizeof path - k, "/%d", fd);
    return rx_dl_open(path, err, errn);
}

void *rx_dl_sym(void *dl, const char *name)
{
    KEEP_ERRNO;
    return dlsym(dl, name);
}

void rx_dl_close(void *dl)
{
    KEEP_ERRNO;
    if (dl)
        dlclose(dl);
}

const char *rx_dl_self_dir(char *buf, size_t n)
{
    KEEP_ERRNO;
    char real[PATH_MAX];
    Dl_info info;
    const char *from = dladdr((void *)(uintptr_t)rx_dl_self_dir, &info) ? info.dli_fname : NULL;
    if (!from || !strchr(from, '/'))
        from = "/proc/self/exe";
    if (!realpath(from, real))
        return NULL;
    char *slash = strrchr(real, '/');
    *(slash == real ? slash + 1 : slash) = 0;
    return (size_t)snprintf(buf, n, "%s", real) < n ? buf : NULL;
}

/* --- clock, machine, pages --- */
int64_t rx_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int rx_cpu_count(void)
{
    KEEP_ERRNO;
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        return RX_MAX(1, CPU_COUNT(&set));
    long n = sysconf(_SC_NPROCESSORS_ONLN);      /* more than 1024 CPUs */
    return n > 0 ? (int)n : 1;
}

uint64_t rx_os_hwcap(int word)
{
    KEEP_ERRNO;
    return getauxval(word ? AT_HWCAP2 : AT_HWCAP);
}

enum { HUGE = 2 << 20 };

static size_t whole_pages(size_t n)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), r;
    return rx_size_align(n ? n : 1, page, &r) ? r : 0;
}

void *rx_pages_alloc(size_t n)
{
    KEEP_ERRNO;
    size_t want = whole_pages(n), extra = n >= HUGE ? HUGE : 0, whole;
    if (!want || !rx_size_add(want, extra, &whole))
        return NULL;
    char *p = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return NULL;
    if (!extra)
        return p;
    size_t skip = (size_t)(-(uintptr_t)p) & (HUGE - 1);
    if (skip)
        munmap(p, skip);
    if (extra - skip)
        munmap(p + skip + want, extra - skip);
    madvise(p + skip, want, MADV_HUGEPAGE);
    return p + skip;
}

void rx_pages_free(void *p, size_t n)
{
    KEEP_ERRNO;
    if (p)
        munmap(p, whole_pages(n));
}

size_t rx_peak_rss(void)
{
    KEEP_ERRNO;
    struct rusage u;
    return getrusage(RUSAGE_SELF, &u) == 0 ? (size_t)u.ru_maxrss * 1024 : 0;
}

/* --- threads: all signals stay with the host's own threads --- */
static void *thread_main(void *p)
{
    rx_thread *t = p;
    void (*fn)(void *) = (void (*)(void *))t->h[1];
    fn((void *)t->h[2]);
    return NULL;
}

static int start(rx_thread *t, const pthread_attr_t *attr, void (*fn)(void *), void *arg)
{
    _Static_assert(sizeof(pthread_t) == sizeof t->h[0], "a thread's id is one word");
    sigset_t all, old;
    pthread_t id;
    t->h[1] = (uintptr_t)fn;
    t->h[2] = (uintptr_t)arg;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int err = pthread_create(&id, attr, thread_main, t);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (!err)
        t->h[0] = (uintptr_t)id;
    return err;
}

int rx_thread_start(rx_thread *t, void (*fn)(void *), void *arg)
{
    KEEP_ERRNO;
    return start(t, NULL, fn, arg);
}

int rx_thread_start_sized(rx_thread *t, size_t stack, void (*fn)(void *), void *arg)
{
    KEEP_ERRNO;
    pthread_attr_t attr;
    int err = pthread_attr_init(&attr);
    if (err)
        return err;
    err = pthread_attr_setstacksize(&attr, stack);
    if (!err)
        err = start(t, &attr, fn, arg);
    pthread_attr_destroy(&attr);
    return err;
}

void rx_thread_join(rx_thread *t)
{
    KEEP_ERRNO;
    pthread_join((pthread_t)t->h[0], NULL);
}

void rx_futex_wait(_Atomic uint32_t *p, uint32_t seen)
{
    KEEP_ERRNO;
    syscall(SYS_futex, p, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
}

void rx_futex_wake(_Atomic uint32_t *p, int n)
{
    KEEP_ERRNO;
    syscall(SYS_futex, p, FUTEX_WAKE_PRIVATE, n, NULL, NULL, 0);
}

void rx_cpu_relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}
