"""The kernel's C functions in threads of a program without Python: what no pipeline around them can surpass."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.codecs import kernel

C_SOURCES = Path(kernel.__file__).parent / "c"
THREADS = 2


@dataclass(frozen=True)
class Orders:
    """Images, and what samples show of them; `crops` is n×4 or n×8 as in `kernel.decode_range`."""

    sources: Sequence[Any]
    sizes: NDArray[Any]  # images × 2: width, height; counts only for raw pixels
    images: NDArray[Any]  # which image each sample shows
    crops: NDArray[Any]
    flips: NDArray[Any]
    side: int
    range: int

    def write(self, path: Path) -> None:
        """As kernel_loop.c reads it."""
        count, resized = len(self.crops), np.full((len(self.crops), 2), self.side)
        views = self.crops if self.crops.shape[1] == 8 else np.hstack([self.crops, resized, np.zeros((count, 2))])
        lengths = np.array([len(memoryview(data).cast("B")) for data in self.sources])
        tables = [
            np.array([len(self.sources), count, self.side, self.side, self.range]),
            np.column_stack([lengths, self.sizes]),
            np.column_stack([self.images, views, self.flips]),
        ]
        with path.open("wb") as file:
            for table in tables:
                file.write(np.ascontiguousarray(table, np.int64).tobytes())
            for data in self.sources:
                file.write(data)


class BareLoop:
    """The compiled program, ready for rounds."""

    def __init__(self, home: Path, orders: Orders, name: str = "kernel_loop") -> None:
        program, file = home / f"{name}.program", home / f"{name}.orders"
        orders.write(file)
        _compile(program)
        command = [str(program), str(file), str(THREADS)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def seconds(self, letter: str) -> float:
        """One round; kernel_loop.c says what the letters mean."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(letter)
        self._process.stdin.flush()
        return float(self._process.stdout.readline())

    def close(self) -> None:
        self._process.communicate()


def _compile(program: Path) -> None:
    files = [path for path in C_SOURCES.glob("*.c") if not path.name.endswith("module.c")]
    flags = ["-std=gnu99", "-O3", "-ffp-contract=off", f"-I{C_SOURCES}", "-o", str(program)]
    sources = [*map(str, files), str(Path(__file__).with_name("kernel_loop.c"))]
    subprocess.run(["cc", *flags, *sources, "-ljpeg", "-lm", "-lpthread"], check=True)
