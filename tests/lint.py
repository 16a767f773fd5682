#!/usr/bin/env python3
"""make lint: rules of the tree that a compiler does not check. Prints file:line: message, exit status 1 if any.

  includes  a file includes its own room and rooms before it in the Makefile's ROOMS; compiler rooms never rt/
  words     nothing that says of itself that it is unfinished
  host      no call that ends or disturbs the host (src/ but tools/, and lib/)
  width     lines of at most 120 columns
  exports   a shared library's names are those of the public headers; no forbidden import
  globals   a shared library has no writable data and no constructor but the C runtime's own
"""
import argparse
import os
import re
import subprocess
import sys

WIDTH = 120
WORDS = re.compile(r"\b(TODO|FIXME|XXX|HACK|(?i:not implemented|unimplemented|stub|for now|placeholder))\b")
HOST = ("abort exit _exit _Exit quick_exit raise signal sigaction setlocale printf vprintf puts putchar perror assert "
        "getenv secure_getenv setenv putenv unsetenv chdir umask srand atexit pthread_atfork system fork vfork execve "
        "execvp popen fesetround fesetenv").split()
HOST_CALL = re.compile(r"(?<![\w.>])(" + "|".join(HOST) + r")\s*\(")
STDIO = re.compile(r"(?<!\w)(stdout|stderr)(?!\w)")
IMPORTS = set(HOST) - {"assert"} | {"__assert_fail", "__printf_chk", "__fprintf_chk", "stdout", "stderr"}
# what the C runtime's start files put into every shared object
RUNTIME_DATA = re.compile(r"^(completed\.\d+|__dso_handle|__TMC_END__|_edata|_end|__bss_start|__data_start)$")

problems = []


def complain(path, line, message):
    problems.append(f"{path}:{line}: {message}")


def files(tops, suffixes):
    for top in tops:
        for folder, dirs, names in os.walk(top):
            dirs.sort()
            for name in sorted(names):
                if name.endswith(suffixes):
                    yield os.path.join(folder, name)


def blank(match):
    return re.sub(r"[^\n]", " ", match.group(0))


def code_of(text):
    """text with comments and the insides of strings blanked, line for line"""
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', blank, text, flags=re.S)


def check_includes(path, lines, rooms, rt_rooms):
    parts = path.split(os.sep)
    if parts[0] == "lib":                       # lib/<name>/rt*.c is the run-time half
        allowed = set(rt_rooms) if parts[-1].startswith("rt") else set(rooms) - {"rt", "api", "tools"}
    else:
        room = parts[1]
        if room not in rooms:
            complain(path, 1, f"{room}/ is no room of the Makefile's list")
            return
        allowed = set(rooms[:rooms.index(room) + 1])
        if room not in rt_rooms and room not in ("api", "tools"):
            allowed.discard("rt")
        if room != "api":
            allowed.discard("api")
    for i, line in enumerate(lines, 1):
        m = re.match(r'\s*#\s*include\s*"([^"/]+)/', line)
        if m and m.group(1) not in allowed and m.group(1) in rooms:
            complain(path, i, f"includes {m.group(1)}/, which this room may not")


def wrap(tops, clang_format):
    """breaks the lines of C files that are too wide, and touches no others"""
    for path in files(tops, (".c", ".h")):
        for _ in range(3):
            with open(path, encoding="utf-8") as f:
                wide = [i for i, line in enumerate(f.read().split("\n"), 1) if len(line) > WIDTH]
            if not wide:
                break
            subprocess.run([clang_format, "-i", *(f"--lines={i}:{i}" for i in wide), path], check=True)


def check_source(path, rooms, rt_rooms):
    with open(path, encoding="utf-8") as f:
        text = f.read()
    lines = text.split("\n")
    wide = [i for i, line in enumerate(lines, 1) if len(line) > WIDTH]
    if wide and not path.endswith(".def"):
        complain(path, wide[0], f"more than {WIDTH} columns in lines {', '.join(map(str, wide))}")
    for i, line in enumerate(lines, 1):
        if "\t" in line and not path.endswith(".py"):
            complain(path, i, "a tab")
        if not path.startswith("tests") and (m := WORDS.search(line)):
            complain(path, i, f'says "{m.group(1)}"')
    if path.endswith(".py") or not path.startswith(("src", "lib")):
        return
    check_includes(path, lines, rooms, rt_rooms)
    if path.startswith(os.path.join("src", "tools")):
        return
    for i, line in enumerate(code_of(text).split("\n"), 1):
        if m := HOST_CALL.search(line) or STDIO.search(line):
            complain(path, i, f"{m.group(1)}: a library in a host must not use it")


def lines_of(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()


def declared_names():
    names = set()
    for path in files(["include"], (".h",)):
        with open(path, encoding="utf-8") as f:
            names |= set(re.findall(r"\b(relax_[a-z0-9_]+)\s*\((?!\s*\*)", code_of(f.read())))
    return names


def check_library(so):
    exported = {l.split()[2].split("@")[0] for l in lines_of("nm", "-D", "--defined-only", so) if len(l.split()) == 3}
    exported = {n for n in exported if not re.match(r"RELAX_[0-9.]+$|_init$|_fini$", n)}
    declared = declared_names()
    for n in sorted(exported - declared):
        complain(so, 0, f"exports {n}, which no public header declares")
    if os.path.basename(so).startswith("librelax.so"):
        macros_or_types = set()
        for path in files(["include"], (".h",)):
            with open(path, encoding="utf-8") as f:
                text = code_of(f.read())
            macros_or_types |= set(re.findall(r"\(\s*\*\s*(relax_\w+)\s*\)", text))
            macros_or_types |= set(re.findall(r"static\s+inline[^;{]*?\b(relax_\w+)\s*\(", text))
            macros_or_types |= set(re.findall(r"#\s*define\s+(relax_\w+)\s*\(", text))
            macros_or_types |= set(re.findall(r"RELAX_PLUGIN_EXPORT[^;]*?\b(relax_\w+)\s*\(", text))    # a plugin's
        lost = sorted(declared - exported - macros_or_types)
        if lost:
            some = ", ".join(lost[:8]) + (", ..." if len(lost) > 8 else "")
            complain(so, 0, f"{len(lost)} names of the public headers are not exported: {some}")
    for l in lines_of("nm", "-D", "--undefined-only", so):
        if l.split()[-1].split("@")[0] in IMPORTS:
            complain(so, 0, f"imports {l.split()[-1]}")
    check_globals(so)


def check_globals(so):
    index = {}
    for l in lines_of("readelf", "-SW", so):
        m = re.match(r"\s*\[\s*(\d+)\]\s+(\S+)\s+(\S+)\s+\S+\s+\S+\s+(\S+)", l)
        if m:
            index[m.group(1)] = m.group(2)
            if m.group(2) in (".init_array", ".fini_array", ".ctors") and int(m.group(4), 16) > 8:
                complain(so, 0, f"{m.group(2)} has more than the C runtime's entry")
    for l in lines_of("readelf", "-sW", so):
        f = l.split()
        if len(f) != 8 or f[3] not in ("OBJECT", "TLS", "NOTYPE") or RUNTIME_DATA.match(f[7]):
            continue
        if index.get(f[6]) in (".data", ".bss", ".tdata", ".tbss"):
            complain(so, 0, f"{f[7]} is writable data ({index[f[6]]})")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--rooms", required=True)
    p.add_argument("--rt-rooms", required=True)
    p.add_argument("--wrap", metavar="CLANG_FORMAT", help="first break the lines that are too wide")
    p.add_argument("libraries", nargs="*")
    a = p.parse_args()
    tops = [t for t in ("src", "lib", "include", "bindings", "tests", "examples", "bench") if os.path.isdir(t)]
    if a.wrap:
        wrap(tops, a.wrap)
    for path in files(tops, (".c", ".h", ".def", ".py")):
        if "egg-info" not in path and os.sep + "build" + os.sep not in path:
            check_source(path, a.rooms.split(), a.rt_rooms.split())
    for so in a.libraries:
        check_library(so)
    print("\n".join(problems) if problems else "lint: ok")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
