"""Files of an archive that follow one another and share their name up to the first dot are one sample."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from penstock.errors import Problem
from penstock.formats.webdataset.tar_members import Member, NotRead


@dataclass
class TarSample:
    """The files of one sample by ending (all after the first dot of the name)."""

    key: str
    members: dict[str, Member] = field(default_factory=dict)

    @property
    def start(self) -> int:
        return min(member.header for member in self.members.values())

    @property
    def end(self) -> int:
        return max(member.offset + member.size for member in self.members.values())


class Grouping:
    """Samples of one archive, and what is wrong with its files."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._seen: set[str] = set()
        self.problems: list[Problem] = []

    def samples(self, entries: Iterable[Member | NotRead]) -> Iterator[TarSample]:
        current: TarSample | None = None
        for entry in entries:
            if isinstance(entry, NotRead):
                self._tell(f"{entry.name} at byte {entry.header:,}: {entry.why}", "Leave it out of the archive")
                continue
            key, ending = split_name(entry.name)
            if not ending:
                continue
            if current is None or current.key != key:
                if current is not None:
                    yield current
                current = TarSample(key)
                self._begin(key, entry)
            self._add(current, ending, entry)
        if current is not None:
            yield current

    def _begin(self, key: str, entry: Member) -> None:
        if key in self._seen:
            what = f"{entry.name} at byte {entry.header:,}: the key {key!r} was there before, with other files between"
            self._tell(what, "Files of one sample must follow one another, and keys must differ")
        self._seen.add(key)

    def _add(self, sample: TarSample, ending: str, entry: Member) -> None:
        if ending in sample.members:
            self._tell(f"{entry.name} at byte {entry.header:,} is there twice", "Give every sample a key of its own")
        sample.members[ending] = entry

    def _tell(self, what: str, remedy: str) -> None:
        self.problems.append(Problem(self._path, None, what, remedy))


def split_name(name: str) -> tuple[str, str]:
    """Key and ending; no ending for what belongs to no sample: hidden files, files that are about the archive."""
    folder, slash, base = name.rpartition("/")
    stem, _, ending = base.partition(".")
    if not stem or not ending or stem.startswith("__"):
        return name, ""
    return f"{folder}{slash}{stem}", ending.lower()
