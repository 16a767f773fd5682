"""The Python package: building, errors, tensors in and out, passes, threads, cancelling, the table of prototypes."""
import array
import ctypes
import gc
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest

import relax
from relax import _lib

ROOT = pathlib.Path(__file__).resolve().parents[2]


def mlp(module, name="mlp"):
    with module.function(name) as f:
        x = f.param("x", "Tensor((n, 16), f32)")
        w = f.param("w", "Tensor((16, 16), f32)")
        f.bound("n", 1, 4096)
        f.ret(relax.silu(x @ w) + x)
    return module


def mlp_answer(x, w):
    y = x @ w
    return y / (1 + np.exp(-y)) + x


def arrays(n, seed=0):
    r = np.random.default_rng(seed)
    return r.standard_normal((n, 16)).astype(np.float32), r.standard_normal((16, 16)).astype(np.float32)


@pytest.fixture(scope="module")
def exe():
    return relax.build(mlp(relax.Module()), threads=2)


# ---- the header ----
TYPES = {"void": "v", "int32_t": "i", "relax_status": "i", "relax_dtype": "i", "relax_log_level": "i", "uint32_t": "u",
         "int64_t": "l", "size_t": "z", "double": "d", "relax_any": "A"}


def header():
    text = (ROOT / "include/relax.h").read_text(encoding="utf-8")
    return re.sub(r"\s+", " ", re.sub(r"/\*.*?\*/", "", text, flags=re.S))


def code_of(declaration):
    d = declaration.strip()
    if "(*" in d:
        return "p"
    if "*" in d:
        return "s" if re.fullmatch(r"const char \*\s*\w*", d) else "p"
    word = d.replace("const ", "").split()[0]
    return "p" if word.endswith("_fn") else TYPES[word]


def arguments(text):
    parts, depth, begin = [], 0, 0
    for i, c in enumerate(text + ","):
        depth += (c == "(") - (c == ")")
        if c == "," and depth == 0:
            parts.append(text[begin:i])
            begin = i + 1
    return [] if text.strip() in ("", "void") else parts


def prototypes():
    text = header()
    for m in re.finditer(r"RELAX_API\s+([\w ]+?[ *]+)relax_(\w+)\(", text):
        i, depth = m.end(), 1
        while depth:
            depth += (text[i] == "(") - (text[i] == ")")
            i += 1
        result = m[1].replace(" ", "")
        result = ("s" if result == "constchar*" else "p") if "*" in result else code_of(m[1])
        yield m[2], f"{result} {''.join(map(code_of, arguments(text[m.end():i - 1])))}".strip()


def test_prototypes_are_those_of_the_header():
    ours = {name: shape for shape, names in _lib.PROTOTYPES.items() for name in names.split()}
    assert ours == dict(prototypes())
    assert len(ours) > 300


def test_library_has_every_function():
    missing = [n for names in _lib.PROTOTYPES.values() for n in names.split()
               if not hasattr(_lib.lib.cdll, "relax_" + n)]
    assert missing == []


STRUCTS = {
    "DLTensor": _lib.DLTensor, "DLManagedTensor": _lib.DLManagedTensor,
    "DLManagedTensorVersioned": _lib.DLManagedTensorVersioned, "relax_any": _lib.Any_,
    "relax_library_call": _lib.LibraryCall, "relax_packed_call": _lib.PackedCall,
    "relax_context_options": _lib.ContextOptions, "relax_diagnostic": _lib.Diagnostic,
    "relax_op_info": _lib.OpInfo, "relax_build_options": _lib.BuildOptions, "relax_sym_value": _lib.SymValue,
    "relax_vm_options": _lib.VMOptions, "relax_model_options": _lib.ModelOptions, "relax_sampling": _lib.Sampling}


def test_structs_are_those_of_the_header(tmp_path):
    lines = []
    for name, struct in STRUCTS.items():
        lines.append(f'printf("{name} %zu", sizeof({name}));')
        lines += [f'printf(" %zu", offsetof({name}, {field[0]}));' for field in struct._fields_]
        lines.append('puts("");')
    source = "#include <stdio.h>\n#include \"relax.h\"\nint main(void) {\n" + "\n".join(lines) + "\nreturn 0; }\n"
    (tmp_path / "a.c").write_text(source)
    subprocess.run(["cc", f"-I{ROOT / 'include'}", str(tmp_path / "a.c"), "-o", str(tmp_path / "a")], check=True)
    out = subprocess.run([str(tmp_path / "a")], check=True, capture_output=True, text=True).stdout
    want = {line.split()[0]: [int(v) for v in line.split()[1:]] for line in out.splitlines()}
    for name, struct in STRUCTS.items():
        assert [ctypes.sizeof(struct)] + [getattr(struct, f[0]).offset for f in struct._fields_] == want[name], name


def test_dtype_numbers_are_those_of_the_header():
    from relax._dtype import NUMBER, ROWS
    for name, number in NUMBER.items():
        assert _lib.lib.dtype_parse(name.encode()) == number
        assert _lib.lib.dtype_bytes(number) == ROWS[number].bits // 8


# ---- building ----
def test_mlp(exe):
    for n in (1, 2, 7, 130):
        x, w = arrays(n)
        y = exe["mlp"](x, w)
        assert isinstance(y, relax.Tensor) and y.shape == (n, 16) and y.dtype == "f32"
        np.testing.assert_allclose(y.numpy(), mlp_answer(x, w), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(relax.interpret(mlp(relax.Module()), "mlp", x, w), y, rtol=1e-4, atol=1e-5)


def test_text_round_trip():
    m = mlp(relax.Module())
    assert str(relax.Module.parse(str(m))) == str(m)
    assert [f.name for f in m.functions] == ["mlp"] and "mlp" in m and len(m) == 1
    assert str(m["mlp"]).startswith("fn mlp(x: Tensor((n, 16), f32)")
    m.parse_into("fn g(y: Tensor((k,), f32)) -> Tensor((k,), f32) {\n  z = exp(y)\n  return z\n}\n")
    m.verify()
    assert [p.name for p in m["g"].params] == ["y"] and str(m["g"].result_type) == "Tensor((k,), f32)"
    c = m.clone()
    m.remove("g")
    assert "g" not in m and "g" in c


def test_dims():
    m = relax.Module()
    with m.function("f") as f:
        n, k = f.symbol("n"), f.symbol("k")
        assert n * 4 == 4 * n and n + n == 2 * n and hash(n + n) == hash(2 * n)
        assert str((n + 1) // 2) == "(n + 1)//2" and (n * 0 + 3) == 3 and int(n - n + 5) == 5
        assert n != k and n.value is None and f.prove_equal(n * 2 // 2, n) is True
        assert f.prove_equal(n, n + 1) is False and f.prove_equal(n, k) is None
        x = f.param("x", relax.Type.tensor((n * 2, 4), "f32"))
        f.bound("n", 1, 100)
        assert f.prove_le(n, 100) is True and f.bounds(n * 2) == (2, 200)
        assert x.shape == (n * 2, 4) and x.ndim == 2 and str(x.type) == "Tensor((n*2, 4), f32)"
        f.ret(relax.reshape(x, (n, 8)))
    pair = relax.Type.tuple(relax.Type.prim("i64"), relax.Type.shape_(None, ndim=2))
    assert str(pair) == "Tuple(Prim(i64), Shape(ndim=2))" and [t.kind for t in pair.fields] == ["Prim", "Shape"]
    with pytest.raises(TypeError):
        int(n)


def test_scalars_take_the_other_type():
    m = relax.Module()
    with m.function("f") as f:
        h = f.param("h", "Tensor((n,), f16)")
        i = f.param("i", "Tensor((n,), i8)")
        assert (h * 2 + 1.5).dtype == "f16" and (3 - i).dtype == "i8" and (h > 0).dtype == "bool"
        with pytest.raises(TypeError, match="cast"):
            i * 0.5
        with pytest.raises(OverflowError):
            i + 300
        with pytest.raises(TypeError, match="truth"):
            bool(h > 0)
        with pytest.raises(TypeError):
            h + "a"
        y = np.ones(1, np.float16) + h         # an array on the left leaves the operator to the value
        assert isinstance(y, relax.Value) and y.dtype == "f16"
        f.ret((y, -i, ~(h > 0), abs(h) ** 2, i // 2 % 3 << 1))
    exe = relax.build(m)
    x = np.array([1, -2, 3], np.float16)
    k = np.array([5, -6, 7], np.int8)
    got = [np.asarray(t) for t in exe["f"](x, k)]
    for a, b in zip(got, (x + 1, -k, ~(x > 0), abs(x) ** 2, k // 2 % 3 << 1)):
        np.testing.assert_allclose(a, b, rtol=1e-3)


def test_control_flow_calls_and_tuples():
    m = relax.Module()
    with m.function("half") as g:
        a = g.param("a", "Tensor((k * 2,), f32)")
        g.ret(relax.split(a, 2))
    with m.function("main") as f:
        x = f.param("x", "Tensor((n * 2,), f32)")
        c = f.param("c", "Tensor((), bool)")
        lo, hi = m["half"](x)
        with f.dataflow():
            s = lo + hi
        f.ret(f.if_(c, lambda: s * 2, lambda: s - 1))
    exe = relax.build(m)
    x = np.arange(6, dtype=np.float32)
    s = x[:3] + x[3:]
    np.testing.assert_allclose(exe["main"](x, np.array(True)), s * 2)
    np.testing.assert_allclose(exe["main"](x, np.array(False)), s - 1)
    with pytest.raises(relax.ShapeError):
        exe["main"](x[:5], np.array(True))


def test_values_that_are_no_tensors():
    m = relax.Module.parse("""
fn shapes(s: Shape(n, m), k: Prim(i64, k)) -> Tuple(Shape(m, n * k), Prim(i64)) {
  r = (shape(m, n * k), prim(n + k))
  return r
}
fn grow(t: Tuple(Tensor((n,), f32), Tensor((n,), f32))) -> Tensor((n,), f32) {
  a = t[0]
  b = t[1]
  c = add(a, b)
  return c
}""")
    exe = relax.build(m)
    shape, total = exe["shapes"](relax.Shape((3, 5)), 4)
    assert shape == (5, 12) and isinstance(shape, relax.Shape) and total == 7
    x = np.ones(3, np.float32)
    np.testing.assert_array_equal(exe["grow"]((x, relax.tensor([1.0, 2.0, 3.0]))), [2, 3, 4])


def test_prim_functions():
    m = relax.Module()
    with m.prim("decode") as p:
        q, s, w = (p.param(n, t) for n, t in (("Q", "Buffer((k // 8, m), u32)"), ("S", "Buffer((m,), f32)"),
                                              ("W", "Buffer((k, m), f32)")))
        with p.loop("i", "k") as i, p.loop("j", "m") as j:
            nibble = (q[i // 8, j] >> p.call("u32", i % 8 * 4)) & 15
            w[i, j] = (nibble.astype("f32") - 7.0) * s[j]
    with m.prim("total") as p:
        x, y = p.param("X", "Buffer((n,), f32)"), p.param("Y", "Buffer((), f32)")
        y[()] = 0.0
        with p.loop_reduce("i", "n") as i:
            y[()] = y[()] + p.call("sqrt", x[i])
    m.parse_into("prim twice(X: Buffer((n,), f32), Y: Buffer((n,), f32)) { for i in n { Y[i] = X[i] * 2.0 } }")
    with m.function("f") as f:
        a = f.param("a", "Tensor((k // 8, m), u32)")
        b = f.param("b", "Tensor((m,), f32)")
        f.param("c", "Tensor((k, m), f32)")
        v = f.call_tir(m["decode"], [a, b], "Tensor((k, m), f32)")
        b2 = f.call_tir(m["twice"], [b], b.type)
        f.ret((v, b2, f.call_tir(m["total"], [b], "Tensor((), f32)")))
    assert m["decode"].is_prim and not m["f"].is_prim
    r = np.random.default_rng(1)
    q, s = r.integers(0, 2**32, (2, 3), dtype=np.uint32), r.random(3).astype(np.float32)
    v, b2, t = relax.build(m)["f"](q, s, np.zeros((16, 3), np.float32))
    want = ((np.repeat(q, 8, 0) >> (np.arange(16) % 8 * 4)[:, None].astype(np.uint32)) & 15).astype(np.float32) - 7
    np.testing.assert_allclose(v, want * s)
    np.testing.assert_allclose(b2, s * 2)
    assert t.item() == pytest.approx(np.sqrt(s).sum(), rel=1e-5)


def test_prim_errors_leave_the_module():
    m = relax.Module()
    with pytest.raises(relax.Error):
        with m.prim("bad") as p:
            x = p.param("X", "Buffer((n,), f32)")
            x[0, 0]
    with pytest.raises(ZeroDivisionError):
        with m.prim("bad") as p:
            1 // 0
    assert len(m) == 0
    with pytest.raises(relax.ShapeError) as e:             # never inside: an error at once
        with m.prim("outside") as p:
            x, y = p.param("X", "Buffer((n,), f32)"), p.param("Y", "Buffer((n,), f32)")
            with p.loop("i", "n") as i:
                y[i + n_of(p)] = x[i]
    assert e.value.id == "RX3102"
    with m.prim("shifted") as p:                           # outside for the last one: an error when it runs
        x, y = p.param("X", "Buffer((n,), f32)"), p.param("Y", "Buffer((n,), f32)")
        with p.loop("i", "n") as i:
            y[i] = x[i + 1]
    with m.function("f") as f:
        f.ret(f.call_tir(p.function, [f.param("a", "Tensor((n,), f32)")], "Tensor((n,), f32)"))
    with pytest.raises(relax.BoundError, match="RX4109"):
        relax.build(m)["f"](np.zeros(3, np.float32))


def n_of(p):
    return p.symbol("n")


# ---- operators from the table ----
def test_operator_functions():
    assert {"matmul", "softmax", "build", "Module"} <= set(dir(relax))
    assert "axis" in str(__import__("inspect").signature(relax.softmax)) and "exp" in relax.softmax.__doc__
    with pytest.raises(AttributeError):
        relax.no_such_operator
    with pytest.raises(relax.InvalidError, match="no function is being built"):
        relax.zeros((2,))
    m = relax.Module()
    with m.function("f") as f:
        x = f.param("x", "Tensor((n, 3), f32)")
        with pytest.raises(TypeError, match="keepdims"):
            relax.sum(x, axes=1)
        with pytest.raises(TypeError, match="operands"):
            relax.add(x)
        with pytest.raises(TypeError, match="is no int"):
            relax.softmax(x, axis="a")
        y = relax.sum(x, 1, True)
        assert y.op == "sum" and y.attrs["axis"] == "(1)" or y.attrs["axis"]
        f.ret(y)


# ---- errors ----
def test_error_has_id_place_and_hint():
    m = relax.Module()
    with pytest.raises(relax.ShapeError) as e:
        with m.function("g") as f:
            a, b = f.param("a", "Tensor((n, 3), f32)"), f.param("b", "Tensor((4, n), f32)")
            a @ b
    assert e.value.id == "RX2104" and e.value.function == "g" and "g" in e.value.where
    assert "3" in str(e.value) and "4" in str(e.value) and isinstance(e.value, ValueError)
    assert len(m) == 0                                     # the function is gone
    mlp(m)                                                 # and the module and context are as good as before
    with pytest.raises(relax.FormatError) as e:
        relax.Module.parse("fn f(x: Tensor((n,), f32)) -> {\n  y = exp(x\n", name="bad.rlx")
    assert (e.value.file, e.value.line) == ("bad.rlx", 1) and e.value.where.startswith("bad.rlx:1:")
    with pytest.raises(KeyError) as e:
        relax.Pipeline("no-such-pass")
    assert e.value.id == "RX7101" and e.value.hint
    assert "no-such-pass" in str(e.value)
    with pytest.raises(relax.Error, match="RX8101"):
        relax.Target("abacus")
    with pytest.raises(relax.InvalidError, match="ret"):
        with m.function("no_result") as f:
            f.param("x", "Tensor((n,), f32)")


def test_errors_of_calls(exe):
    x, w = arrays(3)
    with pytest.raises(relax.ShapeError) as e:
        exe["mlp"](x, w[:15])
    assert e.value.id == "RX4107" and "w" in str(e.value) and "15" in str(e.value) and "16" in str(e.value)
    with pytest.raises(relax.Error, match="RX4101"):
        exe["mlp"](x)
    with pytest.raises(TypeError) as e:
        exe["mlp"](x.astype(np.float64), w)
    assert e.value.id == "RX4103"
    with pytest.raises(relax.BoundError):
        exe["mlp"](np.zeros((5000, 16), np.float32), w)
    with pytest.raises(KeyError):
        exe["nothing"]
    with pytest.raises(TypeError, match="no tensor"):
        exe["mlp"](x, object())
    np.testing.assert_allclose(exe["mlp"](x, w), mlp_answer(x, w), rtol=1e-4, atol=1e-5)


def test_file_errors(tmp_path, exe):
    with pytest.raises(OSError) as e:
        relax.Executable.load(tmp_path / "absent.rlx")
    assert e.value.id == "RX5101"
    with pytest.raises(relax.FormatError):
        relax.Executable.load(b"no executable" * 10)
    data = bytearray(exe.to_bytes())
    data[len(data) // 2] ^= 1
    with pytest.raises(relax.Error):
        relax.Executable.load(bytes(data))
    with pytest.raises(ValueError, match="NUL"):
        relax.Module().function("a\0b")


def test_stale_handles_are_errors():
    m = mlp(relax.Module())
    f, v = m["mlp"], m["mlp"].values()[0]
    relax.Pipeline("legalize").run(m)
    with pytest.raises(relax.InvalidError, match="look it up"):
        f.name
    with pytest.raises(relax.InvalidError, match="look it up"):
        v.op
    assert "earlier" in repr(v) and m["mlp"].name == "mlp"


# ---- executables ----
def test_save_load_inspect(tmp_path, exe):
    path = tmp_path / "mlp.rlx"
    exe.save(path)
    x, w = arrays(5)
    for e in (relax.Executable.load(path), relax.Executable.load(str(path)), relax.Executable.load(exe.to_bytes())):
        assert list(e.functions) == ["mlp"] and e.metadata("librelax") == relax.__version__
        np.testing.assert_array_equal(e["mlp"](x, w), exe["mlp"](x, w))
    f = exe.functions["mlp"]
    assert f.signature.startswith("mlp(x: Tensor((n, 16), f32), w: Tensor((16, 16), f32)) -> Tensor((n, 16), f32)")
    assert f.peak_memory(n=2048) > 0 and f.peak_memory(n=2048) >= f.peak_memory(n=1) and f.memory_formula
    with pytest.raises(relax.Error):
        f.peak_memory(m=3)
    assert "mlp" in exe.text() and len(exe.text(code=True)) > len(exe.text())
    assert exe.metadata("nothing") is None
    assert path.read_bytes() == exe.to_bytes()


def test_outputs_of_the_host(exe):
    x, w = arrays(4)
    y = np.zeros((4, 16), np.float32)
    assert exe["mlp"](x, w, out=y) is y
    np.testing.assert_allclose(y, mlp_answer(x, w), rtol=1e-4, atol=1e-5)
    t = relax.empty((4, 16))
    exe["mlp"](x, w, out=t)
    np.testing.assert_array_equal(t, y)
    with pytest.raises(relax.Error):
        exe["mlp"](x, w, out=np.zeros((3, 16), np.float32))
    y.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        exe["mlp"](x, w, out=y)


def test_weights_by_name():
    m = relax.Module.parse("""
fn f(x: Tensor((n, 4), f32), w: Tensor((4, 2), f32)) -> Tensor((n, 2), f32) attrs {num_inputs = 1} {
  y = matmul(x, w)
  return y
}""")
    exe = relax.build(m)
    assert list(exe.weights) == ["w"] and "(4, 2)" in exe.weights["w"]
    x, w = np.ones((3, 4), np.float32), np.arange(8, dtype=np.float32).reshape(4, 2)
    with pytest.raises(relax.NotFoundError) as e:
        exe["f"](x)
    assert e.value.id == "RX4113"
    exe.bind(w=w)
    np.testing.assert_allclose(exe["f"](x), x @ w)
    held = weakref.ref(exe._weights["w"])
    del w
    gc.collect()
    assert held() is not None
    for wrong in (np.zeros((4, 2), np.float64), np.zeros((4, 3), np.float32), np.zeros(8, np.float32)):
        with pytest.raises(relax.Error, match="w"):
            exe.bind(w=wrong)["f"](x)
    with pytest.raises(relax.Error, match="no weight v"):
        exe.bind(v=np.zeros((4, 2), np.float32))
    w = np.arange(8, dtype=np.float32).reshape(4, 2)
    exe.bind({"w": w})
    results = []
    t = threading.Thread(target=lambda: results.append(np.asarray(exe["f"](x))))
    t.start()
    t.join()
    np.testing.assert_allclose(results[0], exe["f"](x))


def test_many_shapes_no_growth(exe):
    _, w = arrays(1)
    r = np.random.default_rng(3)
    x, y = np.zeros((2048, 16), np.float32), np.zeros((2048, 16), np.float32)
    vm = relax.VM(exe, threads=1)
    vm["mlp"](relax.tensor(x), relax.tensor(w), out=y)
    before = vm.memory.held
    for _ in range(300):
        n = int(r.integers(1, 2049))
        vm["mlp"](relax.tensor(x[:n]), relax.tensor(w), out=y[:n])
    assert vm.memory.held == before                        # outputs of the host: not a byte
    for _ in range(300):
        assert vm["mlp"](x[:int(r.integers(1, 2049))], w).ndim == 2
    assert vm.memory.held < before + 16 * y.nbytes         # a few results are kept for reuse


def test_profile(exe):
    vm = relax.VM(exe, threads=1, profile=True)
    vm["mlp"](*arrays(8))
    rows = vm.profile
    assert rows and sum(calls for _, calls, _ in rows) > 0 and all(seconds >= 0 for *_, seconds in rows)


# ---- tensors ----
@pytest.fixture(scope="module")
def double():
    m = relax.Module()
    for name in ("f16", "f32", "f64", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"):
        with m.function(name) as f:
            x = f.param("x", f"Tensor((n, m), {name})")
            f.ret(x + x)
    return relax.build(m)


@pytest.mark.parametrize("name,dtype", [("f16", "float16"), ("f32", "float32"), ("f64", "float64"), ("i8", "int8"),
                                        ("i16", "int16"), ("i32", "int32"), ("i64", "int64"), ("u8", "uint8"),
                                        ("u16", "uint16"), ("u32", "uint32"), ("u64", "uint64")])
def test_dtypes_both_ways(double, name, dtype):
    x = np.arange(6).reshape(2, 3).astype(dtype)
    y = double[name](x)
    assert y.dtype == name and y.numpy().dtype == x.dtype and y.nbytes == x.nbytes
    np.testing.assert_array_equal(y, x + x)
    assert y.tolist() == (x + x).tolist()


def test_strided_and_read_only_inputs(double):
    x = np.arange(24, dtype=np.float32).reshape(4, 6)
    for view in (x[::2], x[:, ::-1], x.T, x[1:3, 2:5], np.broadcast_to(x[:1], (3, 6)), x[:0], x[:, :0],
                 np.asfortranarray(x)):
        np.testing.assert_array_equal(double["f32"](view), view + view)
    x.flags.writeable = False
    np.testing.assert_array_equal(double["f32"](x), x + x)
    np.testing.assert_array_equal(double["f32"](x[::2]), x[::2] * 2)
    packed = np.zeros(5, dtype=[("a", "u1"), ("b", "<f4")])["b"].reshape(5, 1)         # unaligned elements
    with pytest.raises(TypeError, match="strides"):
        double["f32"](packed)
    with pytest.raises(TypeError, match="data type"):
        double["f32"](x.astype(">f4"))
    with pytest.raises(TypeError, match="data type"):
        double["f32"](np.zeros((1, 1), np.complex64))


def test_zero_copy_in():
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    t = relax.tensor(x)
    assert t._data == x.ctypes.data
    x[0, 0] = 42
    assert t.tolist()[0][0] == 42
    alive = weakref.ref(x)
    del x
    gc.collect()
    assert alive() is not None and t.tolist()[0][0] == 42  # the tensor holds the array
    del t
    gc.collect()
    assert alive() is None                                 # and lets it go


def test_zero_copy_out(exe):
    y = exe["mlp"](*arrays(3))
    a = np.from_dlpack(y)
    assert a.ctypes.data == y._data and y.numpy().ctypes.data == y._data
    want = a.copy()
    del y
    gc.collect()
    exe["mlp"](*arrays(300, 7))
    np.testing.assert_array_equal(a, want)                 # the array holds the memory
    b = np.asarray(exe["mlp"](*arrays(3)), dtype=np.float64)
    assert b.dtype == np.float64


def test_arguments_are_not_kept(exe):
    x, w = arrays(3)
    alive = weakref.ref(x)
    y = exe["mlp"](x, w)
    del x
    gc.collect()
    assert alive() is None and y.shape == (3, 16)


def test_results_that_are_arguments():
    exe = relax.build(relax.Module.parse("fn id(x: Tensor((n,), f32)) -> Tensor((n,), f32) {\n  return x\n}\n"))
    x = np.ones(3, np.float32)
    y = exe["id"](x)
    x[:] = 5
    del x
    gc.collect()
    assert y.tolist() == [1, 1, 1]                         # a lent tensor is copied when it leaves the call


def test_dlpack_protocol():
    t = relax.tensor([[1, 2], [3, 4]], dtype="f32")
    assert t.__dlpack_device__() == (1, 0) and t.dtype == "f32" and len(t) == 2
    assert "dltensor_versioned" in repr(t.__dlpack__(max_version=(1, 1)))
    assert '"dltensor"' in repr(t.__dlpack__())
    with pytest.raises(BufferError):
        t.__dlpack__(dl_device=(2, 0))
    c = t.copy()
    assert c._data != t._data and c.tolist() == t.tolist()

    class Old:                                             # a consumer and producer from before DLPack 1.0
        def __init__(self, inner): self.inner = inner
        def __dlpack_device__(self): return (1, 0)
        def __dlpack__(self, stream=None): return self.inner.__dlpack__()
    u = relax.tensor(Old(t))
    assert u._data == t._data and u.tolist() == [[1, 2], [3, 4]]
    a = np.from_dlpack(Old(t)) if np.lib.NumpyVersion(np.__version__) < "2.1.0" else np.from_dlpack(t)
    del t, u
    gc.collect()
    assert a.tolist() == [[1, 2], [3, 4]]
    frozen = np.arange(3.0)
    frozen.flags.writeable = False
    r = relax.tensor(frozen)
    with pytest.raises(BufferError, match="read-only"):
        r.__dlpack__()
    assert not np.from_dlpack(r).flags.writeable


def test_buffers_lists_numbers():
    assert relax.tensor(array.array("d", [1, 2])).tolist() == [1, 2]
    assert relax.tensor(memoryview(b"\1\2\3")).dtype == "u8"
    assert relax.tensor(bytearray(b"ab")).tolist() == [97, 98]
    assert relax.tensor([[1, 2], [3, 4]]).dtype == "i64" and relax.tensor(2.5).item() == 2.5
    assert relax.tensor([]).shape == (0,) and relax.tensor([True]).dtype == "bool"
    assert relax.tensor([1, 2], dtype=np.uint8).dtype == "u8" and float(relax.tensor(3, "f16")) == 3
    assert relax.tensor(np.float32(4)).shape == () and relax.empty((2, 0, 3)).tolist() == [[], []]
    with pytest.raises(ValueError):
        relax.tensor([[1], [2, 3]])
    with pytest.raises(TypeError):
        relax.tensor([1.5], dtype="i32")
    with pytest.raises(TypeError, match="no data type"):
        relax.tensor([1], dtype="f31")
    assert repr(relax.tensor([1.0])) == "relax.Tensor((1,), f32)"
    m = relax.Module()
    with m.function("f") as f:
        f.ret(f.param("x", "Tensor((2,), f32)") + relax.const([0.5, 1.5]) + np.array([1, 2], np.float32)[::-1])
    assert relax.build(m)["f"](array.array("f", [1, 2])).tolist() == [3.5, 4.5]


def test_without_numpy(exe):
    """the package needs nothing but Python"""
    code = """
import sys
sys.modules["numpy"] = sys.modules["tqdm"] = sys.modules["jinja2"] = None
import array, relax
m = relax.Module()
with m.function("f") as f:
    x = f.param("x", "Tensor((n,), f32)")
    f.ret(relax.exp(x) * 2)
print(relax.build(m, progress=True)["f"](array.array("f", [0, 0, 0])).tolist())
"""
    env = dict(os.environ, PYTHONPATH=str(ROOT / "bindings/python"), RELAX_LIBRARY=_lib.lib.path)
    r = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert r.stdout == "[2.0, 2.0, 2.0]\n" and r.stderr == ""


def test_bf16():
    m = relax.Module()
    with m.function("f") as f:
        f.ret(relax.astype(f.param("x", "Tensor((n,), f32)"), "bf16"))
    t = relax.build(m)["f"](np.array([1.5, -2, 3.14159], np.float32))
    assert t.dtype == "bf16" and t.tolist() == pytest.approx([1.5, -2, 3.140625])
    ml_dtypes = pytest.importorskip("ml_dtypes")
    a = t.numpy()
    assert a.dtype == ml_dtypes.bfloat16 and a.ctypes.data == t._data
    assert relax.tensor(a).tolist() == t.tolist()


def test_torch(exe):
    torch = pytest.importorskip("torch")
    x, w = (torch.from_numpy(a) for a in arrays(3))
    y = torch.from_dlpack(exe["mlp"](x, w))
    np.testing.assert_allclose(y.numpy(), mlp_answer(x.numpy(), w.numpy()), rtol=1e-4, atol=1e-5)


# ---- passes ----
def test_host_pass_rewrites():
    seen = []

    @relax.host_pass
    def swap_silu(m):
        for f in m.functions:
            for v in [] if f.is_prim else f.values():
                seen.append(v.op)
                if v.op == "silu":
                    with v.before():
                        x = v.args[0]
                        v.replace(x * relax.sigmoid(x))
                    v.remove()

    m = mlp(relax.Module())
    p = relax.Pipeline("normalize,dce")
    p.insert_after("normalize", swap_silu)
    p.insert_before(None, lambda m: seen.append(len(m)), name="count-functions")
    assert str(p) == "normalize,swap-silu,dce,count-functions"
    p.run(m)
    assert seen == ["matmul", "silu", "add", 1]
    assert "silu" not in str(m) and "sigmoid" in str(m)
    assert [n for n, _ in p.times] == ["normalize", "swap-silu", "dce", "count-functions"]
    x, w = arrays(3)
    np.testing.assert_allclose(relax.build(m)["mlp"](x, w), mlp_answer(x, w), rtol=1e-4, atol=1e-5)
    q = relax.Pipeline("default")
    q.insert_before("legalize", swap_silu)
    exe = relax.build(mlp(relax.Module()), pipeline=q)
    np.testing.assert_allclose(exe["mlp"](x, w), mlp_answer(x, w), rtol=1e-4, atol=1e-5)


def test_failing_host_pass_changes_nothing():
    m = mlp(relax.Module())
    before = str(m)

    def breaks(m):
        m["mlp"].values()[1].replace(m["mlp"].params[0])
        raise LookupError("no")
    p = relax.Pipeline("normalize")
    p.insert_after("normalize", breaks)
    with pytest.raises(LookupError, match="no"):
        p.run(m)
    assert str(m) == before
    with pytest.raises(relax.Error):
        p.insert_after("absent", breaks)
    p.remove("breaks")
    p.run(m)


def test_visit_and_inspect():
    m = mlp(relax.Module())
    f = m["mlp"]
    names = []
    f.visit(lambda v: names.append(v.op) or v.op == "silu")
    assert names == ["matmul", "silu"]
    add = f.values()[-1]
    assert add.kind == "op" and [a.kind for a in add.args] == ["op", "param"]
    assert f.result.is_(add) and f.params[0].uses == 2
    with pytest.raises(relax.Error):
        f.values()[0].remove()
    with pytest.raises(KeyError):
        f.visit(lambda v: {}["missing"])
    add.set_arg(1, f.params[0])
    m.verify()


def test_pipeline_printing_and_lists():
    context = relax.Context.current()
    assert {"normalize", "legalize", "plan-memory"} <= set(context.passes())
    assert context.operators()["softmax"].attrs == "axis:int=-1"
    printed = []
    p = relax.Pipeline("normalize,fold-constant,dce")
    p.print(lambda name, after, text: printed.append((name, after, text.startswith("fn mlp"))), after="dce",
            before="normalize")
    p.verify_each()
    p.run(mlp(relax.Module()))
    assert printed == [("normalize", False, True), ("dce", True, True)]
    assert str(relax.Target("cpu")).startswith("cpu")


# ---- library functions ----
def test_library_functions():
    context = relax.Context()
    m = relax.Module(context=context)
    with m.function("f") as f:
        x = f.param("x", "Tensor((n,), f32)")
        y = f.call_library("mine.softcap", [x], "Tensor((n,), f32)")
        f.ret(f.call_packed("mine.scale", [y, x.shape[0]], "Tensor((n,), f32)"))
    exe = relax.build(m)
    with pytest.raises(relax.NotFoundError):
        exe["f"](np.ones(3, np.float32))

    def softcap(x, out):
        out[:] = 5 * np.tanh(x / 5)
    relax.register_library("mine.softcap", softcap, context=context)
    kept = []
    relax.register_packed("mine.scale", lambda t, n: kept.append(t) or np.asarray(t) * n, context=context)
    x = np.linspace(-9, 9, 7, dtype=np.float32)
    want = 5 * np.tanh(x / 5)
    np.testing.assert_allclose(exe["f"](x), want * 7, rtol=1e-5)
    exe["f"](np.zeros(7, np.float32))
    np.testing.assert_allclose(kept[0], want, rtol=1e-5)   # an argument that a function keeps is its own

    def fails(t, n):
        raise RuntimeError("out of order")
    relax.unregister("mine.scale", context=context)
    relax.register_packed("mine.scale", fails, context=context)
    with pytest.raises(RuntimeError, match="out of order"):
        exe["f"](x)


def test_foreign_function():
    libc = ctypes.CDLL(None)
    context = relax.Context()
    m = relax.Module(context=context)
    with m.function("f") as f:
        x = f.param("x", "Tensor((16,), f32)")
        f.ret(f.call_library("c.memcpy", [x], "Tensor((16,), f32)"))
    copy = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(
        lambda a, b: 0 if libc.memcpy(ctypes.c_void_p(b), ctypes.c_void_p(a), ctypes.c_size_t(64)) else 1)
    relax.register_foreign("c.memcpy", copy, "i:pp", context=context)
    x = np.arange(16, dtype=np.float32)
    np.testing.assert_array_equal(relax.build(m)["f"](x), x)


def test_openblas():
    context = relax.Context()
    try:
        relax.register_openblas(context=context)
    except relax.NotFoundError as e:
        assert e.id == "RX4110" and e.hint
        pytest.skip("no OpenBLAS")
    m = relax.Module(context=context)
    with m.function("f") as f:
        x, w = f.param("x", "Tensor((n, 16), f32)"), f.param("w", "Tensor((16, 16), f32)")
        f.ret(f.call_library("openblas.sgemm", [x, w], "Tensor((n, 16), f32)"))
    x, w = arrays(5)
    np.testing.assert_allclose(relax.build(m)["f"](x, w), x @ w, rtol=1e-4, atol=1e-5)


# ---- long operations ----
def big(context, layers=40):
    m = relax.Module(context=context)
    with m.function("f") as f:
        x = f.param("x", "Tensor((n, 64), f32)")
        for i in range(layers):
            x = relax.softmax(x @ relax.const(np.full((64, 64), i, np.float32)))
        f.ret(x)
    return m


def test_progress_and_its_errors():
    context, calls = relax.Context(), []
    relax.build(big(context, 2), progress=lambda *a: calls.append(a))
    assert {"codegen", "passes"} <= {c[0] for c in calls} and all(isinstance(c[1], int) for c in calls)

    def fails(phase, done, total):
        raise ValueError("seen enough")
    m = big(context, 2)
    with pytest.raises(ValueError, match="seen enough"):
        relax.build(m, progress=fails)
    relax.build(m)                                         # the context is as good as before


def test_interrupt_stops_a_build():
    context, calls = relax.Context(), []

    def strike(phase, done, total):
        calls.append(phase)
        if len(calls) == 3:
            os.kill(os.getpid(), signal.SIGINT)
    before = signal.getsignal(signal.SIGINT)
    m = big(context)
    with pytest.raises(KeyboardInterrupt):
        relax.build(m, progress=strike)
    assert signal.getsignal(signal.SIGINT) is before and len(calls) <= 5
    assert list(relax.build(m).functions) == ["f"]         # nothing is broken


def test_cancel_from_another_thread():
    context = relax.Context()
    m, started = big(context), threading.Event()
    t = threading.Thread(target=lambda: (started.wait(30), context.cancel()))
    t.start()
    with pytest.raises(relax.Cancelled) as e:
        relax.build(m, progress=lambda *a: started.set())
    t.join()
    assert e.value.id == "RX1008"


def test_progress_bar_on_a_terminal_only(capsys):
    relax.build(mlp(relax.Module()), progress=True)
    out = capsys.readouterr()
    assert out.out == "" and out.err == ""                 # no terminal: no bar


# ---- threads, lifetimes ----
def test_threads_share_an_executable(exe):
    x, w = arrays(64)
    want, errors = np.asarray(exe["mlp"](x, w)), []

    def work(seed):
        try:
            for i in range(50):
                n = 1 + (seed * 7 + i) % 64
                np.testing.assert_allclose(exe["mlp"](x[:n], w), want[:n], rtol=1e-5, atol=1e-6)
        except BaseException as e:
            errors.append(e)
    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert errors == []


def test_threads_build_in_their_own_contexts():
    results = []

    def work():
        x, w = arrays(2)
        results.append(np.asarray(relax.build(mlp(relax.Module()), threads=1)["mlp"](x, w)))
    threads = [threading.Thread(target=work) for _ in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(results) == 3 and all(np.array_equal(r, results[0]) for r in results)


def test_any_order_of_death():
    context = relax.Context()
    m = mlp(relax.Module(context=context))
    exe = relax.build(m)
    y = exe["mlp"](*arrays(3))
    v, a = m["mlp"].values()[0], np.from_dlpack(y)
    gone = [weakref.ref(o) for o in (context, exe, y)]
    state = weakref.ref(context._state)
    del context, exe, y
    gc.collect()
    assert gone[2]() is None and "matmul" in repr(v)       # a value keeps its module and context
    del m, v
    gc.collect()
    assert gone[0]() is None and gone[1]() is None
    assert a.shape == (3, 16) and np.isfinite(a).all()     # the result's memory outlives all of them
    del a
    gc.collect()
    assert state() is None


def test_end_of_process_is_quiet():
    code = """
import relax, array
m = relax.Module()
with m.function("f") as f:
    f.ret(relax.exp(f.param("x", "Tensor((n,), f32)")))
exe = relax.build(m)
y = exe["f"](array.array("f", [1, 2]))
cycle = [y, exe, m]
cycle.append(cycle)
capsule = y.__dlpack__(max_version=(1, 0))
"""
    env = dict(os.environ, PYTHONPATH=str(ROOT / "bindings/python"), RELAX_LIBRARY=_lib.lib.path)
    r = subprocess.run([sys.executable, "-X", "dev", "-c", code], env=env, capture_output=True, text=True)
    assert (r.returncode, r.stdout, r.stderr) == (0, "", "")


def test_log_and_context_options():
    said = []
    context = relax.Context(log=lambda level, text: said.append((level, text)))
    m = mlp(relax.Module(context=context))
    assert relax.build(m).functions and all(isinstance(t, str) for _, t in said)
    assert relax.Context.current() is relax.Context.current()
