"""The shared library: where it is, its structs, the types of its functions. The only module that knows the C ABI.

The library is taken from the environment variable RELAX_LIBRARY, else from this package (an installed wheel), else from
build/lib of the source tree. It is opened with its names kept local, so that two copies in one process do not meet.
"""
from __future__ import annotations

import ctypes
import keyword
import os
from ctypes import (CFUNCTYPE, POINTER, Structure, Union, c_char, c_char_p, c_double, c_float, c_int32, c_int64,
                    c_size_t, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p, sizeof)
from typing import Any, Dict, List, Optional

STRLEN = c_size_t(-1).value


# ---- structs of relax.h ----
class DLDevice(Structure):
    _fields_ = [("device_type", c_int32), ("device_id", c_int32)]


class DLDataType(Structure):
    _fields_ = [("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16)]


class DLTensor(Structure):
    _fields_ = [("data", c_void_p), ("device", DLDevice), ("ndim", c_int32), ("dtype", DLDataType),
                ("shape", POINTER(c_int64)), ("strides", POINTER(c_int64)), ("byte_offset", c_uint64)]


class DLManagedTensor(Structure):
    _fields_ = [("dl_tensor", DLTensor), ("manager_ctx", c_void_p), ("deleter", c_void_p)]


class DLPackVersion(Structure):
    _fields_ = [("major", c_uint32), ("minor", c_uint32)]


class DLManagedTensorVersioned(Structure):
    _fields_ = [("version", DLPackVersion), ("manager_ctx", c_void_p), ("deleter", c_void_p), ("flags", c_uint64),
                ("dl_tensor", DLTensor)]


class AnyUnion(Union):
    _fields_ = [("i", c_int64), ("f", c_double), ("obj", c_void_p), ("s", c_char_p), ("dl", c_void_p)]


class Any_(Structure):
    """relax_any"""
    _fields_ = [("kind", c_int32), ("reserved", c_int32), ("u", AnyUnion)]


ANY_NONE, ANY_INT, ANY_FLOAT, ANY_TENSOR, ANY_SHAPE, ANY_TUPLE, ANY_FUNC, ANY_STR, ANY_DLTENSOR = range(9)


class LibraryCall(Structure):
    _fields_ = [("struct_size", c_uint32), ("nargs", c_int32), ("nsyms", c_int32), ("args", POINTER(POINTER(DLTensor))),
                ("syms", POINTER(c_int64)), ("error", c_void_p), ("error_size", c_size_t), ("threads", c_int32)]


class PackedCall(Structure):
    _fields_ = [("struct_size", c_uint32), ("nargs", c_int32), ("args", POINTER(Any_)), ("result", POINTER(Any_)),
                ("error", c_void_p), ("error_size", c_size_t), ("vm", c_void_p)]


# callbacks; their first argument is the user pointer
LOG_FN = CFUNCTYPE(None, c_void_p, c_int32, c_char_p)
PROGRESS_FN = CFUNCTYPE(None, c_void_p, c_char_p, c_int64, c_int64)
CANCEL_FN = CFUNCTYPE(c_int32, c_void_p)
LIBRARY_FN = CFUNCTYPE(c_int32, c_void_p, POINTER(LibraryCall))
PACKED_FN = CFUNCTYPE(c_int32, c_void_p, POINTER(PackedCall))
WRITE_FN = CFUNCTYPE(c_int32, c_void_p, POINTER(c_char), c_size_t)
VISIT_FN = CFUNCTYPE(c_int32, c_void_p, c_void_p)
PASS_FN = CFUNCTYPE(c_int32, c_void_p, c_void_p)
PRINT_FN = CFUNCTYPE(None, c_void_p, c_char_p, c_int32, c_char_p)
VERIFY_FN = CFUNCTYPE(c_int32, c_void_p, c_void_p, c_size_t)


class ContextOptions(Structure):
    _fields_ = [("struct_size", c_uint32), ("reserved", c_uint32), ("alloc", c_void_p), ("alloc_self", c_void_p),
                ("log", LOG_FN), ("log_user", c_void_p), ("progress", PROGRESS_FN), ("progress_user", c_void_p),
                ("cancel", CANCEL_FN), ("cancel_user", c_void_p), ("parallel", c_void_p), ("parallel_user", c_void_p)]


class Diagnostic(Structure):
    _fields_ = [("struct_size", c_uint32), ("status", c_int32), ("id", c_char * 8), ("message", c_char_p),
                ("function", c_char_p), ("binding", c_char_p), ("file", c_char_p), ("line", c_uint32),
                ("col", c_uint32), ("hint", c_char_p)]


class OpInfo(Structure):
    _fields_ = [("struct_size", c_uint32), ("name", c_char_p), ("attrs", c_char_p), ("doc", c_char_p),
                ("min_args", c_int32), ("max_args", c_int32)]


class BuildOptions(Structure):
    _fields_ = [("struct_size", c_uint32), ("opt_level", c_int32), ("pipeline", c_char_p), ("verify", c_int32),
                ("reserved", c_int32)]


class SymValue(Structure):
    _fields_ = [("name", c_char_p), ("value", c_int64)]


class VMOptions(Structure):
    _fields_ = [("struct_size", c_uint32), ("threads", c_int32), ("profile", c_int32), ("reserved", c_int32),
                ("context", c_void_p)]


class ModelOptions(Structure):
    _fields_ = [("struct_size", c_uint32), ("exact", c_int32), ("context", c_int64)]


class Sampling(Structure):
    _fields_ = [("struct_size", c_uint32), ("temperature", c_float), ("top_k", c_int32), ("top_p", c_float),
                ("min_p", c_float), ("repetition_penalty", c_float), ("penalty_window", c_int32), ("seed", c_uint64)]


def init(struct: Any) -> Any:
    """the struct with its struct_size set: what an INIT macro does"""
    struct.struct_size = sizeof(struct)
    return struct


# ---- prototypes: "result arguments" ----
# v nothing, p a pointer of any kind, s text, i int32_t, u uint32_t, l int64_t, z size_t, d double, A relax_any by
# value; names are without their prefix relax_
CODES = {"v": None, "p": c_void_p, "s": c_char_p, "i": c_int32, "u": c_uint32, "l": c_int64, "z": c_size_t,
         "d": c_double, "A": Any_}
PROTOTYPES: Dict[str, str] = {
    "v ppp": "version",
    "s": "version_string",
    "s i": "status_name dtype_name",
    "i s": "dtype_parse",
    "i i": "dtype_bytes",
    "i pp": """context_create dim_value module_remove function_finish if else value_replace pipeline_set_target
        pipeline_run any_dltensor vm_bind_weights tokenizer_create generator_set_sampling generator_sample""",
    "v p": """context_destroy diagnostic_clear module_destroy function_abandon private impure dataflow_begin
        dataflow_end loop_end pipeline_destroy executable_destroy vm_destroy any_release weights_close
        tokenizer_destroy generator_destroy""",
    "u p": """diagnostic_count type_field_count module_function_count op_count function_param_count value_arg_count
        value_use_count pipeline_time_count pass_count executable_function_count executable_weight_count
        vm_profile_count any_count weights_count""",
    "i pup": "diagnostic_get op_describe value_set_arg",
    "s p": "last_error function_name value_op value_callee value_name target_text",
    "p pl": "dim_const",
    "p pp": """dim_add dim_sub dim_mul dim_floordiv dim_floormod dim_min dim_max prim function_value end_if abs negative
        exp log sqrt rsqrt sin cos tanh sigmoid silu gelu gelu_tanh erf relu square floor ceil round trunc isnan
        logical_not zeros_like ones_like flatten unique nonzero shape_of shape_to_tensor tensor_to_shape""",
    "z ppz": "dim_text type_text function_text pipeline_text weights_text",
    "i ppp": """prove_equal prove_le module_print function_visit executable_activate executable_bytes vm_create
        vm_memory any_to_dlpack any_from_dlpack generator_logits""",
    "i pppp": "dim_bounds build generator_create",
    "p p": """type_object module_create module_clone builder_function value_type prim_finish function_result_type
        function_result insert_before vm_context generator_vm""",
    "p pip": "type_prim",
    "p ppi": "type_shape shape astype",
    "p ppii": "type_tensor",
    "p ppu": "type_tuple tuple tuple_get",
    "p ppupi": "type_callable",
    "p ps": """type_parse module_find function_begin symbol shape_text prim_begin prim_symbol prim_expr pipeline_parse
        target_parse""",
    "i p": """openblas_register type_kind type_dtype type_ndim module_verify builder_status function_is_prim
        value_kind value_remove insert_end generator_reset""",
    "p pi": "type_dim value_dim",
    "p pu": "type_field module_function function_param value_arg",
    "p pssz": "module_parse",
    "i pssz": "module_parse_into",
    "p pss": "param prim_param loop loop_reduce local",
    "p psp": "param_typed",
    "v psll": "bound",
    "v ps": "fact result_type store_text",
    "p pps": "value_named match_cast reshape broadcast_to",
    "p pipip": "constant",
    "p pid": "scalar prim_const",
    "p pil": "scalar_int",
    "p pppu": "call call_value permute_dims expand_dims squeeze tile load",
    "p pppuspu": "call_tir",
    "p pppuppu": "call_tir_typed",
    "p pppuspupu": "call_tir_inplace",
    "p pspus": "call_dps_library op",
    "p pspusi": "call_packed",
    "p ppdd": "clip",
    "p ppp": """add subtract multiply divide power floor_divide floor_mod maximum minimum bitwise_and bitwise_or
        bitwise_xor left_shift right_shift equal not_equal less less_equal greater greater_equal logical_and
        logical_or full_like matmul model_import""",
    "p pppp": "where multinomial_from_uniform",
    "p pppui": "sum mean max min prod variance",
    "p ppli": "argmax argmin cumsum sort",
    "p pspi": "full",
    "p psi": "zeros ones",
    "p psssi": "arange",
    "p pssli": "eye",
    "p ppl": "tril triu flip softmax log_softmax",
    "p pplddli": "one_hot",
    "p pppl": "take gather_elements gather_nd",
    "p pppuppp": "strided_slice",
    "p ppppp": "dynamic_strided_slice",
    "p ppppls": "scatter_elements",
    "p pppps": "scatter_nd",
    "p ppppui": "index_put",
    "p ppul": "concat stack",
    "p ppll": "split repeat",
    "p pppul": "split_at",
    "p pplii": "argsort",
    "p pplli": "topk",
    "p pppd": "rms_norm",
    "p ppppd": "layer_norm",
    "v pppup": "store",
    "p pspp": "prim_binary",
    "p pspu": "prim_call",
    "i pspz": "value_attr_text weights_meta",
    "i psspp": "pipeline_insert_after pipeline_insert_before pipeline_print",
    "i ps": "pipeline_remove plugin_load executable_save library_unregister",
    "i pi": "pipeline_verify_each tokenizer_is_end",
    "i pupp": "pipeline_time pass_describe",
    "i pspup": "interpret executable_peak_memory vm_call vm_invoke",
    "i psp": "executable_load_file vm_bind_weight weights_open",
    "i ppzip": "executable_load_memory",
    "s pu": "executable_function_name executable_weight_name executable_weight_type",
    "z pspz": "executable_signature executable_memory_formula",
    "z pipz": "executable_text",
    "s ps": "executable_property",
    "i pspupu": "vm_call_into",
    "i puppp": "vm_profile weights_get",
    "A p": "any_retain",
    "A pu": "any_field",
    "i pipip": "tensor_create",
    "i ppip": "shape_create",
    "i ppup": "tuple_create",
    "i pspp": "library_register packed_register",
    "i psps": "library_register_foreign",
    "l psziipz": "tokenizer_encode",
    "l ppzipz": "tokenizer_decode",
    "l pppuipz": "tokenizer_chat",
    "i ppz": "generator_feed",
    "l p": "generator_position",
}


# ---- finding and opening ----
def candidates() -> List[str]:
    """the paths that are tried, in order"""
    if given := os.environ.get("RELAX_LIBRARY"):
        return [given]
    here = os.path.dirname(os.path.abspath(__file__))
    return [os.path.join(here, "librelax.so"),
            os.path.normpath(os.path.join(here, "..", "..", "..", "build", "lib", "librelax.so"))]


def find() -> str:
    """the path of the library; ImportError with what was tried"""
    for path in candidates():
        if os.path.exists(path):
            return path
    raise ImportError("librelax.so was not found; tried " + ", ".join(candidates()) +
                      ". Build it with 'make', or set RELAX_LIBRARY to its path.")


class Library:
    """Every function of relax.h as an attribute, without the prefix: lib.module_create(ctx); if_ and else_ for
    Python's sake. One that the library lacks (librelax_rt has no compiler) raises AttributeError when it is used."""

    def __init__(self, path: Optional[str] = None) -> None:
        self.path = path or find()
        self.cdll = ctypes.CDLL(self.path)
        for shape, names in PROTOTYPES.items():
            result, _, arguments = shape.partition(" ")
            for name in names.split():
                fn = getattr(self.cdll, "relax_" + name, None)
                if fn is not None:
                    fn.restype = CODES[result]
                    fn.argtypes = [CODES[c] for c in arguments]
                    setattr(self, name + "_" * keyword.iskeyword(name), fn)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"{self.path} has no function relax_{name}")


lib = Library()


def text(read: Any, *args: Any) -> str:
    """what a function of the form (…, char *out, size_t size) -> length writes"""
    size = 256
    while True:
        out = ctypes.create_string_buffer(size)
        n = read(*args, out, size)
        if n < size:
            return out.raw[:n].decode("utf-8", "replace")
        size = n + 1


def string(s: Optional[bytes]) -> Optional[str]:
    return None if s is None else s.decode("utf-8", "replace")


def encoded(s: Optional[str]) -> Optional[bytes]:
    """UTF-8 for a C string; a NUL inside would cut it short, so it is refused"""
    if s is None:
        return None
    if "\0" in s:
        raise ValueError("a text with a NUL character")
    return s.encode("utf-8")


def pointers(values: Any) -> Any:
    """an array of pointers from ints (None: NULL)"""
    values = list(values)
    return (c_void_p * max(len(values), 1))(*values)


def int64s(values: Any) -> Any:
    values = [int(v) for v in values]
    return (c_int64 * max(len(values), 1))(*values)
