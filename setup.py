"""The one thing that pyproject.toml cannot say: the JPEG kernel, built where a compiler and libjpeg-turbo are found.

Without them the installation goes on, and simplejpeg with OpenCV does the same work.
"""

import sys
import sysconfig
from pathlib import Path

from setuptools import Extension, setup

FOLDER = Path("src/penstock/codecs/kernel/c")
# One build serves every Python from 3.11; free-threaded ones have no stable interface yet.
STABLE = not sysconfig.get_config_var("Py_GIL_DISABLED")
# Fused multiply-add would round differently from machine to machine. Python's own flags let integers wrap, which keeps
# the compiler from seeing that loops end: raw pixels were a tenth slower.
UNIX_FLAGS = ["-std=c99", "-O3", "-ffp-contract=off", "-fno-wrapv", "-fvisibility=hidden"]
FLAGS = [] if sys.platform == "win32" else UNIX_FLAGS

kernel = Extension(
    "penstock.codecs.kernel._native",
    sources=sorted(path.as_posix() for path in FOLDER.glob("*.c")),
    depends=sorted(path.as_posix() for path in FOLDER.glob("*.h")),
    libraries=["jpeg"],
    define_macros=[("Py_LIMITED_API", "0x030B0000")] if STABLE else [],
    py_limited_api=STABLE,
    extra_compile_args=FLAGS,
    optional=True,
)

setup(ext_modules=[kernel], options={"bdist_wheel": {"py_limited_api": "cp311"}} if STABLE else {})
