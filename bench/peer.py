"""The model runner of bench/run for llama.cpp; answers the commands that bench/ours.c describes.

peer.py MODEL.gguf THREADS CONTEXT
"""
import ctypes
import json
import resource
import sys
import time

import llama_cpp
from llama_cpp import llama_cpp as lib

quiet = lib.llama_log_callback(lambda level, text, user: None)


def load(path, threads, context):
    lib.llama_log_set(quiet, ctypes.c_void_p(0))
    lib.llama_backend_init()
    model = lib.llama_model_load_from_file(path.encode(), lib.llama_model_default_params())
    params = lib.llama_context_default_params()
    params.n_ctx = params.n_batch = context
    params.n_threads = params.n_threads_batch = threads
    ctx = lib.llama_init_from_model(model, params)
    if not ctx:
        sys.exit("the model cannot be loaded")
    return ctx


def feed(ctx, ids):
    tokens = (lib.llama_token * len(ids))(*ids)
    if lib.llama_decode(ctx, lib.llama_batch_get_one(tokens, len(ids))):
        sys.exit("llama_decode failed")
    lib.llama_synchronize(ctx)


def main():
    path, threads, context = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    start = time.monotonic()
    ctx = load(path, threads, context)
    greedy = lib.llama_sampler_init_greedy()
    print(json.dumps({"version": llama_cpp.__version__, "load_s": time.monotonic() - start}), flush=True)
    for line in sys.stdin:
        verb, n = line.split()[0], int(line.split()[1])
        wall, cpu = time.monotonic(), time.process_time()
        if verb == "prefill":
            lib.llama_memory_clear(lib.llama_get_memory(ctx), True)
            feed(ctx, [i % 100 + 10 for i in range(n)])
        else:
            for _ in range(n):
                feed(ctx, [lib.llama_sampler_sample(greedy, ctx, -1)])
        print(json.dumps({"tokens": n, "wall_s": time.monotonic() - wall, "cpu_s": time.process_time() - cpu,
                          "peak_kib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}), flush=True)


main()
