"""Videos with a vector of behaviours for each frame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.formats.paths import PathLike
from penstock.formats.provenance import provenance
from penstock.formats.reading import parse_classes
from penstock.formats.videos.framing import DEFAULT_SIZE, make_framing
from penstock.formats.videos.label_matching import match_labels
from penstock.formats.videos.label_options import LabelOptions
from penstock.formats.videos.video_frames import VideoFrames, parts_of
from penstock.formats.videos.video_lists import list_videos
from penstock.storage.locations import refuses_urls


class Videos(VideoFrames):
    """Every frame of some videos, with its time and its labels; one part for each video.

    `videos` is a path, a pattern, a folder (of videos, of numbered frames, or of folders of these) or a list.
    `labels` is 'labels/{stem}.csv', a file, a folder, a dictionary or a DataFrame: DeepEthogram's rows, BORIS
    tabular events, a table video, start, stop, behaviour in `units` (stop exclusive when in frames), or a table video,
    behaviour for whole videos. `classes` fixes the behaviours and their order, and which columns of a frame table are
    read; `background` is put in front where it is missing. `subject` takes the events of one subject; "each" makes a
    class for each (mouseA:groom), "any" puts them together. `empty_labels` says what an empty cell of a frame table is:
    "error", or "unlabelled" (−1).
    Frames are cut to `crop` (x, y, width, height), then brought to `size` by `fit` (stretch, pad or crop).

    A sample holds image, labels (1, 0, −1 not labelled; only with labels), time (seconds since the first frame;
    not a number where the video has no clock) and frame (its number). Its key is `video#frame`, its group the
    video, or what `group_from`, such as '{animal}_*', finds in the name.

    Parts are read in order without knowing how many frames there are. `len`, `read` and `videos[i]` need the
    exact table of frames, which one full pass over each video makes on first use.
    """

    @refuses_urls()
    def __init__(
        self,
        videos: PathLike | Sequence[PathLike],
        *,
        labels: Any = None,
        size: str | tuple[int, int] | None = DEFAULT_SIZE,
        fit: str = "stretch",
        crop: Sequence[int] | str | None = None,
        classes: PathLike | Sequence[str] | None = None,
        units: str = "auto",
        subject: str | None = None,
        empty_labels: str = "error",
        group_from: str | None = None,
    ) -> None:
        known = parse_classes(classes)
        options = LabelOptions(known, known is not None, units, subject, empty_labels)
        framing = make_framing(size, fit, crop)
        named = list_videos(videos)
        found = None if labels is None else match_labels(labels, named, options)
        parts, problems = parts_of(named, framing, found, group_from)
        given = provenance(
            videos=videos,
            labels=labels,
            size=size,
            fit=fit,
            crop=crop,
            classes=classes,
            subject=subject,
            group_from=group_from,
        )
        super().__init__(parts, found, problems, given)
