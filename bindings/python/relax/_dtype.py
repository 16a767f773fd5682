"""Data types: names of the library, numbers of relax.h, DLPack codes, names of numpy, torch and Python."""
from __future__ import annotations

import struct
from typing import Any, Dict, NamedTuple, Optional


class Row(NamedTuple):
    name: str
    code: int                          # DLPack
    bits: int
    numpy: str                         # numpy's name; ml_dtypes' for those that numpy lacks
    fmt: str                           # of struct and of the buffer protocol, "" if none


ROWS = (
    Row("?", 3, 8, "", ""), Row("bool", 6, 8, "bool", "?"),
    Row("i8", 0, 8, "int8", "b"), Row("i16", 0, 16, "int16", "h"),
    Row("i32", 0, 32, "int32", "i"), Row("i64", 0, 64, "int64", "q"),
    Row("u8", 1, 8, "uint8", "B"), Row("u16", 1, 16, "uint16", "H"),
    Row("u32", 1, 32, "uint32", "I"), Row("u64", 1, 64, "uint64", "Q"),
    Row("f16", 2, 16, "float16", "e"), Row("bf16", 4, 16, "bfloat16", ""),
    Row("f32", 2, 32, "float32", "f"), Row("f64", 2, 64, "float64", "d"),
    Row("f8e4m3", 10, 8, "float8_e4m3fn", ""), Row("f8e5m2", 12, 8, "float8_e5m2", ""))
NUMBER: Dict[str, int] = {row.name: i for i, row in enumerate(ROWS) if i}
_NUMBERS = {**NUMBER, **{row.numpy: i for i, row in enumerate(ROWS) if i}}
_FROM_DL = {(row.code, row.bits): i for i, row in enumerate(ROWS) if i}
_FROM_FMT = {row.fmt: i for i, row in enumerate(ROWS) if row.fmt}
_PYTHON = {bool: "bool", int: "i64", float: "f32"}


def dtype_name(dtype: Any) -> str:
    """"f32" from "f32", "float32", numpy.float32, numpy.dtype, torch.float32, float (f32), int (i64), bool"""
    if isinstance(dtype, str):
        name = dtype
    elif isinstance(dtype, type) and dtype in _PYTHON:
        name = _PYTHON[dtype]
    else:
        name = getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or str(dtype)
        name = name.rsplit(".", 1)[-1].rstrip("_")
    if name not in _NUMBERS:
        raise TypeError(f"{dtype!r} is no data type of librelax; known are {', '.join(NUMBER)}")
    return ROWS[_NUMBERS[name]].name


def number_of(dtype: Any) -> int:
    return NUMBER[dtype_name(dtype)]


def from_dl(code: int, bits: int) -> str:
    return ROWS[_FROM_DL.get((code, bits), 0)].name


def row_of(name: str) -> Row:
    return ROWS[NUMBER[name]]


def from_format(fmt: str) -> Optional[str]:
    """of the buffer protocol; None for one without a data type or in foreign byte order"""
    fmt = fmt.lstrip("@=<") if struct.pack("=H", 1) == b"\1\0" else fmt.lstrip("@=>!")
    if fmt in ("l", "L"):
        fmt = {"l": "iq", "L": "IQ"}[fmt][struct.calcsize("l") == 8]
    number = _FROM_FMT.get(fmt)
    return ROWS[number].name if number else None


def is_float(name: str) -> bool:
    return name[0] in "bf" and name != "bool"


def of_typestr(typestr: str) -> Optional[str]:
    """of numpy's array interface, "<f4"; None if it has no data type here"""
    native = "<" if struct.pack("=H", 1) == b"\1\0" else ">"
    order, kind, size = typestr[0], typestr[1], typestr[2:]
    if order not in ("|", native):
        return None
    names = {"b": "bool", "i": "i", "u": "u", "f": "f"}
    if kind == "b":
        return "bool"
    name = names.get(kind, "") + (str(int(size) * 8) if size.isdigit() else "")
    return name if name in NUMBER else None
