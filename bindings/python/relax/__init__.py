"""relax: ahead-of-time compilation of machine-learning programs with symbolic shapes.

    import relax
    m = relax.Module()
    with m.function("mlp") as f:
        x = f.param("x", "Tensor((n, 256), f32)")          # the first mention of n defines it
        w = f.param("w", "Tensor((256, 256), f32)")
        f.ret(relax.silu(x @ w) + x)
    exe = relax.build(m, "cpu")
    y = exe["mlp"](x_array, w_array)                       # anything with __dlpack__, for every n

Every operator of the library is a function here: dir(relax), help(relax.softmax). Errors are relax.Error with id,
where, hint. The C library does all the work; this package holds no compiler logic.
"""
from typing import Any as _Any, Callable as _Callable, List as _List

from . import _lib, _ops, llm
from ._core import (BoundError, Cancelled, Context, DTypeError, Error, FileError, FormatError, InvalidError,
                    NotFoundError, OpInfo, OutOfMemory, ShapeError, UnsupportedError)
from ._exec import (VM, Executable, ExecutableFunction, Memory, Weight, Weights, build, interpret, register_foreign,
                    register_library, register_openblas, register_packed, unregister)
from ._ir import Builder, Function, Module, Value
from ._ops import const, shape
from ._passes import HostPass, Pipeline, Target, host_pass
from ._prim import Buffer, Expr, PrimBuilder
from ._tensor import Shape, Tensor, empty, tensor
from ._types import Dim, Type

__version__: str = (_lib.lib.version_string() or b"").decode()

__all__ = [
    "BoundError", "Buffer", "Builder", "Cancelled", "Context", "DTypeError", "Dim", "Error", "Executable",
    "ExecutableFunction", "Expr", "FileError", "FormatError", "Function", "HostPass", "InvalidError", "Memory",
    "Module", "NotFoundError", "OpInfo", "OutOfMemory", "Pipeline", "PrimBuilder", "Shape", "ShapeError", "Target",
    "Tensor", "Type", "UnsupportedError", "VM", "Value", "Weight", "Weights", "build", "const", "empty", "host_pass",
    "interpret", "llm", "register_foreign", "register_library", "register_openblas", "register_packed", "shape",
    "tensor", "unregister"]


def __getattr__(name: str) -> _Callable[..., Value]:
    """the operators, from the library's table"""
    operator: _Any = None if name.startswith("_") else _ops.function_of(name)
    if operator is None:
        raise AttributeError(f"module 'relax' has no attribute {name!r}, and no operator has this name")
    found: _Callable[..., Value] = operator
    return found


def __dir__() -> _List[str]:
    return sorted({*globals(), *_ops.table()})
