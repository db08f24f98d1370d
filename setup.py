"""The one thing that pyproject.toml cannot say: extensions in C, built where a compiler is found.

The JPEG kernel needs libjpeg-turbo too; without it simplejpeg with OpenCV does the same work. What a network's
convolutions gain from the second, torch does more slowly. Without the third, a mapped file that is cut short while it
is read ends the process.
"""

import sys
import sysconfig
from pathlib import Path

from setuptools import Extension, setup

# One build serves every Python from 3.11; free-threaded ones have no stable interface yet.
STABLE = not sysconfig.get_config_var("Py_GIL_DISABLED")
# Fused multiply-add would round differently from machine to machine. Python's own flags let integers wrap, which keeps
# the compiler from seeing that loops end: raw pixels were a tenth slower.
UNIX_FLAGS = ["-std=c99", "-O3", "-ffp-contract=off", "-fno-wrapv", "-fvisibility=hidden"]
FLAGS = [] if sys.platform == "win32" else UNIX_FLAGS


def extension(name: str, folder: Path, libraries: tuple[str, ...] = ()) -> Extension:
    return Extension(
        name,
        sources=sorted(path.as_posix() for path in folder.glob("*.c")),
        depends=sorted(path.as_posix() for path in folder.glob("*.h")),
        libraries=list(libraries),
        define_macros=[("Py_LIMITED_API", "0x030B0000")] if STABLE else [],
        py_limited_api=STABLE,
        extra_compile_args=FLAGS,
        optional=True,
    )


kernel = extension("penstock.codecs.kernel._native", Path("src/penstock/codecs/kernel/c"), ("jpeg",))
winograd = extension("penstock.tasks.inference._winograd", Path("src/penstock/tasks/inference/c"))
mapping = extension("penstock.storage._mapping", Path("src/penstock/storage/c"))
# Windows does not let anyone cut a mapped file short.
extensions = [kernel, winograd] if sys.platform == "win32" else [kernel, winograd, mapping]

setup(ext_modules=extensions, options={"bdist_wheel": {"py_limited_api": "cp311"}} if STABLE else {})
