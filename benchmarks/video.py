"""Videos: frames in sequence, ethograms of new videos, and what they cost in memory.

python -m benchmarks.feed --setup video decord   install the other readers, each in an environment of its own
python -m benchmarks.video                       everything: clips several single predict memory start
python -m benchmarks.video several single        only these
python -m benchmarks.video --json video.json     the figures, with the versions of everybody

Random clips are workload C of benchmarks.feed. `several` and `single` bring every frame to 224×224: of videos side by
side, a thread for each, and of one long video, for which the others have the threads of their decoders. `predict` is
the whole chain of `fast` on the CPU, beside the same networks in a plain loop: a stack of 11 frames for each frame,
whose ten motions are all computed anew. `memory` is the peak of that chain over hours of video.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import penstock as ps
from benchmarks.contests import check_names, parser_of, run
from benchmarks.feeding import data, ethogram_chain, long_videos
from benchmarks.feeding.contest import Expected
from benchmarks.feeding.contestants import Entry
from benchmarks.feeding.environments import Environments
from benchmarks.feeding.workloads import LEVELS_APART, WORKERS, Workload, clips
from benchmarks.memory import peak_of
from benchmarks.rounds import Result, seconds
from benchmarks.tables import BEST_PEER, OURS, Bar, Row, Value, compare

SIDE = 224
SEVERAL, JOINED = 20, 6  # recordings, side by side and in one file
LEAST_SEVERAL, LEAST_SINGLE, LEAST_PREDICT = 1.1, 1.6, 5.0
# Hours of video at a low rate: what counts is whether memory grows with them.
SHORT_HOURS, LONG_HOURS, MOST_GROWTH = 1, 10, 1.05
MOST_START_SECONDS = 0.1
NAMES = ["clips", "several", "single", "predict", "memory", "start"]
LIBRARIES = (("OpenCV", "opencv", "video"), ("PyAV", "pyav", "video"), ("torchcodec", "torchcodec", "video"))


def several(home: Path) -> Workload:
    """Every frame of some videos, two at a time."""
    folder, _ = data.original_videos(home)
    paths = sorted(folder.glob("*.mp4"))[:SEVERAL]
    return _sequence(home, "several videos in sequence, 224×224", paths, len(paths), WORKERS, LEAST_SEVERAL)


def single(home: Path) -> Workload:
    """Every frame of one long video."""
    path = long_videos.joined(home, JOINED)
    return _sequence(home, "one long video in sequence, 224×224", [path], JOINED, 1, LEAST_SINGLE)


def _sequence(home: Path, title: str, paths: list[Path], recordings: int, streams: int, least: float) -> Workload:
    peers = [
        Entry(name, "sequence_frames", environment, settings={"library": library})
        for name, library, environment in (*LIBRARIES, ("decord", "decord", "decord"))
    ]
    return Workload(
        title,
        "frames/s",
        Expected(
            recordings * long_videos.FRAMES,
            (SIDE, SIDE, 3),
            "uint8",
            long_videos.mean_level(home, recordings),
            LEVELS_APART,
        ),
        [Entry(OURS, "penstock_sequence", role="penstock"), *peers],
        [Bar(OURS, BEST_PEER, least)],
        {"home": str(home), "paths": [str(path) for path in paths], "streams": streams},
    )


def predict(home: Path, _: Environments) -> list[Row]:
    """The whole chain beside a plain loop over the same networks; both must say the same."""
    ours, theirs = ethogram_chain.rates(home)
    values = [
        Value(OURS, ours, "penstock", note="from the file to tables and HDF5"),
        Value("all motions anew", theirs, "peer", note="the networks alone, an 11-frame stack for each frame"),
    ]
    return [
        compare("ethogram with fast on the CPU", "frames/s", values, [Bar(OURS, "all motions anew", LEAST_PREDICT)])
    ]


def memory(home: Path, _: Environments) -> list[Row]:
    """The peak of predict for one hour and for ten."""
    peaks = [
        peak_of(ethogram_chain.code_for(home, long_videos.hours_of_video(home, hours))).anonymous_mb
        for hours in (SHORT_HOURS, LONG_HOURS)
    ]
    growth = peaks[1] / peaks[0]
    frames = (LONG_HOURS - SHORT_HOURS) * long_videos.HOURLY_FRAMES
    each = (peaks[1] - peaks[0]) * 2**20 / frames  # what the answer itself is made of: times, logits, probabilities
    figure = f"{growth:.3f} × ({peaks[0]:,.0f} and {peaks[1]:,.0f} MB, {each:,.0f} bytes for each of {frames:,} frames)"
    what = f"peak memory of predict, {LONG_HOURS} hours beside {SHORT_HOURS}"
    bar = Result(what, figure, f"< {MOST_GROWTH} ×", growth < MOST_GROWTH)
    values = [
        Value(f"{hours} h", peak, "penstock") for hours, peak in zip((SHORT_HOURS, LONG_HOURS), peaks, strict=True)
    ]
    return [Row(what, "MB", tuple(values), (bar,), smaller_is_better=True)]


def start(home: Path, _: Environments) -> list[Row]:
    """Channel statistics of a pack: they are in it."""
    path = data.video_pack(home, "jpeg")
    taken = seconds(lambda: ps.open(path).statistics["mean"])
    what, must = "channel statistics of 18,000 frames, from a pack", f"< {MOST_START_SECONDS} s"
    return [Row(what, "s", (), (Result(what, f"{taken:.4f} s", must, taken < MOST_START_SECONDS),))]


WORKLOADS: dict[str, Callable[[Path], Workload]] = {"clips": clips, "several": several, "single": single}
LINES: dict[str, list[Callable[[Path, Environments], Iterable[Row]]]] = {
    "predict": [predict],
    "memory": [memory],
    "start": [start],
}


def main() -> None:
    parser = parser_of(__doc__, NAMES)
    options: Any = parser.parse_args()
    check_names(parser, options.names, NAMES)
    run("video", options, WORKLOADS, LINES)


if __name__ == "__main__":
    main()
