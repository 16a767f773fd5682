"""Every program under examples/ is built with relax.h alone and must print what tests/e2e/expected holds for it."""
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("RELAX_BUILD", ROOT / "build"))
LIB = BUILD / "lib"
EXPECTED = ROOT / "tests/e2e/expected"
PROGRAMS = sorted(p.stem for p in (ROOT / "examples").glob("*.c"))


def compile_c(source, out, *flags, cc="gcc", std="-std=c11"):
    warnings = ["-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror"]
    subprocess.run([cc, std, *warnings, f"-I{ROOT / 'include'}", str(source), "-o", str(out), *flags], check=True)


def link(rt=False):
    return [f"-L{LIB}", "-lrelax_rt" if rt else "-lrelax", f"-Wl,-rpath,{LIB}", "-lm", "-lpthread"]


@pytest.mark.parametrize("name", PROGRAMS)
def test_example(name, tmp_path):
    compile_c(ROOT / f"examples/{name}.c", tmp_path / name, *link())
    r = subprocess.run([tmp_path / name], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert r.returncode == 0, r.stderr
    assert r.stderr == ""
    assert r.stdout == (EXPECTED / f"{name}.txt").read_text()


def test_plugin_from_the_command(tmp_path):
    compile_c(ROOT / "examples/plugin/plugin.c", tmp_path / "plugin.so", "-shared", "-fPIC", "-fvisibility=hidden")
    (tmp_path / "m.txt").write_text(
        "fn f(x: Tensor((n, 8), f32)) -> Tensor((n, 8), f32) {\n"
        "  a = negative(x)\n  b = negative(a)\n  c = softcap(b, cap=5.0)\n  return c\n}\n")
    command = [BUILD / "bin/relax", "opt", "m.txt", "--plugin", "./plugin.so", "--passes", "fold-double-negative,dce"]
    r = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert r.returncode == 0, r.stderr
    assert "negative" not in r.stdout and "softcap(x, cap=5.0)" in r.stdout


HOST = r"""
#include <relax.h>
#include <relax_plugin.h>
int main()
{
    relax_context *c = 0;
    relax_status s = relax_context_create(0, &c);
    relax_context_destroy(c);
    return s != RELAX_OK;
}
"""


HOSTS = [("gcc", "-std=c99", "a.c"), ("gcc", "-std=c11", "a.c"),
         ("g++", "-std=c++11", "a.cc"), ("g++", "-std=c++17", "a.cc")]


@pytest.mark.parametrize("cc,std,name", HOSTS)
def test_hosts_in_c_and_cpp(cc, std, name, tmp_path):
    (tmp_path / name).write_text(HOST)
    compile_c(tmp_path / name, tmp_path / "host", "-Wpedantic", *link(), cc=cc, std=std)
    assert subprocess.run([tmp_path / "host"], timeout=60).returncode == 0


def test_runtime_alone_runs_what_the_compiler_built(tmp_path):
    """mlp.c split in two: librelax builds and saves, librelax_rt (no compiler, no LLVM) loads and runs."""
    source = (ROOT / "examples/mlp.c").read_text()
    builder = source.replace("build(ctx, path) || run(ctx, path)", "build(ctx, path)")
    builder = builder.replace("    remove(path);\n", "")
    builder = builder.replace("static int run(", "__attribute__((unused)) static int run(")
    start, end = source.index("static relax_module *make("), source.index("/* a tensor of the host")
    runner = (source[:start] + source[end:]).replace("build(ctx, path) || run(ctx, path)", "run(ctx, path)")
    (tmp_path / "b.c").write_text(builder)
    (tmp_path / "r.c").write_text(runner)
    compile_c(tmp_path / "b.c", tmp_path / "b", *link())
    compile_c(tmp_path / "r.c", tmp_path / "r", *link(rt=True))
    subprocess.run([tmp_path / "b"], cwd=tmp_path, check=True, capture_output=True, timeout=60)
    r = subprocess.run([tmp_path / "r"], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert r.returncode == 0, r.stderr
    assert r.stdout.splitlines() == (EXPECTED / "mlp.txt").read_text().splitlines()[1:]
