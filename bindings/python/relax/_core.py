"""Errors and contexts, and the one door through which the library is called.

A native context is used by one thread at a time, and Python collects garbage on any thread at any time. So every call
takes the context's lock, and a handle that dies while the context is busy is put on a list that the next quiet moment
empties. Exceptions in callbacks are kept, the native call is told to stop, and the exception goes on when it returned.
Ctrl-C during a long call does the same: the signal sets a flag that the library's cancel callback reads.
"""
from __future__ import annotations

import collections
import contextlib
import ctypes
import signal
import sys
import threading
import weakref
from ctypes import byref
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple, Type as ClassType, Union

from . import _lib
from ._lib import encoded, lib, string

Progress = Callable[[str, int, int], None]

(OK, INVALID, NOMEM, TYPE, SHAPE, BOUND, NOT_FOUND, UNSUPPORTED, FORMAT, IO, INCOMPATIBLE, CANCELLED, LIMIT,
 INTERNAL) = range(14)


class Error(Exception):
    """What the library reports.

    id        stable name of the diagnostic, "RX2104"; "" if there is none
    status    number of the status of relax.h; status_name: its text
    message   what happened
    where     place: "file:line:col", "function: binding", or ""
    hint      what to do, or ""
    notes     earlier messages that belong to it
    function, binding, file, line, col    the parts of where
    Its subclasses are also ValueError, TypeError, KeyError, MemoryError and so on, by status.
    """

    def __init__(self, message: str, *, id: str = "", status: int = INTERNAL, where: str = "", hint: str = "",
                 notes: Tuple[str, ...] = (), function: Optional[str] = None, binding: Optional[str] = None,
                 file: Optional[str] = None, line: int = 0, col: int = 0) -> None:
        super().__init__(message)
        self.message, self.id, self.status, self.where, self.hint, self.notes = message, id, status, where, hint, notes
        self.function, self.binding, self.file, self.line, self.col = function, binding, file, line, col

    @property
    def status_name(self) -> str:
        return string(lib.status_name(self.status)) or ""

    def __str__(self) -> str:
        head = ": ".join(p for p in (self.id, self.where, self.message) if p)
        hint = f" (hint: {self.hint})" if self.hint else ""
        return "\n  ".join((head + hint, *self.notes))


class InvalidError(Error, ValueError):
    """a wrong argument or a call at the wrong time"""


class DTypeError(Error, TypeError):
    """a wrong kind of annotation or data type"""


class ShapeError(Error, ValueError):
    """shapes that do not fit"""


class BoundError(Error, IndexError, ValueError):
    """an extent or index outside its bound"""


class NotFoundError(Error, KeyError):
    """no such name"""


class UnsupportedError(Error, NotImplementedError):
    """what this version or target cannot do"""


class FormatError(Error, ValueError):
    """a text or file that breaks its format"""


class FileError(Error, OSError):
    """reading or writing failed"""


class OutOfMemory(Error, MemoryError):
    """an allocation failed"""


class Cancelled(Error):
    """the operation was stopped by Context.cancel()"""


CLASSES: Dict[int, ClassType[Error]] = {
    INVALID: InvalidError, NOMEM: OutOfMemory, TYPE: DTypeError, SHAPE: ShapeError, BOUND: BoundError,
    NOT_FOUND: NotFoundError, UNSUPPORTED: UnsupportedError, FORMAT: FormatError, IO: FileError, CANCELLED: Cancelled}


# ---- the native context ----
class State:
    """A native context with its lock. Handles keep it alive; it goes last."""

    def __init__(self, log: Optional[Callable[[int, str], None]], interruptible: bool) -> None:
        self.lock = threading.RLock()
        self.depth = 0
        self.dead: "collections.deque[Tuple[Any, Any]]" = collections.deque()
        self.pending: Optional[BaseException] = None
        self.stop = False
        self.progress: Optional[Progress] = None
        self.registered: Dict[str, Tuple[str, Any, Any]] = {}     # library functions: how to register them again
        me = weakref.ref(self)
        self.callbacks: List[Any] = [_lib.LOG_FN(_guard_log(me, log)) if log else _lib.LOG_FN(),
                                     _lib.PROGRESS_FN(_progress_of(me)) if interruptible else _lib.PROGRESS_FN(),
                                     _lib.CANCEL_FN(_cancel_of(me)) if interruptible else _lib.CANCEL_FN()]
        options = _lib.init(_lib.ContextOptions())
        options.log, options.progress, options.cancel = self.callbacks
        out = ctypes.c_void_p()
        status = lib.context_create(byref(options), byref(out))
        if status != OK:
            raise CLASSES.get(status, Error)("a context could not be made", status=status)
        self.ptr: int = out.value or 0
        # the callbacks must live as long as the native context: they are arguments of its finaliser
        weakref.finalize(self, _destroy_context, self.ptr, self.dead, self.callbacks)

    def call(self, fn: Any, *args: Any) -> Any:
        """fn(*args) with the lock held; raises what callbacks raised"""
        with self.lock:
            self.depth += 1
            try:
                return fn(*args)
            finally:
                self.depth -= 1
                if self.depth == 0:
                    self.bury()

    def bury(self) -> None:
        while self.dead:
            destroy, ptr = self.dead.popleft()
            destroy(ptr)

    def own(self, owner: Any, destroy: Any, ptr: Any, *keep: Any) -> "weakref.finalize[Any, Any]":
        """owner's death destroys ptr in a quiet moment; what `keep` holds lives as long"""
        return weakref.finalize(owner, _release, self, destroy, ptr, keep)

    def error(self, status: int) -> BaseException:
        """the exception for a failed call; takes the diagnostics"""
        with self.lock:
            pending, self.pending = self.pending, None
            found = [self._diagnostic(i) for i in range(lib.diagnostic_count(self.ptr))]
            lib.diagnostic_clear(self.ptr)
        if pending is not None:
            return pending
        if not found:
            return CLASSES.get(status, Error)(string(lib.status_name(status)) or "", status=status)
        last = found[-1]
        return CLASSES.get(last["status"], Error)(
            last.pop("message"), notes=tuple(str(Error(d.pop("message"), **d)) for d in found[:-1]), **last)

    def _diagnostic(self, i: int) -> Dict[str, Any]:
        d = _lib.init(_lib.Diagnostic())
        lib.diagnostic_get(self.ptr, i, byref(d))
        function, binding, file = string(d.function), string(d.binding), string(d.file)
        where = f"{file}:{d.line}:{d.col}" if file else ": ".join(p for p in (function, binding) if p)
        return dict(message=string(d.message) or "", id=d.id.decode(), status=d.status, where=where,
                    hint=string(d.hint) or "", function=function, binding=binding, file=file, line=d.line, col=d.col)

    def check(self, status: int) -> None:
        """raises for a status that is not OK, and for an exception of a callback"""
        if status != OK or self.pending is not None:
            raise self.error(status)

    def checked(self, fn: Any, *args: Any) -> None:
        self.check(self.call(fn, *args))

    def made(self, fn: Any, *args: Any) -> int:
        """for functions that give a handle, NULL on failure"""
        ptr = self.call(fn, *args)
        if not ptr:
            raise self.error(INTERNAL)
        if self.pending is not None:
            raise self.error(OK)
        return ptr

    def keep(self, error: BaseException) -> None:
        """an exception of a callback: the first one goes on"""
        if self.pending is None:
            self.pending = error

    @contextlib.contextmanager
    def long(self, progress: Optional[Progress] = None) -> Iterator[None]:
        """around a long call: reports progress; Ctrl-C stops it and is raised afterwards"""
        before, self.progress = self.progress, progress or self.progress
        old = signal.getsignal(signal.SIGINT) if threading.current_thread() is threading.main_thread() else None
        struck: List[Any] = []

        def on_interrupt(number: int, frame: Any) -> None:
            struck.append(frame)
            self.stop = True

        if callable(old):
            signal.signal(signal.SIGINT, on_interrupt)
        try:
            yield
        except Cancelled:
            if not struck:
                raise
        finally:
            self.progress = before
            self.stop = False
            if callable(old):
                signal.signal(signal.SIGINT, old)
        if struck and callable(old):
            old(signal.SIGINT, struck[0])


def _release(state: State, destroy: Any, ptr: Any, keep: Any) -> None:
    state.dead.append((destroy, ptr))
    if state.lock.acquire(blocking=False):
        try:
            if state.depth == 0:
                state.bury()
        finally:
            state.lock.release()


def _destroy_context(ptr: int, dead: Any, callbacks: Any) -> None:
    while dead:
        destroy, handle = dead.popleft()
        destroy(handle)
    lib.context_destroy(ptr)


def _guard_log(me: "weakref.ref[State]", log: Callable[[int, str], None]) -> Any:
    def callback(user: Any, level: int, text: bytes) -> None:
        try:
            log(level, string(text) or "")
        except BaseException as e:
            if (state := me()) is not None:
                state.keep(e)
    return callback


def _progress_of(me: "weakref.ref[State]") -> Any:
    def callback(user: Any, phase: bytes, done: int, total: int) -> None:
        state = me()
        if state is None or state.progress is None:
            return
        try:
            state.progress(string(phase) or "", done, total)
        except BaseException as e:
            state.keep(e)
    return callback


def _cancel_of(me: "weakref.ref[State]") -> Any:
    def callback(user: Any) -> int:
        state = me()
        return 1 if state is not None and (state.stop or state.pending is not None) else 0
    return callback


class Context:
    """Owns modules, executables and what belongs to them; errors are reported in it.

    log            called with (level, text); level 0 error, 1 warning, 2 information, 3 debug
    interruptible  Ctrl-C and cancel() stop long operations
    A context may be used from any thread; calls on it run one after the other. Without one, each thread has its own:
    Context.current().
    """

    def __init__(self, *, log: Optional[Callable[[int, str], None]] = None, interruptible: bool = True) -> None:
        self._log, self._interruptible = log, interruptible
        self._state = State(log, interruptible)

    @staticmethod
    def current() -> "Context":
        """the default context of this thread"""
        if not hasattr(_default, "context"):
            _default.context = Context()
        context: Context = _default.context
        return context

    def cancel(self) -> None:
        """Stops the operation that runs in this context, if any; it raises Cancelled. For other threads."""
        if self._state.depth:
            self._state.stop = True

    def operators(self) -> Dict[str, "OpInfo"]:
        """the operators by name: built-in ones and those of plugins"""
        found = {}
        for i in range(self._state.call(lib.op_count, self._state.ptr)):
            info = _lib.init(_lib.OpInfo())
            self._state.checked(lib.op_describe, self._state.ptr, i, byref(info))
            op = OpInfo(string(info.name) or "", string(info.attrs) or "", string(info.doc) or "", info.min_args,
                        info.max_args)
            found[op.name] = op
        return found

    def passes(self) -> Dict[str, str]:
        """the passes: name and what it does"""
        found = {}
        for i in range(self._state.call(lib.pass_count, self._state.ptr)):
            name, doc = ctypes.c_char_p(), ctypes.c_char_p()
            self._state.checked(lib.pass_describe, self._state.ptr, i, byref(name), byref(doc))
            found[string(name.value) or ""] = string(doc.value) or ""
        return found

    def load_plugin(self, path: Any) -> None:
        """Loads a plugin (.so): its passes and operators. Loading one is running a program. Error RX7104 if it does
        not fit."""
        self._state.checked(lib.plugin_load, self._state.ptr, encoded(str(path)))

    def _child(self) -> "Context":
        """a context for a VM: the same log and library functions, its own lock"""
        child = Context(log=self._log, interruptible=False)
        for name, (kind, fn, keep) in self._state.registered.items():
            child._register(kind, name, fn, keep)
        return child

    def _register(self, kind: str, name: str, fn: Any, keep: Any) -> None:
        state = self._state
        if kind == "foreign":
            state.checked(lib.library_register_foreign, state.ptr, encoded(name), fn, encoded(keep))
        elif kind == "openblas":
            state.checked(lib.openblas_register, state.ptr)
        else:
            register = lib.library_register if kind == "library" else lib.packed_register
            callback = fn(state)
            state.callbacks.append(callback)
            state.checked(register, state.ptr, encoded(name), callback, None)
        state.registered[name] = (kind, fn, keep)


_default = threading.local()


class OpInfo(collections.namedtuple("OpInfo", "name attrs doc min_args max_args")):
    """An operator: attrs is "key:kind=value, …" ("?": optional); max_args -1: any number."""
    __slots__ = ()


# ---- progress bars ----
class _Plain:
    """a line on a terminal that is written over"""

    def __init__(self) -> None:
        self.width = 0

    def __call__(self, phase: str, done: int, total: int) -> None:
        line = f"{phase} {done}/{total}" if total else f"{phase} {done}"
        sys.stderr.write("\r" + line.ljust(self.width))
        sys.stderr.flush()
        self.width = len(line)

    def close(self) -> None:
        if self.width:
            sys.stderr.write("\r" + " " * self.width + "\r")
            sys.stderr.flush()


class _Bar:
    """tqdm: the bar of the current phase"""

    def __init__(self, tqdm: Any) -> None:
        self.bar = tqdm(leave=False, file=sys.stderr, disable=None)

    def __call__(self, phase: str, done: int, total: int) -> None:
        self.bar.total = total or None
        self.bar.n = done
        self.bar.set_description(phase, refresh=False)
        self.bar.refresh()

    def close(self) -> None:
        self.bar.close()


@contextlib.contextmanager
def reporting(progress: Union[bool, Progress, None]) -> Iterator[Optional[Progress]]:
    """True: a bar by tqdm when it is there, else a plain one on a terminal; or the caller's function(phase, done,
    total)"""
    if progress is None or progress is False or callable(progress):
        yield progress or None
        return
    bar: Any = None
    try:
        from tqdm import tqdm          # type: ignore[import-untyped]
        bar = _Bar(tqdm)
    except ImportError:
        if sys.stderr is not None and sys.stderr.isatty():
            bar = _Plain()
    try:
        yield bar
    finally:
        if bar is not None:
            bar.close()
