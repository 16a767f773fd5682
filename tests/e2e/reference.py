"""An independent forward pass of the supported decoder models in numpy, and tiny random models written as GGUF.

forward() reads nothing but a configuration and float32 weights; it follows the published models, one architecture after
the other, not the importer's table of traits. Every position is computed in float64 from the whole sequence (no cache),
attention by masks.
"""
import dataclasses
import math

import numpy as np
import gguf

GT = gguf.GGMLQuantizationType


@dataclasses.dataclass
class Config:
    arch: str
    layers: int = 2
    width: int = 64
    heads: int = 4
    kv_heads: int = 2
    head_dim: int = 16
    ff: int = 96
    vocab: int = 111
    context: int = 256
    eps: float = 1e-5
    rope_base: float = 10000.0
    rope_dims: int = 0              # 0: the whole head
    rope_scale: float = 1.0         # linear scaling: angles divided by it
    window: int = 0
    tied: bool = True
    parallel: bool = True           # gptneox
    factors: object = None          # divisors of the angles
    longrope: tuple = None          # (short, long, original context)
    attn_factor: float = 1.0
    attn_cap: float = 0.0
    logit_cap: float = 0.0

    @property
    def rot(self):
        return self.rope_dims or self.head_dim


# ---- the forward pass ----

def rms(x, w, eps):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * w


def layer_norm(x, w, b, eps):
    x = x - x.mean(-1, keepdims=True)
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * w + b


def silu(x):
    return x / (1 + np.exp(-x))


def gelu_tanh(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))


def gelu(x):
    return 0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def rotate(x, rot, base, style, scale=1.0, factors=None, amplitude=1.0):
    """x (n, heads, d): token t at position t"""
    n, half = x.shape[0], rot // 2
    freq = base ** (-np.arange(half) / half)
    if factors is not None:
        freq = freq / np.asarray(factors, np.float64)
    angle = np.arange(n)[:, None] * freq[None] / scale
    c, s = np.cos(angle)[:, None] * amplitude, np.sin(angle)[:, None] * amplitude
    y = x.copy()
    a, b = (slice(0, rot, 2), slice(1, rot, 2)) if style == "normal" else (slice(0, half), slice(half, rot))
    y[..., a] = x[..., a] * c - x[..., b] * s
    y[..., b] = x[..., a] * s + x[..., b] * c
    return y


def attention(q, k, v, scale, window=0, cap=0.0):
    """q (n, h, d), k (n, g, d), v (n, g, e): causal"""
    n, h, _ = q.shape
    k, v = np.repeat(k, h // k.shape[1], axis=1), np.repeat(v, h // v.shape[1], axis=1)
    s = np.einsum("ihd,jhd->hij", q, k) * scale
    if cap:
        s = cap * np.tanh(s / cap)
    i, j = np.arange(n)[:, None], np.arange(n)[None]
    seen = j <= i
    if window:
        seen &= i - j < window
    s = np.where(seen[None], s, -np.inf)
    s = np.exp(s - s.max(-1, keepdims=True))
    s /= s.sum(-1, keepdims=True)
    return np.einsum("hij,jhe->ihe", s, v).reshape(n, -1)


def forward(c, w, ids):
    """(states after the last norm (n, width), logits (n, vocab)) of a sequence"""
    w = {k: np.asarray(x, np.float64) for k, x in w.items()}
    lin = lambda x, name: x @ w[name + ".weight"].T + w.get(name + ".bias", 0.0)
    n = len(ids)
    x = w["token_embd.weight"][np.asarray(ids)]
    if c.arch.startswith("gemma"):
        x = x * math.sqrt(c.width)
    heads = lambda y, m: y.reshape(n, m, c.head_dim)
    for il in range(c.layers):
        b = f"blk.{il}."
        if c.arch == "gptneox":
            nrm = lambda y, name: layer_norm(y, w[b + name + ".weight"], w[b + name + ".bias"], c.eps)
        else:
            nrm = lambda y, name: rms(y, w[b + name + ".weight"], c.eps)
        h = nrm(x, "attn_norm")
        if c.arch in ("phi3", "gptneox"):
            qkv = lin(h, b + "attn_qkv")
            nq, nk = c.heads * c.head_dim, c.kv_heads * c.head_dim
            q, k, v = qkv[:, :nq], qkv[:, nq:nq + nk], qkv[:, nq + nk:]
        else:
            q, k, v = (lin(h, b + "attn_" + t) for t in "qkv")
        q, k, v = heads(q, c.heads), heads(k, c.kv_heads), heads(v, c.kv_heads)
        if c.arch in ("qwen3", "gemma3"):
            q, k = rms(q, w[b + "attn_q_norm.weight"], c.eps), rms(k, w[b + "attn_k_norm.weight"], c.eps)
        window, base, scale = 0, c.rope_base, c.rope_scale
        if c.arch == "gemma2" and il % 2 == 0:
            window = c.window
        if c.arch == "gemma3" and il % 6 != 5:
            window, base, scale = c.window, 10000.0, 1.0
        if c.arch == "phi3":
            window = c.window
        factors = c.factors
        if c.longrope:
            factors = c.longrope[1 if c.context > c.longrope[2] else 0]
        style = "normal" if c.arch == "llama" else "neox"
        q = rotate(q, c.rot, base, style, scale, factors, c.attn_factor)
        k = rotate(k, c.rot, base, style, scale, factors, c.attn_factor)
        a = lin(attention(q, k, v, 1 / math.sqrt(c.head_dim), window, c.attn_cap), b + "attn_output")
        post = c.arch in ("gemma2", "gemma3")
        if post:
            a = nrm(a, "post_attention_norm")
        after = x + a
        f = nrm(x if c.arch == "gptneox" and c.parallel else after, "ffn_norm")
        if c.arch == "gptneox":
            f = gelu(lin(f, b + "ffn_up"))
        elif c.arch == "phi3":
            both = lin(f, b + "ffn_up")
            f = silu(both[:, :c.ff]) * both[:, c.ff:]
        else:
            act = gelu_tanh if c.arch.startswith("gemma") else silu
            f = act(lin(f, b + "ffn_gate")) * lin(f, b + "ffn_up")
        f = lin(f, b + "ffn_down")
        if post:
            f = nrm(f, "post_ffw_norm")
        x = after + f
    if c.arch == "gptneox":
        x = layer_norm(x, w["output_norm.weight"], w["output_norm.bias"], c.eps)
    else:
        x = rms(x, w["output_norm.weight"], c.eps)
    logits = x @ w["token_embd.weight" if c.tied else "output.weight"].T
    if c.logit_cap:
        logits = c.logit_cap * np.tanh(logits / c.logit_cap)
    return x, logits


# ---- random models ----

def shapes(c):
    """name -> shape (rows, cols) or (n,) of every tensor"""
    nq, nk = c.heads * c.head_dim, c.kv_heads * c.head_dim
    s = {"token_embd.weight": (c.vocab, c.width), "output_norm.weight": (c.width,)}
    if not c.tied:
        s["output.weight"] = (c.vocab, c.width)
    if c.arch == "gptneox":
        s["output_norm.bias"] = (c.width,)
    if c.factors is not None:
        s["rope_freqs.weight"] = (c.rot // 2,)
    if c.longrope:
        s["rope_factors_short.weight"] = s["rope_factors_long.weight"] = (c.rot // 2,)
    for il in range(c.layers):
        b = f"blk.{il}."
        for name in ["attn_norm", "ffn_norm"]:
            s[b + name + ".weight"] = (c.width,)
            if c.arch == "gptneox":
                s[b + name + ".bias"] = (c.width,)
        if c.arch in ("phi3", "gptneox"):
            s[b + "attn_qkv.weight"] = (nq + 2 * nk, c.width)
        else:
            s[b + "attn_q.weight"] = (nq, c.width)
            s[b + "attn_k.weight"] = s[b + "attn_v.weight"] = (nk, c.width)
        s[b + "attn_output.weight"] = (c.width, nq)
        if c.arch in ("qwen3", "gemma3"):
            s[b + "attn_q_norm.weight"] = s[b + "attn_k_norm.weight"] = (c.head_dim,)
        if c.arch in ("gemma2", "gemma3"):
            s[b + "post_attention_norm.weight"] = s[b + "post_ffw_norm.weight"] = (c.width,)
        if c.arch not in ("phi3", "gptneox"):
            s[b + "ffn_gate.weight"] = (c.ff, c.width)
        s[b + "ffn_up.weight"] = (2 * c.ff if c.arch == "phi3" else c.ff, c.width)
        s[b + "ffn_down.weight"] = (c.width, c.ff)
        biased = {"qwen2": ["attn_q", "attn_k", "attn_v"],
                  "gptneox": ["attn_qkv", "attn_output", "ffn_up", "ffn_down"]}
        for name in biased.get(c.arch, []):
            s[b + name + ".bias"] = s[b + name + ".weight"][:1]
    return s


def random_weights(c, seed):
    rng = np.random.default_rng(seed)
    w = {}
    for name, shape in shapes(c).items():
        if name == "rope_freqs.weight":
            w[name] = np.asarray(c.factors, np.float32)
        elif name.startswith("rope_factors"):
            w[name] = np.asarray(c.longrope[1 if "long" in name[12:] else 0], np.float32)
        elif len(shape) == 1:
            w[name] = (0.2 * rng.standard_normal(shape) + (1 if name.endswith("weight") else 0)).astype(np.float32)
        else:
            w[name] = (rng.standard_normal(shape) * 1.5 / math.sqrt(shape[1])).astype(np.float32)
    return w


def quantised(x, kind, rng):
    """bytes of a tensor in a block format: rows of random blocks with small scales where gguf cannot quantise"""
    try:
        return gguf.quants.quantize(x, kind)
    except NotImplementedError:
        block, size = gguf.GGML_QUANT_SIZES[kind]
        rows = x.shape[0] * x.shape[1] // block
        b = rng.integers(0, 256, (rows, size), dtype=np.uint8)
        for off in SCALES[kind]:
            scale = (rng.uniform(0.5, 1.5, rows) * SCALE_SIZE[kind]).astype(np.float16)
            b[:, off:off + 2] = scale.view(np.uint8).reshape(-1, 2)
        return b.reshape(x.shape[0], -1)


# byte offsets of the half-precision scales in a block, and a size that keeps values near 0.1
SCALES = {GT.Q2_K: [80, 82], GT.Q3_K: [108], GT.Q4_K: [0, 2], GT.Q5_K: [0, 2], GT.Q6_K: [208], GT.IQ4_NL: [0],
          GT.IQ4_XS: [0]}
SCALE_SIZE = {GT.Q2_K: 0.01, GT.Q3_K: 0.003, GT.Q4_K: 0.0004, GT.Q5_K: 0.0002, GT.Q6_K: 0.0001, GT.IQ4_NL: 0.002,
              GT.IQ4_XS: 0.0001}


def write(path, c, w, kinds=None, extra=None, seed=0):
    """Writes the model; kinds: function of (name, shape) -> quantisation type or None. Returns the weights as held."""
    rng = np.random.default_rng(seed + 1)
    out = gguf.GGUFWriter(str(path), c.arch)
    out.add_block_count(c.layers)
    out.add_context_length(c.context)
    out.add_embedding_length(c.width)
    out.add_feed_forward_length(c.ff)
    out.add_head_count(c.heads)
    out.add_head_count_kv(c.kv_heads)
    if c.head_dim * c.heads != c.width or c.arch in ("gemma", "gemma2", "gemma3", "qwen3"):
        out.add_key_length(c.head_dim)
        out.add_value_length(c.head_dim)
    if c.rope_dims:
        out.add_rope_dimension_count(c.rope_dims)
    out.add_rope_freq_base(c.rope_base)
    if c.rope_scale != 1.0:
        out.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        out.add_rope_scaling_factor(c.rope_scale)
    if c.attn_factor != 1.0:
        out.add_rope_scaling_attn_factors(c.attn_factor)
    if c.longrope:
        out.add_rope_scaling_orig_ctx_len(c.longrope[2])
    if c.window:
        out.add_sliding_window(c.window)
    if c.attn_cap:
        out.add_attn_logit_softcapping(c.attn_cap)
    if c.logit_cap:
        out.add_final_logit_softcapping(c.logit_cap)
    if c.arch == "gptneox":
        out.add_layer_norm_eps(c.eps)
        out.add_parallel_residual(c.parallel)
    else:
        out.add_layer_norm_rms_eps(c.eps)
    for key, value in (extra or {}).items():
        out.add_uint32(key, value)
    held = {}
    for name, x in w.items():
        kind = kinds(name, x.shape) if kinds and x.ndim == 2 else None
        if kind in (None, GT.F32):
            out.add_tensor(name, x)
            held[name] = x
        elif kind in (GT.F16, GT.BF16):
            data = gguf.quants.quantize(x, kind)
            out.add_tensor(name, data, raw_dtype=kind)
            held[name] = gguf.quants.dequantize(data, kind).reshape(x.shape)
        else:
            data = quantised(x, kind, rng)
            out.add_tensor(name, data, raw_dtype=kind)
            held[name] = gguf.quants.dequantize(data, kind).reshape(x.shape)
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()
    return held
