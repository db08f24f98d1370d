"""A cache on disk: a pack named by the fingerprint of the source and of the steps before the cache.

    cache/
      3f0c…e1.pack            made when the first epoch starts; a run that was killed goes on where it stopped
      3f0c…e1.pack.partial    while it is being made

Another source, other steps, another function in a step, another decoder: another name. Nothing is ever looked up in a
pack that was made of something else.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.codecs import kernel
from penstock.errors import HopError, OptionError, PackError
from penstock.flow.caching.cached_source import CachedSource
from penstock.flow.caching.identity import UnknownIdentity, identity_of_chain, identity_of_source, identity_of_value
from penstock.flow.making.leaves import Leaf, made_sample
from penstock.flow.order.orders import Numbers
from penstock.flow.state import digest
from penstock.samples import RESERVED, Field, Kind, Raw, Sample, Schema, Store

if TYPE_CHECKING:
    from penstock.packing.reader import Pack


# Samples of any kind as rows of a pack, and back, without losing a bit.
#
# A pack that is a cache is read by nobody else, so its schema follows from what the samples are, not from what they
# mean: pixels as an image, masks as a mask, numbers, texts, and all the rest as arrays. Every name gets a prefix,
# because a pack has columns of its own.


PREFIX = "sample."
INDEX = "index"  # the number that the sample has in its source


def cache_schema(sample: Sample, kinds: Mapping[str, Kind]) -> Schema:
    """The schema that stores samples like this one; OptionError where a pack cannot."""
    fields = [_field(name, value, kinds.get(name)) for name, value in _stored(sample).items()]
    return Schema((*fields, Field(INDEX, "number", "int64")))


def _stored(sample: Sample) -> Sample:
    """All of a sample but what it does not say of itself."""
    return {name: value for name, value in sample.items() if value is not None or name not in RESERVED}


def _field(name: str, value: Any, kind: Kind | None) -> Field:
    if isinstance(value, str):
        return Field(PREFIX + name, "text")
    array = np.asarray(value)
    if isinstance(value, bytes) or array.dtype.kind not in "biuf" or array.dtype.itemsize > 8:
        raise OptionError(
            f"cache(folder) keeps numbers, arrays of numbers and texts, and {name!r} is {type(value).__name__}"
            f"{f' of {array.dtype}' if isinstance(value, np.ndarray) else ''}. Leave it out before the cache, turn it "
            'into an array, or use cache("memory").'
        )
    if array.ndim == 0:
        return Field(PREFIX + name, "number", array.dtype.name)
    if kind == "image" and array.dtype == np.uint8 and array.ndim == 3 and array.shape[2] == 3 and array.size:
        return Field(PREFIX + name, "image")
    if kind == "mask" and array.dtype in (np.uint8, np.uint16) and array.ndim == 2 and array.size:
        return Field(PREFIX + name, "mask", array.dtype.name)
    return Field(PREFIX + name, "array", array.dtype.name, (None,) * array.ndim)


def to_row(sample: Sample, index: int, schema: Schema) -> Sample:
    """A sample as the pack stores it; ValueError where it is unlike the first one."""
    stored = _stored(sample)
    names = [field.name.removeprefix(PREFIX) for field in schema.fields if field.name != INDEX]
    if set(names) != set(stored):
        raise ValueError(f"it has the fields {', '.join(stored)}, and the first sample has {', '.join(names)}")
    for name in names:
        _check_like(schema[PREFIX + name], name, stored[name])
    return {**{PREFIX + name: stored[name] for name in names}, INDEX: np.int64(index)}


def _check_like(field: Field, name: str, value: Any) -> None:
    if field.kind == "text":
        if not isinstance(value, str):
            raise ValueError(f"{name!r} is {type(value).__name__}, and a text in the first sample")
        return
    array = np.asarray(value)
    dtype = np.dtype(field.dtype or "uint8")
    dimensions = {"number": 0, "image": 3, "mask": 2}.get(field.kind, len(field.shape or ()))
    if array.dtype != dtype or array.ndim != dimensions:
        raise ValueError(
            f"{name!r} is {array.dtype} of {array.ndim} dimensions, and {dtype} of {dimensions} in the first sample"
        )


def from_row(row: Mapping[str, Any]) -> Sample:
    """The sample as it was."""
    return {name.removeprefix(PREFIX): value for name, value in row.items() if name.startswith(PREFIX)}


VERSION = 1  # of how samples lie in such packs
SECONDS_BETWEEN_LOOKS = 0.2


class DiskCache(CachedSource):
    """A source over such a pack. Until `prepare` has made it, and for what is not in it, samples are made anew."""

    def __init__(self, leaf: Leaf, folder: Path, wanted: Numbers, skips_bad: bool) -> None:
        self.leaf, self._folder, self._wanted = leaf, folder.absolute(), wanted
        self._skips_bad = skips_bad
        self._pack: Pack | None = None
        self._rows: Numbers = np.zeros(0, np.int64)  # for each sample its row in the pack, or −1

    def read(self, index: int) -> Raw:
        if self._pack is None or self._rows[index] < 0:
            return Raw(index, None)
        return Raw(index, self._pack.read(int(self._rows[index])))

    def decode(self, raw: Raw) -> Sample:
        if self._pack is None or raw.data is None:
            return made_sample(self.leaf, raw.index)
        return from_row(self._pack.decode(raw.data))

    # The pack

    def prepare(self) -> None:
        """Make the pack, or open the one that is there; called in the consumer's process before an epoch."""
        self.source.prepare()
        if self._pack is None and len(self._wanted):
            self._open(self._folder / f"{self._name()}.pack")

    @property
    def is_prepared(self) -> bool:
        return self._pack is not None

    def _name(self) -> str:
        """What the samples of this cache depend on, as a name."""
        leaf, fusion = self.leaf, self.leaf.fusion
        try:
            known = [identity_of_source(leaf.source), identity_of_chain(leaf.chain)]
        except UnknownIdentity as unknown:
            raise OptionError(
                f"cache(folder) must notice when what it keeps is out of date, and cannot for {unknown}. Give it a "
                'method fingerprint() that returns a text, or use cache("memory").'
            ) from unknown
        made_by = [kernel.which(), None if fusion is None else (fusion.reduced, fusion.fast), VERSION]
        return digest([*known, made_by, identity_of_value(self._wanted)])

    def _open(self, path: Path) -> None:
        # Here and below: a flow without such a cache must not wait for the modules that write packs.
        from penstock.packing.reader import Pack
        from penstock.storage.writing.locking import BeingWritten

        rows = None if path.exists() else _CacheRows(self.leaf, self._wanted, self._skips_bad)
        while rows is not None and not path.exists():
            try:
                rows.write(path)
            except BeingWritten:
                # Another rank of this machine makes it: the lock goes when that process does, however it ends.
                time.sleep(SECONDS_BETWEEN_LOOKS)
            except PackError:
                if not path.exists():  # else another process finished it between our look and our lock
                    raise
        opened = Pack(path)
        places = np.full(len(self), -1, np.int64)
        places[np.asarray(opened.column(INDEX), np.int64)] = np.arange(len(opened))
        self._pack, self._rows = opened, places


class _CacheRows(Store):
    """The samples of a cache as the source of its pack."""

    def __init__(self, leaf: Leaf, wanted: Numbers, skips_bad: bool) -> None:
        self.leaf, self._wanted, self._skips_bad = leaf, wanted, skips_bad
        self._schema = cache_schema(self._first(), leaf.kinds)

    def _first(self) -> Sample:
        """The first sample that can be made."""
        for number, index in enumerate(self._wanted.tolist()):
            try:
                return made_sample(self.leaf, index)
            except HopError:
                if not self._skips_bad or number + 1 == len(self._wanted):
                    raise
        raise OptionError("there is nothing to cache.")

    def write(self, path: Path) -> None:
        """Make the pack, or go on with it."""
        from penstock.packing.writer import pack

        bad = "skip" if self._skips_bad else "raise"
        pack(self, path, resume=True, codec=self.codec, split="cache", on_bad_sample=bad, sync=False)

    @property
    def codec(self) -> str:
        """Plain pixels where all images have one size for certain; else PNG, which loses nothing either."""
        fusion = self.leaf.fusion
        has_image = self.schema.image is not None
        whole = fusion is not None and fusion.links == len(self.leaf.chain)
        return "raw" if has_image and whole else "png" if has_image else "auto"

    def __len__(self) -> int:
        return len(self._wanted)

    def read(self, index: int) -> Raw:
        return Raw(index, int(self._wanted[index]))

    def decode(self, raw: Raw) -> Sample:
        try:
            sample = made_sample(self.leaf, raw.data)
        except HopError as error:
            if self._skips_bad:
                raise ValueError(
                    str(error)
                ) from error  # the pack leaves it out, and it fails again when it is asked for
            raise
        try:
            return to_row(sample, raw.data, self.schema)
        except ValueError as error:
            name = self.leaf.source.describe(raw.data)
            raise OptionError(f'cache(folder): {name}: {error}. Make them alike, or use cache("memory").') from error
