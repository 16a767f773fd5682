"""Building, executables, running, library functions of the host, weights.

An executable is immutable and shared by threads. Each thread that calls it gets a VM of its own with a context of its
own; weights are bound once and shared by all of them.
"""
from __future__ import annotations

import ctypes
import os
import sys
import threading
from ctypes import byref, c_int64, c_size_t, c_void_p
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from . import _lib
from ._core import INTERNAL, LIMIT, OK, Context, NotFoundError, Progress, State, reporting
from ._dtype import from_dl, row_of
from ._ir import Module
from ._lib import Any_, DLTensor, encoded, lib, string, text
from ._passes import Pipeline, Target
from ._tensor import (READ_ONLY, Tensor, from_any, from_dlpack, given_result, lend, lent_argument, lent_dlpack,
                      release_all, take, to_any)


# ---- building ----
def build(module: Module, target: Union[str, Target] = "cpu", *, pipeline: Union[str, Pipeline, None] = None,
          opt_level: int = 2, verify: bool = False, threads: int = 0,
          progress: Union[bool, Progress, None] = None) -> "Executable":
    """Compiles a copy of the module; the module stays as it is.

    target     "cpu" (this machine), "cpu:x86-64-v3", …, or a Target
    pipeline   passes before code generation: a text, or a Pipeline (with host passes); None: "default"
    opt_level  of the code generator, 0 to 3
    verify     run the verifier after each pass
    threads    of its VMs: 0 all cores, 1 the caller's alone
    progress   True: a bar (tqdm when installed); or a function(phase, done, total)
    Ctrl-C and Context.cancel() stop it.
    """
    context, state = module.context, module._state
    t = Target(target, context=context) if isinstance(target, str) else target
    options = _lib.init(_lib.BuildOptions())
    options.opt_level, options.verify = opt_level, verify
    with reporting(progress) as report, state.long(report):
        if isinstance(pipeline, Pipeline):
            module = module.clone()
            pipeline.set_target(t)
            state.checked(lib.pipeline_run, pipeline._ptr, module._ptr)
            options.pipeline = b""
        else:
            options.pipeline = encoded(pipeline)
        out = c_void_p()
        status = state.call(lib.build, module._ptr, t._ptr, byref(options), byref(out))
        return _made(context, status, out, threads)


def _made(context: Context, status: int, out: c_void_p, threads: int) -> "Executable":
    exe = Executable(context, out.value, threads) if out.value else None
    context._state.check(status)
    if exe is None:
        raise context._state.error(status)
    return exe


def interpret(module: Module, function: str, *args: Any) -> Tensor:
    """Runs a function of the module in the interpreter, at any stage of lowering: slow, obvious. Arguments and result
    are tensors. Not compiled code: for checking and for constants."""
    state, keep = module._state, []    # type: Tuple[Any, List[Any]]
    addresses = [lent_dlpack(a, keep) for a in args]
    out = c_void_p()
    with state.long():
        status = state.call(lib.interpret, module._ptr, encoded(function), _lib.pointers(addresses), len(addresses),
                            byref(out))
        result = from_dlpack(state, out.value) if out.value else None
        state.check(status)
    if result is None:
        raise state.error(status)
    return result


# ---- executables ----
class Executable:
    """Compiled code for all shapes: exe["mlp"](x, w).

    Arguments are anything with __dlpack__, numpy arrays, buffers, numbers (Prim), relax.Shape, tuples; results are
    Tensor, int, float, Shape, or tuples of them. Arguments are lent for the call and never copied where they are
    compact.
    """

    def __init__(self, context: Context, ptr: int, threads: int = 0) -> None:
        self.context, self.threads = context, threads
        self._state, self._ptr = context._state, ptr
        self._weights: Dict[str, Tensor] = {}
        self._files: List["Weights"] = []
        self._local = threading.local()
        self._final = self._state.own(self, lib.executable_destroy, ptr)

    @staticmethod
    def load(source: Union[str, "os.PathLike[str]", bytes], *, threads: int = 0,
             context: Optional[Context] = None) -> "Executable":
        """From a file or from bytes. They are verified or refused (RX51xx); the native code is not looked at: running
        it is running a program."""
        context, out = context or Context.current(), c_void_p()
        state = context._state
        if isinstance(source, (bytes, bytearray, memoryview)):
            data = bytes(source)
            status = state.call(lib.executable_load_memory, state.ptr, data, len(data), 0, byref(out))
        else:
            status = state.call(lib.executable_load_file, state.ptr, encoded(os.fspath(source)), byref(out))
        return _made(context, status, out, threads)

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """writes the file: the old one or the whole new one stands there, never a part"""
        self._state.checked(lib.executable_save, self._ptr, encoded(os.fspath(path)))

    def to_bytes(self) -> bytes:
        data, size = c_void_p(), c_size_t()
        self._state.checked(lib.executable_bytes, self._ptr, byref(data), byref(size))
        return ctypes.string_at(data.value or 0, size.value)

    # -- looking
    @property
    def functions(self) -> "Functions":
        """the public functions by name"""
        return Functions(self)

    def __getitem__(self, name: str) -> "ExecutableFunction":
        return self.functions[name]

    @property
    def weights(self) -> Dict[str, str]:
        """the weights that must be bound: name and annotation"""
        names = [lib.executable_weight_name(self._ptr, i) for i in range(lib.executable_weight_count(self._ptr))]
        return {string(name) or "": string(lib.executable_weight_type(self._ptr, i)) or "" for i, name in
                enumerate(names)}

    def metadata(self, key: str) -> Optional[str]:
        """provenance and metadata: "target", "librelax", "pipeline", …; None if absent"""
        return string(lib.executable_property(self._ptr, encoded(key)))

    def text(self, code: bool = False) -> str:
        """what it holds, for people; code: bytecode and shape program too"""
        return self._state.call(text, lib.executable_text, self._ptr, code)

    # -- running
    def bind(self, weights: Optional[Mapping[str, Any]] = None, **more: Any) -> "Executable":
        """Binds weights by name: arrays, which are used where they lie and kept alive. Gives self."""
        for name, value in {**(weights or {}), **more}.items():
            t = value if isinstance(value, Tensor) else Tensor(self._state, take(self._state, value))
            self.vm._bind(name, t)
            self._weights[name] = t
        return self

    def bind_file(self, weights: "Weights") -> "Executable":
        """binds every weight that it names from a GGUF or safetensors file; gives self"""
        self.vm._bind_file(weights)
        self._files.append(weights)
        return self

    @property
    def vm(self) -> "VM":
        """this thread's VM, made when it is first asked for"""
        vm: Optional[VM] = getattr(self._local, "vm", None)
        if vm is None or vm._functions != self._state.registered:      # library functions are looked up when it is made
            vm = VM(self)
            self._local.vm = vm
        for name, t in self._weights.items():
            if vm._bound.get(name) is not t:
                vm._bind(name, t)
        for w in self._files:
            if w not in vm._files:
                vm._bind_file(w)
        return vm

    def __repr__(self) -> str:
        return f"<relax.Executable {', '.join(self.functions)}>"


class Functions(Mapping[str, "ExecutableFunction"]):
    """the functions of an executable"""

    def __init__(self, exe: Executable) -> None:
        self._exe = exe
        self._names = [string(lib.executable_function_name(exe._ptr, i)) or ""
                       for i in range(lib.executable_function_count(exe._ptr))]

    def __getitem__(self, name: str) -> "ExecutableFunction":
        if name not in self._names:
            raise NotFoundError(f"the executable has no function {name!r}; it has {', '.join(self._names)}",
                                id="RX1006", status=6)
        return ExecutableFunction(self._exe, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class ExecutableFunction:
    """a function of an executable"""
    __slots__ = ("executable", "name", "_encoded")

    def __init__(self, executable: Executable, name: str) -> None:
        self.executable, self.name, self._encoded = executable, name, encoded(name)

    def __call__(self, *args: Any, out: Any = None) -> Any:
        """Runs it. out: a tensor, or a sequence of them, that the results are written into (compact, writable, of the
        result's shape and type); then nothing is allocated. Errors name argument, dim, expected and found (RX41xx)."""
        return self.executable.vm._call(self._encoded, args, out)

    @property
    def signature(self) -> str:
        """"mlp(x: Tensor((n, 256), f32), …) -> Tensor((n, 256), f32) where 1 <= n <= 4096" """
        e = self.executable
        return e._state.call(text, lib.executable_signature, e._ptr, self._encoded)

    @property
    def memory_formula(self) -> str:
        """peak activation bytes as a formula over the symbols"""
        e = self.executable
        return e._state.call(text, lib.executable_memory_formula, e._ptr, self._encoded)

    def peak_memory(self, **symbols: int) -> int:
        """peak activation bytes of a call with these values of the symbols, known before it runs:
        peak_memory(n=2048)"""
        values = (_lib.SymValue * max(len(symbols), 1))()
        for slot, (name, value) in zip(values, symbols.items()):
            slot.name, slot.value = encoded(name), value
        bytes_, e = c_int64(), self.executable
        e._state.checked(lib.executable_peak_memory, e._ptr, self._encoded, values, len(symbols), byref(bytes_))
        return bytes_.value

    def __repr__(self) -> str:
        return f"<relax function {self.signature}>"


class Memory(NamedTuple):
    held: int                          # bytes kept between calls
    arena_peak: int                    # largest arena so far


class VM:
    """Runs an executable; one thread at a time. Executable.vm makes one for each thread: make others for options.

    threads   0: all cores; 1: the caller's alone        profile   time every kernel
    """

    def __init__(self, executable: Executable, *, threads: Optional[int] = None, profile: bool = False) -> None:
        self.executable = executable
        self.context = executable.context._child()
        self._state = self.context._state
        options = _lib.init(_lib.VMOptions())
        options.threads = executable.threads if threads is None else threads
        options.profile, options.context = profile, self._state.ptr
        out = c_void_p()
        with executable._state.lock:   # the first one maps the native code
            status = self._state.call(lib.vm_create, executable._ptr, byref(options), byref(out))
        self._state.check(status)
        self._ptr: int = out.value or 0
        self._functions = dict(executable._state.registered)
        self._bound: Dict[str, Tensor] = {}
        self._files: List["Weights"] = []
        # what is bound outlives the native VM, which itself keeps what it needs of the executable
        self._final = self._state.own(self, lib.vm_destroy, self._ptr, self._bound, self._files)

    def _bind(self, name: str, t: Tensor) -> None:
        d = DLTensor()
        lib.any_dltensor(byref(t._any), byref(d))
        self._state.checked(lib.vm_bind_weight, self._ptr, encoded(name), byref(d))
        self._bound[name] = t

    def _bind_file(self, weights: "Weights") -> None:
        self._state.checked(lib.vm_bind_weights, self._ptr, weights._ptr)
        self._files.append(weights)

    def __getitem__(self, name: str) -> Callable[..., Any]:
        self.executable.functions[name]
        data = encoded(name)
        return lambda *args, out=None: self._call(data, args, out)

    def _call(self, name: Optional[bytes], args: Sequence[Any], out: Any) -> Any:
        state, keep = self._state, []  # type: Tuple[Any, List[Any]]
        try:
            values = (Any_ * max(len(args), 1))()
            for i, a in enumerate(args):
                values[i] = to_any(state, a, keep)
            if out is not None:
                return self._call_into(name, values, len(args), out)
            result = Any_()
            status = state.call(lib.vm_invoke, self._ptr, name, values, len(args), byref(result))
            value = from_any(state, result, self) if status == OK else None
            state.check(status)
            return value
        finally:
            release_all(keep)

    def _call_into(self, name: Optional[bytes], values: Any, n: int, out: Any) -> Any:
        outs = list(out) if isinstance(out, (tuple, list)) else [out]
        lent = [lend(o) for o in outs]
        if any(x.flags & READ_ONLY for x in lent):
            raise ValueError("an output is read-only")
        self._state.checked(lib.vm_call_into, self._ptr, name, values, n, _lib.pointers(x.dl for x in lent), len(lent))
        return out

    @property
    def memory(self) -> Memory:
        held, peak = c_size_t(), c_size_t()
        self._state.checked(lib.vm_memory, self._ptr, byref(held), byref(peak))
        return Memory(held.value, peak.value)

    @property
    def profile(self) -> List[Tuple[str, int, float]]:
        """(kernel, calls, seconds); needs profile=True"""
        rows = []
        for i in range(self._state.call(lib.vm_profile_count, self._ptr)):
            name, calls, ns = ctypes.c_char_p(), c_int64(), c_int64()
            self._state.checked(lib.vm_profile, self._ptr, i, byref(name), byref(calls), byref(ns))
            rows.append((string(name.value) or "", calls.value, ns.value * 1e-9))
        return rows


# ---- library functions of the host ----
class _View:
    """a tensor that a library function is lent, for numpy"""
    __slots__ = ("__array_interface__", "__weakref__")

    def __init__(self, t: DLTensor) -> None:
        row = row_of(from_dl(t.dtype.code, t.dtype.bits))
        kind = "b" if row.name == "bool" else row.name[0] if row.fmt else "V"
        order = "|" if row.bits == 8 else "<" if sys.byteorder == "little" else ">"
        address = (t.data or 64) + t.byte_offset
        self.__array_interface__ = dict(version=3, shape=tuple(t.shape[i] for i in range(t.ndim)), strides=None,
                                        typestr=f"{order}{kind}{row.bits // 8}", data=(address, False))


def _failed(state: State, call: Any, error: BaseException) -> int:
    """the exception goes on when the program has stopped; its text is for other hosts' eyes"""
    data = f"{type(error).__name__}: {error}".encode("utf-8")[:max(call.error_size - 1, 0)] + b"\0"
    if call.error and call.error_size:
        ctypes.memmove(call.error, data, len(data))
    state.keep(error)
    return INTERNAL


def register_library(name: str, function: Callable[..., Any], *, context: Optional[Context] = None) -> None:
    """Registers a library function: function(*inputs, *outputs, *syms) with numpy arrays on the tensors' memory; it
    writes into the outputs. The arrays are lent for the call. What it raises is raised by the program's caller. Needs
    numpy."""
    import numpy

    def wrap(state: State) -> Any:
        def callback(user: Any, call: Any) -> int:
            c = call.contents
            try:
                arrays = [numpy.asarray(_View(c.args[i].contents)) for i in range(c.nargs)]
                function(*arrays, *(c.syms[i] for i in range(c.nsyms)))
                return OK
            except BaseException as e:
                return _failed(state, c, e)
        return _lib.LIBRARY_FN(callback)
    (context or Context.current())._register("library", name, wrap, None)


def register_packed(name: str, function: Callable[..., Any], *, context: Optional[Context] = None) -> None:
    """Registers a function of any values: function(*args) with Tensor, int, float, Shape and tuples, one result (None,
    number, tensor, array, Shape or tuple). What it raises is raised by the program's caller."""
    def wrap(state: State) -> Any:
        def callback(user: Any, call: Any) -> int:
            c = call.contents
            try:
                result = function(*(lent_argument(state, c.args[i]) for i in range(c.nargs)))
                c.result[0] = given_result(state, result)
                return OK
            except BaseException as e:
                return _failed(state, c, e)
        return _lib.PACKED_FN(callback)
    (context or Context.current())._register("packed", name, wrap, None)


def register_foreign(name: str, function: Any, signature: str, *, context: Optional[Context] = None) -> None:
    """Registers a C function: a ctypes function or an address. signature: "i:pppll", see
    relax_library_register_foreign."""
    address = function if isinstance(function, int) else ctypes.cast(function, c_void_p).value
    context = context or Context.current()
    context._state.callbacks.append(function)
    context._register("foreign", name, address, signature)


def register_openblas(*, context: Optional[Context] = None) -> None:
    """Registers "openblas.sgemm" (a, b) -> a @ b; RX4110 with a hint if OpenBLAS is absent."""
    (context or Context.current())._register("openblas", "openblas.sgemm", None, None)


def unregister(name: str, *, context: Optional[Context] = None) -> None:
    """takes a library function away"""
    context = context or Context.current()
    context._state.checked(lib.library_unregister, context._state.ptr, encoded(name))
    context._state.registered.pop(name, None)


# ---- weights ----
class Weight(NamedTuple):
    name: str
    type: str                          # "q4_k", "f32", …
    dtype: str                         # as stored for the compiler: block formats are u8
    shape: Tuple[int, ...]


class Weights:
    """A GGUF or safetensors file, mapped: nothing is copied. The file is checked when it is opened (RX51xx)."""

    def __init__(self, path: Union[str, "os.PathLike[str]"], *, context: Optional[Context] = None) -> None:
        self.path = os.fspath(path)
        self.context = context or Context.current()
        self._state, out = self.context._state, c_void_p()
        self._state.checked(lib.weights_open, self._state.ptr, encoded(self.path), byref(out))
        self._ptr: int = out.value or 0
        self._final = self._state.own(self, lib.weights_close, self._ptr)

    def __len__(self) -> int:
        return lib.weights_count(self._ptr)

    def __getitem__(self, i: int) -> Weight:
        if not 0 <= i < len(self):
            raise IndexError(i)
        name, kind, t = ctypes.c_char_p(), ctypes.c_char_p(), DLTensor()
        self._state.checked(lib.weights_get, self._ptr, i, byref(name), byref(kind), byref(t))
        return Weight(string(name.value) or "", string(kind.value) or "", from_dl(t.dtype.code, t.dtype.bits),
                      tuple(t.shape[k] for k in range(t.ndim)))

    def __iter__(self) -> Iterator[Weight]:
        return (self[i] for i in range(len(self)))

    def meta(self, key: str) -> Optional[str]:
        """a scalar or string of the metadata, as text; None if it is absent"""
        size = 1024
        while True:
            out = ctypes.create_string_buffer(size)
            status = self._state.call(lib.weights_meta, self._ptr, encoded(key), out, size)
            if status == OK:
                return string(out.value)
            error = self._state.error(status)
            if isinstance(error, NotFoundError):
                return None
            if status != LIMIT or size > 2**28:
                raise error
            size *= 8                  # it needs more room

    def __str__(self) -> str:
        return self._state.call(text, lib.weights_text, self._ptr)

    def __repr__(self) -> str:
        return f"<relax.Weights {self.path}: {len(self)} tensors>"
