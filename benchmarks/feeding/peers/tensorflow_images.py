"""tf.data: decode_and_crop_jpeg, which decodes the part that is needed, from files or TFRecords."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import tensorflow as tf

from benchmarks.feeding.protocol import Batches, Epoch, Settings, serve

SIDE, ATTEMPTS = 224, 10
MEAN, STD = (123.675, 116.28, 103.53), (58.395, 57.12, 57.375)
RECORD = {"image": tf.io.FixedLenFeature([], tf.string), "label": tf.io.FixedLenFeature([], tf.int64)}


def listed(settings: Settings) -> tuple[list[str], list[int]]:
    paths = sorted(Path(settings["folder"]).glob("class_*/*.jpg"))
    return [str(path) for path in paths], [int(path.parent.name.removeprefix("class_")) for path in paths]


def records(settings: Settings) -> Path:
    return Path(settings["home"]) / "images.tfrecord"


def prepare(settings: Settings) -> None:
    target = records(settings)
    if settings["store"] != "tfrecord" or target.exists():
        return
    unfinished = target.with_suffix(".unfinished")
    with tf.io.TFRecordWriter(str(unfinished)) as writer:
        for path, label in zip(*listed(settings), strict=True):
            image = tf.train.Feature(bytes_list=tf.train.BytesList(value=[Path(path).read_bytes()]))
            mark = tf.train.Feature(int64_list=tf.train.Int64List(value=[label]))
            example = tf.train.Example(features=tf.train.Features(feature={"image": image, "label": mark}))
            writer.write(example.SerializeToString())
    unfinished.rename(target)


def random_resized_crop(shape: Any) -> Any:
    """y, x, height, width: all attempts at once, the first that fits; as torchvision draws them."""
    height, width = tf.cast(shape[0], tf.float32), tf.cast(shape[1], tf.float32)
    areas = height * width * tf.random.uniform([ATTEMPTS], 0.08, 1.0)
    ratios = tf.exp(tf.random.uniform([ATTEMPTS], math.log(3 / 4), math.log(4 / 3)))
    widths, heights = tf.round(tf.sqrt(areas * ratios)), tf.round(tf.sqrt(areas / ratios))
    fits = tf.logical_and(widths <= width, heights <= height)
    chosen = tf.argmax(fits)
    w = tf.where(fits[chosen], widths[chosen], tf.minimum(width, tf.round(height * 4 / 3)))
    h = tf.where(fits[chosen], heights[chosen], tf.minimum(height, tf.round(width * 4 / 3)))
    corner = tf.random.uniform([2]) * (tf.stack([height - h, width - w]) + 1)
    return tf.cast(tf.stack([tf.floor(corner[0]), tf.floor(corner[1]), h, w]), tf.int32)


def augmented(data: Any, layout: str) -> Any:
    window = random_resized_crop(tf.io.extract_jpeg_shape(data))
    image = tf.io.decode_and_crop_jpeg(data, window, channels=3, dct_method="INTEGER_ACCURATE")
    image = tf.image.random_flip_left_right(tf.image.resize(image, [SIDE, SIDE], "bilinear"))
    if layout == "uint8":
        return tf.cast(tf.round(image), tf.uint8)
    return tf.transpose((image - MEAN) / STD, [2, 0, 1])


def encoded(settings: Settings) -> Any:
    """The bytes and labels, in random order."""
    if settings["store"] == "tfrecord":
        read = tf.data.TFRecordDataset(str(records(settings)), buffer_size=1 << 23)
        return read.shuffle(1024).map(lambda record: _parsed(record), num_parallel_calls=1)
    paths, labels = listed(settings)
    files = tf.data.Dataset.from_tensor_slices((paths, labels)).shuffle(len(paths))
    return files.map(lambda path, label: (tf.io.read_file(path), label), num_parallel_calls=settings["workers"])


def _parsed(record: Any) -> tuple[Any, Any]:
    example = tf.io.parse_single_example(record, RECORD)
    return example["image"], example["label"]


def build(settings: Settings) -> Epoch:
    workers, layout = settings["workers"], settings["layout"]
    data = encoded(settings).map(lambda bytes_, label: (augmented(bytes_, layout), label), num_parallel_calls=workers)
    data = data.batch(settings["batch"]).prefetch(4)
    options = tf.data.Options()
    options.threading.private_threadpool_size = workers
    options.threading.max_intra_op_parallelism = 1
    data = data.with_options(options)

    def epoch_of(epoch: int) -> Batches:
        return iter(data.as_numpy_iterator())

    return epoch_of


if __name__ == "__main__":
    tf.config.threading.set_inter_op_parallelism_threads(2)
    tf.config.threading.set_intra_op_parallelism_threads(2)
    serve(["tensorflow-cpu"], build, prepare)
