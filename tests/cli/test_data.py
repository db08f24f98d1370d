"""`pack data`, `check data`, `info` and `show` take whatever `ps.open` recognises."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import h5py
import pytest

import penstock as ps
from column_making import labels, pictures, png, write_mds, write_parquet
from commands import run_here
from penstock.cli.options import COLUMN_OPTIONS
from penstock.formats.columns.options import ColumnOptions


@pytest.fixture
def own_names(tmp_path: Path) -> Path:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["one"], file["two"], file["truth"] = pictures(), pictures()[::-1], labels()
    return tmp_path / "a.h5"


def test_data_of_any_format_is_packed_with_its_bytes(tmp_path: Path) -> None:
    outcome = run_here("pack", "data", write_parquet(tmp_path / "a.parquet"), "-o", tmp_path / "a.pack", "--quiet")
    assert outcome.exit_code == 0, outcome.err
    pack = ps.open(tmp_path / "a.pack")
    assert bytes(pack.read(3).data) == png(3) and pack.classes == ("cat", "dog", "owl")


def test_columns_are_named_by_options(own_names: Path, tmp_path: Path) -> None:
    command = ["pack", "data", own_names, "-o", tmp_path / "a.pack", "--quiet", "--image", "two", "--label", "truth"]
    assert run_here("pack", "data", own_names, "-o", tmp_path / "a.pack", "--quiet").exit_code == 2
    outcome = run_here(*command, "--classes", "a,b,c")
    assert outcome.exit_code == 0, outcome.err
    pack = ps.open(tmp_path / "a.pack")
    assert pack.classes == ("a", "b", "c") and (pack[0]["image"] == pictures()[5]).all()


def test_every_option_of_columns_but_the_mapping_is_an_option() -> None:
    names = {field.name for field in dataclasses.fields(ColumnOptions)}
    assert set(COLUMN_OPTIONS) == names - {"fields"}


def test_check_finds_damage(tmp_path: Path) -> None:
    folder = write_mds(tmp_path / "mds")
    assert run_here("check", "data", folder, "--decode").exit_code == 0
    shard = folder / "shard.00001.mds"
    shard.write_bytes(shard.read_bytes()[:-1] + b"?")
    outcome = run_here("check", "data", folder, "--json")
    assert outcome.exit_code == 1 and outcome.json["problems"][0]["file"] == str(shard)


def test_info_says_which_columns_were_taken(tmp_path: Path) -> None:
    path = write_parquet(tmp_path / "a.parquet")
    outcome = run_here("info", path)
    assert outcome.exit_code == 0
    assert "6 samples, read by penstock.Parquet" in outcome.out and "image (image, from 'photo')" in outcome.out
    assert run_here("info", path, "--json").json["columns"] == {"image": "photo", "label": "label", "score": "score"}


def test_show_draws_a_sample(tmp_path: Path) -> None:
    outcome = run_here("show", write_mds(tmp_path / "mds"), 2, "-o", tmp_path / "a.png")
    assert outcome.exit_code == 0, outcome.err
    assert (tmp_path / "a.png").is_file() and "shard.00000/2" in outcome.out


def test_a_wrong_option_for_the_format_is_exit_code_2(tmp_path: Path) -> None:
    outcome = run_here("check", "data", write_parquet(tmp_path / "a.parquet"), "--layout", "sideways")
    assert outcome.exit_code == 2
