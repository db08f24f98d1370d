"""What libFuzzer begins with, written anew each time: a few small JPEGs and TFRecords.

python -m tests.fuzzing.seeds FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path

import simplejpeg

from record_making import classified, pixels, write_records


def write_seeds(folder: Path) -> None:
    """The first byte says which code reads the rest; see c_entries.c."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, sampling in enumerate(("444", "422", "420", "440", "Gray")):
        image = pixels(number, 48, 36)
        data = simplejpeg.encode_jpeg(image, quality=60, colorsubsampling=sampling)
        (folder / f"jpeg-{sampling}").write_bytes(b"J" + data)
    records = write_records(folder / "records", [classified(number) for number in range(2)])
    records.write_bytes(b"R" + records.read_bytes())


if __name__ == "__main__":
    write_seeds(Path(sys.argv[1]))
