"""Store: what the inside of Penstock asks of a source, all of it declared here.

`as_store` stands at the doors (Flow, pack, export, check, doctor, predict, Subset …) and makes a Store of whatever a
user has. Behind the doors nobody probes a source: every member is there, and its default is made from the four that
each source has.
"""

from __future__ import annotations

import importlib
import os
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from penstock.errors import DataError, HopError, OptionError, PenstockError, Problem, Sealed
from penstock.problems import refuse_problems
from penstock.samples.schema import Raw, Sample, Schema
from penstock.samples.source import Origin, ReadSample, Segment, Source, as_segment
from penstock.storage.mapped import refuse_lost_files
from penstock.wording import counted

Numbers = NDArray[np.int64]
Member = TypeVar("Member")
# Buffers, and for each image which one it is in, its first byte there, and then what the method says.
Places = tuple[tuple[Any, ...], Numbers]
# As image files, as pixels in mapped memory, or decoded in a cache.
ImageStorage = Literal["encoded", "raw", "kept"]
# What whoever trains on a copy of the data must know too.
HANDED_ON = ("flip", "fit", "crop")


class ImagesAt(NamedTuple):
    """Where the images of some samples are: the store below all views, their numbers there, and how many a sample."""

    store: Store
    indices: Numbers
    frames: int


class FieldsAt(NamedTuple):
    """Where the fields beside the images of some samples are."""

    store: Store
    indices: Numbers


class Store(Sealed):
    """A Source that also says what it can do faster, or at all, than `read` and `decode` allow.

    Indices are numbers of samples of this store, as int64 arrays where there are several. A member that answers None
    cannot tell; whoever asks then takes the plain way. All of it must be safe in threads.
    """

    # The four of a Source

    _schema: Schema

    @property
    def schema(self) -> Schema:
        return self._schema

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def read(self, index: int) -> Raw:
        """The bytes of a sample: what the disk has to do."""

    @abstractmethod
    def decode(self, raw: Raw) -> Sample:
        """Every field of a sample: what the CPU has to do."""

    # For users

    @property
    def classes(self) -> tuple[str, ...]:
        return self.schema.classes

    def __getitem__(self, index: int) -> Sample:
        """One sample, read and decoded; negative numbers count from the end. A file that fails is named."""
        refuse_problems(self, leaves_unreadable=True)
        position = checked_index(index, len(self))
        hop = "read"
        try:
            raw = self.read(position)
            hop = "decode"
            return self.decode(raw)
        except PenstockError:  # some of which are ValueErrors, and say already where they come from
            raise
        except (OSError, ValueError) as error:
            raise HopError(hop, self.describe(position), str(error)) from error
        finally:
            refuse_lost_files()

    def __iter__(self) -> Iterator[Sample]:
        return (self[index] for index in range(len(self)))

    @property
    def kind(self) -> type:
        """The class that messages and fingerprints name: that of the user, where the user wrote the source."""
        return type(self)

    def describe(self, index: int) -> str:
        """Name a sample in an error message: its key where that is known without decoding, else its number."""
        try:
            key = self.annotations(index).get("key") if self.knows_annotations else None
        except (OSError, ValueError, DataError):  # what is damaged may not even tell its name
            key = None
        return f"sample {index} ({key})" if key else f"sample {index}"

    # Where it comes from

    @property
    def path(self) -> Path | None:
        """The file or folder, where there is one."""
        return None

    @property
    def tells_origins(self) -> bool:
        """Whether `origin` names the files of samples: where a store has an own one."""
        return type(self).origin is not Store.origin

    def origin(self, index: int) -> Origin:
        """The file behind a sample and its state, to notice that it changed."""
        return Origin(self.kind.__name__, index, 0)

    def fingerprint(self) -> str | None:
        """A text that changes with whatever is in the store."""
        return None

    def made_from(self) -> Mapping[str, Any]:
        """What a pack says of where it came from."""
        return {}

    def made_from_for_copies(self) -> Mapping[str, Any]:
        """What whoever copies its samples, into a pack or an export, says of where they come from."""
        return self.made_from()

    def notes(self) -> Mapping[str, Any]:
        """What a pack says of how it came about, such as boxes that were assigned."""
        return {}

    def counts(self) -> Mapping[str, int]:
        """What there is beside samples and classes, for `check`."""
        return {}

    @property
    def taken(self) -> Mapping[str, str]:
        """Which column of the files each field was taken from."""
        return {}

    @property
    def left_out(self) -> Mapping[str, str]:
        """Columns of the files that became no field, and why."""
        return {}

    @property
    def has_gaps(self) -> bool:
        """Whether samples were left out when it was made."""
        return False

    # What is wrong with it

    def problems(self) -> Sequence[Problem]:
        """What is wrong with the user's files, all at once, as far as it costs no reading of pixels."""
        return ()

    def damage(self) -> Sequence[Problem]:
        """Files that cannot be read, found by reading them."""
        return ()

    @property
    def damage_is_known(self) -> bool:
        """Whether asking for the damage costs nothing."""
        return False

    def damaged(self, indices: Numbers) -> Mapping[int, str]:
        """Which of these samples do not have their checksum, by position, and why; asked where a flow finds bytes
        by `encoded_places` or `pixel_places`."""
        return {}

    # Fields beside the images

    @property
    def knows_annotations(self) -> bool:
        """Whether `annotations` costs no decoding: where a store has an own one."""
        return type(self).annotations is not Store.annotations

    def annotations(self, index: int) -> Sample:
        """Every field of a sample but the pixels, and key, group, split where they are known."""
        sample = self.decode(self.read(index))
        pixels = {field.name for field in self.schema.fields if field.kind in ("image", "mask")}
        return {name: value for name, value in sample.items() if name not in pixels}

    def annotations_many(self, indices: Numbers) -> list[Sample] | None:
        """The same for several samples, where that is faster than one by one."""
        return None

    def column(self, name: str) -> NDArray[Any]:
        """One stored value for every sample: a field, or key, group, split; KeyError where there is no such column."""
        raise KeyError(f"{self.kind.__name__} has no columns.")

    def gather(self, name: str, indices: Numbers) -> NDArray[Any] | None:
        """A field of these samples as one array."""
        return None

    def label_counts(self) -> NDArray[np.int64] | None:
        """How often each class occurs in each sample, where one sample may have several."""
        return None

    def group_numbers(self) -> NDArray[Any] | None:
        """A number for each sample that is the same within a group."""
        return None

    def frame_numbers(self) -> Numbers | None:
        """The number of each frame in its video."""
        if "frame" not in self.schema:
            return None
        gathered = self.gather("frame", np.arange(len(self)))
        try:
            return np.asarray(self.column("frame") if gathered is None else gathered, np.int64)
        except (KeyError, TypeError, ValueError):
            return None

    def guard(self, position: int) -> int:
        """How many samples from this one on may show what those before it show, when one group is cut in two."""
        return 0

    # Images

    @property
    def image_storage(self) -> ImageStorage | None:
        """What the kernel can make images from; None where only `decode` can."""
        return None

    @property
    def encoded_images(self) -> bool:
        """Whether `read` gives the bytes of an image file, which a pack may keep as they are."""
        return self.image_storage == "encoded"

    @property
    def stores_pixels(self) -> bool:
        """Whether images are stored as plain pixels, which need no decoding."""
        return self.image_storage == "raw"

    @property
    def stored_codec(self) -> str | None:
        """The codec in which its images are stored, where there is one for all."""
        return None

    @property
    def default_codec(self) -> str:
        """How pixels without such bytes are stored unless the user says otherwise."""
        return "png"

    @property
    def statistics(self) -> Mapping[str, Any] | None:
        """Channel mean and std of values 0 to 255, and which images they were taken from."""
        return None

    def image_sizes(self, indices: Numbers) -> Numbers | None:
        """Width and height of these images, n×2."""
        return None

    def uniform_image_size(self) -> tuple[int, int] | None:
        """Width and height, where all images are known to have the same."""
        return None

    def encoded_places(self, indices: Numbers) -> Places | None:
        """Where encoded images are in mapped memory; the third number of each is its length."""
        return None

    def pixel_places(self, indices: Numbers) -> Places:
        """Where raw pixels are in mapped memory; width and height follow. Only where `image_storage` is "raw"."""
        raise AssertionError(f"{self.kind.__name__} stores no pixels")

    def kept_pixels(self, index: int) -> NDArray[np.uint8]:
        """The decoded image of a sample. Only where `image_storage` is "kept"."""
        raise AssertionError(f"{self.kind.__name__} keeps no pixels")

    # Many samples at once

    def read_many(self, indices: Sequence[int], allocate: Callable[[int], memoryview]) -> list[ReadSample | None]:
        """What `read` and `origin` give for several samples, read into memory that `allocate(size)` gives; None for
        those that are better asked for one by one."""
        return [None] * len(indices)

    @property
    def parts(self) -> Sequence[Segment] | None:
        """The videos or rasters that it consists of, if its samples are cheap only in their order."""
        return None

    def shard_numbers(self, indices: Numbers) -> NDArray[Any] | None:
        """A number for each sample that is the same where samples are read together: a shard, a file."""
        return None

    @property
    def bytes(self) -> int | None:
        """The size of all files, where pages of them can be given back."""
        return None

    def will_need(self, indices: Numbers) -> int:
        """These samples will be wanted, in this order: fetch their bytes ahead. How many bytes that are."""
        return 0

    def resident_share(self, indices: Numbers) -> float:
        """Which share of these samples is here: in memory, nothing to wait for."""
        return 1.0

    def give_back(self, indices: Numbers) -> None:
        """These samples are done with: let go of memory that only they need."""

    # Views and locks

    @property
    def below(self) -> tuple[Store, ...]:
        """The stores that this one is a view of."""
        return ()

    def images_at(self, indices: Numbers) -> ImagesAt:
        """Where the images of these samples are, below all views."""
        return ImagesAt(self, indices, 1)

    def fields_at(self, indices: Numbers) -> FieldsAt:
        """Where the fields beside the images are: below subsets and caches; for clips at the frame that labels them."""
        return FieldsAt(self, indices)

    @property
    def lock_name(self) -> str | None:
        """What the lock that reading takes is called, if it takes one."""
        return None

    def lock_wait_seconds(self) -> float:
        """How long the calling thread has waited for that lock."""
        return 0.0

    def prepare(self) -> None:
        """What must be done once before an epoch, in the process of the consumer."""

    @property
    def is_prepared(self) -> bool:
        """Whether `prepare` would change nothing."""
        return True

    @property
    def gives_batches(self) -> bool:
        """Whether a sample is a whole batch already."""
        return False


def checked_index(index: int, length: int) -> int:
    """Turn a Python index into 0..length-1, or raise IndexError with the limits."""
    position = int(index)
    if position < 0:
        position += length
    if not 0 <= position < length:
        raise IndexError(f"sample {index} does not exist: there are {counted(length, 'sample')}.")
    return position


def objects(values: Sequence[Any]) -> NDArray[Any]:
    """An array of objects, also where all of them have one shape."""
    array = np.empty(len(values), object)
    for number, value in enumerate(values):
        array[number] = value
    return array


def as_store(given: Any) -> Store:
    """What the inside works with: a path as `penstock.open` reads it, a user's Source with the members of a Store."""
    if isinstance(given, (str, os.PathLike)):
        given = importlib.import_module("penstock").open(given)  # which stands above whoever asks
    if isinstance(given, Store):
        return given
    if not isinstance(given, Source):
        raise OptionError(
            f"{type(given).__name__} is not a source: it needs schema, len, read(index) and decode(raw). "
            "For files use ps.Images, ps.Boxes, ps.Rasters or ps.Videos."
        )
    return SourceStore(given)


def handed_on(made_from: Mapping[str, Any]) -> dict[str, Any]:
    """How often a project mirrors clips, and how frames were brought to their size."""
    return {name: made_from[name] for name in HANDED_ON if name in made_from}


class SourceStore(Store):
    """A user's Source as a Store. The one place that looks for members by their names."""

    def __init__(self, source: Source) -> None:
        self.source = source

    def _offered(self, name: str, otherwise: Member) -> Member:
        """A member of the user's source, or what a Store has in its place."""
        found: Member = getattr(self.source, name, otherwise)
        return found

    @property
    def schema(self) -> Schema:
        return self.source.schema

    @property
    def kind(self) -> type:
        return type(self.source)

    def __len__(self) -> int:
        return len(self.source)

    def __repr__(self) -> str:
        return repr(self.source)

    def read(self, index: int) -> Raw:
        return self.source.read(index)

    def decode(self, raw: Raw) -> Sample:
        return self.source.decode(raw)

    @property
    def path(self) -> Path | None:
        found: str | Path | None = self._offered("path", None)
        return None if found is None else Path(found)

    @property
    def tells_origins(self) -> bool:
        return hasattr(self.source, "origin") and bool(self._offered("tells_origins", True))

    def origin(self, index: int) -> Origin:
        return self._offered("origin", super().origin)(index)

    def fingerprint(self) -> str | None:
        return self._offered("fingerprint", super().fingerprint)()

    def made_from(self) -> Mapping[str, Any]:
        return self._offered("made_from", super().made_from)()

    def notes(self) -> Mapping[str, Any]:
        return self._offered("notes", super().notes)()

    def counts(self) -> Mapping[str, int]:
        return self._offered("counts", super().counts)()

    def problems(self) -> Sequence[Problem]:
        return self._offered("problems", super().problems)()

    def damage(self) -> Sequence[Problem]:
        return self._offered("damage", super().damage)()

    @property
    def damage_is_known(self) -> bool:
        return bool(self._offered("damage_is_known", False))

    def damaged(self, indices: Numbers) -> Mapping[int, str]:
        return self._offered("damaged", super().damaged)(indices)

    @property
    def knows_annotations(self) -> bool:
        return hasattr(self.source, "annotations")

    def annotations(self, index: int) -> Sample:
        return dict(self._offered("annotations", super().annotations)(index))

    def annotations_many(self, indices: Numbers) -> list[Sample] | None:
        return self._offered("annotations_many", super().annotations_many)(indices)

    def column(self, name: str) -> NDArray[Any]:
        return np.asarray(self._offered("column", super().column)(name))

    def gather(self, name: str, indices: Numbers) -> NDArray[Any] | None:
        return self._offered("gather", super().gather)(name, indices)

    def label_counts(self) -> NDArray[np.int64] | None:
        return self._offered("label_counts", super().label_counts)()

    def group_numbers(self) -> NDArray[Any] | None:
        return self._offered("group_numbers", super().group_numbers)()

    def guard(self, position: int) -> int:
        return self._offered("guard", super().guard)(position)

    @property
    def image_storage(self) -> ImageStorage | None:
        if self._offered("stores_pixels", False):
            return "raw"
        return "encoded" if self._offered("encoded_images", False) else None

    @property
    def stored_codec(self) -> str | None:
        """The codec in which its images are stored, where there is one for all."""
        return None

    @property
    def default_codec(self) -> str:
        return str(self._offered("default_codec", super().default_codec))

    @property
    def statistics(self) -> Mapping[str, Any] | None:
        return self._offered("statistics", super().statistics)

    def image_sizes(self, indices: Numbers) -> Numbers | None:
        return self._offered("image_sizes", super().image_sizes)(indices)

    def uniform_image_size(self) -> tuple[int, int] | None:
        return self._offered("uniform_image_size", super().uniform_image_size)()

    def encoded_places(self, indices: Numbers) -> Places | None:
        return self._offered("encoded_places", super().encoded_places)(indices)

    def pixel_places(self, indices: Numbers) -> Places:
        return self._offered("pixel_places", super().pixel_places)(indices)

    def read_many(self, indices: Sequence[int], allocate: Callable[[int], memoryview]) -> list[ReadSample | None]:
        return list(self._offered("read_many", super().read_many)(indices, allocate))

    @property
    def parts(self) -> Sequence[Segment] | None:
        found: Sequence[Any] | None = self._offered("parts", None)
        return None if found is None else tuple(map(as_segment, found))

    def shard_numbers(self, indices: Numbers) -> NDArray[Any] | None:
        return self._offered("shard_numbers", super().shard_numbers)(indices)

    @property
    def bytes(self) -> int | None:
        return self._offered("bytes", super().bytes)

    def will_need(self, indices: Numbers) -> int:
        return self._offered("will_need", super().will_need)(indices)

    def resident_share(self, indices: Numbers) -> float:
        return self._offered("resident_share", super().resident_share)(indices)

    def give_back(self, indices: Numbers) -> None:
        self._offered("give_back", super().give_back)(indices)

    def prepare(self) -> None:
        self._offered("prepare", super().prepare)()

    @property
    def lock_name(self) -> str | None:
        if not hasattr(self.source, "lock_wait_seconds"):
            return None
        return str(self._offered("lock_name", "a lock"))

    def lock_wait_seconds(self) -> float:
        return float(self._offered("lock_wait_seconds", super().lock_wait_seconds)())
