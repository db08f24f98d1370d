"""What a user may choose when exporting, checked once, at the door."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from penstock.codecs.images import DEFAULT_QUALITY
from penstock.errors import OptionError, nearest, one_of
from penstock.formats.registry import written_formats
from penstock.samples import Store
from penstock.storage.writing.options import AUTO, RUNNING, SampleOptions

SHARDED = ("tfrecord", "webdataset", "hdf5")
BOXED = ("yolo", "coco", "voc", "csv")
CODECS = (AUTO, "jpeg", "png", "webp", "raw")

# People write both; Penstock has one word for it.
SPELLINGS = {"jpg": "jpeg"}

# A shard of this size is read in about a second, and some thousand of them hold a large dataset.
DEFAULT_SHARD_MB = 128

# What looks like the name of a file would become the name of a folder.
FILE_ENDINGS = frozenset(
    {".h5", ".hdf5", ".tfrecord", ".tfrecords", ".tar", ".npy", ".npz", ".csv", ".json", ".xml", ".yaml", ".zip"}
)


@dataclass(frozen=True)
class ExportOptions:
    """How to export.

    to              the format: tfrecord, hdf5, directory, webdataset, numpy, yolo, coco, voc or csv
    layout          directory: named or numbered files; hdf5: deepethogram; numpy: npz; auto: the usual one
    codec           auto: bytes as they are; frames of videos as jpeg, raw pixels of one size as an array in hdf5,
                    other pixels as png; raw: pixels (hdf5, numpy)
    quality         of jpeg and webp, 1 to 100
    longest_side    shrink so that the longest side has this many pixels (never enlarges)
    shortest_side   the same for the shortest side
    size            WIDTHxHEIGHT, exactly, without keeping the proportions
    shard_samples   a shard is closed at so many samples (tfrecord, webdataset, hdf5)
    shard_mb        a shard is closed at this size; 128 for tfrecord and webdataset where neither is given
    on_bad_sample   raise, or skip: leave it out, count it, list it with its reason
    workers         auto: one per core
    executor        thread, or process for sources whose own Python code holds the interpreter lock
    memory          auto: half of what is free; or a size such as "2 GB": what large images may take while decoded
    """

    to: str
    layout: str = AUTO
    codec: str = AUTO
    quality: int = DEFAULT_QUALITY
    longest_side: int | None = None
    shortest_side: int | None = None
    size: str | None = None
    shard_samples: int | None = None
    shard_mb: int | None = None
    on_bad_sample: str = "raise"
    workers: int | str = AUTO
    executor: str = "thread"
    memory: int | str = AUTO
    sync: bool = True

    def __post_init__(self) -> None:
        one_of("to", self.to, tuple(written_formats()))
        one_of("codec", self.codec, CODECS)
        self._check_layout()
        self._check_codec()
        self._check_shards()
        self.preparing()

    def _check_layout(self) -> None:
        legal = (AUTO, *written_formats()[self.to].layouts)
        if self.layout not in legal:
            others = [f"{layout} ({to})" for to, one in written_formats().items() for layout in one.layouts]
            raise OptionError(
                f"layout={self.layout!r} is not a layout of {self.to}, which has {', '.join(legal)}."
                f"{nearest(str(self.layout), legal)} Layouts of all formats: {', '.join(others)}."
            )

    def _check_codec(self) -> None:
        if self.to == "numpy" and self.codec not in (AUTO, "raw"):
            raise OptionError(f"codec={self.codec!r} does not fit numpy, whose arrays hold pixels. Leave it out.")
        if self.codec == "raw" and (self.to not in ("numpy", "hdf5") or self.layout == "deepethogram"):
            what = "the layout deepethogram" if self.layout == "deepethogram" else self.to
            raise OptionError(f"codec='raw' does not fit {what}: its images are files. Use jpeg, png or webp.")
        if self.layout == "deepethogram" and self.codec == "webp":
            raise OptionError("codec='webp' does not fit the layout deepethogram. Use jpeg or png.")

    def _check_shards(self) -> None:
        for name, most in (("shard_samples", 10**9), ("shard_mb", 1 << 20)):
            value = getattr(self, name)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
                raise OptionError(f"{name}={value!r} must be a whole number from 1 to {most:,}.")
            if self.to not in SHARDED:
                raise OptionError(f"{name} is for {', '.join(SHARDED)}; {self.to} has no shards. Leave it out.")

    @property
    def worker_count(self) -> int:
        return self.preparing().worker_count

    def preparing(self) -> SampleOptions:
        """The options that decide how samples are read, resized and encoded."""
        return SampleOptions(
            codec="raw" if self.to == "numpy" else self.codec,
            quality=self.quality,
            longest_side=self.longest_side,
            shortest_side=self.shortest_side,
            size=self.size,
            on_bad_sample=self.on_bad_sample,
            workers=self.workers,
            executor=self.executor,
            memory=self.memory,
        )

    def content(self) -> dict[str, Any]:
        """The options that decide what is in the export; these are written into it."""
        return {name: value for name, value in asdict(self).items() if name not in RUNNING}


def make_options(given: Mapping[str, Any]) -> ExportOptions:
    """Options from keywords; an unknown one is an error that names the nearest."""
    legal = [field.name for field in fields(ExportOptions)]
    for name in given:
        if name not in legal:
            raise OptionError(f"export has no option {name!r}.{nearest(name, legal)} Options: {', '.join(legal)}.")
    codec = given.get("codec", AUTO)
    return ExportOptions(**{**given, "codec": SPELLINGS.get(codec, codec)})


def with_pixels_kept(options: ExportOptions, source: Store) -> ExportOptions:
    """Raw pixels of one size stay an array in HDF5, unless the user asks for a codec."""
    if (options.to, options.layout, options.codec) != ("hdf5", AUTO, AUTO) or source.image_storage != "raw":
        return options
    is_uniform = options.size is not None or source.uniform_image_size() is not None
    return replace(options, codec="raw") if is_uniform else options


def check_folder_name(path: str | Path) -> None:
    """An export is a folder, and its name must not promise a file."""
    ending = Path(path).suffix.lower()
    if ending in FILE_ENDINGS:
        raise OptionError(
            f"an export is a folder, and {path} is named like a {ending} file. Choose a name such as "
            f"{Path(path).with_suffix('')}."
        )
