"""What users see when something is wrong: one message, what to do next, and the exit code."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import click
import pytest

import penstock as ps
from commands import INSTALLED, run_here
from penstock.cli import looks
from penstock.cli.failures import file_message
from picture_making import write_picture


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Four pictures in class folders."""
    for number in range(4):
        write_picture(tmp_path / "photos" / ("cat", "dog")[number % 2] / f"{number}.jpg", seed=number)
    return tmp_path / "photos"


@pytest.fixture
def pets(photos: Path, tmp_path: Path) -> Path:
    """A pack of them."""
    return ps.pack(ps.Images(photos), tmp_path / "pets.pack").path


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["pakc"], "No such command 'pakc'. Did you mean 'pack'?"),
        (["pack", "image", "x"], "No such command 'image'. Did you mean 'images'?"),
        (["pack", "images", "photos"], "Missing option '-o' / '--output'"),
        (["pack", "images", "photos", "-o", "a", "--codec", "jpg"], "'jpg' is not one of 'auto', 'jpeg'"),
        (["pack", "images", "photos", "-o", "a", "--codec", "h264"], "'h264' is not one of"),
        (["pack", "images", "photos", "-o", "a", "--longest-sid", "9"], "--longest-side"),
        (["pack", "images", "photos", "-o", "a", "--quality", "0"], "--quality 0 must be a whole number from 1 to 100"),
        (["pack", "images", "photos", "-o", "a", "--workers", "many"], "--workers many must be a whole number"),
        (["pack", "images", "photos", "-o", "a", "--split", "train=0.5"], "add up to 0.5 and must add up to 1"),
        (["pack", "images", "photos", "-o", "a", "--size", "12"], "'12' is not WIDTHxHEIGHT"),
        (["pack", "images", "1.jpg", "2.jpg", "3.jpg", "-o", "a"], "here are 3 paths, the first 1.jpg"),
        (["pack", "videos", "a.mp4", "-o", "a", "--crop", "1,2,x"], "--crop 1,2,x is not x,y,width,height"),
        (["pack", "rasters", "a.tif", "-o", "a", "--scale", "bright"], "--scale bright must be"),
        (["show", "pets.pack", "0", "-o", "picture.tiff"], "its ending must be one of .png, .jpg"),
        (["show", "pets.pack", "4"], "sample 4 does not exist: there are 4 samples"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_options_are_explained_with_exit_code_2(
    arguments: list[str], words: str, pets: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(pets.parent)
    outcome = run_here(*arguments)
    assert (outcome.exit_code, outcome.out) == (2, "")
    assert words in outcome.err
    assert "Traceback" not in outcome.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["images", "nowhere"], "nowhere: no such file or folder"),
        (["boxes", "nowhere.csv"], "nowhere.csv: no such file or folder"),
        (["rasters", "nothing/*.tif"], "nothing/*.tif: no such file or folder. Check the path, and quote patterns"),
        (["videos", "nothing.mp4"], "nothing.mp4: no such file or folder"),
        (["images", "photos/cat/0.jpg"], "not a text file"),
        (["images", "photos", "--classes", "cat"], "the label 'dog' is not a known class. The classes are cat."),
        (["images", "photos", "--label-from-name", "{label}-*"], "does not fit the pattern '{label}-*'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_problems_of_files_stop_packing_with_exit_code_3_and_leave_nothing(
    arguments: list[str], words: str, photos: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(photos.parent)
    outcome = run_here("pack", *arguments, "-o", "new.pack")
    assert (outcome.exit_code, outcome.out) == (3, "")
    assert outcome.err.startswith("penstock: ") and words in outcome.err
    assert [path.name for path in photos.parent.iterdir()] == ["photos"]


@pytest.mark.parametrize("look", ["info", "show", "verify"])
def test_a_pack_that_is_not_there_is_exit_code_4(look: str, tmp_path: Path) -> None:
    outcome = run_here(look, tmp_path / "nowhere.pack", *(["0"] if look == "show" else []))
    assert (outcome.exit_code, outcome.out) == (4, "")
    assert outcome.err == f"penstock: {tmp_path}/nowhere.pack does not exist.\n"


def test_a_folder_that_is_nothing_known_is_exit_code_4(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("nothing")
    outcome = run_here("info", tmp_path)
    assert outcome.exit_code == 4
    assert "is not a pack" in outcome.err and "1 .md" in outcome.err and "penstock pack" in outcome.err


def test_a_folder_that_is_no_pack_has_nothing_to_verify(photos: Path) -> None:
    outcome = run_here("verify", photos)
    assert outcome.exit_code == 4
    assert "is not a pack" in outcome.err


def test_an_existing_pack_is_kept_unless_told_otherwise(photos: Path, pets: Path) -> None:
    refused = run_here("pack", "images", photos, "-o", pets)
    assert refused.exit_code == 4 and "--overwrite" in refused.err
    assert run_here("pack", "images", photos, "-o", pets, "--overwrite", "--split", "all").exit_code == 0
    assert ps.open(pets).splits == {"all": 4}


def test_resume_without_anything_to_resume_just_packs(photos: Path, tmp_path: Path) -> None:
    assert run_here("pack", "images", photos, "-o", tmp_path / "new.pack", "--resume").exit_code == 0


def test_damage_is_told_by_shard_and_row_with_exit_code_4(pets: Path) -> None:
    shard = pets / "shard-00000.arrow"
    pack = ps.open(pets)
    place = int(pack.columns["offset"][2]) + 30
    del pack
    data = bytearray(shard.read_bytes())
    data[place] ^= 1
    shard.write_bytes(data)
    outcome = run_here("verify", pets)
    assert outcome.exit_code == 4 and "shard-00000.arrow row 2" in outcome.err


@pytest.mark.parametrize("place", ["before", "after"])
def test_debug_shows_the_traceback_wherever_it_stands(place: str, tmp_path: Path) -> None:
    command = ["info", tmp_path / "nowhere"]
    outcome = run_here(*(["--debug", *command] if place == "before" else [*command, "--debug"]))
    assert outcome.exit_code == 4
    assert "Traceback (most recent call last)" in outcome.err
    assert outcome.err.splitlines()[-1].startswith("penstock: ")


def test_our_own_bugs_are_said_to_be_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    @click.command()
    def broken() -> None:
        raise ZeroDivisionError("never meant to happen")

    monkeypatch.setattr(looks, "info", broken)
    outcome = run_here("info")
    assert outcome.exit_code == 70
    assert "never meant to happen" in outcome.err
    assert outcome.err.splitlines()[-1].startswith("penstock: this is a bug of ours (ZeroDivisionError)")


def test_a_place_that_cannot_be_written_to_is_said_with_a_remedy(photos: Path) -> None:
    outcome = run_here("pack", "images", photos, "-o", photos / "cat" / "0.jpg" / "new.pack")
    assert outcome.exit_code == 3
    assert "0.jpg" in outcome.err and "choose another name" in outcome.err


def test_what_the_system_refused_is_told_with_file_and_remedy() -> None:
    error = PermissionError(errno.EACCES, os.strerror(errno.EACCES), "out/.a.pack.lock")
    message = file_message(error)
    assert message.startswith("out/.a.pack.lock: Permission denied. ") and "choose another place" in message
    assert file_message(OSError("the pipe is odd.")) == "the pipe is odd."
    assert file_message(OSError(errno.ENOSPC, "No space left on device")).endswith("or choose another disk.")


def test_a_missing_extra_is_told_with_its_pip_line(tmp_path: Path) -> None:
    (tmp_path / "a.mp4").write_bytes(b"x")
    code = (
        "import sys; sys.modules['av'] = None; from penstock.cli import main; "
        f"main(['pack', 'videos', {str(tmp_path / 'a.mp4')!r}, '-o', {str(tmp_path / 'a.pack')!r}])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 2
    assert "pip install 'penstock[video]'" in done.stderr and "Traceback" not in done.stderr


def test_a_reader_that_goes_away_is_no_error(pets: Path) -> None:
    code = (
        "import click, penstock.cli as cli\n"
        "from penstock.cli import looks\n"
        "@click.command()\n"
        "def info():\n"
        "    for _ in range(100): click.echo('x' * 100_000)\n"
        "looks.info = info\n"
        "cli.main(['info'])\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 0


def test_ctrl_c_says_how_to_go_on(tmp_path: Path) -> None:
    """The source tells when it is being read, so that the signal comes in the middle of packing."""
    code = (
        "import sys, penstock as ps\n"
        f"sys.path.insert(0, {str(Path(__file__).parents[1])!r})\n"
        "from made_sources import Announced\n"
        "Announced.problems = lambda self: []\n"
        "from penstock.cli import main, pack\n"
        "from penstock.samples import as_store\n"
        "pack.make_source = lambda kind, paths, options: as_store(Announced(20_000))\n"
        "main(['pack', 'images', 'x', '-o', sys.argv[1], '--workers', '1', '--shard-mb', '1'])\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "new.pack")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.read(3000)
        process.send_signal(signal.SIGINT)
        process.stdout.read()
        error = process.stderr.read()
        assert process.wait() == 130
    assert "--resume" in error and error.endswith("penstock: interrupted\n")
    assert "Traceback" not in error
    assert not (tmp_path / "new.pack").exists() and (tmp_path / "new.pack.partial").exists()


def test_the_installed_command_leaves_with_the_exit_code(tmp_path: Path) -> None:
    done = subprocess.run([INSTALLED, "info", tmp_path / "nowhere.pack"], capture_output=True, text=True)
    assert done.returncode == 4 and done.stderr.startswith("penstock: ")
