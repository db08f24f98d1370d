"""Other formats beside the pack of the same data: random reads through one flow, JPEG → 224×224 → batch 64.

python -m benchmarks.formats                   everything: tfrecord tar
python -m benchmarks.formats tar --rounds 9
"""

from __future__ import annotations

import functools
import io
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import penstock as ps
from benchmarks.contests import check_names, parser_of, run
from benchmarks.feeding import data
from benchmarks.feeding.contestants import Entry
from benchmarks.feeding.workloads import BATCH, WORKERS, Workload, expected_images
from benchmarks.tables import Bar
from penstock.formats.tfrecord.examples import encode_example
from penstock.formats.tfrecord.framing import frame

LEAST_OF_THE_PACK = 0.9
SHARD_SAMPLES = 1024


def _shards(pack: ps.Pack) -> Iterator[tuple[int, range]]:
    for number, start in enumerate(range(0, len(pack), SHARD_SAMPLES)):
        yield number, range(start, min(start + SHARD_SAMPLES, len(pack)))


def _made(folder: Path, write: Callable[[ps.Pack, Path], None], pack: ps.Pack) -> Path:
    if not folder.exists():
        unfinished = folder.with_name(folder.name + ".unfinished")
        unfinished.mkdir(parents=True, exist_ok=True)
        write(pack, unfinished)
        (unfinished / "classes.txt").write_text("\n".join(pack.classes))
        unfinished.rename(folder)
    return folder


def _write_records(pack: ps.Pack, folder: Path) -> None:
    labels = pack.column("label")
    for number, indices in _shards(pack):
        with (folder / f"images-{number:05d}.tfrecord").open("wb") as file:
            for index in indices:
                label = int(labels[index])
                features = {"image/encoded": pack.read(index).data, "image/class/label": label}
                file.write(frame(encode_example({**features, "image/class/text": pack.classes[label]})))


def _write_tars(pack: ps.Pack, folder: Path) -> None:
    labels = pack.column("label")
    for number, indices in _shards(pack):
        with tarfile.open(folder / f"images-{number:05d}.tar", "w") as archive:
            for index in indices:
                for ending, content in (("jpg", bytes(pack.read(index).data)), ("cls", b"%d" % labels[index])):
                    member = tarfile.TarInfo(f"{index:08d}.{ending}")
                    member.size = len(content)
                    archive.addfile(member, io.BytesIO(content))


WRITERS: dict[str, Callable[[ps.Pack, Path], None]] = {"tfrecord": _write_records, "tar": _write_tars}


def workload(name: str, home: Path) -> Workload:
    """The same JPEGs from the format and from the pack, shuffled as a whole."""
    pack = data.kept_pack(home)
    folder = _made(home / f"formats-{name}", WRITERS[name], ps.Pack(pack))
    return Workload(
        f"{name} beside the pack of the same JPEGs",
        "images/s",
        expected_images(pack, "uint8"),
        [
            Entry(f"Penstock, {name}", "penstock_images", role="penstock", settings={"pack": str(folder)}),
            Entry("Penstock, pack", "penstock_images", role="limit"),
        ],
        [Bar(f"Penstock, {name}", "Penstock, pack", LEAST_OF_THE_PACK)],
        {"home": str(home), "pack": str(pack), "layout": "uint8", "batch": BATCH, "workers": WORKERS},
    )


WORKLOADS: dict[str, Callable[[Path], Workload]] = {name: functools.partial(workload, name) for name in WRITERS}


def main() -> None:
    parser = parser_of(__doc__, WORKLOADS)
    options = parser.parse_args()
    check_names(parser, options.names, WORKLOADS)
    run("formats", options, WORKLOADS)


if __name__ == "__main__":
    main()
