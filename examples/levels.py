"""All three levels in one function: operators, a tensor program of one's own, a library function of the host. Needs
numpy."""
import numpy as np

import relax

m = relax.Module()
with m.prim("decode_q4") as p:                             # 4-bit weights, 8 to a word, a scale for 32
    Q = p.param("Q", "Buffer((k // 8, m), u32)")
    S = p.param("S", "Buffer((k // 32, m), f32)")
    W = p.param("W", "Buffer((k, m), f32)")
    with p.loop("i", "k") as i, p.loop("j", "m") as j:
        nibble = (Q[i // 8, j] >> p.call("u32", i % 8 * 4)) & 15
        W[i, j] = (nibble.astype("f32") - 7.0) * S[i // 32, j]

with m.function("linear") as f:
    x = f.param("x", "Tensor((n, 64), f32)")
    q = f.param("q", "Tensor((8, 48), u32)")
    s = f.param("s", "Tensor((2, 48), f32)")
    w = f.call_tir(p.function, [q, s], "Tensor((64, 48), f32)")
    y = f.call_library("mylib.softcap", [x @ w], "Tensor((n, 48), f32)")
    best = relax.unique(relax.argmax(y, axis=1))           # how many there are is known when it runs
    f.ret((y, f.match_cast(best, "Tensor((u,), i64)")))


def softcap(x, out):
    """reads the first, writes the second: numpy arrays on the program's memory"""
    out[:] = 5 * np.tanh(x / 5)


relax.register_library("mylib.softcap", softcap)
exe = relax.build(m)
r = np.random.default_rng(1)
x = r.standard_normal((6, 64)).astype(np.float32)
q = r.integers(0, 2**32, (8, 48), dtype=np.uint32)
s = (r.random((2, 48)) / 10).astype(np.float32)
y, best = exe["linear"](x, q, s)
shifts = (np.arange(64, dtype=np.uint32) % 8 * 4)[:, None]
w = (((np.repeat(q, 8, 0) >> shifts) & 15).astype(np.float32) - 7) * np.repeat(s, 32, 0)
print(y, "right" if np.allclose(y, 5 * np.tanh(x @ w / 5), atol=1e-3) else "WRONG")
print(best.dtype, "right" if best.tolist() == np.unique(np.argmax(x @ w, 1)).tolist() else "WRONG")
