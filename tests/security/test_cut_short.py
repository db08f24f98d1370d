"""Files that lose their bytes while they are mapped: an error that names the file, and never the end of the process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import penstock as ps
from penstock.storage import mapped

pytestmark = pytest.mark.skipif(mapped.GUARD is None, reason="the extension that guards mapped files is not built")
COUNT = 3000


@pytest.fixture(scope="module")
def pack(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    noise = np.random.default_rng(3).integers(0, 256, (COUNT, 24, 24, 3), dtype=np.uint8)
    ps.pack(ps.Arrays(noise, np.arange(COUNT) % 3), folder / "noise.pack", codec="jpeg", split="train", progress=False)
    return folder / "noise.pack"


def raw_pack(pack: Path, folder: Path) -> tuple[Path, Path]:
    ps.pack(ps.Pack(pack), folder / "raw.pack", codec="raw", progress=False)
    return folder / "raw.pack", folder / "raw.pack" / "shard-00000.arrow"


def kept_pack(pack: Path, folder: Path) -> tuple[Path, Path]:
    ps.pack(ps.Pack(pack), folder / "copy.pack", progress=False)
    return folder / "copy.pack", folder / "copy.pack" / "shard-00000.arrow"


def index_of_pack(pack: Path, folder: Path) -> tuple[Path, Path]:
    return kept_pack(pack, folder)[0], folder / "copy.pack" / "index.arrow"


def records(pack: Path, folder: Path) -> tuple[Path, Path]:
    ps.export(ps.Pack(pack), folder / "records", to="tfrecord", progress=False)
    (file,) = (folder / "records").glob("*.tfrecord*")
    return file, file


def tar(pack: Path, folder: Path) -> tuple[Path, Path]:
    ps.export(ps.Pack(pack), folder / "tars", to="webdataset", progress=False)
    (file,) = (folder / "tars").glob("*.tar")
    return file, file


def array(pack: Path, folder: Path) -> tuple[Path, Path]:
    np.save(folder / "images.npy", np.random.default_rng(3).integers(0, 256, (COUNT, 24, 24, 3), dtype=np.uint8))
    return folder / "images.npy", folder / "images.npy"


FORMATS = [kept_pack, raw_pack, index_of_pack, records, tar, array]

EPOCH = """
import os, sys
import penstock as ps
flow = ps.Flow(ps.open(sys.argv[1]), seed=1, workers=2, executor=sys.argv[3]).shuffle().batch(8)
try:
    for number, batch in enumerate(flow):
        if number == 1:
            os.truncate(sys.argv[2], 4096)
except ps.PenstockError as error:
    print(error)
else:
    print("every batch came")
"""

PACKING = """
import os, sys
import penstock as ps
class Cutting(ps.Subset):
    def read_many(self, indices, allocate):
        return [None] * len(indices)
    def read(self, index):
        if index == 100:
            os.truncate(sys.argv[2], 4096)
        return super().read(index)
source = ps.open(sys.argv[1])
try:
    ps.pack(Cutting(source, range(len(source))), sys.argv[3], progress=False)
except ps.PenstockError as error:
    print(error)
else:
    print("it was packed")
"""

ONE_BY_ONE = """
import os, sys
import penstock as ps
source = ps.open(sys.argv[1])
source[0]
os.truncate(sys.argv[2], 4096)
try:
    for index in range(len(source)):
        source[index]["image"].sum()
except ps.PenstockError as error:
    print(error)
else:
    print("every sample came")
"""


def said_by(program: str, *arguments: object) -> str:
    command = [sys.executable, "-c", program, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, (done.returncode, done.stderr)
    return done.stdout


@pytest.mark.parametrize("executor", ["thread", "subprocess"])
@pytest.mark.parametrize("make", FORMATS)
def test_an_epoch_names_the_file_that_was_cut_short(
    make: Callable[[Path, Path], tuple[Path, Path]], executor: str, pack: Path, tmp_path: Path
) -> None:
    data, file = make(pack, tmp_path)
    said = said_by(EPOCH, data, file, executor)
    assert str(file) in said
    assert "it was cut short, or its disk failed, while it was being read" in said


@pytest.mark.parametrize("make", [kept_pack, raw_pack, tar, array])
def test_samples_that_are_read_one_by_one_name_it_too(
    make: Callable[[Path, Path], tuple[Path, Path]], pack: Path, tmp_path: Path
) -> None:
    data, file = make(pack, tmp_path)
    said = said_by(ONE_BY_ONE, data, file)
    assert f"{file}: it was cut short, or its disk failed, while it was being read" in said


@pytest.mark.parametrize("make", [kept_pack, records, array])
def test_no_pack_is_made_of_a_file_that_was_cut_short(
    make: Callable[[Path, Path], tuple[Path, Path]], pack: Path, tmp_path: Path
) -> None:
    data, file = make(pack, tmp_path)
    said = said_by(PACKING, data, file, tmp_path / "new.pack")
    assert f"{file}: it was cut short, or its disk failed, while it was being read" in said
    assert not (tmp_path / "new.pack").exists()


def test_a_lost_file_is_told_once_and_troubles_nobody_when_it_is_let_go(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_bytes(bytes(1 << 16))
    memory = mapped.mapped_memory(tmp_path / "file")
    os.truncate(tmp_path / "file", 0)
    view = memoryview(memory)
    assert view[40000] == 0
    assert f"{tmp_path / 'file'} was cut short" in capfd.readouterr().err
    with pytest.raises(ps.DataError, match="cut short"):
        mapped.refuse_lost_files()
    del view, memory
    mapped.refuse_lost_files()


OTHERS = """
import faulthandler, mmap, os, sys
import penstock as ps
from penstock.storage import mapped
own = mapped.mapped_memory(sys.argv[1])
if sys.argv[3] == "later":
    faulthandler.enable()
os.truncate(sys.argv[1], 0)
print(memoryview(own)[0], flush=True)
with open(sys.argv[2], "rb") as file:
    other = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
os.truncate(sys.argv[2], 0)
print(other[0])
"""


@pytest.mark.parametrize("who", ["nobody", "later"])
def test_mappings_of_others_still_end_the_process(who: str, tmp_path: Path) -> None:
    for name in ("own", "other"):
        (tmp_path / name).write_bytes(bytes(8192))
    command = [sys.executable, "-c", OTHERS, str(tmp_path / "own"), str(tmp_path / "other"), who]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (-signal.SIGBUS, "0\n")
