"""A graph with a symbolic shape: built, compiled once, run for several n. Needs numpy for its data."""
import numpy as np

import relax

m = relax.Module()
with m.function("mlp") as f:
    x = f.param("x", "Tensor((n, 256), f32)")              # the first mention of n defines it
    w1 = f.param("w1", "Tensor((256, 1024), f32)")
    w2 = f.param("w2", "Tensor((1024, 256), f32)")
    f.bound("n", 1, 4096)
    f.ret(relax.silu(x @ w1) @ w2 + x)
print(m)                                                   # the text form, which parses back

exe = relax.build(m, "cpu", progress=True)
print(exe["mlp"].signature)
print("peak memory for n = 2048:", exe["mlp"].peak_memory(n=2048), "bytes")

r = np.random.default_rng(0)
w1, w2 = (r.standard_normal(s).astype(np.float32) / 16 for s in ((256, 1024), (1024, 256)))
for n in (1, 4, 13):
    x = r.standard_normal((n, 256)).astype(np.float32)
    y = exe["mlp"](x, w1, w2)                              # no copies: numpy's memory in, a tensor out
    h = x @ w1
    print(n, y, "right" if np.allclose(y, h / (1 + np.exp(-h)) @ w2 + x, atol=1e-3) else "WRONG")

try:
    exe["mlp"](np.zeros((4, 255), np.float32), w1, w2)
except relax.Error as e:
    print(e.id, e)
