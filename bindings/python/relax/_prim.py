"""Tensor programs by hand: loops over buffers with scalar expressions.

    with m.prim("scale") as p:
        X, Y = p.param("X", "Buffer((n,), f32)"), p.param("Y", "Buffer((n,), f32)")
        with p.loop("i", "n") as i:
            Y[i] = X[i] * 2.0
    scale = p.function                 # for call_tir
"""
from __future__ import annotations

import contextlib
import re
from typing import Any, Iterator, List, Optional, Sequence, Union

from ._core import InvalidError, State
from ._dtype import NUMBER, ROWS, dtype_name, is_float, number_of
from ._ir import Function, Module
from ._lib import encoded, lib, pointers, text
from ._types import Dim


class Expr:
    """A scalar expression of a tensor program. Arithmetic, comparisons and & | ^ << >> make expressions; numbers take
    the data type of the other operand where `like` says which (i64 for indices)."""
    __slots__ = ("_prim", "_ptr", "dtype")

    def __init__(self, prim: "PrimBuilder", ptr: int, dtype: str) -> None:
        self._prim, self._ptr, self.dtype = prim, ptr, dtype

    def _with(self, op: str, other: Any, swap: bool = False, dtype: Optional[str] = None) -> "Expr":
        b = self._prim.expr(other, self.dtype)
        x, y = (b, self) if swap else (self, b)
        return Expr(self._prim, self._prim._pointer(lib.prim_binary, encoded(op), x._ptr, y._ptr), dtype or self.dtype)

    def __add__(self, o: Any) -> "Expr": return self._with("+", o)
    def __radd__(self, o: Any) -> "Expr": return self._with("+", o, True)
    def __sub__(self, o: Any) -> "Expr": return self._with("-", o)
    def __rsub__(self, o: Any) -> "Expr": return self._with("-", o, True)
    def __mul__(self, o: Any) -> "Expr": return self._with("*", o)
    def __rmul__(self, o: Any) -> "Expr": return self._with("*", o, True)
    def __truediv__(self, o: Any) -> "Expr": return self._with("/", o)
    def __rtruediv__(self, o: Any) -> "Expr": return self._with("/", o, True)
    def __floordiv__(self, o: Any) -> "Expr": return self._with("//", o)
    def __rfloordiv__(self, o: Any) -> "Expr": return self._with("//", o, True)
    def __mod__(self, o: Any) -> "Expr": return self._with("%", o)
    def __rmod__(self, o: Any) -> "Expr": return self._with("%", o, True)
    def __pow__(self, o: Any) -> "Expr": return self._with("pow", o)
    def __and__(self, o: Any) -> "Expr": return self._with("and" if self.dtype == "bool" else "&", o)
    def __or__(self, o: Any) -> "Expr": return self._with("or" if self.dtype == "bool" else "|", o)
    def __xor__(self, o: Any) -> "Expr": return self._with("^", o)
    def __lshift__(self, o: Any) -> "Expr": return self._with("<<", o)
    def __rshift__(self, o: Any) -> "Expr": return self._with(">>", o)
    def __lt__(self, o: Any) -> "Expr": return self._with("<", o, dtype="bool")
    def __le__(self, o: Any) -> "Expr": return self._with("<=", o, dtype="bool")
    def __gt__(self, o: Any) -> "Expr": return self._with(">", o, dtype="bool")
    def __ge__(self, o: Any) -> "Expr": return self._with(">=", o, dtype="bool")
    def __eq__(self, o: Any) -> "Expr": return self._with("==", o, dtype="bool")      # type: ignore[override]
    def __ne__(self, o: Any) -> "Expr": return self._with("!=", o, dtype="bool")      # type: ignore[override]
    def __neg__(self) -> "Expr": return self._with("-", 0, True)
    def min(self, o: Any) -> "Expr": return self._with("min", o)
    def max(self, o: Any) -> "Expr": return self._with("max", o)

    def astype(self, dtype: Any) -> "Expr":
        return self._prim.call(dtype, self)

    def __hash__(self) -> int:
        return hash(self._ptr)

    def __bool__(self) -> bool:
        raise TypeError("an expression has no truth before it runs: use PrimBuilder.call('select', cond, a, b)")

    def __repr__(self) -> str:
        return f"relax.Expr({self._prim._state.call(_text, self._ptr)}: {self.dtype})"


def _text(ptr: int) -> str:
    return text(lib.dim_text, ptr)


class Buffer:
    """A buffer: B[i, j] is a load, B[i, j] = e a store; B[()] the element of rank 0."""
    __slots__ = ("_prim", "_ptr", "name", "dtype")

    def __init__(self, prim: "PrimBuilder", ptr: int, name: str, dtype: str) -> None:
        self._prim, self._ptr, self.name, self.dtype = prim, ptr, name, dtype

    def _index(self, key: Any) -> Any:
        keys = key if isinstance(key, tuple) else (key,)
        return pointers(self._prim.expr(k, "i64")._ptr for k in keys), len(keys)

    def __getitem__(self, key: Any) -> Expr:
        index, n = self._index(key)
        return Expr(self._prim, self._prim._pointer(lib.load, self._ptr, index, n), self.dtype)

    def __setitem__(self, key: Any, value: Any) -> None:
        index, n = self._index(key)
        self._prim._do(lib.store, self._ptr, index, n, self._prim.expr(value, self.dtype)._ptr)


class PrimBuilder:
    """Builds a tensor program; see the module's head. Buffers of its parameters: inputs first, outputs last."""

    def __init__(self, module: Module, name: str) -> None:
        self.module, self.name = module, name
        self._b: Optional[int] = self._state.made(lib.prim_begin, module._ptr, encoded(name))
        self._function: Optional[Function] = None

    @property
    def _state(self) -> State:
        return self.module._state

    @property
    def _ptr(self) -> int:
        if self._b is None:
            raise InvalidError(f"the tensor program {self.name} is finished", id="RX1009")
        return self._b

    def __enter__(self) -> "PrimBuilder":
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if self._b is None:
            return
        b, self._b = self._b, None
        if kind is not None:           # an error sticks to the builder: nothing is added to the module
            self._state.call(lib.store_text, b, None)
            self._state.call(lib.prim_finish, b)
            self._state.call(lib.diagnostic_clear, self._state.ptr)
        else:
            self._function = Function(self.module, self._state.made(lib.prim_finish, b))

    @property
    def function(self) -> Function:
        """the program, after the with"""
        if self._function is None:
            raise InvalidError(f"the tensor program {self.name} is not finished", id="RX1009")
        return self._function

    def _pointer(self, fn: Any, *args: Any) -> int:
        return self._state.made(fn, self._ptr, *args)

    def _do(self, fn: Any, *args: Any) -> None:
        """for functions without a result: what went wrong is in the diagnostics"""
        self._state.call(fn, self._ptr, *args)
        if self._state.call(lib.diagnostic_count, self._state.ptr):
            raise self._state.error(1)

    def param(self, name: str, type: str) -> Buffer:
        """a buffer: "Buffer((k // 8, m), u32)"; the first mention of a name in a dim defines it"""
        return Buffer(self, self._pointer(lib.prim_param, encoded(name), encoded(type)), name, _dtype_in(type))

    def local(self, name: str, type: str) -> Buffer:
        """local scratch memory, to the end of the enclosing loop"""
        return Buffer(self, self._pointer(lib.local, encoded(name), encoded(type)), name, _dtype_in(type))

    def symbol(self, name: str) -> Expr:
        """an extra symbolic parameter, unless a buffer's shape defines it"""
        return Expr(self, self._pointer(lib.prim_symbol, encoded(name)), "i64")

    @contextlib.contextmanager
    def _loop(self, fn: Any, var: str, extent: Any) -> Iterator[Expr]:
        size = _text(extent._ptr) if isinstance(extent, (Expr, Dim)) else str(extent)
        yield Expr(self, self._pointer(fn, encoded(var), encoded(size)), "i64")
        self._do(lib.loop_end)

    def loop(self, var: str, extent: Union[str, int, Expr]) -> Any:
        """a spatial loop, for a with statement: with p.loop("i", "n") as i"""
        return self._loop(lib.loop, var, extent)

    def loop_reduce(self, var: str, extent: Union[str, int, Expr]) -> Any:
        """a reduction loop"""
        return self._loop(lib.loop_reduce, var, extent)

    def text(self, statements: str) -> None:
        """statements of the text form: "Y[i] = X[i] * 2.0" """
        self._do(lib.store_text, encoded(statements))

    def expr(self, x: Union[Expr, Dim, str, int, float, bool], dtype: str = "i64") -> Expr:
        """x as an expression: text in the program's scope; numbers are of the data type given"""
        if isinstance(x, Expr):
            return x
        if isinstance(x, Dim):
            return Expr(self, x._ptr, "i64")
        if isinstance(x, str):
            return Expr(self, self._pointer(lib.prim_expr, encoded(x)), dtype)
        if isinstance(x, float) and not is_float(dtype):
            raise TypeError(f"{x} with an expression of {dtype}: cast it first (astype)")
        return self.const(x, dtype)

    def const(self, value: Union[int, float, bool], dtype: Any) -> Expr:
        number = number_of(dtype)
        return Expr(self, self._pointer(lib.prim_const, number, float(value)), ROWS[number].name)

    def call(self, f: Any, *args: Any) -> Expr:
        """an intrinsic (exp, sqrt, fma, select, …) or a cast: f is a data type"""
        values = self._arguments(f, args)
        name = f
        try:
            name = dtype_name(f)
            dtype = name
        except TypeError:
            dtype = "bool" if f in ("isnan", "not") else values[-1].dtype
        ptr = self._pointer(lib.prim_call, encoded(name), pointers(v._ptr for v in values), len(values))
        return Expr(self, ptr, dtype)

    def _arguments(self, f: Any, args: Sequence[Any]) -> List[Expr]:
        known = [a.dtype for a in args[1 if f == "select" else 0:] if isinstance(a, Expr)]
        return [self.expr(a, known[0] if known else "f32") for a in args]


def _dtype_in(buffer: str) -> str:
    """the data type in "Buffer((n,), f32)"; the library has checked the text"""
    words = [w for w in re.findall(r"\w+", buffer[buffer.rfind(")", 0, buffer.rfind(")")) + 1:]) if w in NUMBER]
    return words[0] if words else "f32"
