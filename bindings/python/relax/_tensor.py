"""Tensors at run time, and DLPack in both directions.

In: anything with __dlpack__ (versioned when the producer can), the array interface, the buffer protocol, nested lists.
Memory is shared where the library can use it, else copied once. Out: __dlpack__, __array__ and, from Python 3.12 on,
the buffer protocol.
"""
from __future__ import annotations

import ctypes
import itertools
import math
import struct
from ctypes import POINTER, byref, c_char_p, c_int64, c_uint8, c_void_p, cast, py_object
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

from . import _lib
from ._core import Context, State
from ._dtype import NUMBER, dtype_name, from_dl, from_format, is_float, of_typestr, row_of
from ._lib import Any_, DLManagedTensor, DLManagedTensorVersioned, DLTensor, lib

READ_ONLY, IS_COPIED = 1, 2
CPU = 1
_OLD, _NEW, _USED_OLD, _USED_NEW = b"dltensor", b"dltensor_versioned", b"used_dltensor", b"used_dltensor_versioned"
_VERSION = (1, 1)

_api = ctypes.PyDLL(None)
_valid = _api["PyCapsule_IsValid"]
_valid.restype, _valid.argtypes = ctypes.c_int, [py_object, c_char_p]
_pointer = _api["PyCapsule_GetPointer"]
_pointer.restype, _pointer.argtypes = c_void_p, [py_object, c_char_p]
_set_name = _api["PyCapsule_SetName"]
_set_name.restype, _set_name.argtypes = ctypes.c_int, [py_object, c_char_p]
_new_capsule = _api["PyCapsule_New"]
_new_capsule.restype, _new_capsule.argtypes = py_object, [c_void_p, c_char_p, c_void_p]
# the same functions for a capsule that is being destroyed: a bare address, no reference is taken
_dead_valid = ctypes.PYFUNCTYPE(ctypes.c_int, c_void_p, c_char_p)(("PyCapsule_IsValid", _api))
_dead_pointer = ctypes.PYFUNCTYPE(c_void_p, c_void_p, c_char_p)(("PyCapsule_GetPointer", _api))
_DELETER = ctypes.CFUNCTYPE(None, c_void_p)


# ---- from other libraries ----
class Lent:
    """A DLTensor that points into somebody's memory, and what keeps that alive. dl: its address."""
    __slots__ = ("dl", "flags", "keep")

    def __init__(self, dl: int, flags: int, keep: Any) -> None:
        self.dl, self.flags, self.keep = dl, flags, keep


def lend(obj: Any, dtype: Optional[str] = None) -> Lent:
    """obj's memory for as long as the result lives; dtype serves lists and numbers alone. TypeError if it is no
    tensor."""
    if hasattr(obj, "__dlpack__"):
        capsule = _capsule_of(obj)
        if capsule is not None:
            return _lend_capsule(capsule)
    if hasattr(obj, "__array_interface__"):
        return _lend_interface(obj)
    if isinstance(obj, (list, tuple, int, float)):
        return _lend_list(obj, dtype)
    try:
        view = memoryview(obj)
    except TypeError:
        what = type(obj).__name__
        raise TypeError(f"{what} is no tensor: it has no __dlpack__, __array_interface__ or buffer") from None
    return _lend_buffer(view)


def _capsule_of(obj: Any) -> Any:
    """None: the producer has no DLPack form for it, but may have another"""
    try:
        try:
            return obj.__dlpack__(max_version=_VERSION)
        except TypeError:              # a producer from before DLPack 1.0
            return obj.__dlpack__()
    except BufferError:
        if hasattr(obj, "__array_interface__"):
            return None
        raise


def _lend_capsule(capsule: Any) -> Lent:
    if _valid(capsule, _NEW):
        address = _pointer(capsule, _NEW)
        managed = DLManagedTensorVersioned.from_address(address)
        if managed.version.major != _VERSION[0]:
            raise BufferError(f"DLPack version {managed.version.major}.{managed.version.minor} is not understood")
        return Lent(address + DLManagedTensorVersioned.dl_tensor.offset, managed.flags, capsule)
    if _valid(capsule, _OLD):
        return Lent(_pointer(capsule, _OLD) + DLManagedTensor.dl_tensor.offset, 0, capsule)
    raise TypeError("__dlpack__ gave no capsule of a tensor, or one that was used")


def _described(data: Optional[int], name: str, shape: Sequence[int], strides: Optional[Sequence[int]], flags: int,
               keep: Any) -> Lent:
    row = row_of(name)
    t = DLTensor()
    dims = (c_int64 * max(len(shape), 1))(*shape)
    t.data, t.device.device_type, t.ndim, t.shape = data, CPU, len(shape), dims
    t.dtype.code, t.dtype.bits, t.dtype.lanes = row.code, row.bits, 1
    steps = None
    if strides is not None:
        steps = (c_int64 * max(len(strides), 1))(*strides)
        t.strides = steps
    return Lent(ctypes.addressof(t), flags, (t, dims, steps, keep))


def _elements(steps: Optional[Sequence[int]], size: int, what: str) -> Optional[List[int]]:
    if steps is None:
        return None
    if any(s % size for s in steps):
        raise TypeError(f"{what}: strides that are no multiple of the element")
    return [s // size for s in steps]


def _lend_interface(obj: Any) -> Lent:
    """numpy's array interface; for data types that numpy's DLPack lacks (ml_dtypes), the type's name counts"""
    d: Dict[str, Any] = obj.__array_interface__
    named = getattr(getattr(obj, "dtype", None), "name", "")
    name = named if named in ("bfloat16", "float8_e4m3fn", "float8_e5m2") else of_typestr(d["typestr"])
    if name is None:
        raise TypeError(f"an array of {named or d['typestr']} has no data type here")
    name = dtype_name(name)
    address, read_only = d["data"]
    strides = _elements(d.get("strides"), row_of(name).bits // 8, "the array")
    return _described(address, name, d["shape"], strides, READ_ONLY if read_only else 0, (obj, d))


class _PyBuffer(ctypes.Structure):
    _fields_ = [("buf", c_void_p), ("obj", c_void_p), ("len", ctypes.c_ssize_t), ("itemsize", ctypes.c_ssize_t),
                ("readonly", ctypes.c_int), ("ndim", ctypes.c_int), ("format", c_char_p),
                ("shape", c_void_p), ("strides", c_void_p), ("suboffsets", c_void_p), ("internal", c_void_p)]


def _lend_buffer(view: memoryview) -> Lent:
    name = from_format(view.format)
    if name is None or view.suboffsets:
        raise TypeError(f"a buffer of format {view.format!r} has no data type here")
    b = _PyBuffer()
    get, release = ctypes.pythonapi.PyObject_GetBuffer, ctypes.pythonapi.PyBuffer_Release
    get.argtypes, release.argtypes = [py_object, POINTER(_PyBuffer), ctypes.c_int], [POINTER(_PyBuffer)]
    get(view, byref(b), 0x18)          # PyBUF_STRIDES; the memoryview in `keep` holds the memory
    address = b.buf
    release(byref(b))
    shape: Sequence[int] = view.shape or ()
    return _described(address, name, shape, _elements(view.strides, view.itemsize, "the buffer") if shape else None,
                      READ_ONLY if view.readonly else 0, view)


def _lend_list(obj: Any, dtype: Optional[str]) -> Lent:
    shape, values, at = [], [obj], obj
    while isinstance(at, (list, tuple)):
        shape.append(len(at))
        at = at[0] if len(at) else None
    for n in shape:
        if any(not isinstance(v, (list, tuple)) or len(v) != n for v in values):
            raise ValueError("a nested list whose rows differ in length")
        values = list(itertools.chain.from_iterable(values))
    if any(isinstance(v, (list, tuple)) for v in values):
        raise ValueError("a nested list whose rows differ in depth")
    if dtype is None:
        kinds = set(map(type, values))
        dtype = "bool" if kinds == {bool} else "i64" if kinds and kinds <= {int, bool} else "f32"
    fmt = row_of(dtype).fmt
    if not fmt:
        raise TypeError(f"a list cannot be made into {dtype}: give an array")
    if not is_float(dtype) and any(isinstance(v, float) for v in values):
        raise TypeError(f"a list with floats cannot be made into {dtype}")
    data = ctypes.create_string_buffer(struct.pack(f"={len(values)}{fmt}", *values) or b"\0")
    return _described(ctypes.addressof(data), dtype, shape, None, 0, data)


def versioned(lent: Lent) -> Tuple[DLManagedTensorVersioned, Any]:
    """a managed tensor without a deleter, for calls that borrow"""
    m = DLManagedTensorVersioned()
    m.version.major, m.version.minor, m.flags = _VERSION[0], _VERSION[1], lent.flags & READ_ONLY
    ctypes.memmove(byref(m, DLManagedTensorVersioned.dl_tensor.offset), lent.dl, ctypes.sizeof(DLTensor))
    return m, lent


_held: Dict[int, Any] = {}             # what managed tensors of ours keep alive, by their address


def _drop(address: int) -> None:
    _held.pop(address, None)


_drop_c = _DELETER(_drop)


def take(state: State, obj: Any, dtype: Optional[str] = None) -> Any_:
    """obj as a tensor of the library that holds on to obj's memory; one reference"""
    lent = lend(obj, dtype)
    m = DLManagedTensorVersioned()
    m.version.major, m.version.minor, m.flags = _VERSION[0], _VERSION[1], lent.flags & READ_ONLY
    ctypes.memmove(byref(m, DLManagedTensorVersioned.dl_tensor.offset), lent.dl, ctypes.sizeof(DLTensor))
    m.deleter = cast(_drop_c, c_void_p)
    address = ctypes.addressof(m)
    _held[address] = (m, lent)
    out = Any_()
    state.checked(lib.any_from_dlpack, state.ptr, address, byref(out))
    return out


# ---- the library's own ----
class Tensor:
    """A tensor of the library: on the CPU, compact, row-major.

    shape   tuple of int         dtype   "f32", "i64", …         nbytes, ndim, size
    Numpy and torch read it without a copy: numpy.from_dlpack(t), numpy.asarray(t), torch.from_dlpack(t). Its memory
    lives as long as it or anything made from it.
    """
    __slots__ = ("_any", "_state", "_keep", "shape", "dtype", "_data", "_read_only", "_final", "__weakref__")

    def __init__(self, state: State, value: Any_, keep: Any = None) -> None:
        """takes the reference"""
        t = DLTensor()
        lib.any_dltensor(byref(value), byref(t))
        self._any, self._state, self._keep = value, state, keep
        self.shape: Tuple[int, ...] = tuple(t.shape[i] for i in range(t.ndim))
        self.dtype: str = from_dl(t.dtype.code, t.dtype.bits)
        self._data: int = t.data or 0
        self._final = state.own(self, lib.any_release, byref(value))

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        """number of elements"""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * row_of(self.dtype).bits // 8

    def __dlpack_device__(self) -> Tuple[int, int]:
        return (CPU, 0)

    def __dlpack__(self, *, stream: Any = None, max_version: Optional[Tuple[int, int]] = None,
                   dl_device: Optional[Tuple[int, int]] = None, copy: Optional[bool] = None) -> Any:
        """A DLPack capsule: versioned if max_version allows it. BufferError for another device."""
        if dl_device is not None and tuple(dl_device) != (CPU, 0):
            raise BufferError(f"the tensor lies on the CPU, not on device {dl_device}")
        if copy:
            return self.copy().__dlpack__(max_version=max_version)
        out, state = POINTER(DLManagedTensorVersioned)(), self._state
        state.checked(lib.any_to_dlpack, state.ptr, byref(self._any), byref(out))
        address = cast(out, c_void_p).value or 0
        if max_version is not None and max_version[0] >= 1:
            return _new_capsule(address, _NEW, cast(_destroy_c, c_void_p))
        if out.contents.flags & READ_ONLY:
            delete_versioned(address)
            raise BufferError("a read-only tensor needs DLPack 1.0: ask with max_version=(1, 0)")
        return _new_capsule(_old_form(address), _OLD, cast(_destroy_c, c_void_p))

    def copy(self) -> "Tensor":
        """a tensor of its own memory"""
        out, state, n = Any_(), self._state, len(self.shape)
        state.checked(lib.tensor_create, state.ptr, NUMBER[self.dtype], _lib.int64s(self.shape), n, byref(out))
        t = Tensor(self._state, out)
        if self.nbytes:
            ctypes.memmove(t._data, self._data, self.nbytes)
        return t

    def numpy(self) -> Any:
        """The tensor as a numpy array on the same memory. bf16 and f8 need the package ml_dtypes."""
        import numpy
        row = row_of(self.dtype)
        if row.fmt:
            return numpy.from_dlpack(self)
        try:
            import ml_dtypes           # type: ignore[import-not-found,unused-ignore]
        except ImportError:
            raise TypeError(f"numpy has no {self.dtype}: install ml_dtypes, or cast it to f32") from None
        raw: Any = (c_uint8 * max(self.nbytes, 1)).from_address(self._data or ctypes.addressof(_nothing))
        raw._owner = self
        whole = numpy.frombuffer(raw, dtype=getattr(ml_dtypes, row.numpy), count=self.size)
        return whole.reshape(self.shape)

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> Any:
        a = self.numpy()
        if dtype is not None and dtype != a.dtype:
            if copy is False:
                raise ValueError("another data type needs a copy")
            return a.astype(dtype)
        return a.copy() if copy else a

    def __buffer__(self, flags: int) -> memoryview:
        raw: Any = (c_uint8 * self.nbytes).from_address(self._data or ctypes.addressof(_nothing))
        raw._owner = self
        fmt: Any = row_of(self.dtype).fmt
        view = memoryview(raw).cast("B")
        return view.cast(fmt, self.shape) if fmt and self.nbytes and self.shape else view

    def tolist(self) -> Any:
        """nested lists of Python numbers; a number for rank 0"""
        fmt = row_of(self.dtype).fmt
        raw = ctypes.string_at(self._data, self.nbytes) if self.nbytes else b""
        if fmt:
            flat: List[Any] = list(struct.unpack(f"={self.size}{fmt}", raw))
        elif self.dtype == "bf16":
            flat = [struct.unpack("=f", struct.pack("=I", v << 16))[0] for v in struct.unpack(f"={self.size}H", raw)]
        else:
            flat = self.numpy().astype("float32").ravel().tolist()
        return _nested(iter(flat), self.shape)

    def item(self) -> Any:
        """the only element, as a Python number"""
        if self.size != 1:
            raise ValueError(f"a tensor of {self.size} elements is no single number")
        value = self.tolist()
        while isinstance(value, list):
            value = value[0]
        return value

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a tensor of rank 0 has no length")
        return self.shape[0]

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __repr__(self) -> str:
        dims = ", ".join(map(str, self.shape)) + ("," if len(self.shape) == 1 else "")
        return f"relax.Tensor(({dims}), {self.dtype})"


def _nested(flat: Iterator[Any], shape: Sequence[int]) -> Any:
    if not shape:
        return next(flat)
    return [_nested(flat, shape[1:]) for _ in range(shape[0])]


_nothing = ctypes.create_string_buffer(64)


def delete_versioned(address: int) -> None:
    deleter = DLManagedTensorVersioned.from_address(address).deleter
    if deleter:
        _DELETER(deleter)(address)


def _old_form(address: int) -> int:
    """the same tensor for consumers from before DLPack 1.0; its death is the versioned one's"""
    old = DLManagedTensor()
    old.dl_tensor = DLManagedTensorVersioned.from_address(address).dl_tensor
    old.deleter = cast(_drop_old_c, c_void_p)
    at = ctypes.addressof(old)
    _held[at] = (old, address)
    return at


def _drop_old(at: int) -> None:
    held = _held.pop(at, None)
    if held is not None:
        delete_versioned(held[1])


def _destroy_capsule(capsule: int) -> None:
    """of one that nobody consumed"""
    if _dead_valid(capsule, _NEW):
        delete_versioned(_dead_pointer(capsule, _NEW))
    elif _dead_valid(capsule, _OLD):
        _drop_old(_dead_pointer(capsule, _OLD))


_drop_old_c = _DELETER(_drop_old)
_destroy_c = ctypes.PYFUNCTYPE(None, c_void_p)(_destroy_capsule)


def tensor(obj: Any, dtype: Any = None, *, context: Optional[Context] = None) -> Tensor:
    """A Tensor from a numpy or torch array, anything with __dlpack__, a buffer, or nested lists; on the same memory
    where it is compact. dtype serves lists and numbers alone. TypeError if obj is no tensor."""
    if isinstance(obj, Tensor):
        return obj
    context = context or Context.current()
    return Tensor(context._state, take(context._state, obj, dtype and dtype_name(dtype)))


def empty(shape: Sequence[int], dtype: Any = "f32", *, context: Optional[Context] = None) -> Tensor:
    """a Tensor of zeros, to be written to"""
    state, out, dims = (context or Context.current())._state, Any_(), tuple(shape)
    state.checked(lib.tensor_create, state.ptr, NUMBER[dtype_name(dtype)], _lib.int64s(dims), len(dims), byref(out))
    return Tensor(state, out)


class Shape(Tuple[int, ...]):
    """A shape as a value of a program: a tuple of int that is passed and returned as one."""

    def __repr__(self) -> str:
        return "relax.Shape" + tuple.__repr__(self)


def to_any(state: State, obj: Any, keep: List[Any]) -> Any_:
    """An argument of a call. Tensors are lent; `keep` must live until the call is over, and release_all(keep) follows
    it."""
    v = Any_()
    if isinstance(obj, Tensor):
        v.kind, v.u.obj = _lib.ANY_TENSOR, obj._any.u.obj
        keep.append(obj)
    elif obj is None:
        v.kind = _lib.ANY_NONE
    elif isinstance(obj, (bool, int)):
        v.kind, v.u.i = _lib.ANY_INT, obj
    elif type(obj) is float:
        v.kind, v.u.f = _lib.ANY_FLOAT, obj
    elif isinstance(obj, (tuple, list)):
        if isinstance(obj, Shape) or type(obj).__name__ == "Size" or (obj and all(type(x) is int for x in obj)):
            state.checked(lib.shape_create, state.ptr, _lib.int64s(obj), len(obj), byref(v))
        else:
            fields = [_field(state, x, keep) for x in obj]
            state.checked(lib.tuple_create, state.ptr, (Any_ * max(len(fields), 1))(*fields), len(fields), byref(v))
        keep.append(v)
    elif isinstance(obj, FunctionValue):
        v.kind, v.u.i = _lib.ANY_FUNC, obj.index
    else:
        lent = lend(obj)
        if lent.flags & READ_ONLY:     # only an object can say that it is read-only
            v = take(state, obj)
            keep.append(v)
        else:
            v.kind, v.u.dl = _lib.ANY_DLTENSOR, lent.dl
            keep.append(lent)
    return v


def _field(state: State, obj: Any, keep: List[Any]) -> Any_:
    """a field of a tuple: a lent tensor cannot be one"""
    v = to_any(state, obj, keep)
    if v.kind == _lib.ANY_DLTENSOR:
        v = take(state, obj)
        keep.append(v)
    return v


def release_all(keep: List[Any]) -> None:
    for x in keep:
        if isinstance(x, Any_):
            lib.any_release(byref(x))
    keep.clear()


class FunctionValue:
    """a function of an executable as a value: `index` is its number there"""
    __slots__ = ("index",)

    def __init__(self, index: int) -> None:
        self.index = index


def from_any(state: State, v: Any_, keep: Any = None) -> Any:
    """A result as a Python value; takes v's reference. `keep` lives as long as the tensors in it."""
    if v.kind == _lib.ANY_TENSOR:
        return Tensor(state, v, keep)
    if v.kind in (_lib.ANY_TUPLE, _lib.ANY_SHAPE):
        fields = [lib.any_field(byref(v), i) for i in range(lib.any_count(byref(v)))]
        if v.kind == _lib.ANY_SHAPE:
            result: Any = Shape(f.u.i for f in fields)
        else:
            result = tuple(from_any(state, lib.any_retain(byref(f)), keep) for f in fields)
        lib.any_release(byref(v))
        return result
    if v.kind == _lib.ANY_INT:
        return int(v.u.i)
    if v.kind == _lib.ANY_FLOAT:
        return float(v.u.f)
    if v.kind == _lib.ANY_STR:
        return _lib.string(v.u.s)
    if v.kind == _lib.ANY_FUNC:
        return FunctionValue(v.u.i)
    return None


def lent_dlpack(obj: Any, keep: List[Any]) -> int:
    """the address of a managed tensor for calls that borrow; `keep` must live until the call is over"""
    if isinstance(obj, (list, tuple, int, float)):
        raise TypeError(f"{type(obj).__name__} is no tensor: make one with relax.tensor")
    m, lent = versioned(lend(obj))
    keep.append((m, lent))
    return ctypes.addressof(m)


def from_dlpack(state: State, address: int) -> Tensor:
    """a managed tensor of the library as a Tensor; takes it"""
    out = Any_()
    state.checked(lib.any_from_dlpack, state.ptr, address, byref(out))
    return Tensor(state, out)


# ---- arguments and results of host functions ----
def lent_argument(state: State, v: Any_) -> Any:
    """An argument that a host function is lent, as a value that may be kept: memory of the call alone is copied."""
    if v.kind == _lib.ANY_TENSOR:
        out = c_void_p()
        state.checked(lib.any_to_dlpack, state.ptr, byref(v), byref(out))
        return from_dlpack(state, out.value or 0)
    if v.kind == _lib.ANY_TUPLE:
        return tuple(lent_argument(state, lib.any_field(byref(v), i)) for i in range(lib.any_count(byref(v))))
    return from_any(state, lib.any_retain(byref(v)))


def given_result(state: State, obj: Any) -> Any_:
    """the result of a host function with one reference for the caller"""
    keep: List[Any] = []
    try:
        v = _field(state, obj, keep)
        return lib.any_retain(byref(v))
    finally:
        release_all(keep)
