"""Videos: exact frames, in order and by number, from files, folders and HDF5."""

from __future__ import annotations

import pickle
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import cv2
import h5py
import numpy as np
import pytest

import penstock as ps
from penstock.formats.checking import check
from penstock.samples import Sample, Segment, Source
from video_making import damage_packets, number_shown, numbered_frame, packet_places, turn_clockwise, write_video

# (name, how it is written): what people's cameras and programs leave.
KINDS: dict[str, dict[str, Any]] = {
    "long_gop.mp4": {"count": 70, "options": {"g": "250"}},
    "b_frames.mp4": {"options": {"g": "12", "bf": "3"}},
    "open_gop.mp4": {"count": 60, "options": {"x264-params": "open-gop=1:keyint=12:min-keyint=12:bframes=3:b-adapt=0"}},
    "intra_refresh.mp4": {"count": 60, "options": {"x264-params": "intra-refresh=1:keyint=15:bframes=0"}},
    "variable_rate.mp4": {"milliseconds": [n * 40 + (n * n % 17) for n in range(40)]},
    "yuv444.mp4": {"pixel_format": "yuv444p"},
    "ten_bits.mkv": {"codec": "libx265", "pixel_format": "yuv420p10le", "options": {"x265-params": "log-level=none"}},
    "b_frames.mkv": {"options": {"g": "12", "bf": "2"}},
    "b_frames.avi": {"options": {"g": "12", "bf": "2"}},
    "mpeg4.avi": {"codec": "mpeg4", "options": {"g": "12"}},
    "mpeg4_b_frames.avi": {"codec": "mpeg4", "options": {"g": "12", "bf": "2"}},
    "motion_jpeg.avi": {"codec": "mjpeg", "pixel_format": "yuvj420p"},
    "lossless.avi": {"codec": "ffv1", "pixel_format": "bgr0"},
    "raw_stream.h264": {"options": {"g": "12", "bf": "2"}},
    "transport.ts": {"options": {"g": "12", "bf": "2"}},
    "vp9.webm": {"codec": "libvpx-vp9", "options": {"g": "12", "deadline": "realtime", "cpu-used": "8"}},
    "one_frame.mp4": {"count": 1},
}


def streamed(source: Any) -> list[Sample]:
    return [part.decode(raw) for part in source.parts for raw in part.stream()]


def assert_same(one: Sample, other: Sample) -> None:
    assert one.keys() == other.keys()
    for name, value in one.items():
        np.testing.assert_array_equal(value, other[name], err_msg=name)


@pytest.mark.parametrize("name", KINDS)
def test_every_frame_is_the_same_in_order_and_by_number(tmp_path: Path, name: str) -> None:
    settings = dict(KINDS[name])
    path = write_video(tmp_path / name, **settings)
    count = settings.get("count", 40)
    videos = ps.Videos(path, size="48x32")
    in_order = streamed(videos)
    assert [number_shown(sample["image"]) for sample in in_order] == list(range(count))
    assert len(videos) == count
    for index in np.random.default_rng(3).permutation(count):
        assert_same(videos[int(index)], in_order[index])
        assert_same({"image": in_order[index]["image"], **videos.annotations(int(index))}, in_order[index])


@pytest.mark.parametrize("name", ["b_frames.mp4", "b_frames.avi", "mpeg4_b_frames.avi", "transport.ts", "b_frames.mkv"])
def test_times_begin_at_zero_and_go_up_by_the_frame_rate(tmp_path: Path, name: str) -> None:
    videos = ps.Videos(write_video(tmp_path / name, **KINDS[name]), size="16x16")
    assert videos.column("time") == pytest.approx(np.arange(40) / 25, abs=0.0006)


def test_times_of_a_variable_rate_are_those_of_the_file(tmp_path: Path) -> None:
    milliseconds = KINDS["variable_rate.mp4"]["milliseconds"]
    videos = ps.Videos(write_video(tmp_path / "a.mp4", milliseconds=milliseconds))
    assert videos.column("time") == pytest.approx(np.array(milliseconds) / 1000, abs=1e-4)


def test_a_stream_continues_from_any_frame(tmp_path: Path) -> None:
    part = ps.Videos(write_video(tmp_path / "a.mp4")).parts[0]
    whole = [part.decode(raw) for raw in part.stream()]
    for start in (0, 1, 17, 39):
        rest = [part.decode(raw) for raw in part.stream(start)]
        assert [sample["frame"] for sample in rest] == list(range(start, 40))
        assert_same(rest[0], whole[start])
    assert list(part.stream(40)) == []


def test_it_is_a_streamed_source(tmp_path: Path) -> None:
    videos = ps.Videos([write_video(tmp_path / "m1_a.mp4", 5), write_video(tmp_path / "m2_b.mp4", 7)])
    assert isinstance(videos, Source) and isinstance(videos.parts[0], Segment)
    assert [(part.key, part.group, part.split, part.expected) for part in videos.parts] == [
        ("m1_a", "m1_a", None, 5),
        ("m2_b", "m2_b", None, 7),
    ]
    sample = videos[5]
    assert (sample["key"], sample["group"], sample["frame"], sample["time"]) == ("m2_b#0", "m2_b", 0, 0.0)
    assert sample["image"].shape == (224, 224, 3) and sample["image"].dtype == np.uint8
    assert videos[-1]["key"] == "m2_b#6"
    with pytest.raises(IndexError):
        videos[12]
    assert videos.origin(11).file == (tmp_path / "m2_b.mp4").as_posix()


def test_group_from_reads_the_animal_out_of_the_name(tmp_path: Path) -> None:
    for name in ("m1_a.mp4", "m1_b.mp4", "m2_a.mp4"):
        write_video(tmp_path / name, 2)
    videos = ps.Videos(tmp_path, group_from="{animal}_*")
    assert videos.column("group").tolist() == ["m1"] * 4 + ["m2"] * 2
    with pytest.raises(ps.OptionError, match="pattern"):
        ps.Videos(tmp_path, group_from="animal")


def test_names_stay_unique_across_folders_and_endings(tmp_path: Path) -> None:
    for folder, name in (("a", "clip.mp4"), ("b", "clip.mp4"), ("b", "clip.avi")):
        (tmp_path / folder).mkdir(exist_ok=True)
        write_video(tmp_path / folder / name, 1)
    assert sorted(part.key for part in ps.Videos(tmp_path).parts) == ["a/clip", "b/clip.avi", "b/clip.mp4"]


def test_eight_threads_and_a_pickled_copy_see_the_same_as_one_thread(tmp_path: Path) -> None:
    for number in range(4):
        write_video(tmp_path / f"v{number}.mp4", 20, options={"g": "8", "bf": "2"})
    videos = ps.Videos(tmp_path, size="32x32")
    alone = streamed(videos)
    order = [int(index) for index in np.random.default_rng(0).permutation(len(alone))]
    for source in (videos, pickle.loads(pickle.dumps(videos))):
        with ThreadPoolExecutor(8) as pool:
            for index, sample in zip(order, pool.map(source.__getitem__, order), strict=True):
                assert_same(sample, alone[index])


def test_ffmpeg_does_not_write_to_the_terminal(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = write_video(tmp_path / "a.mp4")
    damage_packets(path, [39])
    capfd.readouterr()
    streamed(ps.Videos(path))
    assert capfd.readouterr() == ("", "")


# Damage


def test_a_damaged_end_leaves_the_frames_before_it_and_is_warned_about(tmp_path: Path) -> None:
    path = write_video(tmp_path / "a.mp4", 60, options={"g": "30", "bf": "2"})
    damage_packets(path, range(55, 60))
    videos = ps.Videos(path)
    shown = [number_shown(sample["image"]) for sample in streamed(videos)]
    assert shown == list(range(len(shown))) and 52 <= len(shown) < 60
    assert len(videos) == len(shown)
    assert [number_shown(videos[index]["image"]) for index in range(len(shown))] == shown
    assert videos.problems() == []
    (found,) = videos.damage()
    assert found.warning and f"decodes {len(shown)} frames; 5 packets after that are damaged" in found.what


def test_no_thread_of_the_decoder_loses_the_frames_in_front_of_a_damaged_last_one(tmp_path: Path) -> None:
    path = write_video(tmp_path / "a.mp4", options={"g": "12", "bf": "0"})
    damage_packets(path, [39])
    assert len(streamed(ps.Videos(path))) == 39


@pytest.mark.parametrize("ending", ["h264", "avi"])
def test_nor_where_packets_do_not_say_when_they_are_shown(tmp_path: Path, ending: str) -> None:
    path = write_video(tmp_path / f"a.{ending}", options={"g": "12", "bf": "0"})
    damage_packets(path, [39])
    assert len(streamed(ps.Videos(path))) == 39


def test_a_file_cut_off_gives_what_is_there(tmp_path: Path) -> None:
    path = write_video(tmp_path / "a.mkv", options={"g": "12", "bf": "0"})
    place, _ = packet_places(path)[31]
    path.write_bytes(path.read_bytes()[: place - 20])
    videos = ps.Videos(path)
    shown = [number_shown(sample["image"]) for sample in streamed(videos)]
    assert shown == list(range(len(shown))) and 28 <= len(shown) <= 31
    assert len(videos) == len(shown)


@pytest.mark.parametrize("flip_one_bit", [False, True], ids=["undecodable", "concealed by the decoder"])
def test_damage_in_the_middle_is_an_error_that_names_the_frame(tmp_path: Path, flip_one_bit: bool) -> None:
    path = write_video(tmp_path / "a.mp4", options={"g": "12", "bf": "0"})
    if flip_one_bit:
        place, size = packet_places(path)[12]
        data = bytearray(path.read_bytes())
        data[place + size // 2] ^= 0x10
        path.write_bytes(data)
    else:
        damage_packets(path, [12])
    videos = ps.Videos(path)
    given = []
    with pytest.raises(ps.DataError, match=r"a\.mp4 frame 12: frame 12 does not decode"):
        for raw in videos.parts[0].stream():
            given.append(number_shown(videos.parts[0].decode(raw)["image"]))
    assert given == list(range(12))  # the last before the damage too
    assert len(videos) == 40 and number_shown(videos[39]["image"]) == 39
    with pytest.raises(ps.DataError, match="frame 12 does not decode"):
        videos.read(12)
    assert [problem.warning for problem in videos.damage()] == [False]


def test_seeking_that_finds_other_pixels_falls_back_to_decoding_from_the_start(tmp_path: Path) -> None:
    path = write_video(tmp_path / "a.mp4", options={"g": "12"})
    videos = ps.Videos(path, size="48x32")
    expected = streamed(videos)
    table = videos.parts[0].footage.table()
    # A table that takes every frame for a keyframe makes decoding begin where it cannot.
    object.__setattr__(table, "keyframes", np.arange(40))
    for index in (39, 5, 30, 12):
        assert_same(videos[index], expected[index])


def test_a_video_that_was_exchanged_meanwhile_is_noticed(tmp_path: Path) -> None:
    videos = ps.Videos(write_video(tmp_path / "a.mp4", 20, options={"g": "5", "crf": "20"}))
    assert len(videos) == 20
    write_video(tmp_path / "a.mp4", 20, options={"g": "5", "crf": "40"})
    with pytest.raises(ps.DataError, match=r"a\.mp4: frame 12 is not the one that was there"):
        videos[12]


@pytest.mark.parametrize("content", [b"", b"\0" * 5000, b"RIFF nothing AVI " * 50], ids=["empty", "zeros", "junk"])
def test_unreadable_files_are_problems_of_their_own_and_not_of_the_others(tmp_path: Path, content: bytes) -> None:
    write_video(tmp_path / "good.mp4", 3)
    (tmp_path / "bad.mp4").write_bytes(content)
    videos = ps.Videos(tmp_path)
    (found,) = videos.problems()
    assert found.file.endswith("bad.mp4") and not found.warning
    with pytest.raises(ps.DataError, match=r"bad\.mp4"):
        len(videos)
    assert not check(videos).ok


def test_no_video_at_all_is_said_at_once(tmp_path: Path) -> None:
    with pytest.raises(ps.DataError, match="no such file"):
        ps.Videos(tmp_path / "*.mp4")
    with pytest.raises(ps.DataError, match="holds no video"):
        ps.Videos(tmp_path)


# Size, fit, crop, rotation


def test_size_none_keeps_the_frames_as_they_are(tmp_path: Path) -> None:
    assert ps.Videos(write_video(tmp_path / "a.mp4", 1), size=None)[0]["image"].shape == (64, 96, 3)


def test_pad_keeps_proportions_between_black_bars(tmp_path: Path) -> None:
    image = ps.Videos(write_video(tmp_path / "a.mp4", 1), size="96x96", fit="pad")[0]["image"]
    assert image.shape == (96, 96, 3)
    assert not image[:16].any() and not image[80:].any()
    assert image[70, :, 0].min() > 20


def test_fit_crop_takes_the_middle(tmp_path: Path) -> None:
    path = write_video(tmp_path / "a.mp4", 1)
    middle = ps.Videos(path, size="32x32", fit="crop")[0]["image"]
    by_hand = ps.Videos(path, size="32x32", crop=(16, 0, 64, 64))[0]["image"]
    np.testing.assert_array_equal(middle, by_hand)


def test_crop_comes_first_and_is_in_pixels_of_the_frame(tmp_path: Path) -> None:
    path = write_video(tmp_path / "a.mp4", 1, options={"crf": "8"})
    image = ps.Videos(path, size=None, crop="48,0,48,32")[0]["image"]
    assert image.shape == (32, 48, 3)
    whole = ps.Videos(path, size=None)[0]["image"]
    assert np.abs(image.astype(int) - whole[:32, 48:]).mean() < 3


def test_a_crop_outside_the_frame_is_a_problem_with_both_sizes(tmp_path: Path) -> None:
    videos = ps.Videos(write_video(tmp_path / "a.mp4", 2), crop=(50, 0, 50, 64))
    (found,) = videos.problems()
    assert "50,0,50,64" in found.what and "96×64" in found.what


@pytest.mark.parametrize("crop", ["1,2,3", (0, 0, 0, 5), (-1, 0, 5, 5), "a,b,c,d"])
def test_a_crop_that_is_none_is_refused(tmp_path: Path, crop: Any) -> None:
    with pytest.raises(ps.OptionError, match="crop"):
        ps.Videos(write_video(tmp_path / "a.mp4", 1), crop=crop)


def test_a_turned_video_stands_upright_and_its_crop_too(tmp_path: Path) -> None:
    path = write_video(tmp_path / "a.mp4", 3, options={"crf": "8"})
    stored = ps.Videos(path, size=None)[2]["image"]
    turn_clockwise(path)
    turned = ps.Videos(path, size=None)[2]["image"]
    np.testing.assert_array_equal(turned, np.rot90(stored, -1))
    part = ps.Videos(path, size=None, crop=(10, 30, 40, 20))[2]["image"]
    assert part.shape == (20, 40, 3)
    assert np.abs(part.astype(int) - turned[30:50, 10:50]).mean() < 3
    assert ps.Videos(path, size="32x48")[2]["image"].shape == (48, 32, 3)


# Folders of frames and HDF5


def write_frames(folder: Path, numbers: list[int], ending: str = ".png") -> None:
    folder.mkdir(parents=True)
    for number in numbers:
        bgr = cv2.cvtColor(numbered_frame(number), cv2.COLOR_RGB2BGR)
        assert cv2.imwrite(str(folder / f"frame_{number}{ending}"), bgr)


def test_a_folder_of_numbered_frames_is_a_video_in_natural_order(tmp_path: Path) -> None:
    write_frames(tmp_path / "mouse", list(range(12)))
    videos = ps.Videos(tmp_path / "mouse", size=None)
    assert [number_shown(sample["image"]) for sample in streamed(videos)] == list(range(12))
    np.testing.assert_array_equal(videos[10]["image"], numbered_frame(10))
    assert videos.problems() == [] and np.isnan(videos[3]["time"]) and videos[3]["key"] == "mouse#3"


def test_a_folder_of_such_folders_is_several_videos(tmp_path: Path) -> None:
    write_frames(tmp_path / "a", [0, 1])
    write_frames(tmp_path / "b", [0, 1, 2], ".jpg")
    assert [(part.key, part.expected) for part in ps.Videos(tmp_path).parts] == [("a", 2), ("b", 3)]


def test_gaps_and_other_sizes_among_frames_are_problems(tmp_path: Path) -> None:
    write_frames(tmp_path / "a", [0, 1, 2, 4, 5])
    cv2.imwrite(str(tmp_path / "a" / "frame_6.png"), np.zeros((10, 10, 3), np.uint8))
    (tmp_path / "a" / "frame_7.png").write_bytes(b"\x89PNG\r\n\x1a\nbroken")
    words = [problem.what for problem in ps.Videos(tmp_path).problems()]
    assert any("frame 4 follows frame 2" in word for word in words)
    assert any("10×10 px, most are 96×64" in word for word in words)
    assert any("cannot be read" in word for word in words)
    assert len(words) == 3


def test_a_broken_frame_is_named_when_it_is_decoded(tmp_path: Path) -> None:
    write_frames(tmp_path / "a", [0, 1])
    (tmp_path / "a" / "frame_1.png").write_bytes(b"broken")
    with pytest.raises(ps.DataError, match=r"frame_1\.png"):
        ps.Videos(tmp_path)[1]


def write_deepethogram_hdf5(path: Path, count: int) -> None:
    """As DeepEthogram's writer does it: RGB given to an encoder that takes BGR."""
    with h5py.File(path, "w") as file:
        frames = file.create_dataset("frame", (count,), dtype=h5py.vlen_dtype(np.uint8))
        for number in range(count):
            frames[number] = cv2.imencode(".png", numbered_frame(number))[1].ravel()


def test_the_exchanged_colours_of_deepethograms_hdf5_are_put_right(tmp_path: Path) -> None:
    write_deepethogram_hdf5(tmp_path / "mouse.h5", 6)
    videos = ps.Videos(tmp_path, size=None)
    for number in (4, 0, 5):
        np.testing.assert_array_equal(videos[number]["image"], numbered_frame(number))
    copy = pickle.loads(pickle.dumps(videos))
    with ThreadPoolExecutor(8) as pool:
        shown = [number_shown(sample["image"]) for sample in pool.map(copy.__getitem__, list(range(6)) * 8)]
    assert shown == list(range(6)) * 8


def test_an_hdf5_of_something_else_is_a_problem(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["scores"] = np.zeros(3)
    (tmp_path / "b.h5").write_bytes(b"no hdf5")
    words = sorted(problem.what for problem in ps.Videos(tmp_path).problems())
    assert "no dataset 'frame'; there are scores" in words[1] and "cannot be opened as HDF5" in words[0]


def test_sources_are_not_written_to(tmp_path: Path) -> None:
    path = write_video(tmp_path / "a.mp4", 3)
    before = path.read_bytes()
    path.chmod(0o444)
    tmp_path.chmod(0o555)
    try:
        ps.Videos(path)[2]
        assert path.read_bytes() == before and [file.name for file in tmp_path.iterdir()] == ["a.mp4"]
    finally:
        tmp_path.chmod(0o755)


def test_spaces_and_other_letters_in_names(tmp_path: Path) -> None:
    folder = tmp_path / "Mäuse 1"
    folder.mkdir()
    shutil.move(write_video(tmp_path / "a.mp4", 2), folder / "søvn test.mp4")
    assert ps.Videos(folder)[1]["key"] == "søvn test#1"


# Real files


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "count", "last_seconds"),
    [
        ("flies_courtship_120s.mp4", 3000, 119.96),
        ("dlc_openfield_m3v1mp4.mp4", 2330, 77.632557),
        ("sleap_centered_pair_small.mp4", 1100, 73.266667),
    ],
)
def test_real_videos_have_their_exact_frames(shared_data: Path, name: str, count: int, last_seconds: float) -> None:
    videos = ps.Videos(shared_data / "video" / name)
    assert len(videos) == count
    assert videos.column("time")[-1] == pytest.approx(last_seconds)
    wanted = sorted(int(index) for index in np.random.default_rng(1).integers(0, count, 6))
    part = videos.parts[0]
    found = {raw.index: part.decode(raw) for raw in part.stream() if raw.index in wanted}
    for index in reversed(wanted):
        assert_same(videos[index], found[index])


@pytest.mark.slow
def test_the_clips_of_ucf101_have_4648_frames_and_even_times(shared_data: Path) -> None:
    videos = ps.Videos(shared_data / "video" / "ucf101")
    assert len(videos.parts) == 32 and len(videos) == 4648
    assert check(videos).ok
    for part in videos.parts:
        steps = np.diff(part.footage.times())
        assert steps.min() > 0.03 and steps.max() < 0.05
