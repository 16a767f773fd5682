"""Every operator against numpy, for extents 0, 1, 2 and a prime, by the interpreter and by compiled code.

A case is one row: name of the operator, the parameters, the program, numpy's answer. Each is compiled once with a
symbolic n and run for all n. The last test sees to it that no operator of the table is without a row.
"""
import math

import numpy as np
import pytest

import relax

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")      # numpy's, about means of nothing
SIZES = (0, 1, 2, 7)
NP = {"bool": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "u8": np.uint8,
      "u16": np.uint16, "u32": np.uint32, "u64": np.uint64, "f16": np.float16, "f32": np.float32, "f64": np.float64}
TOLERANCE = {"f16": 2e-3, "f32": 2e-5, "f64": 1e-12}


def data(spec, n, seed):
    """an array for "f32 n 3"; "f32+": positive, "i64<5": below 5, "f32?": with NaN and infinities"""
    head, *dims = spec.split()
    shape = tuple(n if d == "n" else int(d) for d in dims)
    r = np.random.default_rng(seed)
    below = int(head.split("<")[1]) if "<" in head else None
    name = head.split("<")[0].rstrip("+?")
    if name == "bool":
        return r.random(shape) < 0.5
    if name[0] in "iu":
        low = 0 if name[0] == "u" or below else 1 if "+" in head else -9
        return r.integers(low, below or 10, shape).astype(NP[name])
    x = r.standard_normal(shape)
    x = np.abs(x) + 0.1 if "+" in head else x * 2
    if "?" in head and x.size:
        x.reshape(-1)[::3] = np.array([np.nan, np.inf, -np.inf])[np.arange(x.reshape(-1)[::3].size) % 3]
    return x.astype(NP[name])


def annotation(spec):
    head, *dims = spec.split()
    tail = "," if len(dims) == 1 else ""
    return f"Tensor(({', '.join(dims)}{tail}), {head.split('<')[0].rstrip('+?')})"


def compare(got, want, tol):
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape
    assert got.dtype == want.dtype
    if got.dtype.kind in "iub":
        np.testing.assert_array_equal(got, want)
    else:
        name = {2: "f16", 4: "f32", 8: "f64"}[got.dtype.itemsize]
        eps = TOLERANCE[name] * tol
        np.testing.assert_allclose(got, want, rtol=eps, atol=eps)


def check(specs, program, answer, tol=1.0, sizes=SIZES):
    m = relax.Module()
    with m.function("f") as f:
        f.ret(program(*[f.param(f"x{i}", annotation(s)) for i, s in enumerate(specs)]))
    exe = relax.build(m, threads=2)
    for n in sizes:
        args = [data(s, n, 10 * n + i) for i, s in enumerate(specs)]
        with np.errstate(all="ignore"):
            want = answer(*args)
        compare(exe["f"](*args), want, tol)
        compare(relax.interpret(m, "f", *args), want, tol)


# ---- element-wise ----
def f(fn):
    """in float32 for f16, as the operators do"""
    return lambda x: fn(x.astype(np.float32)).astype(x.dtype) if x.dtype == np.float16 else fn(x)


erf = np.vectorize(math.erf, otypes=[np.float64])
UNARY = {
    "abs": np.abs, "negative": np.negative, "square": np.square, "relu": lambda x: np.maximum(x, 0), "floor": np.floor,
    "ceil": np.ceil, "round": np.round, "trunc": np.trunc, "exp": np.exp, "sin": np.sin, "cos": np.cos, "tanh": np.tanh,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "silu": lambda x: x / (1 + np.exp(-x)),
    "gelu": lambda x: (x * (1 + erf(x / math.sqrt(2))) / 2).astype(x.dtype),
    "gelu_tanh": lambda x: x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2,
    "erf": lambda x: erf(x).astype(x.dtype)}
POSITIVE = {"log": np.log, "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x)}


@pytest.mark.parametrize("dtype", ["f16", "f32", "f64"])
@pytest.mark.parametrize("name", [*UNARY, *POSITIVE])
def test_unary(name, dtype):
    spec = f"{dtype}{'+' if name in POSITIVE else ''} n 3"
    check([spec], getattr(relax, name), f({**UNARY, **POSITIVE}[name]), tol=4)


@pytest.mark.parametrize("dtype", ["i8", "i32", "i64"])
@pytest.mark.parametrize("name", ["abs", "negative", "square", "relu", "floor", "round"])
def test_unary_integer(name, dtype):
    check([f"{dtype} n"], getattr(relax, name), lambda x: UNARY[name](x).astype(x.dtype))


BINARY = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply, "maximum": np.maximum, "minimum": np.minimum}
COMPARE = {
    "equal": np.equal, "not_equal": np.not_equal, "less": np.less, "less_equal": np.less_equal, "greater": np.greater,
    "greater_equal": np.greater_equal, "logical_and": np.logical_and, "logical_or": np.logical_or,
    "logical_xor": np.logical_xor}
BITS = {"bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor}
REAL = {"divide": np.divide, "floor_divide": lambda a, b: np.floor(a / b),
        "floor_mod": lambda a, b: a - b * np.floor(a / b)}


@pytest.mark.parametrize("dtype", ["f16", "f32", "f64", "i8", "i32", "u8", "i64"])
@pytest.mark.parametrize("name", [*BINARY, *COMPARE])
def test_binary(name, dtype):
    check([f"{dtype} n 3", f"{dtype} 3"], getattr(relax, name), {**BINARY, **COMPARE}[name], tol=4)


@pytest.mark.parametrize("dtype", ["i8", "i32", "u16", "u64"])
@pytest.mark.parametrize("name", BITS)
def test_bits(name, dtype):
    check([f"{dtype} n 1", f"{dtype} n 4"], getattr(relax, name), BITS[name])


@pytest.mark.parametrize("name", REAL)
def test_division(name):
    check(["f32 n 3", "f32+ n 1"], getattr(relax, name), REAL[name], tol=4)
    check(["i32 n", "i32+ n"], getattr(relax, name),
          lambda a, b: {"divide": np.trunc(a / b), "floor_divide": a // b, "floor_mod": a % b}[name].astype(np.int32))


def test_power_and_shifts():
    check(["f32+ n 3", "f32 3"], relax.power, np.power, tol=8)
    check(["i64<5 n", "i64<5 n"], relax.power, np.power)
    check(["i32 n", "i32<5 n"], relax.left_shift, np.left_shift)
    check(["i32 n", "i32<5 n"], relax.right_shift, np.right_shift)


def test_nan():
    check(["f32? n 4"], relax.isnan, np.isnan)
    check(["f32? n 4"], lambda x: relax.max(x, axis=1), lambda x: np.max(x, axis=1))
    check(["f32? n 4", "f32 n 4"], relax.minimum, np.minimum)
    check(["f32? n 4"], lambda x: relax.argmin(x, axis=1), lambda x: np.argmin(x, axis=1))
    check(["f32? n 4"], lambda x: relax.sort(x, axis=1), lambda x: np.sort(x, axis=1))


def test_where_clip_cast():
    check(["bool n 3", "f32 n 1", "f32 3"], relax.where, np.where)
    check(["bool n", "f32 n"], lambda c, x: relax.where(c, x, 0), lambda c, x: np.where(c, x, np.float32(0)))
    check(["f32 n"], lambda x: relax.clip(x, -0.5, 1), lambda x: np.clip(x, np.float32(-0.5), np.float32(1)))
    check(["i16 n"], lambda x: relax.clip(x, min=-3), lambda x: np.maximum(x, np.int16(-3)))
    check(["bool n 2"], relax.logical_not, np.logical_not)
    for a, b in [("f32", "i32"), ("i32", "f16"), ("f64", "f32"), ("i64", "u8"), ("u8", "i8"), ("f32", "bool"),
                 ("bool", "f32")]:
        check([f"{a} n"], lambda x: relax.astype(x, b), lambda x: x.astype(NP[b]))


# ---- reductions ----
REDUCE = {"sum": np.sum, "mean": np.mean, "max": np.max, "min": np.min, "prod": np.prod, "variance": np.var}


def empty_ok(fn, name):
    """numpy refuses max and min over nothing; here they are -inf and inf"""
    initial = {"max": -np.inf, "min": np.inf}.get(name)
    return fn if initial is None else lambda x, **k: fn(x, initial=initial, **k)


@pytest.mark.parametrize("axis", [None, 0, (1, 2), -1])
@pytest.mark.parametrize("name", REDUCE)
def test_reductions(name, axis):
    fn = empty_ok(REDUCE[name], name)
    check(["f32 n 3 2"], lambda x: getattr(relax, name)(x, axis=axis), lambda x: np.float32(fn(x, axis=axis)), tol=4)
    check(["f32 n 3 2"], lambda x: getattr(relax, name)(x, axis=axis, keepdims=True),
          lambda x: np.float32(fn(x, axis=axis, keepdims=True)), tol=4)


def test_reductions_integer():
    check(["i64 n 3"], lambda x: relax.sum(x, axis=0), lambda x: x.sum(axis=0))
    check(["i32<3 n 3"], lambda x: relax.prod(x, axis=1), lambda x: np.prod(x, axis=1, dtype=np.int32))
    check(["i32 n 3"], lambda x: relax.max(x, axis=1), lambda x: x.max(axis=1))


def test_arg_and_cumulative():
    check(["i32 n 3"], lambda x: relax.argmax(x, axis=1), lambda x: x.argmax(axis=1))
    check(["f32 n 3"], lambda x: relax.argmin(x, axis=0), lambda x: x.argmin(axis=0), sizes=(1, 2, 7))
    check(["f32 n 3"], lambda x: relax.argmax(x, axis=0), lambda x: np.full(3, -1), sizes=(0,))
    check(["f32 n 3"], lambda x: relax.cumsum(x, axis=0), lambda x: np.cumsum(x, axis=0), tol=4)
    check(["i64 n 3"], lambda x: relax.cumsum(x, axis=1, exclusive=True), lambda x: np.cumsum(x, axis=1) - x)


# ---- creation ----
def test_creation():
    def with_n(make):
        return lambda x: make(x.shape[0])
    check(["f32 n"], with_n(lambda n: relax.full((n, 2), 7.5)), lambda x: np.full((len(x), 2), 7.5, np.float32))
    check(["f32 n"], with_n(lambda n: relax.full((n,), 3, dtype="i16")), lambda x: np.full(len(x), 3, np.int16))
    check(["f32 n"], with_n(lambda n: relax.zeros((n, 2), dtype="i32")), lambda x: np.zeros((len(x), 2), np.int32))
    check(["f32 n"], with_n(lambda n: relax.ones((2, n))), lambda x: np.ones((2, len(x)), np.float32))
    check(["i8 n 2"], relax.zeros_like, np.zeros_like)
    check(["f64 n 2"], relax.ones_like, np.ones_like)
    check(["f32 n 2"], lambda x: relax.full_like(x, 2), lambda x: np.full_like(x, 2))
    check(["f32 n"], with_n(lambda n: relax.arange(0, n, 1)), lambda x: np.arange(len(x)))
    check(["f32 n"], with_n(lambda n: relax.arange(start=n, end=-1, step=-2)), lambda x: np.arange(len(x), -1, -2))
    check(["f32 n"], with_n(lambda n: relax.eye(n, 4, k=1)), lambda x: np.eye(len(x), 4, 1, np.float32))
    check(["f32 n 5"], lambda x: relax.tril(x, k=1), lambda x: np.tril(x, 1))
    check(["i32 n 5"], lambda x: relax.triu(x, -1), lambda x: np.triu(x, -1))
    check(["i64<4 n"], lambda x: relax.one_hot(x, 4), lambda x: np.eye(4, dtype=np.float32)[x])


# ---- indexing ----
def test_indexing():
    check(["f32 n 3", "i64<3 4"], lambda x, i: relax.take(x, i, axis=1), lambda x, i: np.take(x, i, axis=1))
    check(["f32 5 n", "i32<5 2 2"], lambda x, i: relax.take(x, i, axis=0), lambda x, i: np.take(x, i, axis=0))
    check(["f32 n 3", "i64<3 n 2"], lambda x, i: relax.gather_elements(x, i, axis=1),
          lambda x, i: np.take_along_axis(x, i, axis=1))
    check(["f32 4 n", "i64<4 5 1"], relax.gather_nd, lambda x, i: x[i[:, 0]])

    def scatter(x, i, u):
        y = x.copy()
        np.add.at(y, (np.arange(len(x))[:, None], i), u)
        return y
    check(["f32 n 3", "i64<3 n 2", "f32 n 2"], lambda x, i, u: relax.scatter_elements(x, i, u, axis=1, reduction="add"),
          scatter, tol=4)

    def scatter_nd(x, i, u):
        y = x.copy()
        for k, row in zip(i[:, 0], u):
            y[k] = row
        return y
    check(["f32 4 n", "i64<4 3 1", "f32 3 n"], relax.scatter_nd, scatter_nd)

    def put(x, v, i, j):
        y = x.copy()
        np.add.at(y, (i, j), v)
        return y
    check(["f32 4 3", "f32 n", "i64<4 n", "i64<3 n"], lambda x, v, i, j: relax.index_put(x, v, i, j, accumulate=True),
          put, tol=4)


SLICES = [np.s_[1:], np.s_[::2], np.s_[:-1], np.s_[::-1], np.s_[:, 1], np.s_[:, -1, None], np.s_[..., 0:2],
          np.s_[None, :, 1:], np.s_[5:1:-2, ::-1], np.s_[:, 0, 1], np.s_[2:2], np.s_[-3:, ..., 1]]


@pytest.mark.parametrize("key", SLICES, ids=str)
def test_slices(key):
    check(["f32 n 3 2"], lambda x: x[key], lambda x: x[key])


def test_slices_symbolic_and_dynamic():
    check(["f32 n 4"], lambda x: relax.strided_slice(x, axes=[0, 1], begin=[1, "n // 2"], end=[x.shape[0], 4]),
          lambda x: x[1:, len(x) // 2:4])
    check(["f32 n 4"], lambda x: x[x.shape[0] // 2:, 1], lambda x: x[len(x) // 2:, 1])
    check(["f32 n 4"], lambda x: x[x.shape[0] - 1], lambda x: x[len(x) - 1], sizes=(1, 2, 7))
    check(["f32 n 4", "i64<4 3"], lambda x, i: x[1:, i], lambda x, i: x[1:, i])
    check(["f32 n 3", "i64<1 2"],
          lambda x, b: current_cast(relax.dynamic_strided_slice(x, b, relax.const([1, 2]), relax.const([1, 1])),
                                    "Tensor((p, q), f32)"),
          lambda x, b: x[:1, :2])


def current_cast(value, type):
    from relax._ir import current
    return current().match_cast(value, type)


# ---- matmul, shapes ----
@pytest.mark.parametrize("dtype", ["f32", "f64", "i32"])
def test_matmul(dtype):
    check([f"{dtype} n 5", f"{dtype} 5 3"], lambda a, b: a @ b, np.matmul, tol=8)
    check([f"{dtype} 4 n", f"{dtype} n 3"], relax.matmul, np.matmul, tol=8)
    check([f"{dtype} 2 n 5", f"{dtype} 5 n"], relax.matmul, np.matmul, tol=8)
    check([f"{dtype} 2 1 n 3", f"{dtype} 4 3 2"], relax.matmul, np.matmul, tol=8)
    check([f"{dtype} n", f"{dtype} n"], relax.matmul, np.matmul, tol=8)
    check([f"{dtype} n 4", f"{dtype} 3 4"], lambda a, b: relax.matmul(a, b, transpose_b=True), lambda a, b: a @ b.T,
          tol=8)
    check([f"{dtype} 4 n", f"{dtype} 4 3"], lambda a, b: relax.matmul(a, b, transpose_a=True), lambda a, b: a.T @ b,
          tol=8)


def test_shapes():
    check(["f32 n 6"], lambda x: relax.reshape(x, (x.shape[0] * 2, 3)), lambda x: x.reshape(len(x) * 2, 3))
    check(["f32 n 6"], lambda x: x.reshape(-1, 2), lambda x: x.reshape(len(x) * 3, 2))
    check(["f32 n 3 2"], lambda x: relax.permute_dims(x, axes=(2, 0, 1)), lambda x: x.transpose(2, 0, 1))
    check(["f32 n 3"], lambda x: x.T, lambda x: x.T)
    check(["f32 n 3"], lambda x: relax.expand_dims(x, axis=(0, 2)), lambda x: x[None, :, None])
    check(["f32 n 1 1"], lambda x: relax.squeeze(x, axis=1), lambda x: x[:, 0])
    check(["f32 n 1"], lambda x: relax.broadcast_to(x, (2, x.shape[0], 3)),
          lambda x: np.broadcast_to(x, (2, len(x), 3)))
    check(["f32 n 3", "f32 n 2"], lambda a, b: relax.concat(a, b, axis=1), lambda a, b: np.concatenate([a, b], 1))
    check(["f32 n 3", "f32 2 3"], lambda a, b: relax.concat([a, b], axis=0), lambda a, b: np.concatenate([a, b], 0))
    check(["i32 n 3", "i32 n 3"], lambda a, b: relax.stack([a, b], axis=1), lambda a, b: np.stack([a, b], 1))
    check(["f32 n 6"], lambda x: relax.split(x, sections=3, axis=1)[1], lambda x: x[:, 2:4])
    check(["f32 n 6"], lambda x: relax.split(x, indices=[1, 4], axis=1)[2], lambda x: x[:, 4:])
    check(["f32 n 2"], lambda x: relax.tile(x, repeats=(2, 3)), lambda x: np.tile(x, (2, 3)))
    check(["f32 n 2"], lambda x: relax.repeat(x, 3, axis=0), lambda x: np.repeat(x, 3, 0))
    check(["f32 n 2"], lambda x: relax.flip(x, 0), lambda x: np.flip(x, 0))
    check(["f32 n 2"], relax.flatten, np.ravel)
    check(["f32 n 3"], lambda x: relax.shape_to_tensor(relax.shape_of(x)), lambda x: np.array(x.shape))
    def through_shape(x):
        shape = relax.tensor_to_shape(relax.shape_to_tensor(relax.shape_of(x)))
        return relax.zeros(current_cast(shape, "Shape(a, b)"))
    check(["f32 n 3"], through_shape, np.zeros_like)


# ---- sorting, data-dependent ----
def test_sorting():
    check(["f32 n 5"], lambda x: relax.sort(x, axis=1), lambda x: np.sort(x, 1))
    check(["i32 n 3"], lambda x: relax.sort(x, axis=0, descending=True), lambda x: -np.sort(-x, 0))
    check(["i32 n 5"], lambda x: relax.argsort(x, axis=1), lambda x: np.argsort(x, 1, kind="stable"))
    check(["f32 n 5"], lambda x: relax.topk(x, k=2, axis=1)[0], lambda x: -np.sort(-x, 1)[:, :2])
    check(["f32 n 5"], lambda x: relax.topk(x, k=2, axis=1, largest=False)[1], lambda x: np.argsort(x, 1)[:, :2])


def test_unique_nonzero():
    check(["i64<4 n"], lambda x: current_cast(relax.unique(x), "Tensor((m,), i64)"), np.unique)
    check(["i32<2 n 3"], lambda x: current_cast(relax.nonzero(x), "Tensor((2, m), i64)"),
          lambda x: np.array(np.nonzero(x)))


# ---- neural networks ----
def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis=axis, keepdims=True, initial=-np.inf))
    return e / e.sum(axis=axis, keepdims=True)


def attend(q, k, v, causal=False):
    b, n, h, d = q.shape
    m, g = k.shape[1], k.shape[2]
    k, v = np.repeat(k, h // g, 2), np.repeat(v, h // g, 2)
    s = np.einsum("bnhd,bmhd->bhnm", q, k) / math.sqrt(d)
    if causal:
        i, j = np.arange(n)[:, None], np.arange(m)[None]
        s = np.where(j <= i + m - n, s, -np.inf)
    return np.einsum("bhnm,bmhe->bnhe", softmax(s), v).astype(np.float32)


def turn(x, pos):
    n, h, d = x.shape
    angle = pos[:, None] * 10000.0 ** (-2 * np.arange(d // 2) / d)
    c, s = np.cos(angle)[:, None], np.sin(angle)[:, None]
    y = np.empty_like(x)
    y[..., 0::2], y[..., 1::2] = x[..., 0::2] * c - x[..., 1::2] * s, x[..., 0::2] * s + x[..., 1::2] * c
    return y


def test_neural():
    check(["f32 n 5"], relax.softmax, softmax, tol=4)
    check(["f32 n 5"], lambda x: relax.softmax(x, axis=0), lambda x: softmax(x, 0), tol=4)
    check(["f32 n 5"], relax.log_softmax, lambda x: np.log(softmax(x)), tol=8)
    check(["f32 n 8", "f32 8"], lambda x, w: relax.rms_norm(x, w, epsilon=1e-6),
          lambda x, w: x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * w, tol=4)
    check(["f32 n 8", "f32 8", "f32 8"], relax.layer_norm,
          lambda x, g, b: (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * g + b, tol=8)
    check(["f32 n 2 6", "i64<50 n"], lambda x, p: relax.rope(x, p), lambda x, p: turn(x, p).astype(np.float32), tol=20)


def test_attention():
    check(["f32 2 n 4 8", "f32 2 n 2 8", "f32 2 n 2 8"], relax.attention, attend, tol=8)
    check(["f32 1 n 2 8", "f32 1 n 2 8", "f32 1 n 2 8"], lambda q, k, v: relax.attention(q, k, v, causal=True),
          lambda q, k, v: attend(q, k, v, True), tol=8)
    check(["f32 n 4 8", "f32 9 2 8", "f32 9 2 8"], lambda q, k, v: relax.attention_cache(q, k, v, 2),
          lambda q, k, v: attend(q[None], k[None, :len(q) + 2], v[None, :len(q) + 2], True)[0], tol=8)

    def append(c, x):
        y = c.copy()
        y[1:1 + len(x)] = x
        return y
    check(["f32 9 2 3", "f32 n 2 3"], lambda c, x: relax.kv_append(c + 0.0, x, 1), append)


def test_sampling():
    def pick(p, u, r):
        return np.array([[np.searchsorted(np.cumsum(p[int(k)]), v, side="right")] for k, v in zip(r[:, 0], u[:, 0])],
                        np.int64).reshape(-1, 1)
    check(["f32+ 3 6", "f32+ n 1", "i64<3 n 1"],
          lambda p, u, r: relax.multinomial_from_uniform(p / relax.sum(p, axis=1, keepdims=True), u / 4.0, r),
          lambda p, u, r: pick(p / p.sum(1, keepdims=True), u / 4, r))


def q8_0(rows, width, seed):
    r = np.random.default_rng(seed)
    scale = (r.random((rows, width // 32, 1)) * 0.1).astype(np.float16)
    q = r.integers(-127, 128, (rows, width // 32, 32)).astype(np.int8)
    packed = np.concatenate([scale.view(np.uint8), q.view(np.uint8)], axis=2).reshape(rows, -1)
    return packed, (scale.astype(np.float32) * q).reshape(rows, width)


def test_block_formats():
    packed, plain = q8_0(5, 64, 1)
    m = relax.Module()
    with m.function("decode") as f:
        f.ret(relax.dequantize_gguf(f.param("w", "Tensor((k, 68), u8)"), type="q8_0"))
    with m.function("product") as f:
        f.ret(relax.matmul_gguf(f.param("x", "Tensor((n, 64), f32)"), f.param("w", "Tensor((5, 68), u8)"), type="q8_0"))
    with m.function("rows") as f:
        f.ret(relax.take_gguf(f.param("w", "Tensor((5, 68), u8)"), f.param("i", "Tensor((n,), i32)"), type="q8_0"))
    exe = relax.build(m)
    for run in (lambda name, *a: exe[name](*a), lambda name, *a: relax.interpret(m, name, *a)):
        compare(run("decode", packed), plain, 1)
        for n in SIZES:
            x, i = data("f32 n 64", n, n), data("i32<5 n", n, n)
            compare(run("product", x, packed), x @ plain.T, 8)
            compare(run("rows", packed, i), plain[i], 1)


# ---- no operator without a row ----
def test_every_operator_is_tested():
    with open(__file__, encoding="utf-8") as f:
        text = f.read()
    missing = [name for name in relax.Context.current().operators()
               if f"relax.{name}" not in text and f'"{name}"' not in text]
    assert missing == []
