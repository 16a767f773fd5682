"""Language models from GGUF files: load, generate, chat.

    import relax.llm
    model = relax.llm.load("model.gguf", progress=True)
    for piece in model.generate("Once upon a time", max_tokens=100):
        print(piece, end="", flush=True)
    print(model.chat([{"role": "user", "content": "Hello!"}]).text())

The weights stay in the mapped file. The model is compiled once for all lengths; cache=True keeps the result beside the
file.
"""
from __future__ import annotations

import ctypes
import hashlib
import os
import time
from ctypes import byref, c_int32, c_size_t, c_void_p
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Union

from . import _lib
from ._core import Context, Error, FormatError, InvalidError, Progress, reporting
from ._exec import Executable, Weights, build
from ._ir import Module
from ._lib import lib
from ._passes import Target
from ._tensor import Tensor, empty

Message = Mapping[str, str]


# ---- tokenizer ----
class Tokenizer:
    """The tokenizer of a GGUF file."""

    def __init__(self, weights: Weights) -> None:
        self._weights, self._state, out = weights, weights._state, c_void_p()
        self._state.checked(lib.tokenizer_create, weights._ptr, byref(out))
        self._ptr: int = out.value or 0
        self._final = self._state.own(self, lib.tokenizer_destroy, self._ptr, weights)

    def encode(self, text: str, *, add_bos: bool = True, special: bool = False) -> List[int]:
        """Token ids. add_bos: begin-of-text as the model's rule says; special: markers like <|im_end|> in the text
        become control tokens (not for text of strangers)."""
        data = text.encode("utf-8")
        capacity = len(data) + 8
        while True:
            ids = (c_int32 * capacity)()
            n = self._state.call(lib.tokenizer_encode, self._ptr, data, len(data), add_bos, special, ids, capacity)
            if n < 0:
                raise self._state.error(1)
            if n <= capacity:
                return list(ids[:n])
            capacity = n

    def decode(self, ids: Sequence[int], *, special: bool = False) -> str:
        """Text; bytes that are not UTF-8 become U+FFFD. special: control tokens are spelled out, else left out. RX1004
        for an id that does not exist."""
        data = (c_int32 * max(len(ids), 1))(*ids)
        size = 8 * len(ids) + 64
        while True:
            out = ctypes.create_string_buffer(size)
            n = self._state.call(lib.tokenizer_decode, self._ptr, data, len(ids), special, out, size)
            if n < 0:
                raise self._state.error(1)
            if n < size:
                return out.raw[:n].decode("utf-8", "replace")
            size = n + 1

    def is_end(self, id: int) -> bool:
        """does generation end at this token?"""
        return bool(lib.tokenizer_is_end(self._ptr, id))

    def _marker(self, which: str) -> str:
        """the text of bos or eos, "" if there is none"""
        id = self._weights.meta(f"tokenizer.ggml.{which}_token_id")
        if id is None:
            return ""
        one = self.decode([int(id)], special=True)
        return one or self.decode([int(id)] * 2, special=True)     # one in front is left out

    def chat(self, messages: Sequence[Message], *, generation_prompt: bool = True) -> str:
        """The prompt of a chat by the file's own template, which needs jinja2; without it, of the families that
        librelax knows. messages: [{"role": "user", "content": "…"}]"""
        source = self._weights.meta("tokenizer.chat_template")
        if source:
            try:
                return self._render(source, messages, generation_prompt)
            except ImportError:
                pass
        roles = (ctypes.c_char_p * max(len(messages), 1))(*(_lib.encoded(m["role"]) for m in messages))
        contents = (ctypes.c_char_p * max(len(messages), 1))(*(_lib.encoded(m["content"]) for m in messages))
        size = 1024 + 2 * sum(len(m["content"].encode("utf-8")) for m in messages)
        while True:
            out = ctypes.create_string_buffer(size)
            n = self._state.call(lib.tokenizer_chat, self._ptr, roles, contents, len(messages), generation_prompt, out,
                                 size)
            if n < 0:
                raise self._state.error(1)
            if n < size:
                return out.raw[:n].decode("utf-8")
            size = n + 1

    def _render(self, source: str, messages: Sequence[Message], generation_prompt: bool) -> str:
        import jinja2                  # type: ignore[import-not-found,unused-ignore]
        from jinja2.sandbox import ImmutableSandboxedEnvironment       # type: ignore[import-not-found,unused-ignore]

        def refuse(message: str) -> None:
            raise InvalidError(f"the chat template refuses: {message}")
        env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True,
                                            extensions=["jinja2.ext.loopcontrols"])
        env.globals["raise_exception"] = refuse
        env.globals["strftime_now"] = time.strftime
        try:
            return env.from_string(source).render(
                messages=[dict(m) for m in messages], add_generation_prompt=generation_prompt,
                bos_token=self._marker("bos"), eos_token=self._marker("eos"))
        except jinja2.TemplateError as e:
            raise FormatError(f"the file's chat template: {e}", hint="give the prompt as text to generate()") from e


# ---- generation ----
class Stats(NamedTuple):
    """of one generation; seconds"""
    prompt_tokens: int
    prompt_seconds: float
    tokens: int
    seconds: float
    finish: str                        # "end", "stop", "length", "context", "" while it runs


class Generation:
    """An iterator of pieces of text. ids: the tokens so far; stats; text(): the rest at once."""

    def __init__(self, model: "Model", ids: List[int], max_tokens: Optional[int], stop: Sequence[str]) -> None:
        self._model, self._prompt, self._max, self._stop = model, ids, max_tokens, [s for s in stop if s]
        self.ids: List[int] = []
        self.prompt_ids = ids
        self._finish = ""
        self._prompt_seconds = self._seconds = 0.0
        self._turn = model._turn
        self._steps = self._run()

    def __iter__(self) -> Iterator[str]:
        return self._steps

    def __next__(self) -> str:
        return next(self._steps)

    def text(self) -> str:
        return "".join(self._steps)

    @property
    def stats(self) -> Stats:
        return Stats(len(self.prompt_ids), self._prompt_seconds, len(self.ids), self._seconds, self._finish)

    def _run(self) -> Iterator[str]:
        model, held = self._model, ""
        self._own()
        start = time.perf_counter()
        model._continue(self._prompt)
        self._prompt_seconds = time.perf_counter() - start
        stream = _Stream(model.tokenizer)
        while not self._finish:
            self._own()
            start = time.perf_counter()
            piece = self._step(stream)
            self._seconds += time.perf_counter() - start
            held += piece
            out, held = self._release(held)
            if out:
                yield out

    def _own(self) -> None:
        if self._model._turn != self._turn:
            raise InvalidError("another generation was started on this model: only the newest one can go on",
                               id="RX1009")

    def _step(self, stream: "_Stream") -> str:
        """one token; the text that came with it"""
        model = self._model
        if self._max is not None and len(self.ids) >= self._max:
            self._finish = "length"
            return stream.end()
        id = model.sample()
        if model.tokenizer.is_end(id):
            self._finish = "end"
            return stream.end()
        self.ids.append(id)
        piece = stream.put(id)
        if model.position >= model.context:
            self._finish = "context"
            return piece + stream.end()
        if self._max is None or len(self.ids) < self._max:
            model.feed([id])
        return piece

    def _release(self, held: str) -> "tuple[str, str]":
        """what may go out, and what may be the beginning of a stop string"""
        found = [at for s in self._stop if (at := held.find(s)) >= 0]
        if found:
            self._finish = "stop"
            return held[:min(found)], ""
        if self._finish:
            return held, ""
        tail = max((n for s in self._stop for n in range(1, len(s)) if held.endswith(s[:n])), default=0)
        return held[:len(held) - tail], held[len(held) - tail:]


class _Stream:
    """Ids to text, piece by piece. Bytes that may be the beginning of a character (U+FFFD at the end) are held back. A
    letter stands in front of what is decoded, because some tokenizers drop the first space of a text."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self.letter = tokenizer.encode("a", add_bos=False)
        self.skip = len(tokenizer.decode(self.letter))
        self.ids: List[int] = []       # since the last place where a character ended
        self.out = 0                   # characters of theirs that are out

    def put(self, id: int) -> str:
        self.ids.append(id)
        text = self.tokenizer.decode(self.letter + self.ids)[self.skip:]
        stable = text.rstrip("\ufffd")
        piece, self.out = stable[self.out:], max(self.out, len(stable))
        if len(stable) == len(text):
            self.ids, self.out = [], 0
        return piece

    def end(self) -> str:
        return self.tokenizer.decode(self.letter + self.ids)[self.skip + self.out:]


class Model:
    """A compiled model with its weights, tokenizer and cache. One generation at a time.

    context     bound of tokens, prompt and answer together
    executable, weights, tokenizer: what it is made of; load_seconds, compile_seconds (0 from a cache)
    """

    def __init__(self, executable: Executable, weights: Weights, *, threads: int = 0,
                 compile_seconds: float = 0.0) -> None:
        start = time.perf_counter()
        self.executable, self.weights, self.tokenizer = executable, weights, Tokenizer(weights)
        self._state, out = executable._state, c_void_p()
        options = _lib.init(_lib.VMOptions())
        options.threads = threads
        self._state.checked(lib.generator_create, executable._ptr, weights._ptr, byref(options), byref(out))
        self._ptr: int = out.value or 0
        self._final = self._state.own(self, lib.generator_destroy, self._ptr, executable, weights)
        self.context = int(executable.metadata("model.context") or 0)
        self._fed: List[int] = []
        self._turn = 0
        self.compile_seconds, self.load_seconds = compile_seconds, time.perf_counter() - start

    # -- by hand
    @property
    def position(self) -> int:
        """number of tokens fed"""
        return lib.generator_position(self._ptr)

    def reset(self) -> None:
        """forgets all tokens"""
        self._fed = []
        self._state.checked(lib.generator_reset, self._ptr)

    def feed(self, ids: Sequence[int]) -> None:
        """Runs the model on tokens. RX4108 past the context, RX4109 for ids that do not exist. Ctrl-C stops it."""
        data = (c_int32 * max(len(ids), 1))(*ids)
        with self._state.long():
            self._state.checked(lib.generator_feed, self._ptr, data, len(ids))
        self._fed.extend(ids)

    def logits(self) -> Tensor:
        """logits of the token that follows, f32 (vocabulary,); a copy"""
        data, n = c_void_p(), c_size_t()
        self._state.checked(lib.generator_logits, self._ptr, byref(data), byref(n))
        t = empty((n.value,), "f32", context=self.executable.context)
        ctypes.memmove(t._data, data.value or 0, 4 * n.value)
        return t

    def sample(self) -> int:
        """picks the next token by the sampling set; does not feed it"""
        id = c_int32()
        self._state.checked(lib.generator_sample, self._ptr, byref(id))
        return id.value

    def set_sampling(self, *, temperature: float = 0.0, top_k: int = 0, top_p: float = 1.0, min_p: float = 0.0,
                     repetition_penalty: float = 1.0, penalty_window: int = 64, seed: int = 0) -> None:
        """temperature 0: greedy; top_k 0, top_p 1, min_p 0, repetition_penalty 1: off. The same seed gives the same
        text."""
        s = _lib.init(_lib.Sampling())
        s.temperature, s.top_k, s.top_p, s.min_p = temperature, top_k, top_p, min_p
        s.repetition_penalty, s.penalty_window, s.seed = repetition_penalty, penalty_window, seed % 2**64
        self._state.checked(lib.generator_set_sampling, self._ptr, byref(s))

    def _continue(self, ids: List[int]) -> None:
        """feeds ids, of which what was fed already is kept if they begin with it"""
        n = len(self._fed)
        if n >= len(ids) or ids[:n] != self._fed:
            self.reset()
            n = 0
        try:
            self.feed(ids[n:])
        except BaseException:
            self.reset()
            raise

    # -- text
    def generate(self, prompt: Union[str, Sequence[int]], *, max_tokens: Optional[int] = None, temperature: float = 0.0,
                 top_k: int = 0, top_p: float = 1.0, min_p: float = 0.0, repetition_penalty: float = 1.0,
                 penalty_window: int = 64, seed: int = 0, stop: Union[str, Sequence[str]] = (),
                 special: bool = False) -> Generation:
        """An iterator of the text that follows the prompt (text, or token ids).

        max_tokens None: to the model's end token or the end of the context; stop: texts that end it and are left out;
        special: markers in the prompt become control tokens. Sampling as in set_sampling.
        """
        ids = self.tokenizer.encode(prompt, special=special) if isinstance(prompt, str) else [int(i) for i in prompt]
        if not ids:
            raise InvalidError("an empty prompt", hint="give at least one token")
        self.set_sampling(temperature=temperature, top_k=top_k, top_p=top_p, min_p=min_p,
                          repetition_penalty=repetition_penalty, penalty_window=penalty_window, seed=seed)
        self._turn += 1
        return Generation(self, ids, max_tokens, [stop] if isinstance(stop, str) else list(stop))

    def chat(self, messages: Sequence[Message], **options: Any) -> Generation:
        """The answer to a chat: [{"role": "user", "content": "…"}]; options as of generate()."""
        text = self.tokenizer.chat(messages)
        bos = self.tokenizer._marker("bos")
        ids = self.tokenizer.encode(text, add_bos=not (bos and text.startswith(bos)), special=True)
        return self.generate(ids, **options)

    def __repr__(self) -> str:
        return f"<relax.llm.Model {self.weights.path}: context {self.context}>"


# ---- loading ----
def import_model(weights: Weights, *, context: int = 0, exact: bool = False) -> Module:
    """The module of a GGUF model: prefill, decode, embed. context: bound of tokens and cache, 0: the model's own, at
    most 4096; exact: float32 cache and activations. RX5105 for an architecture that is not known (docs/models.md)."""
    options = _lib.init(_lib.ModelOptions())
    options.exact, options.context = exact, context
    ptr = weights._state.made(lib.model_import, weights._state.ptr, weights._ptr, byref(options))
    return Module(context=weights.context, _ptr=ptr)


def _cache_path(weights: Weights, cache: Union[bool, str, "os.PathLike[str]"], facts: Dict[str, Any]) -> str:
    path = weights.path if cache is True else os.fspath(cache)         # type: ignore[arg-type]
    if cache is not True and path.endswith(".rlx"):
        return path
    key = hashlib.sha256(repr(sorted(facts.items())).encode()).hexdigest()[:16]
    folder = os.path.dirname(path) if cache is True else path
    stem = os.path.splitext(os.path.basename(weights.path))[0]
    return os.path.join(folder, f"{stem}-{key}.rlx")


def _fits(exe: Executable, facts: Dict[str, Any]) -> bool:
    """was it made of this file for these options?"""
    return (exe.metadata("gguf.fingerprint") == facts["fingerprint"] and exe.metadata("target") == facts["target"] and
            exe.metadata("librelax") == facts["version"] and
            (exe.metadata("model.cache_dtype") == "f32") == facts["exact"] and
            facts["context"] in (0, int(exe.metadata("model.context") or 0)))


def load(path: Union[str, "os.PathLike[str]"], *, context: int = 0, exact: bool = False, threads: int = 0,
         cache: Union[bool, str, "os.PathLike[str]", None] = None, target: str = "cpu",
         progress: Union[bool, Progress, None] = None) -> Model:
    """Opens a GGUF model and compiles it.

    context   bound of tokens, prompt and answer together; 0: the model's own, at most 4096
    exact     float32 cache and activations
    threads   0: all cores
    cache     keep the compiled model and load it from then on: True: beside the file; or a folder; or a path ending
              in .rlx
    progress  True: a bar; or a function(phase, done, total)
    """
    ctx = Context()
    weights = Weights(path, context=ctx)
    fingerprint = weights.meta("librelax.fingerprint")
    facts = dict(fingerprint=fingerprint, context=context, exact=exact, target=str(Target(target, context=ctx)),
                 version=(lib.version_string() or b"").decode())
    file = _cache_path(weights, cache, facts) if cache else None
    if file is not None and os.path.exists(file):
        try:
            exe = Executable.load(file, threads=threads, context=ctx)
            if _fits(exe, facts):
                return Model(exe, weights, threads=threads)
        except Error:
            pass                       # damaged, or of another version: it is made anew
    start = time.perf_counter()
    with reporting(progress) as report:
        module = import_model(weights, context=context, exact=exact)
        exe = build(module, target, threads=threads, progress=report)
    seconds = time.perf_counter() - start
    if file is not None:
        exe.save(file)
    return Model(exe, weights, threads=threads, compile_seconds=seconds)


__all__ = ["Generation", "Model", "Stats", "Tokenizer", "import_model", "load"]
