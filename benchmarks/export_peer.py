"""TensorFlow's own writer in an environment that has it: waits for a line with a folder, writes, answers.

The photographs are in memory before it begins. Run by benchmarks.export, never by hand.
"""

from __future__ import annotations

import sys
from pathlib import Path

import tensorflow as tf  # type: ignore[import-not-found,unused-ignore]

SHARD_BYTES = 128 << 20


def _example(path: Path, data: bytes, label: int, size: tuple[int, int]) -> tf.train.Example:
    def texts(value: bytes) -> tf.train.Feature:
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))

    def numbers(value: int) -> tf.train.Feature:
        return tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))

    features = {
        "image/encoded": texts(data),
        "image/format": texts(b"jpeg"),
        "image/filename": texts(f"{path.parent.name}/{path.name}".encode()),
        "image/height": numbers(size[1]),
        "image/width": numbers(size[0]),
        "image/class/label": numbers(label),
        "image/class/text": texts(path.parent.name.encode()),
        "group": texts(f"{path.parent.name}/{path.name}".encode()),
    }
    return tf.train.Example(features=tf.train.Features(feature=features))


def main() -> None:
    folder, serialised = Path(sys.argv[1]), sys.argv[2] == "serialised"
    paths = sorted(folder.rglob("*.jpg"))
    classes = sorted({path.parent.name for path in paths})
    content = [(path, path.read_bytes(), classes.index(path.parent.name), (500, 375)) for path in paths]
    records = [_example(*one).SerializeToString() for one in content] if serialised else []
    print("ready", flush=True)
    for line in sys.stdin:
        target = Path(line.strip())
        target.mkdir(parents=True)
        _write(target, content, records)
        print("done", flush=True)


def _write(target: Path, content: list[tuple[Path, bytes, int, tuple[int, int]]], records: list[bytes]) -> None:
    number, written = 0, 0
    writer = tf.io.TFRecordWriter(str(target / "samples-00000.tfrecord"))
    for place, one in enumerate(content):
        record = records[place] if records else _example(*one).SerializeToString()
        if written >= SHARD_BYTES:
            writer.close()
            number, written = number + 1, 0
            writer = tf.io.TFRecordWriter(str(target / f"samples-{number:05d}.tfrecord"))
        writer.write(record)
        written += len(record)
    writer.close()


if __name__ == "__main__":
    main()
