"""Tar shards as WebDataset writes them, read in random order."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from penstock.codecs.headers import UnreadableImage
from penstock.codecs.images import decode_image, decode_mask
from penstock.errors import DataError, Problem
from penstock.formats.indexed.class_numbers import First, classes_from, stated_classes
from penstock.formats.indexed.indexed_source import IndexedSource
from penstock.formats.indexed.kept_indexes import index_name, kept_index
from penstock.formats.indexed.mapped_files import FileState, MappedFiles, state_of, unchanged
from penstock.formats.indexed.unpacking import unpacked_file
from penstock.formats.paths import PathLike, expand, natural
from penstock.formats.provenance import provenance
from penstock.formats.webdataset.tar_fields import Given, Wanted
from penstock.formats.webdataset.tar_index import OnMissing, TarOptions, make_index, place_columns, wanted_from
from penstock.formats.webdataset.tar_values import Values
from penstock.samples import Raw, Sample, Schema
from penstock.storage.locations import refuses_urls
from penstock.storage.plain_files import open_file
from penstock.wording import counted

ENDINGS = (".tar", ".tar.gz", ".tgz")


class WebDataset(IndexedSource):
    """Tar shards whose files share their name up to the first dot: 000001.jpg, 000001.cls, 000001.json.

    paths        a file, a pattern such as 'train-*.tar', a folder, or a list of these
    fields       which file becomes which field: {"image": "jpg;png", "label": "cls", "mask": "seg.png",
                 "caption": "json:text.en"}. A value is an ending, several with ; between, a place inside JSON, or a
                 ps.Field of such a name that says kind, dtype and shape. Without it the usual endings are looked for
    classes      names in their order, as a list, "A,B" or a file with one name per line; else as the files say
    first_class  the number of the first class, 0 or 1; "auto" is 1 where numbers can only be meant so
    on_missing   "raise", or "skip" samples that lack one of their files; they are listed by `problems()`

    An index is made when archives are opened for the first time, and kept in the cache folder. Archives that are
    compressed are unpacked there as well. Nothing is taken out of an archive as a file.
    """

    @refuses_urls()
    def __init__(
        self,
        paths: PathLike | Sequence[PathLike],
        *,
        fields: Given | None = None,
        classes: PathLike | Sequence[str] | None = None,
        first_class: First = "auto",
        on_missing: OnMissing = "raise",
    ) -> None:
        files = tar_files(paths)
        stated = None if fields is None else tuple(fields.items())
        options = TarOptions(stated, stated_classes(classes, files), first_class, on_missing)
        self._given = provenance(paths=paths, classes=classes)
        self._open([state_of(path) for path in files], options)

    def _open(self, originals: list[FileState], options: TarOptions) -> None:
        self._options = options
        files = MappedFiles([_plain(state) for state in originals])
        name = index_name(originals, options)
        index = kept_index(name, lambda: make_index(originals, files, options))
        self._wanted = wanted_from(index.about["wanted"])
        self._classes = classes_from(index.about["classes"])
        schema = Schema(tuple(one.field for one in self._wanted), self._classes.names)
        super().__init__(originals, files, index, name, schema)
        pixels = [field for field in schema.fields if field.kind in ("image", "mask")]
        self._image_storage = "encoded" if len(pixels) == 1 and schema.image is not None else None

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("origins", "_options", "_given")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._given = state["_given"]
        self._open(unchanged(state["origins"]), state["_options"])

    def decode(self, raw: Raw) -> Sample:
        sample = self.annotations(raw.index)
        for number, one in enumerate(self._wanted):
            if one.field.kind in ("image", "mask"):
                decode = decode_image if one.field.kind == "image" else decode_mask
                sample[one.field.name] = self._told(raw.index, decode, self._content(raw.index, number))
        return sample

    def annotations(self, index: int) -> Sample:
        def content(one: Wanted) -> bytes:
            return bytes(self._content(index, self._wanted.index(one)))

        return {**self.named(index), **self._told(index, Values(content).fields, self._wanted, self._classes)}

    def _content(self, index: int, number: int) -> memoryview:
        """The bytes of the file of one field."""
        offset, length = (int(self.columns[name][index]) for name in place_columns(number))
        return self.files[self._file[index]].data[offset : offset + length]

    def _told(self, index: int, function: Any, *arguments: Any) -> Any:
        """What a function gives; what it cannot read is told with archive and byte."""
        try:
            return function(*arguments)
        except UnreadableImage as error:
            where = f"{self.origins[self._file[index]].path} at byte {int(self.columns['at.offset'][index]):,}"
            raise UnreadableImage(f"{where}: {error}") from error

    def made_from(self) -> dict[str, Any]:
        return dict(self._given)


def tar_files(paths: PathLike | Sequence[PathLike]) -> list[str]:
    """The archives of a path, a pattern, a folder, or a list of these, in natural order."""
    found: dict[str, None] = {}
    for path in expand(paths):
        found.update(dict.fromkeys(_below(path) if path.is_dir() else [str(path.absolute())]))
    return list(found)


def _below(folder: Path) -> list[str]:
    names = [path.name for path in folder.iterdir() if path.is_file() and not path.name.startswith(".")]
    chosen = sorted((name for name in names if name.lower().endswith(ENDINGS)), key=natural)
    if not chosen:
        what = f"none of its {counted(len(names), 'file')} is a tar archive"
        raise DataError([Problem(str(folder), None, what, "Pass the archives themselves, or a pattern with *")])
    return [str((folder / name).absolute()) for name in chosen]


def _plain(state: FileState) -> FileState:
    with open_file(state.path) as file:
        is_compressed = file.read(2) == b"\x1f\x8b"
    return unpacked_file(state, "gzip", ".tar") if is_compressed else state
