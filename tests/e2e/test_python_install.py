"""pip install ./bindings/python in a fresh virtual environment, and the examples in Python."""
import os
import pathlib
import subprocess
import sys
import venv

import pytest

from relax import _lib

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "bindings/python"
RUN = """
import array, relax, sys
assert relax._lib.lib.path.startswith(sys.prefix), relax._lib.lib.path
m = relax.Module.parse("fn f(x: Tensor((n,), f32)) -> Tensor((n,), f32) { y = exp(x)\\n return y }")
print(relax.__version__, relax.build(m)["f"](array.array("f", [0, 0])).tolist())
"""


def test_pip_install(tmp_path):
    venv.create(tmp_path / "env", with_pip=True)
    python = tmp_path / "env/bin/python"
    env = dict(os.environ, RELAX_LIBRARY=_lib.lib.path)
    before = sorted(PACKAGE.rglob("*"))
    r = subprocess.run([python, "-m", "pip", "install", "--no-deps", str(PACKAGE)], env=env, capture_output=True,
                       text=True, cwd=tmp_path)
    said = r.stdout + r.stderr
    if r.returncode and ("No matching distribution found for setuptools" in said or "connection" in said.lower()):
        pytest.skip("pip cannot reach setuptools")
    assert r.returncode == 0, said
    after = [p for p in sorted(PACKAGE.rglob("*")) if "__pycache__" not in p.parts]
    assert after == [p for p in before if "__pycache__" not in p.parts]            # nothing is left in the tree
    env = {k: v for k, v in os.environ.items() if k not in ("RELAX_LIBRARY", "PYTHONPATH")}
    r = subprocess.run([python, "-c", RUN], env=env, capture_output=True, text=True, cwd=tmp_path)
    assert r.stdout == "0.1.0 [1.0, 1.0]\n", r.stderr
    listed = subprocess.run([python, "-m", "pip", "show", "-f", "librelax"], capture_output=True, text=True).stdout
    assert "relax/py.typed" in listed and "relax/librelax.so" in listed


def test_absent_library_is_a_clear_error(tmp_path):
    env = dict(os.environ, RELAX_LIBRARY=str(tmp_path / "librelax.so"), PYTHONPATH=str(PACKAGE))
    r = subprocess.run([sys.executable, "-c", "import relax"], env=env, capture_output=True, text=True)
    assert r.returncode == 1 and "librelax.so was not found" in r.stderr and "make" in r.stderr


def example(name, *args):
    env = dict(os.environ, RELAX_LIBRARY=_lib.lib.path, PYTHONPATH=str(PACKAGE))
    r = subprocess.run([sys.executable, str(ROOT / f"examples/{name}.py"), *args], env=env, capture_output=True,
                       text=True)
    assert r.returncode == 0 and r.stderr == "", r.stderr
    return r.stdout


def test_example_mlp():
    out = example("mlp")
    assert "matmul(x, w1)" in out and out.count("right") == 3 and "WRONG" not in out
    assert "peak memory for n = 2048: " in out and "dim 1 is 255, expected 256" in out.splitlines()[-1]


def test_example_levels():
    assert example("levels") == "relax.Tensor((6, 48), f32) right\ni64 right\n"


def test_example_rewrite():
    out = example("rewrite")
    assert out.startswith("normalize,expand-silu,dce\n") and "sigmoid(x)" in out and "silu(x)" not in out
    assert out.endswith("[-0.2689, 0.0, 0.7311]\n")


def test_example_generate():
    env = dict(os.environ, RELAX_LIBRARY=_lib.lib.path, PYTHONPATH=str(PACKAGE))
    r = subprocess.run([sys.executable, str(ROOT / "examples/generate.py")], env=env, capture_output=True, text=True)
    assert r.returncode == 1 and "generate.py MODEL.gguf" in r.stderr
