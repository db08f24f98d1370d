"""A DeepEthogram project is read as it is, and everything that is wrong with it is said at once."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import yaml

import penstock as ps
from commands import run_here
from penstock.tasks.behaviour.frame_data import flip_of
from project_making import (
    BEHAVIOURS,
    FRAMES,
    add_video,
    label_values,
    state_of,
    write_frames,
    write_hdf5_frames,
    write_labels,
    write_project,
    write_split,
    write_yaml,
)
from video_making import number_shown


def errors_of(source: ps.DeepEthogram) -> list[ps.Problem]:
    return [problem for problem in source.problems() if not problem.warning]


def warnings_of(source: ps.DeepEthogram) -> list[str]:
    return [str(problem) for problem in source.problems() if problem.warning]


# As it is


def test_videos_labels_and_behaviours_are_those_of_the_project(tmp_path: Path) -> None:
    source = ps.DeepEthogram(write_project(tmp_path))
    assert source.classes == BEHAVIOURS
    assert [part.key for part in source.parts] == ["m1_a", "m1_b", "m2_a"]
    assert len(source) == 3 * FRAMES
    for number, part in enumerate(source.parts):
        samples = [part.decode(raw) for raw in part.stream()]
        assert [number_shown(sample["image"]) for sample in samples] == list(range(FRAMES))
        np.testing.assert_array_equal([sample["labels"] for sample in samples], label_values(number))
    assert source.problems() == []


def test_the_project_is_found_by_its_configuration_too(tmp_path: Path) -> None:
    write_project(tmp_path)
    assert len(ps.DeepEthogram(tmp_path / "project_config.yaml").parts) == 3


def test_nothing_is_written_into_a_project(tmp_path: Path) -> None:
    write_split(write_project(tmp_path / "project"), {"train": ["m1_a", "m1_b"], "val": ["m2_a"]})
    before = state_of(tmp_path / "project")
    source = ps.DeepEthogram(tmp_path / "project")
    ps.check(source, decode=True)
    ps.pack(source, tmp_path / "mice.pack")
    assert state_of(tmp_path / "project") == before


def change_settings(folder: Path, **sections: object) -> None:
    config = folder / "project_config.yaml"
    write_yaml(config, {**yaml.safe_load(config.read_text()), **sections})


@pytest.mark.parametrize(
    ("resize", "height", "width"),
    [([40, 40], 40, 40), (256, 256, 256), ([48], 48, 48), ([64, 32], 64, 32), (None, 224, 224), ([], 224, 224)],
)
def test_one_value_of_resize_is_a_square_and_two_are_height_and_width(
    tmp_path: Path, resize: object, height: int, width: int
) -> None:
    change_settings(write_project(tmp_path, ["m1"]), augs={"resize": resize})
    assert ps.DeepEthogram(tmp_path)[0]["image"].shape == (height, width, 3)


@pytest.mark.parametrize("resize", ["no", [64, 32, 3], [0, 32], [1.5, 2], True, {"height": 3}, -1])
def test_a_resize_that_is_no_size_is_refused_by_name(tmp_path: Path, resize: object) -> None:
    change_settings(write_project(tmp_path, ["m1"]), augs={"resize": resize})
    with pytest.raises(ps.DataError, match=r"augs\.resize is .*expected one whole number"):
        ps.DeepEthogram(tmp_path)


def test_settings_for_training_are_named_with_the_command_that_takes_them(tmp_path: Path) -> None:
    augs = {"LR": 0, "UD": 0.5, "crop_size": 128, "pad": None, "random_resize": False}
    change_settings(write_project(tmp_path, ["m1"]), augs=augs, train={"loss_weight_exp": 1.0, "patience": 3})
    taken, left = warnings_of(ps.DeepEthogram(tmp_path))
    assert all(words in taken for words in ("augs.LR 0", "augs.UD 0.5", "train.loss_weight_exp 1", "recipe behaviour"))
    assert "augs.crop_size 128" in left and "train.patience 3" in left
    assert "pad" not in left and "random_resize" not in left


@pytest.mark.parametrize(("written", "kept"), [(0, 0.0), (False, 0.0), (0.25, 0.25), (None, None), ("often", None)])
def test_a_pack_of_a_project_knows_how_often_it_mirrors(tmp_path: Path, written: object, kept: float | None) -> None:
    change_settings(write_project(tmp_path / "mice", ["m1", "m2"]), augs={"LR": written})
    packed = ps.pack(ps.DeepEthogram(tmp_path / "mice", size="32x32"), tmp_path / "mice.pack")
    assert packed.manifest.made_from.get("flip") == kept
    again = ps.pack(packed, tmp_path / "again.pack")
    assert again.manifest.made_from.get("flip") == kept


@pytest.mark.parametrize("to", ["directory", "tfrecord", "webdataset", "hdf5", "numpy"])
def test_an_export_of_a_project_knows_how_often_it_mirrors(tmp_path: Path, to: str) -> None:
    change_settings(write_project(tmp_path / "mice", ["m1", "m2"]), augs={"LR": 0.25})
    project = ps.DeepEthogram(tmp_path / "mice", size="32x32")
    pack = ps.pack(project, tmp_path / "mice.pack", split="train")
    for number, source in enumerate((project, pack, pack.split("train"))):
        made = ps.export(source, tmp_path / f"{number}", to=to)
        assert flip_of(ps.open(made.path)) == 0.25


def test_frames_keep_their_size_when_asked(tmp_path: Path) -> None:
    assert ps.DeepEthogram(write_project(tmp_path, ["m1"]), size=None)[0]["image"].shape == (64, 96, 3)


def test_animals_can_be_groups(tmp_path: Path) -> None:
    source = ps.DeepEthogram(write_project(tmp_path), group_from="{animal}_*")
    assert [part.group for part in source.parts] == ["m1", "m1", "m2"]


def to_folder(own: Path) -> None:
    write_frames(own / own.name)


def to_jpeg_folder(own: Path) -> None:
    write_frames(own / own.name, codec="jpeg")


def to_hdf5(own: Path) -> None:
    write_hdf5_frames(own / f"{own.name}.h5")


@pytest.mark.parametrize("convert", [to_folder, to_jpeg_folder, to_hdf5])
def test_converted_videos_are_read_as_the_originals(tmp_path: Path, convert: Callable[[Path], None]) -> None:
    original = ps.DeepEthogram(write_project(tmp_path, ["m1"]))[5]
    own = tmp_path / "DATA" / "m1"
    convert(own)
    (own / "m1.avi").unlink()
    source = ps.DeepEthogram(tmp_path)
    assert [number_shown(source[index]["image"]) for index in range(len(source))] == list(range(FRAMES))
    np.testing.assert_array_equal(source.column("labels"), label_values())
    assert abs(source[5]["image"].astype(int) - original["image"]).mean() < 12
    assert not errors_of(source)


@pytest.mark.parametrize(
    "options", [{"to": "hdf5", "layout": "deepethogram"}, {"to": "directory"}], ids=["hdf5", "directory"]
)
def test_a_project_that_was_converted_and_put_back_is_the_same_project(tmp_path: Path, options: dict[str, str]) -> None:
    before = ps.DeepEthogram(write_project(tmp_path / "before"), size=None)
    ps.export(before, tmp_path / "converted", codec="png", **options)
    write_project(tmp_path / "after", ["m1_a", "m1_b", "m2_a"])
    for name in ("m1_a", "m1_b", "m2_a"):
        own = tmp_path / "after" / "DATA" / name
        (own / f"{name}.avi").unlink()
        made = tmp_path / "converted" / name
        shutil.copytree(made, own if options["to"] == "hdf5" else own / name, dirs_exist_ok=True)
    after = ps.DeepEthogram(tmp_path / "after", size=None)
    assert not errors_of(after) and len(after) == len(before)
    for index in range(len(before)):
        one, other = before[index], after[index]
        assert one["key"] == other["key"]
        np.testing.assert_array_equal(one["labels"], other["labels"])
        np.testing.assert_array_equal(one["image"], other["image"])


@pytest.mark.parametrize(("prefer", "read"), [("converted", "m1"), ("original", "m1.avi")])
def test_of_several_videos_one_is_read_and_said(tmp_path: Path, prefer: str, read: str) -> None:
    write_project(tmp_path, ["m1"])
    to_folder(tmp_path / "DATA" / "m1")
    to_hdf5(tmp_path / "DATA" / "m1")
    source = ps.DeepEthogram(tmp_path, prefer=prefer)
    assert Path(source.origin(0).file).is_relative_to(tmp_path / "DATA" / "m1" / read)
    assert any(f"holds 3 videos; {read} is read" in text for text in warnings_of(source))


def test_results_and_a_video_whose_name_says_labels_are_told_apart(tmp_path: Path) -> None:
    own = add_video(write_project(tmp_path, []), "labelled_mouse")
    shutil.copy(own / "labelled_mouse_labels.csv", own / "labelled_mouse_predictions.csv")
    write_hdf5_frames(own / "labelled_mouse_outputs.h5", 1)
    source = ps.DeepEthogram(tmp_path)
    assert source.parts[0].footage.file.endswith("labelled_mouse.avi")
    np.testing.assert_array_equal(source.column("labels"), label_values())
    assert source.problems() == []


@pytest.mark.parametrize("name", ["labels", "scores"])
@pytest.mark.parametrize("shape", ["upright", "on its side", "without background"])
def test_labels_in_hdf5_are_read(tmp_path: Path, name: str, shape: str) -> None:
    import h5py

    own = add_video(write_project(tmp_path, []), "m1", labels=False)
    values = {"upright": label_values(), "on its side": label_values().T, "without background": label_values()[:, 1:]}
    with h5py.File(own / "m1_labels.h5", "w") as file:
        file[name] = values[shape]
    np.testing.assert_array_equal(ps.DeepEthogram(tmp_path).column("labels"), label_values())


def test_an_older_record_with_paths_of_another_machine_is_understood(tmp_path: Path) -> None:
    own = tmp_path / "DATA" / "m1"
    write_project(tmp_path, ["m1"], data_path="D:\\ethograms\\mice\\DATA", path="D:\\ethograms\\mice")
    record = {"key": "m1", "rgb": "D:\\ethograms\\mice\\DATA\\m1\\m1.avi", "label": "/mnt/old/DATA/m1/m1_labels.csv"}
    write_yaml(own / "record.yaml", record)
    source = ps.DeepEthogram(tmp_path)
    np.testing.assert_array_equal(source.column("labels"), label_values())
    assert source.problems() == []


def test_the_record_decides_between_files_of_one_kind(tmp_path: Path) -> None:
    own = add_video(write_project(tmp_path, []), "m1")
    shutil.copy(own / "m1.avi", own / "again.avi")
    write_yaml(own / "record.yaml", {"rgb": {"all": ["again.avi", "m1.avi"], "default": "again.avi"}})
    assert ps.DeepEthogram(tmp_path).parts[0].footage.file.endswith("again.avi")


# Splits


def test_the_split_of_the_project_becomes_that_of_the_pack(tmp_path: Path) -> None:
    write_split(write_project(tmp_path), {"train": ["m1_a", "m2_a"], "val": ["m1_b"], "test": None})
    source = ps.DeepEthogram(tmp_path)
    assert [part.split for part in source.parts] == ["train", "val", "train"]
    assert source.column("split").tolist() == ["train"] * FRAMES + ["val"] * FRAMES + ["train"] * FRAMES
    packed = ps.pack(source, tmp_path / "mice.pack")
    assert set(packed.split("val").column("group")) == {"m1_b"}
    assert len(packed.split("train")) == 2 * FRAMES


def test_without_a_split_file_packing_splits_by_video(tmp_path: Path) -> None:
    source = ps.DeepEthogram(write_project(tmp_path))
    assert [part.split for part in source.parts] == [None] * 3
    with pytest.raises(KeyError, match="no column 'split'"):
        source.column("split")


def test_a_split_file_can_be_left_out_or_be_another(tmp_path: Path) -> None:
    write_split(write_project(tmp_path), {"train": ["m1_a", "m2_a"], "val": ["m1_b"]})
    other = write_yaml(tmp_path / "models" / "split.yaml", {"train": ["m1_b"], "val": ["m1_a", "m2_a"]})
    for none in ("none", None):
        assert [part.split for part in ps.DeepEthogram(tmp_path, split_file=none).parts] == [None] * 3
    assert [part.split for part in ps.DeepEthogram(tmp_path, split_file=other).parts] == ["val", "train", "val"]


def test_videos_that_a_split_leaves_out_are_kept_apart_and_said(tmp_path: Path) -> None:
    write_split(write_project(tmp_path), {"train": ["m1_a", "gone"], "val": ["m1_b"]})
    source = ps.DeepEthogram(tmp_path)
    assert [part.split for part in source.parts] == ["train", "val", "unlisted"]
    assert any("m2_a is in no split" in text for text in warnings_of(source))
    assert any("train names 'gone', which is no video" in text for text in warnings_of(source))


def test_a_video_in_two_splits_is_never_tested_on_what_it_was_trained_with(tmp_path: Path) -> None:
    write_split(write_project(tmp_path), {"test": ["m1_a"], "val": ["m1_b", "m1_a"], "train": ["m2_a", "m1_b"]})
    source = ps.DeepEthogram(tmp_path)
    assert [part.split for part in source.parts] == ["val", "train", "train"]
    assert any("m1_b is in train and in val" in text for text in warnings_of(source))


def test_a_split_of_another_project_is_not_used(tmp_path: Path) -> None:
    write_split(write_project(tmp_path), {"train": ["x"], "val": ["y"]})
    source = ps.DeepEthogram(tmp_path)
    assert [part.split for part in source.parts] == [None] * 3
    assert any("names none of the videos" in text for text in warnings_of(source))


# Bad projects


def test_a_video_without_labels_is_not_labelled_and_no_error(tmp_path: Path) -> None:
    add_video(write_project(tmp_path, ["m1"]), "m2", labels=False)
    source = ps.DeepEthogram(tmp_path)
    assert (source.column("labels")[FRAMES:] == -1).all()
    assert not errors_of(source)
    assert any("m2.avi: has no labels" in text for text in warnings_of(source))


def test_a_project_without_any_labels_can_be_used(tmp_path: Path) -> None:
    add_video(write_project(tmp_path, []), "m1", labels=False)
    source = ps.DeepEthogram(tmp_path)
    assert source.classes == BEHAVIOURS
    assert (source.column("labels") == -1).all()
    assert not errors_of(source)


def test_everything_that_is_wrong_is_said_at_once_with_a_remedy(tmp_path: Path) -> None:
    write_project(tmp_path, ["m1", "m2", "m3", "m4", "m5"])
    data = tmp_path / "DATA"
    write_labels(data / "m1" / "m1_labels.csv", label_values(count=FRAMES + 2))
    write_labels(data / "m2" / "m2_labels.csv", label_values(), ["background", "groom", "sniff"])
    (data / "m3" / "m3.avi").unlink()
    (data / "m4" / "m4_labels.csv").write_text(",background,groom,rear\n0,1,0,7\n")
    write_split(tmp_path, {"train": "m1", "val": ["m2"]})
    source = ps.DeepEthogram(tmp_path)
    found = errors_of(source)
    texts = "\n".join(str(problem) for problem in found)
    assert "m1_labels.csv line 10: 10 label rows for the 8 frames of m1: 2 too many" in texts
    assert "m2_labels.csv: has a column for the behaviour 'sniff'" in texts
    assert "m2_labels.csv: has no column for the behaviour 'rear'" in texts
    assert "m3.avi of its record.yaml is not there" in texts
    assert "m4_labels.csv line 2: rear is '7'" in texts
    assert "split.yaml: train is not a list of videos" in texts
    assert all(problem.remedy for problem in found)
    with pytest.raises(ps.DataError) as raised:
        ps.pack(source, tmp_path / "mice.pack")
    assert set(found) <= set(raised.value.problems)


def test_an_interrupted_conversion_is_said_and_the_original_can_be_read(tmp_path: Path) -> None:
    write_project(tmp_path, ["m1"])
    write_frames(tmp_path / "DATA" / "m1" / "m1", FRAMES - 3)
    assert "8 label rows for the 5 frames" in str(errors_of(ps.DeepEthogram(tmp_path))[0])
    assert not errors_of(ps.DeepEthogram(tmp_path, prefer="original"))


def test_a_link_that_leads_nowhere_is_named(tmp_path: Path) -> None:
    write_project(tmp_path, ["m1", "m2"])
    video = tmp_path / "DATA" / "m2" / "m2.avi"
    video.unlink()
    video.symlink_to("/mnt/gone/m2.avi")
    (problem,) = errors_of(ps.DeepEthogram(tmp_path))
    assert "is a link to /mnt/gone/m2.avi, which is not there" in str(problem)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("project: [", "line 1: is no readable YAML"),
        ("- a\n- b\n", "holds a list where names and values were expected"),
        (
            "project: !!python/object/apply:os.system ['true']\n",
            "is no readable YAML: could not determine a constructor",
        ),
        ("project: {name: mice}\n", "project.class_names lists no behaviours"),
        ("project: {class_names: [background, a, a]}\n", "'a' 2 times"),
        ("", "project.class_names lists no behaviours"),
    ],
)
def test_settings_that_cannot_be_used_are_said(tmp_path: Path, text: str, words: str) -> None:
    write_project(tmp_path, ["m1"])
    (tmp_path / "project_config.yaml").write_text(text)
    with pytest.raises(ps.DataError, match=words):
        ps.DeepEthogram(tmp_path)


def test_a_broken_record_is_a_warning_because_the_folder_says_it_all(tmp_path: Path) -> None:
    write_project(tmp_path, ["m1"])
    (tmp_path / "DATA" / "m1" / "record.yaml").write_text("rgb: [")
    source = ps.DeepEthogram(tmp_path)
    assert not errors_of(source)
    assert any("record.yaml" in text for text in warnings_of(source))


def test_what_is_no_project_is_refused_with_what_was_probably_meant(tmp_path: Path) -> None:
    write_project(tmp_path / "mice", ["m1"])
    with pytest.raises(ps.DataError, match=r"no project_config.yaml. Did you mean .*mice\?"):
        ps.DeepEthogram(tmp_path)
    with pytest.raises(ps.DataError, match="no such folder"):
        ps.DeepEthogram(tmp_path / "rats")


def test_a_project_without_videos_is_refused(tmp_path: Path) -> None:
    write_project(tmp_path, [])
    with pytest.raises(ps.DataError, match="there is no folder DATA"):
        ps.DeepEthogram(tmp_path)
    (tmp_path / "DATA" / "m1").mkdir(parents=True)
    with pytest.raises(ps.DataError, match="there is no video in any of its folders"):
        ps.DeepEthogram(tmp_path)


def test_labels_in_hdf5_that_do_not_fit_are_said(tmp_path: Path) -> None:
    import h5py

    write_project(tmp_path, ["m0"])
    for number, content in enumerate([{"other": label_values()}, {"labels": np.zeros((FRAMES, 7))}]):
        own = add_video(tmp_path, f"x{number}", labels=False)
        with h5py.File(own / f"x{number}_labels.h5", "w") as file:
            file.update(content)
    own = add_video(tmp_path, "x2", labels=False)
    (own / "x2_labels.h5").write_bytes(b"no HDF5")
    texts = "\n".join(str(problem) for problem in errors_of(ps.DeepEthogram(tmp_path)))
    assert "x0_labels.h5: has no dataset labels or scores; there are other" in texts
    assert "x1_labels.h5: it has labels of 7 behaviours, and the project has 3" in texts
    assert "x2_labels.h5: cannot be opened as HDF5" in texts


# The command line


def test_a_project_is_checked_and_packed_by_command(tmp_path: Path) -> None:
    write_split(write_project(tmp_path / "project"), {"train": ["m1_a", "m2_a"], "val": ["m1_b"]})
    checked = run_here("check", "deepethogram", tmp_path / "project")
    assert checked.exit_code == 0, checked.err
    packed = run_here("pack", "deepethogram", tmp_path / "project", "-o", tmp_path / "mice.pack", "--codec", "png")
    assert packed.exit_code == 0, packed.err
    pack = ps.open(tmp_path / "mice.pack")
    assert len(pack) == 3 * FRAMES
    assert pack.classes == BEHAVIOURS
    np.testing.assert_array_equal(pack.split("val").column("labels"), label_values(1))


# Real files


def test_a_project_of_real_videos_and_labels_is_clean(tmp_path: Path, shared_data: Path) -> None:
    behaviours = ["background", "close", "wing_extension", "walking"]
    write_project(tmp_path, [], class_names=behaviours)
    for name in ("flies_courtship_120s", "dlc_openfield_m3v1mp4"):
        own = tmp_path / "DATA" / name
        own.mkdir(parents=True)
        (own / f"{name}.mp4").symlink_to(shared_data / "video" / f"{name}.mp4")
    shutil.copy(shared_data / "video" / "flies_courtship_120s_labels.csv", tmp_path / "DATA" / "flies_courtship_120s")
    source = ps.DeepEthogram(tmp_path)
    assert not errors_of(source)
    mouse, flies = source.parts
    assert (flies.expected, mouse.expected) == (3000, 2330)
    assert not mouse.label_counts and set(flies.label_counts) <= set(range(4)) and len(flies.label_counts) > 1
    first = flies.decode(next(flies.stream()))
    assert first["image"].shape == (32, 32, 3) and set(first["labels"].tolist()) <= {0, 1}
