"""The calls of relax.h that the tests of models need, by ctypes and nothing else; RELAX_LIBRARY names another one."""
import ctypes as C
import os

import numpy as np

LIB = os.environ.get("RELAX_LIBRARY", "build/lib/librelax.so")
P, I32, I64, SIZE = C.c_void_p, C.c_int32, C.c_int64, C.c_size_t
f32p, i32p = C.POINTER(C.c_float), C.POINTER(C.c_int32)


class Error(Exception):
    pass


class ModelOptions(C.Structure):
    _fields_ = [("struct_size", C.c_uint32), ("exact", I32), ("context", I64)]


class VmOptions(C.Structure):
    _fields_ = [("struct_size", C.c_uint32), ("threads", I32), ("profile", I32), ("reserved", I32), ("context", P)]


class Sampling(C.Structure):
    _fields_ = [("struct_size", C.c_uint32), ("temperature", C.c_float), ("top_k", I32), ("top_p", C.c_float),
                ("min_p", C.c_float), ("repetition_penalty", C.c_float), ("penalty_window", I32), ("seed", C.c_uint64)]


class DLTensor(C.Structure):
    _fields_ = [("data", P), ("device_type", I32), ("device_id", I32), ("ndim", I32), ("code", C.c_uint8),
                ("bits", C.c_uint8), ("lanes", C.c_uint16), ("shape", C.POINTER(I64)), ("strides", C.POINTER(I64)),
                ("byte_offset", C.c_uint64)]


class Managed(C.Structure):
    pass


DELETER = C.CFUNCTYPE(None, C.POINTER(Managed))
Managed._fields_ = [("major", C.c_uint32), ("minor", C.c_uint32), ("ctx", P), ("deleter", DELETER),
                    ("flags", C.c_uint64), ("t", DLTensor)]


class Any(C.Structure):
    _fields_ = [("kind", I32), ("reserved", I32), ("u", C.c_int64)]


ANY_INT, ANY_TENSOR, ANY_DLTENSOR = 1, 3, 8


def load():
    lib = C.CDLL(os.path.abspath(LIB))
    signatures = {
        "relax_context_create": (I32, P, C.POINTER(P)), "relax_context_destroy": (None, P),
        "relax_last_error": (C.c_char_p, P), "relax_diagnostic_clear": (None, P),
        "relax_weights_open": (I32, P, C.c_char_p, C.POINTER(P)), "relax_weights_close": (None, P),
        "relax_weights_count": (C.c_uint32, P),
        "relax_weights_get": (I32, P, C.c_uint32, C.POINTER(C.c_char_p), C.POINTER(C.c_char_p), C.POINTER(DLTensor)),
        "relax_model_import": (P, P, P, C.POINTER(ModelOptions)), "relax_module_destroy": (None, P),
        "relax_target_parse": (P, P, C.c_char_p), "relax_build": (I32, P, P, P, C.POINTER(P)),
        "relax_executable_destroy": (None, P), "relax_executable_property": (C.c_char_p, P, C.c_char_p),
        "relax_generator_create": (I32, P, P, C.POINTER(VmOptions), C.POINTER(P)), "relax_generator_destroy": (None, P),
        "relax_generator_vm": (P, P), "relax_generator_reset": (I32, P), "relax_generator_position": (I64, P),
        "relax_generator_set_sampling": (I32, P, C.POINTER(Sampling)),
        "relax_generator_feed": (I32, P, i32p, SIZE),
        "relax_generator_logits": (I32, P, C.POINTER(f32p), C.POINTER(SIZE)),
        "relax_generator_sample": (I32, P, i32p),
        "relax_vm_invoke": (I32, P, C.c_char_p, C.POINTER(Any), C.c_uint32, C.POINTER(Any)),
        "relax_any_release": (None, C.POINTER(Any)), "relax_any_dltensor": (I32, C.POINTER(Any), C.POINTER(DLTensor)),
        "relax_interpret": (I32, P, C.c_char_p, C.POINTER(C.POINTER(Managed)), C.c_uint32,
                            C.POINTER(C.POINTER(Managed))),
    }
    for name, (result, *args) in signatures.items():
        fn = getattr(lib, name)
        fn.restype, fn.argtypes = result, args
    return lib


CODES = {"i": 0, "u": 1, "f": 2}


def dltensor(x):
    """lent: keep x alive"""
    shape = (I64 * max(x.ndim, 1))(*x.shape)
    t = DLTensor(x.ctypes.data, 1, 0, x.ndim, CODES[x.dtype.kind], x.dtype.itemsize * 8, 1, shape, None, 0)
    t.keep = (x, shape)
    return t


def numpy_of(t):
    dims = [t.shape[i] for i in range(t.ndim)]
    dtype = np.dtype(f"{'iuf'[t.code]}{t.bits // 8}")
    n = int(np.prod(dims)) * dtype.itemsize
    return np.frombuffer(C.string_at(t.data, n), dtype).reshape(dims)


class Model:
    """A GGUF file, imported and compiled; `with` closes it."""

    def __init__(self, path, exact=False, context=0, threads=2, build=True):
        self.lib, self.ctx = load(), P()
        self.w, self.m, self.exe, self.gen = P(), None, P(), P()
        self.check(self.lib.relax_context_create(None, C.byref(self.ctx)))
        self.check(self.lib.relax_weights_open(self.ctx, str(path).encode(), C.byref(self.w)))
        options = ModelOptions(C.sizeof(ModelOptions), exact, context)
        self.m = self.lib.relax_model_import(self.ctx, self.w, C.byref(options))
        if not self.m:
            self.check(-1)
        if not build:
            return
        target = self.lib.relax_target_parse(self.ctx, b"cpu")
        self.check(self.lib.relax_build(self.m, target, None, C.byref(self.exe)))
        vm = VmOptions(C.sizeof(VmOptions), threads, 0, 0, None)
        self.check(self.lib.relax_generator_create(self.exe, self.w, C.byref(vm), C.byref(self.gen)))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        lib = self.lib
        if self.gen:
            lib.relax_generator_destroy(self.gen)
        if self.exe:
            lib.relax_executable_destroy(self.exe)
        if self.m:
            lib.relax_module_destroy(self.m)
        if self.w:
            lib.relax_weights_close(self.w)
        lib.relax_context_destroy(self.ctx)

    def check(self, status):
        if status:
            text = (self.lib.relax_last_error(self.ctx) or b"").decode() if self.ctx else ""
            raise Error(f"status {status}: {text}")

    def reset(self):
        self.check(self.lib.relax_generator_reset(self.gen))

    def feed(self, ids):
        """logits of the last token"""
        ids = np.asarray(ids, np.int32)
        self.check(self.lib.relax_generator_feed(self.gen, ids.ctypes.data_as(i32p), len(ids)))
        p, n = f32p(), SIZE()
        self.check(self.lib.relax_generator_logits(self.gen, C.byref(p), C.byref(n)))
        return np.ctypeslib.as_array(p, (n.value,)).copy()

    def sample(self):
        i = I32()
        self.check(self.lib.relax_generator_sample(self.gen, C.byref(i)))
        return i.value

    def set_sampling(self, **kw):
        s = Sampling(C.sizeof(Sampling), 0.0, 0, 1.0, 0.0, 1.0, 64, 0)
        for k, v in kw.items():
            setattr(s, k, v)
        self.check(self.lib.relax_generator_set_sampling(self.gen, C.byref(s)))

    def position(self):
        return self.lib.relax_generator_position(self.gen)

    def embed(self, ids):
        """hidden states (n, width)"""
        tokens = dltensor(np.asarray([ids], np.int32))
        arg, result = Any(ANY_DLTENSOR, 0, C.addressof(tokens)), Any()
        vm = self.lib.relax_generator_vm(self.gen)
        self.check(self.lib.relax_vm_invoke(vm, b"embed", C.byref(arg), 1, C.byref(result)))
        t = DLTensor()
        self.check(self.lib.relax_any_dltensor(C.byref(result), C.byref(t)))
        x = numpy_of(t)
        self.lib.relax_any_release(C.byref(result))
        return x

    def weights(self):
        """(name, type, lent tensor) of the file"""
        for i in range(self.lib.relax_weights_count(self.w)):
            name, kind, t = C.c_char_p(), C.c_char_p(), DLTensor()
            self.check(self.lib.relax_weights_get(self.w, i, C.byref(name), C.byref(kind), C.byref(t)))
            yield name.value.decode(), kind.value.decode(), t

    def interpret(self, function, args):
        """runs a function of the module in the interpreter; args: numpy arrays or tensors of the file"""
        held = [a if isinstance(a, DLTensor) else dltensor(a) for a in args]
        boxes = [Managed(1, 1, None, DELETER(), 0, t) for t in held]
        ptrs = (C.POINTER(Managed) * len(boxes))(*[C.pointer(b) for b in boxes])
        out = C.POINTER(Managed)()
        self.check(self.lib.relax_interpret(self.m, function.encode(), ptrs, len(boxes), C.byref(out)))
        x = numpy_of(out.contents.t)
        out.contents.deleter(out)
        return x
