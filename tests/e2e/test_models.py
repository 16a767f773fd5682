"""Every architecture of src/import/arch.def on tiny random models, against the numpy forward pass of reference.py."""
import numpy as np
import pytest

import reference as r
import relaxc
from reference import GT, Config

IDS = [int(i) for i in np.random.default_rng(7).integers(0, 111, 44)]
LENGTHS = [1, 2, 5, 13, 38]            # prompts; then tokens one by one
STEPS = 5


def mix(*kinds):
    """spreads quantisation types over the matrices; rows that are not whole blocks stay float32"""
    def pick(name, shape, n=[0]):
        n[0] += 1
        kind = kinds[n[0] % len(kinds)]
        return kind if kind is None or shape[1] % r.gguf.GGML_QUANT_SIZES[kind][0] == 0 else None
    return pick


CASES = {
    "llama": (Config("llama", context=64), None),
    "llama-factors": (Config("llama", factors=np.linspace(1, 8, 8), rope_base=500000.0, tied=False), None),
    "llama-linear": (Config("llama", rope_scale=4.0, heads=2, kv_heads=1, head_dim=32),
                     mix(GT.Q4_0, GT.Q4_1, GT.Q5_0, GT.Q5_1, GT.Q8_0)),
    "llama-k": (Config("llama", width=256, head_dim=64, ff=512), mix(GT.Q2_K, GT.Q3_K, GT.Q4_K, GT.Q5_K, GT.Q6_K)),
    "llama-iq": (Config("llama", width=256, head_dim=64, ff=256, layers=1), mix(GT.IQ4_NL, GT.IQ4_XS, GT.MXFP4)),
    "qwen2": (Config("qwen2", eps=1e-6, tied=False), mix(GT.Q8_0, GT.Q5_0, None)),
    "qwen3": (Config("qwen3", head_dim=24, eps=1e-6), mix(GT.F16, GT.BF16)),
    "gemma": (Config("gemma", heads=2, kv_heads=1, head_dim=48, eps=1e-6), mix(GT.Q4_0)),
    "gemma2": (Config("gemma2", layers=3, window=8, attn_cap=5.0, logit_cap=3.0, eps=1e-6), mix(GT.Q8_0)),
    "gemma3": (Config("gemma3", layers=7, window=8, rope_base=1e6, rope_scale=8.0, eps=1e-6), mix(GT.Q8_0, GT.Q4_1)),
    "phi3": (Config("phi3", rope_dims=12, kv_heads=4, tied=False), mix(GT.Q5_1, None)),
    "phi3-longrope": (Config("phi3", window=16, attn_factor=1.19,
                             longrope=(np.linspace(1, 2, 8), np.linspace(1, 30, 8), 32)), None),
    "gptneox": (Config("gptneox", kv_heads=4, rope_dims=4, tied=False), mix(GT.Q8_0)),
    "gptneox-sequential": (Config("gptneox", kv_heads=4, parallel=False, tied=False, layers=1), None),
}


@pytest.fixture(params=list(CASES))
def case(request, tmp_path):
    c, kinds = CASES[request.param]
    held = r.write(tmp_path / "m.gguf", c, r.random_weights(c, 3), kinds)
    states, logits = r.forward(c, held, IDS)
    return tmp_path / "m.gguf", c, states, logits, amplified(c, held, states)


def close(x, want, tol, slack=0.0):
    assert x.shape == want.shape
    assert (np.abs(x - want) <= tol * max(1.0, np.abs(want).max()) + slack).all()


def amplified(c, held, states):
    """How much rounding grows on its way to each state: its change when the weights move by half a unit in the last
    place of float32, times the number of roundings that a layer makes in a row. Random weights make some rows steep."""
    rng = np.random.default_rng(0)
    real = lambda v: np.issubdtype(np.asarray(v).dtype, np.floating)
    moved = {k: v * (1 + rng.uniform(-6e-8, 6e-8, np.shape(v))) if real(v) else v for k, v in held.items()}
    return 16 * np.abs(r.forward(c, moved, IDS)[0] - states).max(axis=1, keepdims=True)


def run_prompts(m, logits, tol, lengths):
    for n in lengths:
        m.reset()
        close(m.feed(IDS[:n]), logits[n - 1], tol)
        for i in range(n, n + STEPS):
            close(m.feed(IDS[i:i + 1]), logits[i], tol)
        assert m.position() == n + STEPS


def test_exact(case):
    path, c, states, logits, slack = case
    with relaxc.Model(path, exact=True) as m:
        run_prompts(m, logits, 3e-5, LENGTHS)
        m.reset()
        for a, b in [(0, 7), (7, 20), (20, 21), (21, 44)]:      # a cache that is continued by several tokens
            close(m.feed(IDS[a:b]), logits[b - 1], 3e-5)
        close(m.embed(IDS), states, 3e-5, slack)
        close(m.embed(IDS[:1]), states[:1], 3e-5, slack[:1])


@pytest.mark.parametrize("name", ["qwen2", "gemma3"])
def test_default(name, tmp_path):
    """f16 caches"""
    c, kinds = CASES[name]
    held = r.write(tmp_path / "m.gguf", c, r.random_weights(c, 3), kinds)
    with relaxc.Model(tmp_path / "m.gguf") as m:
        run_prompts(m, r.forward(c, held, IDS)[1], 1e-2, [1, 38])


def test_interpreter(tmp_path):
    """the module as imported, in the interpreter"""
    c = Config("gemma3", layers=6, width=32, heads=2, kv_heads=1, head_dim=16, ff=32, window=4, eps=1e-6)
    held = r.write(tmp_path / "m.gguf", c, r.random_weights(c, 5), mix(GT.Q8_0))
    states, logits = r.forward(c, held, IDS[:11])
    with relaxc.Model(tmp_path / "m.gguf", exact=True, build=False) as m:
        file = {name: t for name, _, t in m.weights()}
        names = [n for n in order_of_use(c)]
        assert sorted(names) == sorted(file)
        x = m.interpret("embed", [np.asarray([IDS[:11]], np.int32)] + [file[n] for n in names])
        close(x, states, 3e-5)
        caches = [np.zeros((11, c.kv_heads, c.head_dim), np.float32) for _ in range(2 * c.layers)]
        run = lambda f, a, b: m.interpret(f, [np.asarray([IDS[a:b]], np.int32), np.asarray(a)] + caches +
                                          [file[n] for n in names])
        close(run("prefill", 0, 8)[0], logits[7], 3e-5)     # the caches are written in place
        close(run("prefill", 8, 10)[0], logits[9], 3e-5)
        close(run("decode", 10, 11)[0], logits[10], 3e-5)


def order_of_use(c):
    """weights of a gemma3 model in the order of the parameters"""
    yield "token_embd.weight"
    for il in range(c.layers):
        for name in ("attn_norm attn_q attn_k attn_v attn_q_norm attn_k_norm attn_output post_attention_norm ffn_norm "
                     "ffn_gate ffn_up ffn_down post_ffw_norm").split():
            yield f"blk.{il}.{name}.weight"
    yield "output_norm.weight"


def test_limits(tmp_path):
    """the context, tokens outside the vocabulary: errors that leave the generator as it was"""
    c = Config("llama", layers=1, context=16)
    held = r.write(tmp_path / "m.gguf", c, r.random_weights(c, 3))
    logits = r.forward(c, held, IDS[:16])[1]
    with relaxc.Model(tmp_path / "m.gguf", exact=True) as m:
        with pytest.raises(relaxc.Error, match="no logits"):
            m.sample()
        m.feed(IDS[:10])
        with pytest.raises(relaxc.Error, match="RX4108.*7 tokens after 10 exceed the context of 16"):
            m.feed(IDS[10:17])
        with pytest.raises(relaxc.Error, match="RX4109.*token 1 is 111"):
            m.feed([3, 111])
        with pytest.raises(relaxc.Error, match="RX4109"):
            m.feed([-1])
        close(m.feed(IDS[10:16]), logits[15], 3e-5)
        with pytest.raises(relaxc.Error, match="RX4108"):
            m.feed([1])
        assert m.position() == 16


def test_sampling(tmp_path):
    """greedy follows the logits; a seed gives the same text again, another one another"""
    c = Config("llama", layers=1)
    r.write(tmp_path / "m.gguf", c, r.random_weights(c, 3))

    def generate(m, n=24):
        m.reset()
        logits, out = m.feed(IDS[:4]), []
        for _ in range(n):
            out.append(m.sample())
            logits = m.feed(out[-1:])
        return out

    with relaxc.Model(tmp_path / "m.gguf") as m:
        logits = m.feed(IDS[:4])
        assert m.sample() == int(logits.argmax())
        greedy = generate(m)
        m.set_sampling(temperature=1.0, top_k=1, seed=5)
        assert generate(m) == greedy
        m.set_sampling(temperature=1.5, top_k=20, top_p=0.95, min_p=0.01, repetition_penalty=1.1, seed=5)
        first = generate(m)
        assert generate(m) == first and first != greedy
        m.set_sampling(temperature=1.5, top_k=20, top_p=0.95, min_p=0.01, repetition_penalty=1.1, seed=6)
        assert generate(m) != first
        with pytest.raises(relaxc.Error, match="top_p"):
            m.set_sampling(top_p=0.0)
