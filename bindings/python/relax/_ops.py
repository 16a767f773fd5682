"""Operators as functions: relax.<name>(operands…, attributes…), made from the library's own table.

Operands come first, then attributes by position in the table's order or by keyword. A list of operands may be given as
one list (concat, stack). help(relax.softmax) shows what an operator takes and computes.
"""
from __future__ import annotations

import inspect
import math
import re
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Union

from ._core import Context, InvalidError, NotFoundError, OpInfo
from ._dtype import dtype_name
from ._ir import Builder, Value, current
from ._lib import encoded, lib, pointers
from ._types import Dim

# operands that are numbers of their own: indices and the like, not of the first operand's data type
_INDEX_OPERANDS = {"take": {1}, "gather_elements": {1}, "gather_nd": {1}, "take_gguf": {1}, "attention_cache": {3},
                   "kv_append": {2}}
_FILL_OPERANDS = {"full": 1, "full_like": 1}           # take the data type of the attribute dtype


def parse_attrs(spec: str) -> Dict[str, Tuple[str, Optional[str]]]:
    """"axis:ints?, keepdims:bool=false" -> {key: (kind, default)}; default "?": may be absent, None: required"""
    found = {}
    for part in filter(None, (p.strip() for p in spec.split(","))):
        m = re.fullmatch(r"(\w+):(\w+)(\?)?(?:=(.*))?", part)
        if m:
            found[m[1]] = (m[2], "?" if m[3] else m[4])
    return found


def table(builder: Optional[Builder] = None) -> Dict[str, OpInfo]:
    """the operators of the context in use, kept until a plugin adds some"""
    context = builder.module.context if builder is not None else Context.current()
    state = context._state
    n = state.call(lib.op_count, state.ptr)
    known: Optional[Dict[str, OpInfo]] = getattr(context, "_ops", None)
    if known is None or len(known) != n:
        known = context.operators()
        context._ops = known           # type: ignore[attr-defined]
    return known


# ---- attributes as text ----
def _number(v: Any) -> str:
    if isinstance(v, bool):
        return "1" if v else "0"
    if isinstance(v, (int, Dim)):
        return str(v)
    if isinstance(v, float):
        return _float(v)
    return str(v.__index__())


def _float(v: float) -> str:
    if math.isnan(v):
        return "nan"
    if math.isinf(v):
        return "inf" if v > 0 else "-inf"
    return repr(float(v)) if "e" in repr(float(v)) or "." in repr(float(v)) else repr(float(v)) + ".0"


def _quoted(v: str) -> str:
    return '"' + v.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def _list(v: Any, one: Callable[[Any], str]) -> str:
    items = [v] if isinstance(v, (int, Dim, str, float)) or not hasattr(v, "__iter__") else list(v)
    return "[" + ", ".join(map(one, items)) + "]"


def _expr(v: Any) -> str:
    return v if isinstance(v, str) else _number(v)


_WRITERS: Dict[str, Callable[[Any], str]] = {
    "int": lambda v: str(v.__index__()), "float": lambda v: _float(float(v)),
    "bool": lambda v: "true" if v else "false",
    "dtype": dtype_name, "str": lambda v: _quoted(str(v)), "ints": lambda v: _list(v, lambda x: str(x.__index__())),
    "expr": _expr, "exprs": lambda v: _list(v, _expr)}


def attrs_text(info: OpInfo, attrs: Dict[str, Any]) -> Optional[bytes]:
    declared = parse_attrs(info.attrs)
    parts = []
    for key, value in attrs.items():
        if key not in declared:
            known = ", ".join(declared) or "none"
            raise TypeError(f"{info.name} has no attribute {key!r}; it has {known}")
        if value is not None:
            try:
                parts.append(f"{key}={_WRITERS[declared[key][0]](value)}")
            except (AttributeError, TypeError, ValueError) as e:
                raise TypeError(f"{info.name}: {key}={value!r} is no {declared[key][0]}: {e}") from None
    return encoded(", ".join(parts)) if parts else None


# ---- emitting ----
def _like(name: str, args: Sequence[Any], attrs: Dict[str, Any]) -> Optional[str]:
    """the data type that numbers among the operands get"""
    if name in _FILL_OPERANDS and attrs.get("dtype") is not None:
        return dtype_name(attrs["dtype"])
    for a in args[1 if name == "where" else 0:]:
        if isinstance(a, Value) and a.type.kind in ("Tensor", "Prim") and a.dtype:
            return a.dtype
        if hasattr(a, "dtype") and not isinstance(a, Value):
            return dtype_name(a.dtype)
    return None


def emit(b: Builder, name: str, args: Sequence[Any], attrs: Dict[str, Any]) -> Value:
    """the operator's value at b; raises what the library says"""
    info = table(b).get(name)
    if info is None:
        raise NotFoundError(f"no operator is named {name!r}", id="RX2108")
    like, apart = _like(name, args, attrs), _INDEX_OPERANDS.get(name, ())
    values: List[Optional[Value]] = []
    for i, a in enumerate(args):
        if a is None:
            values.append(None)
        elif i in apart and isinstance(a, (int, Dim)):
            values.append(b.prim(a) if name in ("take", "attention_cache", "kv_append") else b.const(a, "i64"))
        else:
            values.append(b.operand(a, like))
    while len(values) > info.min_args and values[-1] is None:
        values.pop()
    operands = pointers(None if v is None else v._ptr for v in values)
    return b._value(lib.op, encoded(name), operands, len(values), attrs_text(info, attrs))


def _split_positions(info: OpInfo, args: List[Any], attrs: Dict[str, Any]) -> Tuple[List[Any], Dict[str, Any]]:
    """operands, and the attributes that were given by position"""
    if info.max_args < 0:
        if args and isinstance(args[0], (list, tuple)) and any(isinstance(v, Value) for v in args[0]):
            args = [*args[0], *args[1:]] if info.min_args == 1 else args
            rest = [i for i, a in enumerate(args) if isinstance(a, int) and not isinstance(a, bool)]
            cut = rest[0] if rest else len(args)
        else:
            cut = len(args)
        if info.name == "index_put" and len(args) == 3 and isinstance(args[2], (list, tuple)):
            args, cut = [args[0], args[1], *args[2]], 2 + len(args[2])
    else:
        cut = info.max_args
    operands, extra = args[:cut], args[cut:]
    keys = list(parse_attrs(info.attrs))
    if len(extra) > len(keys):
        raise TypeError(f"{info.name} takes at most {info.max_args} operands and {len(keys)} attributes")
    for key, value in zip(keys, extra):
        if key in attrs:
            raise TypeError(f"{info.name}: {key} is given twice")
        attrs[key] = value
    return operands, attrs


def _documented(info: OpInfo) -> Tuple[str, inspect.Signature]:
    declared = parse_attrs(info.attrs)
    P = inspect.Parameter
    params = [P(f"x{i}" if info.max_args != 1 else "x", P.POSITIONAL_ONLY,
                default=P.empty if i < info.min_args else None) for i in range(max(info.max_args, 0))]
    if info.max_args < 0:
        params = [P("xs", P.VAR_POSITIONAL)]
    for key, (_, default) in declared.items():
        known = P.empty if default is None else None if default == "?" else default
        params.append(P(key, P.KEYWORD_ONLY, default=known))
    lines = [info.doc, ""]
    kinds = {"dtype": "data type", "str": "text", "ints": "int or list of int", "expr": "int, Dim or text",
             "exprs": "list of int, Dim or text"}
    for key, (kind, default) in declared.items():
        tail = "" if default is None else ", optional" if default == "?" else f", default {default}"
        lines.append(f"{key}: {kinds.get(kind, kind)}{tail}")
    lines.append("Annotations that do not fit raise relax.Error (RX21xx). Shapes and corner cases: docs/semantics.md.")
    return "\n".join(lines), inspect.Signature(params, return_annotation=Value)


def function_of(name: str) -> Optional[Callable[..., Value]]:
    """the Python function of an operator; None if there is no such operator"""
    info = table().get(name)
    if info is None:
        return None

    def operator(*args: Any, **attrs: Any) -> Value:
        b = current()
        operands, named = _split_positions(info, list(args), attrs)
        if len(operands) < info.min_args:
            raise TypeError(f"{name} takes {info.min_args} operands, {len(operands)} are given")
        return emit(b, name, operands, named)
    operator.__name__ = operator.__qualname__ = name
    operator.__module__ = "relax"
    operator.__doc__, signature = _documented(info)
    operator.__signature__ = signature         # type: ignore[attr-defined]
    return operator


def const(data: Any, dtype: Any = None) -> Value:
    """A constant of the function that is being built: from a number, an array or nested lists; copied."""
    return current().const(data, dtype)


def shape(*dims: Union[int, Dim, str]) -> Value:
    """A shape as a value: shape(n * 2, 4) or shape("(n * 2, 4)")."""
    b = current()
    if len(dims) == 1 and isinstance(dims[0], str):
        return b.shape(dims[0])
    if any(isinstance(d, str) for d in dims):
        raise InvalidError("a shape is one text or numbers and dims")
    return b.shape([d for d in dims if not isinstance(d, str)])
