"""x[1:, ::2, None, i]: indexing of values, as numpy has it where the program can know the result.

Numbers pick one index (and drop the axis), slices become strided_slice, None a new axis, "..." the axes in between;
one value of an integer type is a take along its axis.
"""
from __future__ import annotations

from typing import Any, List, Tuple

from ._ir import Builder, Value
from ._types import Dim


def _expanded(x: Value, key: Any) -> Tuple[Any, ...]:
    """one item for each axis, and the Nones"""
    items = list(key) if isinstance(key, tuple) else [key]
    rank = x.ndim
    if rank is None:
        raise TypeError("a tensor of unknown rank cannot be indexed: give it an annotation by match_cast")
    used = sum(1 for k in items if k is not None and k is not Ellipsis)
    if used > rank:
        raise IndexError(f"{used} indices for a tensor of rank {rank}")
    dots = [i for i, k in enumerate(items) if k is Ellipsis]
    if len(dots) > 1:
        raise IndexError("more than one '...'")
    at = dots[0] if dots else len(items)
    rest = [slice(None)] * (rank - used)
    return tuple(items[:at] + rest + items[at + len(dots):])


def _slice_of(k: slice, extent: Any, axis: int) -> Tuple[Any, Any, Any]:
    step = 1 if k.step is None else k.step
    if not isinstance(step, Dim) and step.__index__() == 0:
        raise ValueError("the step of a slice is 0")
    down = not isinstance(step, Dim) and step < 0
    if extent is None and (k.start is None and down or k.stop is None):
        raise TypeError(f"the extent of axis {axis} is unknown: give begin and end")
    begin = k.start if k.start is not None else (extent - 1 if down else 0)
    end = k.stop if k.stop is not None else (-extent - 1 if down else extent)
    return begin, end, step


def _picked(k: Any, extent: Any, axis: int) -> Tuple[Any, Any]:
    """begin and end of one index, which must lie inside"""
    if isinstance(k, Dim):
        return k, k + 1
    i = k.__index__()
    if isinstance(extent, int) and not -extent <= i < extent:
        raise IndexError(f"index {i} of axis {axis}, which has the extent {extent}")
    if i >= 0:
        return i, i + 1
    if extent is None:
        raise TypeError(f"the extent of axis {axis} is unknown: a negative index has no place")
    return extent + i, extent + i + 1


def index(b: Builder, x: Value, key: Any) -> Value:
    items = _expanded(x, key)
    shape = x.shape or ()
    axes = [k for k in items if k is not None]
    takes = [(i, k) for i, k in enumerate(axes) if isinstance(k, Value) or hasattr(k, "__dlpack__")]
    if len(takes) > 1:
        raise TypeError("only one index can be a tensor: use take, gather_nd or gather_elements")
    picks = [i for i, k in enumerate(axes) if not isinstance(k, slice) and (i, k) not in takes]
    cuts = [i for i, k in enumerate(axes) if isinstance(k, slice) and k != slice(None)]
    if picks:
        ends = [_picked(axes[i], shape[i], i) for i in picks]
        x = b.op("strided_slice", (x,), axes=picks, begin=[e[0] for e in ends], end=[e[1] for e in ends],
                 assume_inbound=True)
    if cuts:
        parts = [_slice_of(axes[i], shape[i], i) for i in cuts]
        strides = None if all(not isinstance(p[2], Dim) and p[2] == 1 for p in parts) else [p[2] for p in parts]
        x = b.op("strided_slice", (x,), axes=cuts, begin=[p[0] for p in parts], end=[p[1] for p in parts],
                 strides=strides)
    if picks:
        x = b.op("squeeze", (x,), axis=picks)
    wide = 0                           # axes that a take adds
    if takes:
        i, k = takes[0]
        v = b.operand(k)
        x = b.op("take", (x, v), axis=i - sum(1 for p in picks if p < i))
        wide = (v.ndim or 0) - 1
    new = _new_axes(items, set(picks), takes[0][0] if takes else -1, wide)
    return b.op("expand_dims", (x,), axis=new) if new else x


def _new_axes(items: Tuple[Any, ...], picks: Any, taken: int, wide: int) -> List[int]:
    """where the Nones stand in the result"""
    found, axis, place = [], 0, 0
    for k in items:
        if k is None:
            found.append(place)
            place += 1
        else:
            place += 0 if axis in picks else 1 + (wide if axis == taken else 0)
            axis += 1
    return found
