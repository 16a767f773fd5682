"""pip install ./bindings/python: the package with the shared libraries that `make` built.

They are taken from build/lib of the source tree, or from the folder of RELAX_LIBRARY. The wheel serves every Python 3
of the platform, because ctypes needs no build for each. Nothing is left in the source tree.
"""
import os
import re
import shutil
import tempfile

from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
SCRATCH = tempfile.mkdtemp(prefix="librelax-")


def library_folder():
    given = os.environ.get("RELAX_LIBRARY")
    folder = os.path.dirname(given) if given else os.path.join(ROOT, "build", "lib")
    if not os.path.exists(os.path.join(folder, "librelax.so")):
        raise SystemExit(f"librelax.so is not in {folder}: run 'make' in {ROOT} first, or set RELAX_LIBRARY to the "
                         "library's path")
    return folder


def version():
    with open(os.path.join(ROOT, "include", "relax.h"), encoding="utf-8") as f:
        text = f.read()
    parts = (re.search(rf"define RELAX_VERSION_{part} (\d+)", text) for part in ("MAJOR", "MINOR", "PATCH"))
    return ".".join(part.group(1) for part in parts)


class BuildWithLibraries(build_py):
    def run(self):
        folder = library_folder()
        super().run()
        # the second one is the code generator, without which nothing can be built but executables run
        for name in ("librelax.so", "librelax_llvm.so"):
            source = os.path.join(folder, name)
            if os.path.exists(source):
                shutil.copyfile(os.path.realpath(source), os.path.join(self.build_lib, "relax", name))


class PlatformWheel(bdist_wheel):
    def finalize_options(self):
        super().finalize_options()
        self.root_is_pure = False

    def get_tag(self):
        return "py3", "none", super().get_tag()[2]


setup(version=version(), cmdclass={"build_py": BuildWithLibraries, "bdist_wheel": PlatformWheel},
      options={"build": {"build_base": SCRATCH}, "egg_info": {"egg_base": SCRATCH}})
