"""A virtual environment for each peer, so that none decides about another's versions."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

DEFAULT_HOME = Path(tempfile.gettempdir()) / "penstock-peers"
DECODERS = ("numpy", "simplejpeg", "opencv-python-headless")
TORCH = ("torch", "torchvision", *DECODERS)

# What pip installs, newest versions; and what the system must have where there is no wheel.
PACKAGES: dict[str, tuple[str, ...]] = {
    "spdl": ("spdl", *DECODERS),
    "torch": TORCH,
    "tensorflow": ("tensorflow-cpu", "numpy"),
    "huggingface": ("datasets", *TORCH),
    "webdataset": ("webdataset", *TORCH),
    "grain": ("grain", *DECODERS),
    "litdata": ("litdata", *TORCH),
    "dali": ("nvidia-dali-cuda120", "numpy"),
    "ffcv": ("ffcv", "numba", *TORCH),
    "streaming": ("mosaicml-streaming", *TORCH),
    "deepforest": ("deepforest",),
    "decord": ("decord", "numpy"),
    "video": ("torch", "torchcodec", "av", "h5py", "pyarrow", *DECODERS),
}
SYSTEM = {
    "ffcv": "is compiled: on Debian first apt-get install pkg-config libturbojpeg0-dev libopencv-dev",
    "video": "torchcodec needs FFmpeg's libraries: on Debian apt-get install ffmpeg",
}
OURS = ""  # the environment that runs the benchmark


@dataclass(frozen=True)
class Environments:
    """The folder that holds them."""

    home: Path = DEFAULT_HOME

    def python(self, name: str) -> Path:
        """The interpreter of an environment, which may not be there."""
        return Path(sys.executable) if name == OURS else self.home / name / "bin" / "python"

    def missing(self, name: str) -> str:
        """Why an environment cannot be used; empty where it can."""
        if self.python(name).exists() and (name == OURS or self._marker(name).exists()):
            return ""
        failure = self._log(name)
        if failure.exists():
            return f"could not be installed, see {failure}"
        return "not installed; run python -m benchmarks.feed --setup"

    def set_up(self, name: str) -> str:
        """Install the newest versions; says what went wrong, or nothing."""
        self.home.mkdir(parents=True, exist_ok=True)
        commands = _with_uv(self, name) if shutil.which("uv") else _with_pip(self, name)
        with self._log(name).open("w") as log:
            for command in commands:
                if subprocess.run(command, stdout=log, stderr=subprocess.STDOUT, check=False).returncode:
                    hint = SYSTEM.get(name)
                    return f"could not be installed, see {log.name}" + (f"; it {hint}" if hint else "")
        self._marker(name).touch()
        return ""

    def _log(self, name: str) -> Path:
        return self.home / f"{name}.log"

    def _marker(self, name: str) -> Path:
        return self.home / name / "installed"


def _with_uv(environments: Environments, name: str) -> list[list[str]]:
    folder, python = str(environments.home / name), str(environments.python(name))
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    return [
        ["uv", "venv", "--allow-existing", "--python", version, folder],
        ["uv", "pip", "install", "--upgrade", "--python", python, *PACKAGES[name]],
    ]


def _with_pip(environments: Environments, name: str) -> list[list[str]]:
    folder, python = str(environments.home / name), str(environments.python(name))
    return [
        [sys.executable, "-m", "venv", folder],
        [python, "-m", "pip", "install", "--upgrade", *PACKAGES[name]],
    ]
