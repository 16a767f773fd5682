"""relax.llm on a tiny random model with a byte tokenizer, against the numpy forward pass of reference.py."""
import threading

import gguf
import numpy as np
import pytest

import reference
import relax
from relax import llm

PIECES = ["<unk>", "<s>", "</s>", "<|user|>", "<|end|>", *(f"<0x{b:02X}>" for b in range(256)),
          "\u2581", "a", "b", "ab"]
TEMPLATE = ("{{ bos_token }}{% for m in messages %}{% if m.role not in ['user', 'assistant'] %}"
            "{{ raise_exception('unknown role ' + m.role) }}{% endif %}<|user|>{{ m.content }}<|end|>{% endfor %}"
            "{% if add_generation_prompt %}a{% endif %}")


def write(path, c, w):
    out = gguf.GGUFWriter(str(path), c.arch)
    out.add_block_count(c.layers)
    out.add_context_length(c.context)
    out.add_embedding_length(c.width)
    out.add_feed_forward_length(c.ff)
    out.add_head_count(c.heads)
    out.add_head_count_kv(c.kv_heads)
    out.add_rope_freq_base(c.rope_base)
    out.add_layer_norm_rms_eps(c.eps)
    out.add_tokenizer_model("llama")
    out.add_token_list(PIECES)
    out.add_token_scores([0.0] * 261 + [-1.0, -2.0, -3.0, -0.5])
    kind = gguf.TokenType
    out.add_token_types([kind.UNKNOWN] + [kind.CONTROL] * 4 + [kind.BYTE] * 256 + [kind.NORMAL] * 4)
    out.add_bos_token_id(1)
    out.add_eos_token_id(2)
    out.add_chat_template(TEMPLATE)
    for name, x in w.items():
        out.add_tensor(name, x)
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()


class Tiny:
    def __init__(self, folder):
        self.config = reference.Config(arch="llama", vocab=len(PIECES), context=64)
        self.weights = reference.random_weights(self.config, 5)
        self.path = folder / "tiny.gguf"
        write(self.path, self.config, self.weights)

    def logits(self, ids):
        return reference.forward(self.config, self.weights, ids)[1]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return Tiny(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def model(tiny):
    return llm.load(tiny.path, exact=True, threads=1)


def test_logits_and_greedy(tiny, model):
    assert model.context == 64 and model.compile_seconds > 0
    g = model.generate("ab", max_tokens=8)
    text = g.text()
    ids = list(g.prompt_ids)
    assert ids[0] == 1 and g.stats.prompt_tokens == len(ids) and g.stats.finish in ("length", "end")
    for id in g.ids:
        assert id == int(np.argmax(tiny.logits(ids)[-1]))
        ids.append(id)
    assert text == model.tokenizer.decode(g.prompt_ids + g.ids)[len(model.tokenizer.decode(g.prompt_ids)):]
    model.reset()
    model.feed(ids[:5])
    assert model.position == 5
    np.testing.assert_allclose(np.asarray(model.logits()), tiny.logits(ids[:5])[-1], rtol=1e-4, atol=1e-4)


def test_sampling_is_repeatable(model):
    options = dict(max_tokens=12, temperature=1.5, top_k=40, top_p=0.95, min_p=0.01, repetition_penalty=1.1)
    a, b, c = (model.generate("ab a", seed=s, **options) for s in (7, 7, 8))
    with pytest.raises(relax.InvalidError, match="newest"):
        next(a)
    assert isinstance(next(c), str) and b is not c
    texts = []
    for seed in (7, 7, 8):
        g = model.generate("ab a", seed=seed, **options)
        texts.append((g.text(), g.ids))
    assert texts[0] == texts[1] != texts[2]
    with pytest.raises(relax.InvalidError, match="temperature"):
        model.generate("a", temperature=-1)


def test_streaming_is_whole_text(model):
    for seed in range(6):                      # random bytes: pieces of characters, joined with care
        g = model.generate("b", max_tokens=40, temperature=3, seed=seed)
        pieces = list(g)
        whole = model.tokenizer.decode(g.prompt_ids + g.ids)
        assert "".join(pieces) == whole[len(model.tokenizer.decode(g.prompt_ids)):]
        assert all(pieces)


def test_spaces_after_byte_tokens(model):
    stream = llm._Stream(model.tokenizer)
    ids = [1, 5 + 0xC3, 5 + 0xA9, 261, 262, 261, 5 + 0xE2, 5 + 0x82, 5 + 0xAC, 5 + 0xE2]
    pieces = [stream.put(i) for i in ids[1:]] + [stream.end()]
    assert pieces == ["", "\u00e9", " ", "a", " ", "", "", "\u20ac", "", "\ufffd"]
    assert model.tokenizer.decode([262] + ids[1:]) == "a\u00e9 a \u20ac\ufffd"


def test_stop_strings(model):
    whole = model.generate("ab", max_tokens=20, temperature=2, seed=3).text()
    cut = whole[len(whole) // 2:len(whole) // 2 + 2]
    g = model.generate("ab", max_tokens=20, temperature=2, seed=3, stop=[cut, "never"])
    assert g.text() == whole[:whole.index(cut)] and g.stats.finish == "stop"


def test_context_ends_it(model):
    g = model.generate("a" * 30, temperature=2, seed=1)
    g.text()
    assert g.stats.finish in ("context", "end") and model.position <= 64
    with pytest.raises(relax.Error, match="RX4108"):
        model.generate("a b " * 60).text()
    assert model.generate("ab", max_tokens=2).text() is not None
    with pytest.raises(relax.InvalidError):
        model.generate([])
    with pytest.raises(relax.Error, match="RX4109"):
        model.generate([1, 10**6]).text()


def test_chat_goes_on_from_what_was_fed(model):
    messages = [{"role": "user", "content": "ab"}]
    assert model.tokenizer.chat(messages) == "<s><|user|>ab<|end|>a"
    g = model.chat(messages, max_tokens=4)
    g.text()
    assert g.prompt_ids[:2] == [1, 3] and 4 in g.prompt_ids and g.prompt_ids.count(1) == 1
    fed = list(model._fed)
    model._continue(fed + [262, 263])
    assert model._fed == fed + [262, 263] and model.position == len(fed) + 2
    with pytest.raises(relax.InvalidError, match="unknown role system"):
        model.chat([{"role": "system", "content": "x"}])


def test_tokenizer(model):
    t = model.tokenizer
    assert t.encode("ab", add_bos=False) == [261, 264] and t.decode([261, 264]) == "ab"
    assert t.encode("<|end|>", add_bos=False, special=True) == [4] and len(t.encode("<|end|>", add_bos=False)) > 3
    assert t.decode(t.encode("h\u00e9llo \u4e16")) == "h\u00e9llo \u4e16" and t.is_end(2) and not t.is_end(262)
    assert t.decode([4], special=True) == "<|end|>" and t.decode([4]) == ""
    with pytest.raises(relax.InvalidError):
        t.decode([10**6])


def test_cache(tiny, tmp_path):
    progress = []
    a = llm.load(tiny.path, cache=tmp_path, threads=1, progress=lambda *x: progress.append(x))
    b = llm.load(tiny.path, cache=tmp_path, threads=1)
    files = list(tmp_path.glob("tiny-*.rlx"))
    assert a.compile_seconds > 0 == b.compile_seconds and len(files) == 1 and progress
    assert a.generate("ab", max_tokens=4).text() == b.generate("ab", max_tokens=4).text()
    one = tmp_path / "mine.rlx"
    one.write_bytes(files[0].read_bytes())
    files[0].write_bytes(files[0].read_bytes()[:1000])                 # damaged: made anew
    assert llm.load(tiny.path, cache=tmp_path, threads=1).compile_seconds > 0
    assert llm.load(tiny.path, cache=one, threads=1).compile_seconds == 0
    assert llm.load(tiny.path, cache=one, exact=True, threads=1).compile_seconds > 0        # of other options


def test_weights(tiny):
    w = relax.Weights(tiny.path)
    assert len(w) == len(tiny.weights) and {t.name for t in w} == set(tiny.weights)
    assert w.meta("general.architecture") == "llama" and w.meta("no.such.key") is None
    assert w.meta("tokenizer.chat_template") == TEMPLATE and "llama" in str(w)
    assert all(t.dtype == "f32" and t.shape == tiny.weights[t.name].shape for t in w)
    with pytest.raises(OSError):
        relax.Weights("/nowhere/model.gguf")
    with pytest.raises(relax.FormatError):
        relax.Weights(__file__)


def test_module_and_executable_by_hand(tiny):
    w = relax.Weights(tiny.path)
    m = llm.import_model(w, context=32, exact=True)
    assert {"prefill", "decode", "embed"} <= {f.name for f in m.functions}
    exe = relax.build(m, threads=1).bind_file(w)
    assert set(exe.weights) <= set(tiny.weights) and exe.metadata("model.context") == "32"
    hidden = exe["embed"](np.array([[1, 262, 263]], np.int32))
    assert hidden.shape == (3, tiny.config.width) and np.isfinite(hidden.numpy()).all()


def test_generation_in_a_thread(model):
    want, got = model.generate("ab", max_tokens=5).text(), []
    t = threading.Thread(target=lambda: got.append(model.generate("ab", max_tokens=5).text()))
    t.start()
    t.join()
    assert got == [want]
