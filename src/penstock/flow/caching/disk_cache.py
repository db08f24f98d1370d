"""A cache on disk: a pack named by the fingerprint of the source and of the steps before the cache.

    cache/
      3f0c…e1.pack            made when the first epoch starts; a run that was killed goes on where it stopped
      3f0c…e1.pack.partial    while it is being made

Another source, other steps, another function in a step, another decoder: another name. Nothing is ever looked up in a
pack that was made of something else.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from penstock.codecs import kernel
from penstock.errors import HopError, PackError, RecipeError
from penstock.flow.caching.cached_fields import INDEX, cache_schema, from_row, to_row
from penstock.flow.caching.cached_source import CachedSource
from penstock.flow.caching.identity import UnknownIdentity, identity_of_chain, identity_of_source, identity_of_value
from penstock.flow.fingerprints import digest
from penstock.flow.making.leaves import Leaf
from penstock.flow.making.one_sample import made_sample
from penstock.flow.order.draws import Numbers
from penstock.samples import Raw, Sample, Store

if TYPE_CHECKING:
    from penstock.packing.reader import Pack

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
            raise RecipeError(
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
        raise RecipeError("there is nothing to cache.")

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
            raise RecipeError(f'cache(folder): {name}: {error}. Make them alike, or use cache("memory").') from error
