"""Ethograms of new videos: the same however they are made, written as they come, taken up where they were left."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pandas as pd
import pytest

import penstock as ps
from commands import run_here
from penstock.formats.videos.framing import make_framing
from penstock.prediction.answering import AnswerOptions
from penstock.prediction.behaviour import watching as gathering
from penstock.prediction.behaviour.ethogram_predicting import framing_of, labelled_ethograms
from penstock.prediction.behaviour.options import EthogramOptions
from penstock.results.ethograms import Ethogram
from penstock.training.staged_results import packed_by
from video_making import damage_packets, write_video

FRAMES = 120
KILLED = Path(__file__).with_name("killed_watching.py")


def features(path: Path) -> dict[str, np.ndarray]:
    """All numbers of an HDF5 of outputs."""
    with h5py.File(path) as file:
        return {
            f"{group}/{name}": file[group][name][()] for group in ("mobilenet_v2", "sequence") for name in file[group]
        }


def assert_same(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> None:
    assert one.keys() == other.keys()
    for name, values in one.items():
        np.testing.assert_array_equal(values, other[name], err_msg=name)


@pytest.fixture(scope="module")
def whole(mice_model: Path, mice_videos: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an uninterrupted prediction."""
    output: Path = tmp_path_factory.mktemp("whole") / "predictions"
    assert ps.predict(mice_model, mice_videos, output=output, device="cpu") == output
    return output


def test_arrays_are_no_videos(mice_model: Path) -> None:
    frames = np.zeros((5, 64, 64, 3), np.uint8)
    for data in (frames, list(frames)):
        with pytest.raises(ps.OptionError, match="needs videos.*Pass the path of a video"):
            ps.predict(mice_model, data, device="cpu")


def test_a_video_gives_an_ethogram_and_a_folder_a_list(mice_model: Path, mice_videos: Path, whole: Path) -> None:
    one: Any = ps.predict(mice_model, mice_videos / "animal_0.mp4", device="cpu")
    several: Any = ps.predict(mice_model, mice_videos, device="cpu", workers=1, batch_size=3)
    assert isinstance(one, Ethogram) and [ethogram.name for ethogram in several] == ["animal_0", "animal_1"]
    assert len(one) == FRAMES and one.problems == [] and one.behaviours == ("background", "walk", "rear")
    np.testing.assert_allclose(one.times_s, np.arange(FRAMES) / 30, atol=1e-6)
    np.testing.assert_array_equal(one.probabilities, several[0].probabilities)
    np.testing.assert_array_equal(one.probabilities, features(whole / "animal_0_outputs.h5")["sequence/P"])
    assert one.min_bout_frames.tolist() == [1, 2, 2]


def test_shortest_bouts_can_be_chosen_and_what_they_change_is_said_and_stored(
    mice_model: Path, mice_videos: Path, whole: Path, tmp_path: Path
) -> None:
    video = mice_videos / "animal_0.mp4"
    free: Any = ps.predict(mice_model, video, device="cpu", min_bout_frames="off")
    assert free.min_bout_frames.tolist() == [1, 1, 1] and free.changed_frame_count == 0
    facts: dict[str, Any] = {}
    held: Any = ps.predict(mice_model, video, device="cpu", min_bout_frames=20, on_facts=facts.update)
    np.testing.assert_array_equal(held.probabilities, free.probabilities)
    changed = int((held.predictions != free.predictions).any(axis=1).sum())
    assert changed == held.changed_frame_count == facts["changed_frames"] > 0
    done = run_here("predict", mice_model, video, "-o", tmp_path / "out", "--device", "cpu", "--min-bout-frames", "20")
    assert f"changed {changed} of {FRAMES} frames; --min-bout-frames off keeps them" in done.err
    noted = json.loads((tmp_path / "out" / "predictions.json").read_text())["videos"]["animal_0"]
    assert noted["changed_frames"] == changed and noted["frames"] == FRAMES
    with pytest.raises(ps.errors.OptionError, match="2 numbers for 3 behaviours"):
        ps.predict(mice_model, video, min_bout_frames=(2, 3))


def test_answers_differ_from_frame_to_frame(whole: Path) -> None:
    outputs = features(whole / "animal_0_outputs.h5")
    assert (np.diff(outputs["mobilenet_v2/spatial_features"], axis=0) != 0).any()
    assert len(np.unique(outputs["sequence/P"][:, 1])) > FRAMES // 2


def test_the_folder_holds_tables_bouts_and_features_of_every_video(whole: Path) -> None:
    tidy = pd.read_csv(whole / "animal_1_ethogram.csv")
    assert len(tidy) == FRAMES and {"frame", "time_s", "walk", "walk_probability"} <= set(tidy)
    plain = pd.read_csv(whole / "animal_1_predictions.csv", index_col=0)
    assert list(plain) == ["background", "walk", "rear"]
    np.testing.assert_array_equal(plain["walk"], tidy["walk"])
    assert {"start_frame", "stop_frame", "behaviour"} <= set(pd.read_csv(whole / "animal_1_bouts.csv"))
    assert set(pd.read_csv(whole / "summary.csv")["video"]) == {"animal_0", "animal_1"}
    outputs = features(whole / "animal_1_outputs.h5")
    assert outputs["mobilenet_v2/spatial_features"].shape[0] == outputs["sequence/logits"].shape[0] == FRAMES
    assert [path.name for path in whole.iterdir() if path.name.startswith(".")] == []


def test_a_pack_gives_what_its_videos_give(mice_model: Path, mice_videos: Path, whole: Path, tmp_path: Path) -> None:
    pack = ps.pack(ps.Videos(mice_videos, size="64x64"), tmp_path / "mice.pack", codec="raw")
    ethograms: Any = ps.predict(mice_model, pack.path, device="cpu")
    for ethogram in ethograms:
        np.testing.assert_array_equal(
            ethogram.probabilities, features(whole / f"{ethogram.name}_outputs.h5")["sequence/P"]
        )


def test_several_devices_give_the_same(mice_model: Path, mice_videos: Path, whole: Path, tmp_path: Path) -> None:
    ps.predict(mice_model, mice_videos, output=tmp_path / "out", device=["cpu", "cpu"])
    for name in ("animal_0", "animal_1"):
        assert_same(features(tmp_path / "out" / f"{name}_outputs.h5"), features(whole / f"{name}_outputs.h5"))


@pytest.mark.slow
@pytest.mark.parametrize("frames", [10, 70])
def test_a_killed_prediction_goes_on_with_the_same_command(
    mice_model: Path, mice_videos: Path, whole: Path, tmp_path: Path, frames: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "predictions"
    command = [sys.executable, KILLED, mice_model, mice_videos, output, str(frames)]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    assert not (output / "animal_0_outputs.h5").exists()
    begun: list[int] = []
    taken_up = gathering.taken_up
    monkeypatch.setattr(
        "penstock.prediction.behaviour.watching.taken_up",
        lambda *given: begun.append(given[2].frames) or taken_up(*given),
    )
    done = run_here("predict", mice_model, mice_videos, "-o", output, "--device", "cpu")
    assert done.exit_code == 0 and str(output) in done.out
    assert begun[0] >= frames - 10 and begun[1] == 0
    for name in ("animal_0", "animal_1"):
        assert_same(features(output / f"{name}_outputs.h5"), features(whole / f"{name}_outputs.h5"))
        for ending in ("_ethogram.csv", "_bouts.csv", "_predictions.csv"):
            assert (output / f"{name}{ending}").read_text() == (whole / f"{name}{ending}").read_text()


@pytest.mark.slow
def test_what_is_done_is_not_done_again_unless_something_changed(
    mice_model: Path, mice_videos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    videos, output = tmp_path / "videos", tmp_path / "out"
    shutil.copytree(mice_videos, videos)
    seen: list[str] = []
    make = gathering.ethogram_of
    monkeypatch.setattr(gathering, "ethogram_of", lambda *given: seen.append(given[3]) or make(*given))
    for options, expected in (({}, ["animal_0", "animal_1"]), ({}, []), ({"fresh": True}, ["animal_0", "animal_1"])):
        seen.clear()
        ps.predict(mice_model, videos, output=output, device="cpu", **options)
        assert seen == expected
    shutil.copy(videos / "animal_0.mp4", videos / "animal_1.mp4")
    seen.clear()
    ps.predict(mice_model, videos, output=output, device="cpu")
    assert seen == ["animal_1"]
    seen.clear()
    ps.predict(mice_model, videos, output=output, device="cpu", fit="pad")
    assert seen == ["animal_0", "animal_1"]


def test_a_video_that_cannot_be_read_does_not_stop_the_others(
    mice_model: Path, mice_videos: Path, tmp_path: Path
) -> None:
    videos = tmp_path / "videos"
    shutil.copytree(mice_videos, videos)
    (videos / "animal_00.mp4").write_bytes(b"no video")
    with pytest.raises(ps.DataError, match=r"animal_00\.mp4: it cannot be opened as a video"):
        ps.predict(mice_model, videos, output=tmp_path / "out", device="cpu")
    assert len(list((tmp_path / "out").glob("*_outputs.h5"))) == 2
    ps.predict(mice_model, videos, output=tmp_path / "out", device="cpu", on_bad_sample="skip")
    record = json.loads((tmp_path / "out" / "predictions.json").read_text())
    assert "cannot be opened" in record["videos"]["animal_00"]["problems"][0]["what"]
    assert record["videos"]["animal_0"]["frames"] == FRAMES


def test_frames_that_do_not_decode_keep_their_rows_and_are_named(
    mice_model: Path, mice_videos: Path, tmp_path: Path
) -> None:
    path = tmp_path / "mouse.mp4"
    shutil.copy(mice_videos / "animal_0.mp4", path)
    damage_packets(path, [FRAMES // 2])
    ethogram: Any = ps.predict(mice_model, path, device="cpu")
    assert len(ethogram) == FRAMES
    assert any("not decode" in problem.what and problem.row is not None for problem in ethogram.problems)
    damage_packets(path, range(FRAMES - 5, FRAMES))
    ethogram = ps.predict(mice_model, path, device="cpu")
    assert FRAMES - 5 <= len(ethogram) < FRAMES
    assert "the last" in ethogram.problems[-1].what


def test_a_pack_without_some_frames_keeps_the_numbers_times_and_labels_of_its_video(
    mice_model: Path, tmp_path: Path
) -> None:
    path = write_video(tmp_path / "mouse.mp4", FRAMES, options={"g": "1"})
    damage_packets(path, [0, FRAMES // 2])
    of_file: Any = ps.predict(mice_model, path, device="cpu")
    present = np.arange(FRAMES) % 3
    table = pd.DataFrame({name: (present == at).astype(int) for at, name in enumerate(of_file.behaviours)})
    table.to_csv(tmp_path / "mouse.csv")
    source = ps.Videos(path, labels=tmp_path / "mouse.csv", size="64x64")
    pack = ps.pack(source, tmp_path / "mice.pack", codec="raw", split="val", on_bad_sample="skip", progress=False)
    kept = pack.column("frame")
    assert sorted({*kept.tolist(), 0, FRAMES // 2}) == list(range(FRAMES)) and len(kept) == FRAMES - 2
    (of_pack,) = ps.predict(mice_model, pack.path, device="cpu")
    assert len(of_pack) == len(of_file) == FRAMES
    np.testing.assert_array_equal(of_pack.probabilities, of_file.probabilities)
    np.testing.assert_allclose(of_pack.times_s, of_file.times_s, atol=1e-6)
    assert [(one.row, "left out" in one.what) for one in of_pack.problems] == [(0, True), (FRAMES // 2, True)]

    model = ps.load(mice_model, device="cpu")
    for videos in (None, path):
        (judged,) = labelled_ethograms(model, pack, AnswerOptions(1, 1, "raise", False), videos)
        assert judged.labels is not None and len(judged.labels) == FRAMES
        np.testing.assert_array_equal(judged.labels[kept].argmax(axis=1), present[kept])
        np.testing.assert_array_equal(np.delete(judged.labels, kept, axis=0), -1)


def test_one_video_goes_into_one_file(mice_model: Path, mice_videos: Path, whole: Path, tmp_path: Path) -> None:
    video = mice_videos / "animal_0.mp4"
    ps.predict(mice_model, video, output=tmp_path / "mouse.csv", device="cpu")
    assert (tmp_path / "mouse.csv").read_text() == (whole / "animal_0_predictions.csv").read_text()
    ps.predict(mice_model, video, output=tmp_path / "mouse.h5", device="cpu")
    assert_same(features(tmp_path / "mouse.h5"), features(whole / "animal_0_outputs.h5"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mouse.csv", "mouse.h5"]
    with pytest.raises(ps.OptionError, match="is one file, and there are 2 videos"):
        ps.predict(mice_model, mice_videos, output=tmp_path / "mice.csv", device="cpu")


def test_wrong_options_are_said_at_once(mice_model: Path, mice_videos: Path, tmp_path: Path) -> None:
    with pytest.raises(ps.OptionError, match="no option 'frsh' for behaviour. Did you mean 'fresh'"):
        ps.predict(mice_model, mice_videos, frsh=True)
    with pytest.raises(ps.OptionError, match="fit='squeeze' is not one of"):
        ps.predict(mice_model, mice_videos, fit="squeeze")
    with pytest.raises(ps.DataError, match="no video"):
        ps.predict(mice_model, tmp_path, device="cpu")
    with pytest.raises(ps.OptionError, match="must be a path, a list of paths, a pack or a Source"):
        ps.predict(mice_model, 7, device="cpu")


def test_the_command_shows_how_much_time_each_behaviour_takes(mice_model: Path, mice_videos: Path) -> None:
    done = run_here("predict", mice_model, mice_videos / "animal_0.mp4", "--device", "cpu")
    assert done.exit_code == 0
    assert "walk" in done.out and "mean_bout_s" in done.out


@pytest.mark.parametrize("output", [None, "out", "mouse.csv"])
def test_the_command_tells_beside_its_results_which_frames_do_not_decode(
    mice_model: Path, tmp_path: Path, output: str | None
) -> None:
    path = write_video(tmp_path / "mouse.mp4", 80, options={"g": "12", "bf": "0"})
    damage_packets(path, [20, 21, 64])
    where = () if output is None else ("-o", tmp_path / output)
    for _ in range(2):  # what was done before has the same problems
        done = run_here("predict", mice_model, path, "--device", "cpu", *where)
        assert done.exit_code == 0, done.err
        assert "mouse.mp4 frame 20: frames 20 to 21 do not decode" in done.err
        assert "mouse.mp4 frame 64: frame 64 does not decode" in done.err
        assert "decode" not in done.out


def test_the_command_tells_five_problems_and_how_many_more(mice_model: Path, tmp_path: Path) -> None:
    (tmp_path / "videos").mkdir()
    for number in range(2):
        path = write_video(tmp_path / "videos" / f"mouse_{number}.mp4", 80, options={"g": "12", "bf": "0"})
        damage_packets(path, [20, 40, 64, 75])
    (tmp_path / "videos" / "none.mp4").write_bytes(b"no video")
    command = ("predict", mice_model, tmp_path / "videos", "--device", "cpu", "-o", tmp_path / "out")
    failed = run_here(*command)
    assert failed.exit_code == 3 and "mouse_0.mp4 frame 20" in failed.err and "cannot be opened" in failed.err
    done = run_here(*command, "--on-bad-sample", "skip", "--json")
    assert done.exit_code == 0 and len(done.json["files"]) == 1
    assert done.err.count("warning: /") == 5 and "… and 4 more; predictions.json lists all." in done.err


def test_labelled_data_are_scored_by_predicting_their_videos(
    mice_model: Path, mice_videos: Path, whole: Path, tmp_path: Path
) -> None:
    labels = str(mice_videos.parent / "labels" / "{stem}.csv")
    videos = ps.Videos(mice_videos, labels=labels, size="64x64", classes=["background", "walk", "turn", "rear"])
    pack = ps.pack(videos, tmp_path / "mice.pack", codec="raw")
    with pytest.raises(ps.PenstockError, match="turn"):
        ps.evaluate(mice_model, pack, device="cpu")
    model = ps.load(mice_model, device="cpu")
    truth = pack.column("labels")[:, [0, 1, 3]]
    for name in ("animal_0", "animal_1"):
        frame = pd.DataFrame(truth[pack.column("group") == name], columns=list(model.classes))
        frame["background"] = (frame[["walk", "rear"]] != 1).all(axis=1).astype(int)
        frame.to_csv(tmp_path / f"{name}.csv")
    fewer = ps.Videos(mice_videos, labels=str(tmp_path / "{stem}.csv"), size="64x64")
    found = ps.evaluate(model, ps.pack(fewer, tmp_path / "fewer.pack", codec="raw", split="everything"))
    beside = ps.evaluate(whole, truth=str(tmp_path / "{stem}.csv"))
    assert found.samples == 2 * FRAMES and list(found.table["video"]) == ["animal_0", "animal_1"]
    for name, value in beside.scores.items():
        assert found.scores[name] == pytest.approx(value, nan_ok=True), name
    assert [one["video"] for one in found.details["ethograms"]] == ["animal_0", "animal_1"]


def test_new_videos_are_seen_as_those_of_the_training_were_packed(
    mice_model: Path, mice_videos: Path, tmp_path: Path
) -> None:
    videos = ps.Videos(mice_videos, size="64x64", fit="pad", crop="8,0,80,64")
    pack = ps.pack(videos, tmp_path / "mice.pack", codec="raw", split="everything")
    trained_on = packed_by(pack.split("everything"))
    given = ps.load(mice_model, device="cpu")
    model = ps.Model(given.task, given.network, meta={"input": trained_on}, device="cpu")
    assert framing_of(model, EthogramOptions()) == make_framing((64, 64), "pad", "8,0,80,64")
    assert framing_of(given, EthogramOptions()) == make_framing((64, 64), "stretch", None)
    assert framing_of(model, EthogramOptions(fit="crop")) == make_framing((64, 64), "crop", "8,0,80,64")
