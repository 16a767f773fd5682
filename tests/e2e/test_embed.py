"""What librelax asks of the system while it builds and runs a model: an object that is loaded before all others sees
every call of the C library that a guest has no business with, and who made it."""
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("RELAX_BUILD", ROOT / "build"))
HELPER = BUILD / "test" / "test_embed_state"            # "helper": builds and runs a model through librelax.so

# A call is noted as "NAME FILE-OF-THE-CALLER ARGUMENT", a line each, in the file that the shim opened first.
SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int to = -1;

__attribute__((constructor)) static void begin(void)
{
    to = open(NOTES, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

static void note(const char *name, void *caller, const char *what)
{
    Dl_info info;
    char line[1024];
    if (to < 0) return;
    const char *file = dladdr(caller, &info) && info.dli_fname ? info.dli_fname : "?";
    int n = snprintf(line, sizeof line, "%s %s %s\n", name, file, what ? what : "-");
    syscall(SYS_write, to, line, (size_t)n);
}

#define NOTE(name, what) note(name, __builtin_return_address(0), what)
#define REAL(name) static __typeof__(&name) real; if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

char *getenv(const char *k) { REAL(getenv); NOTE("getenv", k); return real(k); }
char *secure_getenv(const char *k) { REAL(secure_getenv); NOTE("getenv", k); return real(k); }
char *setlocale(int c, const char *l) { REAL(setlocale); NOTE("setlocale", l); return real(c, l); }
int chdir(const char *p) { REAL(chdir); NOTE("chdir", p); return real(p); }
mode_t umask(mode_t m) { REAL(umask); NOTE("umask", 0); return real(m); }
void srand(unsigned s) { REAL(srand); NOTE("srand", 0); real(s); }
int sigaction(int s, const struct sigaction *a, struct sigaction *o)
{
    REAL(sigaction);
    if (a) NOTE("sigaction", 0);
    return real(s, a, o);
}
int mkdir(const char *p, mode_t m) { REAL(mkdir); NOTE("mkdir", p); return real(p, m); }
int unlink(const char *p) { REAL(unlink); NOTE("unlink", p); return real(p); }
int rename(const char *a, const char *b) { REAL(rename); NOTE("rename", b); return real(a, b); }
FILE *fopen(const char *p, const char *m)
{
    REAL(fopen);
    if (*m != 'r' || strchr(m, '+')) NOTE("write-file", p);
    return real(p, m);
}
int open(const char *p, int flags, ...)
{
    va_list va;
    va_start(va, flags);
    mode_t m = va_arg(va, mode_t);
    va_end(va);
    if (flags & (O_WRONLY | O_RDWR | O_CREAT)) NOTE("write-file", p);
    return (int)syscall(SYS_openat, AT_FDCWD, p, flags, m);
}
int open64(const char *p, int flags, ...)
{
    va_list va;
    va_start(va, flags);
    mode_t m = va_arg(va, mode_t);
    va_end(va);
    if (flags & (O_WRONLY | O_RDWR | O_CREAT)) NOTE("write-file", p);
    return (int)syscall(SYS_openat, AT_FDCWD, p, flags, m);
}
ssize_t write(int fd, const void *p, size_t n)
{
    if (fd == 1 || fd == 2) NOTE("write-stdio", 0);
    return syscall(SYS_write, fd, p, n);
}
"""


@pytest.fixture(scope="module")
def notes(tmp_path_factory):
    if not HELPER.exists():
        pytest.skip("the unit tests are not built")
    folder = tmp_path_factory.mktemp("embed")
    (folder / "shim.c").write_text(SHIM)
    log = folder / "notes"
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-w", f'-DNOTES="{log}"', str(folder / "shim.c"), "-o",
                    str(folder / "shim.so"), "-ldl"], check=True)
    home = folder / "home"
    home.mkdir()
    env = {"LD_PRELOAD": str(folder / "shim.so"), "HOME": str(home), "TMPDIR": str(home), "RELAX_DEBUG": "1"}
    r = subprocess.run([str(HELPER), "helper"], cwd=home, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                       timeout=120)
    assert r.returncode == 0, r.stderr
    assert len(r.stdout) > 1000
    assert r.stderr == b""
    assert list(home.iterdir()) == []
    lines = [line.split(" ", 2) for line in log.read_text(errors="replace").splitlines()]
    return [(name, os.path.basename(caller), what) for name, caller, what in lines]


def test_the_shim_sees(notes):
    """the program's own writing of what it made"""
    assert ("write-stdio", HELPER.name, "-") in notes


def test_librelax_asks_for_nothing(notes):
    assert [n for n in notes if n[1].startswith("librelax")] == []


def test_no_file_is_written(notes):
    assert [n for n in notes if n[0] in ("write-file", "mkdir", "unlink", "rename")] == []


def test_nothing_of_the_process_is_changed(notes):
    assert [n for n in notes if n[0] in ("setlocale", "chdir", "umask", "srand", "sigaction")] == []
