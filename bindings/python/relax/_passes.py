"""Pipelines: passes by name in the order of a text, and passes of the host, which are Python functions of a module.

    @relax.host_pass
    def count_calls(m):                # "count-calls": may look at and rewrite m, or raise: then m is as it was
        ...
    p = relax.Pipeline("default")
    p.insert_after("legalize", count_calls)
    p.run(m)
"""
from __future__ import annotations

import ctypes
from ctypes import byref, c_int64
from typing import Any, Callable, List, Optional, Tuple, Union

from . import _lib
from ._core import INTERNAL, OK, Context, Progress, reporting
from ._ir import Module, borrowed_module
from ._lib import encoded, lib, string, text


class HostPass:
    """a pass of the host: its name in pipelines, and the function that is called with the module"""

    def __init__(self, function: Callable[[Module], Any], name: Optional[str] = None) -> None:
        self.function = function
        self.name: str = name or getattr(function, "__name__", "host-pass").strip("<>_").replace("_", "-")
        self.__doc__ = function.__doc__

    def __call__(self, module: Module) -> None:
        """runs it on a module by hand"""
        self.function(module)

    def _callback(self, context: Context) -> Any:
        def callback(user: Any, ptr: int) -> int:
            m = borrowed_module(context, ptr)
            try:
                self.function(m)
                return OK
            except BaseException as e:
                context._state.keep(e)
                return INTERNAL
            finally:
                m._changed()           # what was taken from it ends with the pass
        return _lib.PASS_FN(callback)


def host_pass(function: Any = None, *, name: Optional[str] = None) -> Any:
    """A decorator that makes a HostPass of a function; its name with '-' for '_', or the name given."""
    if function is None:
        return lambda f: HostPass(f, name)
    return HostPass(function, name)


class Pipeline:
    """Passes in order. text: "default", or "legalize,plan-memory(reuse=false),…"; Context.passes() lists them."""

    def __init__(self, text: str = "default", *, context: Optional[Context] = None) -> None:
        self.context = context or Context.current()
        self._state = self.context._state
        self._ptr = self._state.made(lib.pipeline_parse, self._state.ptr, encoded(text))
        self._callbacks: List[Any] = []            # what the native pipeline calls
        self._printer: Any = None
        self._final = self._state.own(self, lib.pipeline_destroy, self._ptr)

    def _insert(self, fn: Any, place: Optional[str], what: Any, name: Optional[str]) -> None:
        p = what if isinstance(what, HostPass) and name is None else HostPass(getattr(what, "function", what), name)
        callback = p._callback(self.context)
        self._callbacks.append(callback)
        self._state.checked(fn, self._ptr, encoded(place), encoded(p.name), callback, None)

    def insert_after(self, after: Optional[str], host: Union[HostPass, Callable[[Module], Any]],
                     name: Optional[str] = None) -> None:
        """a host pass behind the named one; None: in front of all"""
        self._insert(lib.pipeline_insert_after, after, host, name)

    def insert_before(self, before: Optional[str], host: Union[HostPass, Callable[[Module], Any]],
                      name: Optional[str] = None) -> None:
        """a host pass in front of the named one; None: behind all"""
        self._insert(lib.pipeline_insert_before, before, host, name)

    def remove(self, name: str) -> None:
        self._state.checked(lib.pipeline_remove, self._ptr, encoded(name))

    def print(self, printer: Callable[[str, bool, str], Any], *, before: Optional[str] = None,
              after: Optional[str] = "all") -> None:
        """printer(pass, is_after, text) gets the module's text around passes: "all" or "legalize,fold-constant"; None:
        none"""
        state = self._state

        def callback(user: Any, name: bytes, is_after: int, data: bytes) -> None:
            try:
                printer(string(name) or "", bool(is_after), string(data) or "")
            except BaseException as e:
                state.keep(e)
        self._printer = _lib.PRINT_FN(callback)
        self._callbacks.append(self._printer)
        self._state.checked(lib.pipeline_print, self._ptr, encoded(before), encoded(after), self._printer, None)

    def verify_each(self, on: bool = True) -> None:
        """the verifier after every pass; after host passes it always runs"""
        self._state.checked(lib.pipeline_verify_each, self._ptr, on)

    def set_target(self, target: Union[str, "Target", None]) -> None:
        """what the pass `schedule` schedules for"""
        t = Target(target, context=self.context) if isinstance(target, str) else target
        self._state.checked(lib.pipeline_set_target, self._ptr, t._ptr if t else None)

    def run(self, module: Module, *, progress: Union[bool, Progress, None] = None) -> None:
        """Runs the passes on the module. On an error the module is as it was before the failing pass."""
        module._changed()
        with reporting(progress) as report, self._state.long(report):
            self._state.checked(lib.pipeline_run, self._ptr, module._ptr)

    @property
    def times(self) -> List[Tuple[str, float]]:
        """(pass, seconds) of the last run"""
        found = []
        for i in range(lib.pipeline_time_count(self._ptr)):
            name, ns = ctypes.c_char_p(), c_int64()
            self._state.checked(lib.pipeline_time, self._ptr, i, byref(name), byref(ns))
            found.append((string(name.value) or "", ns.value * 1e-9))
        return found

    def __str__(self) -> str:
        return self._state.call(text, lib.pipeline_text, self._ptr)

    def __repr__(self) -> str:
        return f"relax.Pipeline({str(self)!r})"


class Target:
    """What code is made for: "cpu" (this machine), "cpu:x86-64-v3", "cpu:aarch64+dotprod"."""
    __slots__ = ("context", "_ptr")

    def __init__(self, text: str = "cpu", *, context: Optional[Context] = None) -> None:
        self.context = context or Context.current()
        self._ptr = self.context._state.made(lib.target_parse, self.context._state.ptr, encoded(text))

    def __str__(self) -> str:
        return string(lib.target_text(self._ptr)) or ""

    def __repr__(self) -> str:
        return f"relax.Target({str(self)!r})"


