"""Dims and annotations: what is said about values before a program runs."""
from __future__ import annotations

import threading
from ctypes import byref, c_int64
from typing import Any, List, Optional, Sequence, Tuple, Union

from ._core import Context
from ._dtype import ROWS, number_of
from ._lib import lib, pointers, text

TYPE_KINDS = ("Object", "Prim", "Shape", "Tensor", "Tuple", "Callable")
DimLike = Union["Dim", int]


# ---- dims ----
class Dim:
    """An integer expression over symbols: n, n * 4, (m + 1) // 2. Division rounds down. Equal expressions compare
    equal: n * 2 == n + n; whether two different ones are equal for all n, Builder.prove_equal knows."""
    __slots__ = ("_context", "_ptr")

    def __init__(self, context: Context, ptr: int) -> None:
        self._context, self._ptr = context, ptr

    @staticmethod
    def const(value: int, context: Optional[Context] = None) -> "Dim":
        """an integer as a Dim"""
        context = context or Context.current()
        return Dim(context, context._state.made(lib.dim_const, context._state.ptr, value))

    def _with(self, fn: Any, other: Any, swap: bool = False) -> "Dim":
        if isinstance(other, int):
            other = Dim.const(other, self._context)
        if not isinstance(other, Dim):
            return NotImplemented
        a, b = (other, self) if swap else (self, other)
        return Dim(self._context, self._context._state.made(fn, a._ptr, b._ptr))

    def __add__(self, other: DimLike) -> "Dim": return self._with(lib.dim_add, other)
    def __sub__(self, other: DimLike) -> "Dim": return self._with(lib.dim_sub, other)
    def __mul__(self, other: DimLike) -> "Dim": return self._with(lib.dim_mul, other)
    def __floordiv__(self, other: DimLike) -> "Dim": return self._with(lib.dim_floordiv, other)
    def __mod__(self, other: DimLike) -> "Dim": return self._with(lib.dim_floormod, other)
    def __radd__(self, other: DimLike) -> "Dim": return self._with(lib.dim_add, other, True)
    def __rsub__(self, other: DimLike) -> "Dim": return self._with(lib.dim_sub, other, True)
    def __rmul__(self, other: DimLike) -> "Dim": return self._with(lib.dim_mul, other, True)
    def __rfloordiv__(self, other: DimLike) -> "Dim": return self._with(lib.dim_floordiv, other, True)
    def __rmod__(self, other: DimLike) -> "Dim": return self._with(lib.dim_floormod, other, True)
    def __neg__(self) -> "Dim": return self._with(lib.dim_mul, -1)

    def min(self, other: DimLike) -> "Dim":
        return self._with(lib.dim_min, other)

    def max(self, other: DimLike) -> "Dim":
        return self._with(lib.dim_max, other)

    @property
    def value(self) -> Optional[int]:
        """the number, None if there are symbols"""
        out = c_int64()
        return out.value if self._context._state.call(lib.dim_value, self._ptr, byref(out)) == 0 else None

    def __index__(self) -> int:
        v = self.value
        if v is None:
            raise TypeError(f"the dim {self} is not a number")
        return v

    def __eq__(self, other: object) -> bool:
        if isinstance(other, int):
            return self.value == other
        return isinstance(other, Dim) and self._ptr == other._ptr

    def __hash__(self) -> int:
        v = self.value
        return hash(self._ptr) if v is None else hash(v)

    def __str__(self) -> str:
        return self._context._state.call(text, lib.dim_text, self._ptr)

    def __repr__(self) -> str:
        return f"relax.Dim({self})"


def dim_of(context: Context, ptr: Optional[int]) -> Union[Dim, int, None]:
    """a plain int where the dim is one"""
    if not ptr:
        return None
    d = Dim(context, ptr)
    v = d.value
    return d if v is None else v


def dim_ptr(context: Context, d: DimLike) -> int:
    if isinstance(d, Dim):
        return d._ptr
    return Dim.const(d.__index__(), context)._ptr


# ---- annotations ----
class Type:
    """An annotation: "Tensor((n, 4), f32)", "Shape(n, 4)", "Prim(i64, n)", "Tuple(…)", "Callable(…)", "Object". str()
    gives its text, which every function that takes an annotation accepts, as it does the object."""
    __slots__ = ("_context", "_ptr")

    def __init__(self, context: Context, ptr: int) -> None:
        self._context, self._ptr = context, ptr

    @staticmethod
    def _made(context: Optional[Context], fn: Any, *args: Any) -> "Type":
        context = context or Context.current()
        return Type(context, context._state.made(fn, context._state.ptr, *args))

    @staticmethod
    def object_(context: Optional[Context] = None) -> "Type":
        return Type._made(context, lib.type_object)

    @staticmethod
    def tensor(shape: Optional[Sequence[DimLike]], dtype: Any = None, *, ndim: int = -1,
               context: Optional[Context] = None) -> "Type":
        """shape None: only the rank is known, or nothing with ndim -1; dtype None: unknown"""
        context = context or _context_of(shape or ())
        number = 0 if dtype is None else number_of(dtype)
        if shape is None:
            return Type._made(context, lib.type_tensor, None, ndim, number)
        return Type._made(context, lib.type_tensor, pointers(dim_ptr(context, d) for d in shape), len(shape), number)

    @staticmethod
    def shape_(shape: Optional[Sequence[DimLike]], *, ndim: int = -1, context: Optional[Context] = None) -> "Type":
        context = context or _context_of(shape or ())
        if shape is None:
            return Type._made(context, lib.type_shape, None, ndim)
        return Type._made(context, lib.type_shape, pointers(dim_ptr(context, d) for d in shape), len(shape))

    @staticmethod
    def prim(dtype: Any, value: Optional[DimLike] = None, *, context: Optional[Context] = None) -> "Type":
        context = context or _context_of((value,))
        return Type._made(context, lib.type_prim, number_of(dtype), None if value is None else dim_ptr(context, value))

    @staticmethod
    def tuple(*fields: "Type") -> "Type":
        context = fields[0]._context if fields else None
        return Type._made(context, lib.type_tuple, pointers(t._ptr for t in fields), len(fields))

    @staticmethod
    def callable(params: Sequence["Type"], result: "Type", *, pure: bool = True) -> "Type":
        return Type._made(result._context, lib.type_callable, pointers(t._ptr for t in params), len(params),
                          result._ptr, pure)

    @property
    def kind(self) -> str:
        """"Object", "Prim", "Shape", "Tensor", "Tuple" or "Callable\""""
        return TYPE_KINDS[lib.type_kind(self._ptr)]

    @property
    def dtype(self) -> Optional[str]:
        number = lib.type_dtype(self._ptr)
        return ROWS[number].name if number else None

    @property
    def ndim(self) -> Optional[int]:
        """None: unknown, or no tensor or shape"""
        n = lib.type_ndim(self._ptr)
        return None if n < 0 else n

    @property
    def shape(self) -> Optional[Tuple[Union[Dim, int, None], ...]]:
        """the dims: int or Dim; None for a dim that is unknown; None if the rank is"""
        n = self.ndim
        return None if n is None else tuple(dim_of(self._context, lib.type_dim(self._ptr, i)) for i in range(n))

    @property
    def fields(self) -> Tuple["Type", ...]:
        """of a tuple"""
        return tuple(Type(self._context, lib.type_field(self._ptr, i)) for i in range(lib.type_field_count(self._ptr)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Type) and self._ptr == other._ptr

    def __hash__(self) -> int:
        return hash(self._ptr)

    def __str__(self) -> str:
        return self._context._state.call(text, lib.type_text, self._ptr)

    def __repr__(self) -> str:
        return f"relax.Type({self})"


def _context_of(dims: Sequence[Any]) -> Context:
    for d in dims:
        if isinstance(d, Dim):
            return d._context
    return builders()[-1].module.context if builders() else Context.current()


# ---- builders in use ----
_building = threading.local()


def builders() -> List[Any]:
    """the functions that are being built in this thread, the innermost last"""
    if not hasattr(_building, "stack"):
        _building.stack = []
    stack: List[Any] = _building.stack
    return stack
