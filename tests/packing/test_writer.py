"""Packing gives the same bytes however it is run, loses nothing, and appears whole or not at all."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps
from made_sources import EveryKind, Pictures, Reel, Reels, folder_bytes, same_sample
from penstock.codecs.headers import read_header
from penstock.codecs.images import encode_image
from penstock.errors import Problem
from penstock.storage.writing.locking import writer_lock


def test_every_kind_of_field_comes_back_as_it_was(tmp_path: Path) -> None:
    source = EveryKind()
    pack = ps.pack(source, tmp_path / "all.pack")
    for index in range(len(source)):
        assert same_sample(pack[index], source.decode(source.read(index)))


@pytest.mark.parametrize("options", [{"workers": 1}, {"workers": 5}, {"workers": 2, "executor": "process"}])
def test_the_same_input_gives_the_same_bytes_however_it_is_run(tmp_path: Path, options: dict[str, object]) -> None:
    ps.pack(EveryKind(), tmp_path / "reference.pack", shard_mb=1)
    ps.pack(EveryKind(), tmp_path / "other.pack", shard_mb=1, **options)
    assert folder_bytes(tmp_path / "reference.pack") == folder_bytes(tmp_path / "other.pack")


@pytest.mark.parametrize("codec", ["png", "jpeg", "webp", "raw", "h264"])
def test_parts_give_the_same_bytes_with_any_number_of_workers(tmp_path: Path, codec: str) -> None:
    for workers in (1, 4):
        ps.pack(Reels(50, 31), tmp_path / f"{workers}.pack", codec=codec, workers=workers)
    assert folder_bytes(tmp_path / "1.pack") == folder_bytes(tmp_path / "4.pack")


def test_bytes_are_kept_as_they_were(tmp_path: Path) -> None:
    source = Pictures(20, "jpeg")
    pack = ps.pack(source, tmp_path / "kept.pack")
    assert all(bytes(pack.read(index).data) == source.read(index).data for index in range(20))
    assert pack.manifest.codec == "kept"


def test_a_side_is_shrunk_and_never_enlarged(tmp_path: Path) -> None:
    pack = ps.pack(Pictures(6), tmp_path / "small.pack", longest_side=16)
    assert {pack[index]["image"].shape for index in range(6)} == {(12, 16, 3)}
    assert read_header(pack.read(0).data).kind == "png"
    same = ps.pack(Pictures(6), tmp_path / "same.pack", longest_side=400)
    assert bytes(same.read(3).data) == Pictures(6).read(3).data


def test_boxes_and_masks_follow_a_resized_image(tmp_path: Path) -> None:
    source = EveryKind(12)
    pack = ps.pack(source, tmp_path / "half.pack", size="16x12")
    for index in range(12):
        sample, original = pack[index], source.decode(source.read(index))
        height, width = original["image"].shape[:2]
        factor = np.array([16 / width, 12 / height] * 2, np.float32)
        assert sample["image"].shape == (12, 16, 3) and sample["mask"].shape == (12, 16)
        assert np.allclose(sample["boxes"], original["boxes"] * factor)


def test_raw_rows_are_one_view_of_mapped_memory(tmp_path: Path) -> None:
    pack = ps.pack(Pictures(9), tmp_path / "raw.pack", codec="raw")
    views = pack.raw_views()
    assert sum(len(view) for view in views) == 9
    assert np.array_equal(np.concatenate(views)[4], pack[4]["image"])
    assert not views[0].flags.writeable and views[0].base is not None


def test_raw_refuses_images_of_different_sizes_and_names_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(ps.OptionError, match="size='WIDTHxHEIGHT'"):
        ps.pack(EveryKind(5), tmp_path / "raw.pack", codec="raw")


def test_a_bad_sample_stops_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(ps.HopError, match=r"pictures/7\.png.*no JPEG, PNG.*on_bad_sample='skip'"):
        ps.pack(Pictures(20, broken=(7,)), tmp_path / "bad.pack")
    assert not (tmp_path / "bad.pack").exists()


def test_bad_samples_can_be_left_out_and_are_listed(tmp_path: Path) -> None:
    pack = ps.pack(Pictures(20, broken=(3, 7)), tmp_path / "bad.pack", on_bad_sample="skip")
    assert len(pack) == 18
    listed = json.loads((tmp_path / "bad.pack" / "pack.json").read_text())["skipped"]
    assert [item["sample"] for item in listed] == ["sample 3 (pictures/3.png)", "sample 7 (pictures/7.png)"]
    assert [pack[index]["key"] for index in (2, 3, 6)] == ["pictures/2.png", "pictures/4.png", "pictures/8.png"]


def test_validate_finds_damage_that_headers_do_not_show(tmp_path: Path) -> None:
    class Damaged(Pictures):
        def read(self, index: int) -> ps.Raw:
            data = super().read(index).data
            return ps.Raw(index, data[:200] + bytes(50) + data[250:] if index == 4 else data)

    # Of 3,000 images 500 are decoded for the statistics; with this seed number 4 is not among them.
    assert len(ps.pack(Damaged(3000, "png"), tmp_path / "unseen.pack", seed=1)) == 3000
    with pytest.raises(ps.HopError, match=r"pictures/4\.png"):
        ps.pack(Damaged(3000, "png"), tmp_path / "seen.pack", validate=True)


def test_an_existing_pack_is_refused_unless_it_may_be_replaced(tmp_path: Path) -> None:
    path = tmp_path / "one.pack"
    ps.pack(Pictures(5), path)
    with pytest.raises(ps.PackError, match="exists already"):
        ps.pack(Pictures(9), path)
    assert len(ps.open(path)) == 5
    assert len(ps.pack(Pictures(9), path, overwrite=True)) == 9
    assert sorted(item.name for item in tmp_path.iterdir()) == ["one.pack"]


def test_a_folder_that_is_no_pack_is_never_overwritten(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "mine.jpg").write_bytes(b"precious")
    with pytest.raises(ps.PackError, match="is not a pack; it is left alone"):
        ps.pack(Pictures(5), tmp_path / "photos", overwrite=True)
    assert (tmp_path / "photos" / "mine.jpg").read_bytes() == b"precious"


def test_two_writers_on_one_path_are_kept_apart(tmp_path: Path) -> None:
    with writer_lock(tmp_path / "one.pack"), pytest.raises(ps.PackError, match="another process is writing"):
        ps.pack(Pictures(5), tmp_path / "one.pack")
    assert len(ps.pack(Pictures(5), tmp_path / "one.pack")) == 5


def test_unicode_and_spaces_in_paths_work(tmp_path: Path) -> None:
    path = tmp_path / "Bäume und ж" / "mein pack ✓.pack"
    assert len(ps.pack(Pictures(5), path)) == 5
    ps.open(path).verify()


def test_a_read_only_source_folder_can_be_packed_and_stays_untouched(tmp_path: Path) -> None:
    folder = tmp_path / "photos" / "cat"
    folder.mkdir(parents=True)
    (folder / "one.png").write_bytes(Pictures().read(1).data)
    for path in (folder / "one.png", folder, tmp_path / "photos"):
        path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    before = states(tmp_path / "photos")
    try:
        assert len(ps.pack(ps.Images(tmp_path / "photos"), tmp_path / "out.pack")) == 1
        assert states(tmp_path / "photos") == before
    finally:
        for path in (tmp_path / "photos", folder):
            path.chmod(stat.S_IRWXU)


def states(folder: Path) -> list[tuple[str, int, int]]:
    paths = [folder, *sorted(folder.rglob("*"))]
    return [(path.as_posix(), path.stat().st_mtime_ns, path.stat().st_size) for path in paths]


def test_statistics_are_exact_and_pooled(tmp_path: Path) -> None:
    source = EveryKind(30)
    pack = ps.pack(source, tmp_path / "all.pack")
    every = np.concatenate([source.decode(source.read(i))["image"].reshape(-1, 3) for i in range(30)]).astype(float)
    assert np.allclose(pack.statistics["mean"], every.mean(axis=0), rtol=1e-12)
    assert np.allclose(pack.statistics["std"], every.std(axis=0), rtol=1e-12)
    assert pack.statistics["of"] == "all images"


def test_a_sample_at_half_size_is_weighted_by_the_pixels_of_its_images(tmp_path: Path) -> None:
    class Sizes(Pictures):
        """Few large dark pictures among many small bright ones: a mean over images would be far off."""

        def read(self, index: int) -> ps.Raw:
            side, shade = (512, 40) if index % 2 else (64, 200)
            return ps.Raw(index, encode_image(np.full((side, side, 3), shade, np.uint8), "jpeg"))

    pack = ps.pack(Sizes(600, "jpeg"), tmp_path / "one.pack")
    whole = ps.pack(Sizes(600, "jpeg"), tmp_path / "whole.pack", validate=True)
    assert pack.statistics["images"] == 500
    assert np.allclose(pack.statistics["mean"], whole.statistics["mean"], atol=1.0)
    assert np.allclose(whole.statistics["mean"], (40 * 512**2 + 200 * 64**2) / (512**2 + 64**2), atol=0.01)


def test_a_failure_before_the_first_shard_leaves_nothing_in_the_way(tmp_path: Path) -> None:
    with pytest.raises(ps.HopError):
        ps.pack(Pictures(20, broken=(7,)), tmp_path / "one.pack")
    assert list(tmp_path.iterdir()) == []
    assert len(ps.pack(Pictures(20), tmp_path / "one.pack", codec="jpeg")) == 20


def test_statistics_of_kept_bytes_say_that_they_come_from_a_sample(tmp_path: Path) -> None:
    pack = ps.pack(Pictures(700), tmp_path / "many.pack")
    assert (
        pack.statistics["images"] == 500
        and pack.statistics["of"] == "a seeded sample of images, JPEGs at half their size"
    )
    whole = ps.pack(Pictures(700), tmp_path / "whole.pack", validate=True)
    assert whole.statistics["images"] == 700
    assert np.allclose(pack.statistics["mean"], whole.statistics["mean"], atol=1.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"codec": "jpg"}, "codec='jpg' is not one of .* Did you mean 'jpeg'"),
        ({"qualty": 90}, "no option 'qualty'. Did you mean 'quality'"),
        ({"quality": 101}, "from 1 to 100"),
        ({"quality": 50}, "quality=50 has no effect: image files stay as they are"),
        ({"quality": 50, "codec": "png"}, "quality=50 is for jpeg, webp and h264; png keeps every pixel"),
        ({"quality": 50, "codec": "raw"}, "raw keeps every pixel"),
        ({"size": "224"}, "not WIDTHxHEIGHT"),
        ({"size": "8x8", "longest_side": 8}, "exclude each other"),
        ({"split": "train=0.8,val=0.3"}, "add up to 1.1"),
        ({"split": "train=most"}, "not NAME=FRACTION"),
        ({"codec": "h264"}, "h264 is for videos"),
        ({"size": "100000x100000"}, "between 1x1 and 65500x65500"),
        ({"split": 3}, "must be a text"),
    ],
)
def test_wrong_options_say_what_is_legal(tmp_path: Path, options: dict[str, object], message: str) -> None:
    with pytest.raises(ps.OptionError, match=message):
        ps.pack(Pictures(3), tmp_path / "x.pack", **options)
    assert list(tmp_path.iterdir()) == []


def test_a_quality_that_is_asked_for_holds_for_files_of_that_codec_too(tmp_path: Path) -> None:
    folder = tmp_path / "photos"
    folder.mkdir()
    pixels = np.random.default_rng(0).integers(0, 255, (64, 64, 3), dtype=np.uint8)
    original = encode_image(pixels, "jpeg", 95)
    (folder / "a.jpg").write_bytes(original)
    kept = ps.pack(ps.Images(folder), tmp_path / "kept.pack", codec="jpeg")
    assert bytes(kept.read(0).data) == original
    smaller = ps.pack(ps.Images(folder), tmp_path / "smaller.pack", codec="jpeg", quality=30)
    assert bytes(smaller.read(0).data) == encode_image(kept[0]["image"], "jpeg", 30)
    ps.pack(ps.Images(folder), tmp_path / "resized.pack", longest_side=32, quality=30)  # a JPEG again


def test_no_descriptor_and_no_thread_is_left(tmp_path: Path) -> None:
    import threading

    ps.pack(Pictures(30), tmp_path / "warm.pack")
    before = (len(list(Path("/proc/self/fd").iterdir())), threading.active_count())
    for number in range(3):
        ps.pack(Pictures(30), tmp_path / f"{number}.pack")[4]
    assert (len(list(Path("/proc/self/fd").iterdir())), threading.active_count()) == before


def test_a_pack_can_be_packed_again_smaller(tmp_path: Path) -> None:
    first = ps.pack(EveryKind(20), tmp_path / "first.pack", split="train=0.5,val=0.5")
    again = ps.pack(first, tmp_path / "again.pack", size="16x16")
    assert again.splits == first.splits
    assert again[3]["image"].shape == (16, 16, 3) and again[3]["caption"] == first[3]["caption"]


class Unreadable(Reel):
    """A part with a frame that its format knows to be damaged."""

    def decode(self, raw: ps.Raw) -> dict[str, Any]:
        if raw.index == 2:
            raise ps.DataError([Problem(self.key, 2, "the frame is damaged", "Record it again", unreadable=True)])
        return super().decode(raw)


@pytest.mark.parametrize("codec", ["png", "h264"])
def test_a_frame_that_cannot_be_read_stops_packing_unless_it_may_be_skipped(codec: str, tmp_path: Path) -> None:
    source = Reels(5)
    source.parts = (Unreadable("reel", 5),)
    with pytest.raises(ps.DataError, match="the frame is damaged"):
        ps.pack(source, tmp_path / "a.pack", codec=codec, progress=False)
    assert not (tmp_path / "a.pack").exists()
    pack = ps.pack(source, tmp_path / "a.pack", codec=codec, on_bad_sample="skip", overwrite=True, progress=False)
    assert [pack[index]["frame"] for index in range(len(pack))] == [0, 1, 3, 4]
    assert [(bad["sample"], bad["reason"]) for bad in pack.manifest.skipped] == [("reel#2", "the frame is damaged")]
