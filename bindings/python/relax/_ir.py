"""Modules, functions and values: building, looking at and rewriting them.

Handles of the IR belong to their module; a Value keeps its module alive. Running a pipeline or parsing into a module
makes the handles that were taken from it before invalid; using one is an error, not a crash.
"""
from __future__ import annotations

import contextlib
import ctypes
from ctypes import byref, c_int64
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple, Union

from . import _lib
from ._core import Context, InvalidError, State
from ._dtype import NUMBER, ROWS, from_dl, is_float, number_of
from ._lib import encoded, lib, pointers, string, text
from ._tensor import release_all, take
from ._types import Dim, DimLike, Type, builders, dim_ptr

KINDS = ("param", "const", "shape", "prim", "function", "string", "op", "call", "call_tir", "call_tir_inplace",
         "call_dps_library", "call_packed", "tuple", "tuple_get", "match_cast", "if", "alloc", "call_dps", "view")


# ---- builders in use ----
def current() -> "Builder":
    """the innermost function that is being built in this thread"""
    if not builders():
        raise InvalidError("no function is being built: operators belong inside 'with module.function(…) as f:'",
                           id="RX1009")
    found: Builder = builders()[-1]
    return found


# ---- values ----
class Value:
    """The result of a node: a parameter, constant, or binding of a function.

    + - * / // % ** @ & | ^ << >> ~ and comparisons are operators of the program; numbers and arrays become constants
    of the other operand's data type. x[1:, ::2, None, i] slices. v[i] of a tuple is its field.
    """
    __slots__ = ("module", "_at", "_generation")
    __array_ufunc__ = None             # numpy leaves array + value to Value

    def __init__(self, module: "Module", ptr: int) -> None:
        self.module, self._at, self._generation = module, ptr, module._generation

    @property
    def _ptr(self) -> int:
        if self._generation != self.module._generation:
            raise InvalidError("the value is from before the module was changed as a whole: look it up again",
                               id="RX1003")
        return self._at

    # -- looking
    @property
    def type(self) -> Type:
        return Type(self.module.context, lib.value_type(self._ptr))

    @property
    def shape(self) -> Optional[Tuple[Union[Dim, int, None], ...]]:
        """dims of the annotation: int or Dim, None where unknown"""
        return self.type.shape

    @property
    def dtype(self) -> Optional[str]:
        return self.type.dtype

    @property
    def ndim(self) -> Optional[int]:
        return self.type.ndim

    @property
    def kind(self) -> str:
        """"param", "const", "op", "call", …: KINDS"""
        return KINDS[lib.value_kind(self._ptr)]

    @property
    def op(self) -> Optional[str]:
        """name of the operator"""
        return string(lib.value_op(self._ptr))

    @property
    def callee(self) -> Optional[str]:
        """name of the function or library function that is called"""
        return string(lib.value_callee(self._ptr))

    @property
    def name(self) -> Optional[str]:
        return string(lib.value_name(self._ptr))

    @property
    def args(self) -> Tuple[Optional["Value"], ...]:
        return tuple(self._of(lib.value_arg(self._ptr, i)) for i in range(lib.value_arg_count(self._ptr)))

    @property
    def uses(self) -> int:
        """number of operands that it is"""
        return self._state.call(lib.value_use_count, self._ptr)

    def attr(self, key: str) -> Optional[str]:
        """an attribute as text, None if it is absent"""
        size = 256
        while True:
            out = ctypes.create_string_buffer(size)
            status = self._state.call(lib.value_attr_text, self._ptr, encoded(key), out, size)
            if status != 0:
                return None
            if len(out.value) < size - 1:
                return string(out.value)
            size *= 4

    @property
    def attrs(self) -> Dict[str, str]:
        """the attributes of an operator that are set, as text"""
        info = self.module.context.operators().get(self.op or "")
        keys = [part.split(":")[0].strip() for part in info.attrs.split(",")] if info else []
        return {k: v for k in keys if k and (v := self.attr(k)) is not None}

    def is_(self, other: Optional["Value"]) -> bool:
        """the same value? (== is an operator of the program)"""
        return other is not None and self._at == other._at

    @property
    def _state(self) -> State:
        return self.module._state

    def _of(self, ptr: Optional[int]) -> Optional["Value"]:
        return Value(self.module, ptr) if ptr else None

    # -- rewriting
    def replace(self, by: "Value") -> None:
        """every use of this value becomes `by`; annotations are deduced again"""
        self._state.checked(lib.value_replace, self._ptr, by._ptr)

    def set_arg(self, i: int, arg: "Value") -> None:
        self._state.checked(lib.value_set_arg, self._ptr, i, arg._ptr)

    def remove(self) -> None:
        """removes the binding; it must have no uses"""
        self._state.checked(lib.value_remove, self._ptr)

    @contextlib.contextmanager
    def before(self) -> Iterator["Builder"]:
        """a builder that inserts in front of this binding; operators inside the with use it"""
        b = Builder(self.module, self._state.made(lib.insert_before, self._ptr))
        builders().append(b)
        try:
            yield b
        finally:
            builders().remove(b)
            status = self._state.call(lib.insert_end, b._end())
        self._state.check(status)

    # -- operators
    def _binary(self, name: str, other: Any, swap: bool = False) -> "Value":
        if isinstance(other, (str, bytes)):
            return NotImplemented
        return current().op(name, (other, self) if swap else (self, other))

    def _logical(self, name: str) -> str:
        return ("logical_" if self.dtype == "bool" else "bitwise_") + name

    def __add__(self, o: Any) -> "Value": return self._binary("add", o)
    def __radd__(self, o: Any) -> "Value": return self._binary("add", o, True)
    def __sub__(self, o: Any) -> "Value": return self._binary("subtract", o)
    def __rsub__(self, o: Any) -> "Value": return self._binary("subtract", o, True)
    def __mul__(self, o: Any) -> "Value": return self._binary("multiply", o)
    def __rmul__(self, o: Any) -> "Value": return self._binary("multiply", o, True)
    def __truediv__(self, o: Any) -> "Value": return self._binary("divide", o)
    def __rtruediv__(self, o: Any) -> "Value": return self._binary("divide", o, True)
    def __floordiv__(self, o: Any) -> "Value": return self._binary("floor_divide", o)
    def __rfloordiv__(self, o: Any) -> "Value": return self._binary("floor_divide", o, True)
    def __mod__(self, o: Any) -> "Value": return self._binary("floor_mod", o)
    def __rmod__(self, o: Any) -> "Value": return self._binary("floor_mod", o, True)
    def __pow__(self, o: Any) -> "Value": return self._binary("power", o)
    def __rpow__(self, o: Any) -> "Value": return self._binary("power", o, True)
    def __matmul__(self, o: Any) -> "Value": return self._binary("matmul", o)
    def __rmatmul__(self, o: Any) -> "Value": return self._binary("matmul", o, True)
    def __and__(self, o: Any) -> "Value": return self._binary(self._logical("and"), o)
    def __or__(self, o: Any) -> "Value": return self._binary(self._logical("or"), o)
    def __xor__(self, o: Any) -> "Value": return self._binary(self._logical("xor"), o)
    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__
    def __lshift__(self, o: Any) -> "Value": return self._binary("left_shift", o)
    def __rlshift__(self, o: Any) -> "Value": return self._binary("left_shift", o, True)
    def __rshift__(self, o: Any) -> "Value": return self._binary("right_shift", o)
    def __rrshift__(self, o: Any) -> "Value": return self._binary("right_shift", o, True)
    def __lt__(self, o: Any) -> "Value": return self._binary("less", o)
    def __le__(self, o: Any) -> "Value": return self._binary("less_equal", o)
    def __gt__(self, o: Any) -> "Value": return self._binary("greater", o)
    def __ge__(self, o: Any) -> "Value": return self._binary("greater_equal", o)
    def __eq__(self, o: Any) -> "Value": return self._binary("equal", o)           # type: ignore[override]
    def __ne__(self, o: Any) -> "Value": return self._binary("not_equal", o)       # type: ignore[override]
    def __neg__(self) -> "Value": return current().op("negative", (self,))
    def __pos__(self) -> "Value": return self
    def __abs__(self) -> "Value": return current().op("abs", (self,))

    def __invert__(self) -> "Value":
        return current().op("logical_not", (self,)) if self.dtype == "bool" else self ^ -1

    def __hash__(self) -> int:
        return hash(self._at)

    def __bool__(self) -> bool:
        raise TypeError("a value of a program has no truth before it runs: use Builder.if_ or relax.where")

    def __iter__(self) -> Iterator["Value"]:
        if self.type.kind != "Tuple":
            raise TypeError("only a tuple can be unpacked")
        return (self[i] for i in range(len(self.type.fields)))

    def __getitem__(self, key: Any) -> "Value":
        if self.type.kind == "Tuple":
            n = len(self.type.fields)
            i = key.__index__()
            if not -n <= i < n:
                raise IndexError(f"field {i} of a tuple of {n}")
            return current()._value(lib.tuple_get, self._ptr, i % n)
        from ._slice import index
        return index(current(), self, key)

    def __call__(self, *args: Any) -> "Value":
        """calls a function that is a value"""
        return current().call(self, *args)

    def astype(self, dtype: Any) -> "Value":
        return current().op("astype", (self,), dtype=dtype)

    def reshape(self, *shape: Any) -> "Value":
        """one dim may be -1: what is left"""
        dims = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
        return current().op("reshape", (self, tuple(dims)))

    @property
    def T(self) -> "Value":
        """all axes reversed"""
        return current().op("permute_dims", (self,))

    def __repr__(self) -> str:
        if self._generation != self.module._generation:
            return "<relax.Value of an earlier form of its module>"
        what = self.op or self.callee or self.name or self.kind
        return f"<relax.Value {what}: {self.type}>"


# ---- building functions ----
class Builder:
    """Builds one graph function. An error is raised by the call that makes it; the function is then removed again.

        with m.function("mlp") as f:
            x = f.param("x", "Tensor((n, 256), f32)")
            f.ret(relax.silu(x))
    """

    def __init__(self, module: "Module", ptr: int, name: Optional[str] = None) -> None:
        self.module, self._b, self.name = module, ptr, name
        self._result: Any = None

    @property
    def _ptr(self) -> int:
        if self._b is None:
            raise InvalidError(f"the function {self.name} is finished", id="RX1009")
        return self._b

    def _end(self) -> int:
        ptr = self._ptr
        self._b = None                 # type: ignore[assignment]
        return ptr

    @property
    def _state(self) -> State:
        return self.module._state

    def __enter__(self) -> "Builder":
        builders().append(self)
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        builders().remove(self)
        if self._b is None:
            return
        if kind is not None:
            self._state.call(lib.function_abandon, self._end())
            return
        result = self._result
        if result is None:
            self._state.call(lib.function_abandon, self._end())
            raise InvalidError(f"{self.name}: no result: call ret(value)", id="RX1009")
        self._state.checked(lib.function_finish, self._end(), result._ptr)

    def _value(self, fn: Any, *args: Any) -> Value:
        """fn(builder, *args) gives a value or an error"""
        return Value(self.module, self._pointer(fn, *args))

    def _pointer(self, fn: Any, *args: Any) -> int:
        ptr = self._state.call(fn, self._ptr, *args)
        if not ptr:
            raise self._state.error(lib.builder_status(self._ptr))
        return ptr

    def _do(self, fn: Any, *args: Any) -> None:
        self._state.call(fn, self._ptr, *args)
        self._state.check(lib.builder_status(self._ptr))

    # -- signature
    def param(self, name: str, type: Union[str, Type]) -> Value:
        """A parameter; the first mention of a name in a dim defines it as a symbol."""
        if isinstance(type, Type):
            return self._value(lib.param_typed, encoded(name), type._ptr)
        return self._value(lib.param, encoded(name), encoded(type))

    def symbol(self, name: str) -> Dim:
        """the symbol of that name, made if it is new"""
        return Dim(self.module.context, self._pointer(lib.symbol, encoded(name)))

    def bound(self, symbol: Union[str, Dim], lo: int, hi: int) -> None:
        """lo <= symbol <= hi, checked when the function is called"""
        self._do(lib.bound, encoded(str(symbol)), lo, hi)

    def fact(self, condition: str) -> None:
        """a condition on symbols, "n * m <= 65536", checked when the function is called"""
        self._do(lib.fact, encoded(condition))

    def private(self) -> None:
        """not callable from outside the module"""
        self._do(lib.private)

    def impure(self) -> None:
        """may call impure functions of the host"""
        self._do(lib.impure)

    def result_type(self, type: Union[str, Type]) -> None:
        """declares the result, which a recursive function needs"""
        self._do(lib.result_type, encoded(str(type)))

    def type(self, text: str) -> Type:
        """an annotation from text, in the scope of the function"""
        return Type(self.module.context, self._pointer(lib.type_parse, encoded(text)))

    def ret(self, value: Any) -> None:
        """the result; a Python tuple becomes a tuple"""
        self._result = self.operand(value)

    @property
    def function(self) -> "Function":
        """this function, for recursion and calls by others"""
        return Function(self.module, self._pointer(lib.builder_function))

    # -- facts
    def _proved(self, fn: Any, a: DimLike, b: DimLike) -> Optional[bool]:
        context = self.module.context
        answer = self._state.call(fn, self._ptr, dim_ptr(context, a), dim_ptr(context, b))
        return None if answer == 2 else bool(answer)

    def prove_equal(self, a: DimLike, b: DimLike) -> Optional[bool]:
        """a == b for all values of the symbols? None: not known"""
        return self._proved(lib.prove_equal, a, b)

    def prove_le(self, a: DimLike, b: DimLike) -> Optional[bool]:
        """a <= b for all values of the symbols? None: not known"""
        return self._proved(lib.prove_le, a, b)

    def bounds(self, d: DimLike) -> Tuple[Optional[int], Optional[int]]:
        """smallest and largest value, None where there is no bound"""
        lo, hi = c_int64(), c_int64()
        self._state.checked(lib.dim_bounds, self._ptr, dim_ptr(self.module.context, d), byref(lo), byref(hi))
        return (None if lo.value == -2**63 else lo.value, None if hi.value == 2**63 - 1 else hi.value)

    # -- leaves
    def const(self, data: Any, dtype: Any = None) -> Value:
        """A constant from a number, an array, anything with __dlpack__ or nested lists; copied."""
        name = None if dtype is None else ROWS[number_of(dtype)].name
        if isinstance(data, (bool, int, float)):
            own = "bool" if isinstance(data, bool) else "i64" if isinstance(data, int) else "f32"
            return self._scalar(data, name or own)
        keep = [take(self._state, data, name)]
        try:
            t = _lib.DLTensor()
            lib.any_dltensor(byref(keep[0]), byref(t))
            number = NUMBER[from_dl(t.dtype.code, t.dtype.bits)]
            if name is not None and number != NUMBER[name]:
                raise TypeError(f"the data is {ROWS[number].name}, not {name}: convert it first")
            return self._value(lib.constant, number, t.shape, t.ndim, t.data)
        finally:
            release_all(keep)

    def _scalar(self, v: Union[bool, int, float], name: str) -> Value:
        if is_float(name):
            return self._value(lib.scalar, NUMBER[name], float(v))
        if isinstance(v, float):
            raise TypeError(f"{v} with an operand of {name}: cast the operand first (astype)")
        bits = ROWS[NUMBER[name]].bits
        signed = name[0] == "i"
        lo, hi = (-2**(bits - 1), 2**(bits - 1) - 1) if signed else (0, 1 if name == "bool" else 2**bits - 1)
        if not lo <= v <= hi:
            raise OverflowError(f"{v} does not fit into {name}")
        return self._value(lib.scalar_int, NUMBER[name], v - 2**64 if v >= 2**63 else v)

    def shape(self, dims: Union[str, Sequence[DimLike]]) -> Value:
        """a shape as a value: "(n * 2, 4)" or (n * 2, 4)"""
        if isinstance(dims, str):
            return self._value(lib.shape_text, encoded(dims))
        return self._value(lib.shape, pointers(dim_ptr(self.module.context, d) for d in dims), len(dims))

    def prim(self, value: DimLike) -> Value:
        """an integer as a value"""
        return self._value(lib.prim, dim_ptr(self.module.context, value))

    def tuple(self, *fields: Any) -> Value:
        return self._value(lib.tuple, *self._operands(fields))

    def named(self, value: Value, name: str) -> Value:
        """gives the value a name for printing"""
        return self._value(lib.value_named, value._ptr, encoded(name))

    def operand(self, x: Any, like: Optional[str] = None) -> Value:
        """x as a value: numbers become constants of data type `like`, dims prim values, tuples shapes (of ints and
        dims) or tuples (of values), functions values, arrays constants"""
        if isinstance(x, Value):
            return x
        if isinstance(x, (bool, int, float)):
            return self.const(x, like)
        if isinstance(x, Dim):
            return self.prim(x)
        if isinstance(x, Function):
            return self._value(lib.function_value, x._ptr)
        if isinstance(x, str):
            return self.shape(x)
        if isinstance(x, (tuple, list)):
            if any(isinstance(d, Value) for d in x):
                return self.tuple(*x)
            if all(isinstance(d, (int, Dim)) for d in x):
                return self.shape(x)
        return self.const(x)

    def _operands(self, args: Sequence[Any], like: Optional[str] = None) -> Tuple[Any, int]:
        values = [None if a is None else self.operand(a, like)._ptr for a in args]
        return pointers(values), len(values)

    # -- operators and calls
    def op(self, name: str, args: Sequence[Any], **attrs: Any) -> Value:
        """Any operator by name with its attributes; an absent optional operand is None. relax.<name>(…) is this with
        the current builder."""
        from ._ops import emit
        return emit(self, name, args, attrs)

    def call(self, callee: Union["Function", Value], *args: Any) -> Value:
        """calls a function of the module, or a function that is a value"""
        values, n = self._operands(args)
        if isinstance(callee, Function):
            return self._value(lib.call, callee._ptr, values, n)
        return self._value(lib.call_value, callee._ptr, values, n)

    def call_tir(self, prim: "Function", args: Sequence[Any], out: Union[str, Type], syms: Sequence[DimLike] = (),
                 inplace: Optional[Sequence[int]] = None) -> Value:
        """Calls a tensor program: args are read, `out` annotates what it writes (Tuple: several). syms: its extra
        symbolic arguments. inplace[i]: the argument that output i is written over, -1: fresh; that argument is not
        used afterwards."""
        values, n = self._operands(args)
        exprs = pointers(dim_ptr(self.module.context, d) for d in syms)
        if inplace is None:
            return self._value(lib.call_tir, prim._ptr, values, n, encoded(str(out)), exprs, len(syms))
        where = (ctypes.c_int32 * max(len(inplace), 1))(*inplace)
        return self._value(lib.call_tir_inplace, prim._ptr, values, n, encoded(str(out)), exprs, len(syms), where,
                           len(inplace))

    def call_library(self, name: str, args: Sequence[Any], out: Union[str, Type]) -> Value:
        """calls a library function in destination-passing style: register_library"""
        values, n = self._operands(args)
        return self._value(lib.call_dps_library, encoded(name), values, n, encoded(str(out)))

    def call_packed(self, name: str, args: Sequence[Any], out: Union[str, Type], pure: bool = True) -> Value:
        """calls a function of the host with any values: register_packed"""
        values, n = self._operands(args)
        return self._value(lib.call_packed, encoded(name), values, n, encoded(str(out)), pure)

    def match_cast(self, value: Value, type: Union[str, Type]) -> Value:
        """the value under another annotation, checked when it runs; new names become symbols"""
        return self._value(lib.match_cast, value._ptr, encoded(str(type)))

    def if_(self, cond: Any, then: Callable[[], Any], orelse: Callable[[], Any]) -> Value:
        """A condition: cond is a bool scalar; the functions build the two branches and give their results."""
        self._state.checked(lib.if_, self._ptr, self.operand(cond)._ptr)
        self._state.checked(lib.else_, self._ptr, self.operand(then())._ptr)
        return self._value(lib.end_if, self.operand(orelse())._ptr)

    @contextlib.contextmanager
    def dataflow(self) -> Iterator[None]:
        """a dataflow block: pure bindings that passes may reorder"""
        self._do(lib.dataflow_begin)
        yield
        self._do(lib.dataflow_end)


# ---- functions and modules ----
class Function:
    """A function of a module: a graph function, or a tensor program (is_prim)."""
    __slots__ = ("module", "_at", "_generation")

    def __init__(self, module: "Module", ptr: int) -> None:
        self.module, self._at, self._generation = module, ptr, module._generation

    @property
    def _ptr(self) -> int:
        if self._generation != self.module._generation:
            raise InvalidError("the function is from before the module was changed as a whole: look it up again",
                               id="RX1003")
        return self._at

    @property
    def name(self) -> str:
        return string(lib.function_name(self._ptr)) or ""

    @property
    def is_prim(self) -> bool:
        return bool(lib.function_is_prim(self._ptr))

    @property
    def params(self) -> Tuple[Value, ...]:
        """of a graph function; a tensor program's buffers are in its text"""
        n = 0 if self.is_prim else lib.function_param_count(self._ptr)
        return tuple(Value(self.module, lib.function_param(self._ptr, i)) for i in range(n))

    @property
    def result(self) -> Optional[Value]:
        ptr = lib.function_result(self._ptr)
        return Value(self.module, ptr) if ptr else None

    @property
    def result_type(self) -> Optional[Type]:
        ptr = lib.function_result_type(self._ptr)
        return Type(self.module.context, ptr) if ptr else None

    def visit(self, visit: Callable[[Value], Any]) -> None:
        """Calls visit(value) for every binding in program order (bodies of an if after it) until it returns a true
        value. It may replace or remove the value that it is given and insert before it."""
        state = self.module._state

        def callback(user: Any, ptr: int) -> int:
            try:
                return 1 if visit(Value(self.module, ptr)) else 0
            except BaseException as e:
                state.keep(e)
                return 1
        state.checked(lib.function_visit, self._ptr, _lib.VISIT_FN(callback), None)

    def values(self) -> List[Value]:
        """the bindings in program order"""
        found: List[Value] = []
        self.visit(found.append)
        return found

    def __call__(self, *args: Any) -> Value:
        """a call of it, in the function that is being built"""
        return current().call(self, *args)

    def __str__(self) -> str:
        return self.module._state.call(text, lib.function_text, self._ptr)

    def __repr__(self) -> str:
        return f"<relax.Function {self.name}{' (prim)' if self.is_prim else ''}>"


class Module:
    """A module: graph functions and tensor programs. str() is its text form, which Module.parse reads back."""

    def __init__(self, *, context: Optional[Context] = None, _ptr: Optional[int] = None) -> None:
        self.context = context or Context.current()
        self._state = self.context._state
        self._ptr: int = _ptr or self._state.made(lib.module_create, self._state.ptr)
        self._generation = 0
        self._final = self._state.own(self, lib.module_destroy, self._ptr)

    @staticmethod
    def parse(text: str, name: str = "text", *, context: Optional[Context] = None) -> "Module":
        """A module from its text form. Errors have file (the name given), line and col."""
        context = context or Context.current()
        data = text.encode("utf-8")
        ptr = context._state.made(lib.module_parse, context._state.ptr, encoded(name), data, len(data))
        return Module(context=context, _ptr=ptr)

    def parse_into(self, text: str, name: str = "text") -> None:
        """adds the functions of a text"""
        data = text.encode("utf-8")
        self._changed()
        self._state.checked(lib.module_parse_into, self._ptr, encoded(name), data, len(data))

    def _changed(self) -> None:
        """handles taken before are not valid any more"""
        self._generation += 1

    def function(self, name: str) -> Builder:
        """a builder for a new graph function, for a with statement"""
        return Builder(self, self._state.made(lib.function_begin, self._ptr, encoded(name)), name)

    def prim(self, name: str) -> Any:
        """a builder for a new tensor program, for a with statement: PrimBuilder"""
        from ._prim import PrimBuilder
        return PrimBuilder(self, name)

    @property
    def functions(self) -> List[Function]:
        """in order of creation"""
        n = self._state.call(lib.module_function_count, self._ptr)
        return [Function(self, lib.module_function(self._ptr, i)) for i in range(n)]

    def __getitem__(self, name: str) -> Function:
        ptr = self._state.call(lib.module_find, self._ptr, encoded(name))
        if not ptr:
            raise KeyError(name)
        return Function(self, ptr)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and bool(self._state.call(lib.module_find, self._ptr, encoded(name)))

    def __iter__(self) -> Iterator[Function]:
        return iter(self.functions)

    def __len__(self) -> int:
        return self._state.call(lib.module_function_count, self._ptr)

    def remove(self, function: Union[str, Function]) -> None:
        """removes a function that no other calls"""
        f = self[function] if isinstance(function, str) else function
        self._state.checked(lib.module_remove, self._ptr, f._ptr)

    def verify(self) -> None:
        """raises for a module that breaks a rule; notes lists the other breaks"""
        self._state.checked(lib.module_verify, self._ptr)

    def clone(self) -> "Module":
        return Module(context=self.context, _ptr=self._state.made(lib.module_clone, self._ptr))

    def __str__(self) -> str:
        parts: List[bytes] = []

        def write(user: Any, data: Any, n: int) -> int:
            parts.append(ctypes.string_at(data, n))
            return 0
        self._state.checked(lib.module_print, self._ptr, _lib.WRITE_FN(write), None)
        return b"".join(parts).decode("utf-8", "replace")

    def __repr__(self) -> str:
        return f"<relax.Module {', '.join(f.name for f in self.functions)}>"


def borrowed_module(context: Context, ptr: int) -> Module:
    """the module that a host pass is given: it is not destroyed with the object"""
    m = Module.__new__(Module)
    m.context, m._state, m._ptr, m._generation = context, context._state, ptr, 0
    return m
