"""What the machine is said to have, and where it is thin."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from diagnosis.patients import MACHINE
from penstock.diagnosis.hardware import Gpu, gpu_of, measured_hardware
from penstock.diagnosis.reading import Disk, disk_kind, files_of, forget, measured_disk
from penstock.formats.images.images import Images
from picture_making import write_picture


def test_a_machine_that_has_enough_is_not_thin() -> None:
    assert MACHINE.thin(1.0) == ()
    assert str(MACHINE) == "4 cores, 16.0 GB of memory (8.0 GB free), no GPU, a solid state disk"


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"cores": 2}, "2 cores"),
        ({"disk": Disk("spinning")}, "spinning disk"),
        ({"gpus": (Gpu("GeForce GTX 1050", 4 * 2**30),)}, "4.0 GB of memory"),
    ],
)
def test_what_is_thin_is_said(changes: dict[str, object], word: str) -> None:
    (found,) = replace(MACHINE, **changes).thin(None)  # type: ignore[arg-type]
    assert word in found


def test_input_many_times_larger_than_what_the_network_sees_is_said() -> None:
    assert MACHINE.thin(38.0) == ("images have 38 times the pixels that the network sees",)


def test_gpus_are_read_from_the_words_of_their_driver() -> None:
    assert gpu_of("NVIDIA A100, 81920") == Gpu("NVIDIA A100", 80 * 2**30)
    assert gpu_of("No devices were found") is None


def test_this_machine_has_cores_and_memory() -> None:
    found = measured_hardware(Disk("unknown"))
    assert 1 <= found.cores <= found.cores_of_machine
    assert 0 < found.free_bytes <= found.memory_bytes * 1.01 and found.budget_bytes > 0


def test_a_disk_is_of_some_kind_and_files_in_memory_are_not_taken_for_one(tmp_path: Path) -> None:
    file = tmp_path / "some.bin"
    file.write_bytes(bytes(200_000))
    assert disk_kind(file) in ("spinning", "solid state", "virtual", "network", "memory", "unknown")
    found = measured_disk([file], 0.05)
    assert (found.bytes_per_second is None) == (found.reads_per_second is None)
    assert measured_disk([], 0.05) == Disk("unknown")


def test_what_is_no_file_is_not_forgotten(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    assert not forget(tmp_path / "empty") and not forget(tmp_path / "absent")


def test_the_files_of_samples_are_found(tmp_path: Path) -> None:
    files = [write_picture(tmp_path / "cat" / f"{number}.png") for number in range(3)]
    assert files_of(Images(tmp_path), [0, 1, 2]) == files
