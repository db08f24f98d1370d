"""tf.data on raw pixels in memory: pad, random crop, flip."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from benchmarks.feeding.protocol import Batches, Epoch, Settings, serve

SIDE, PADDING, CLASSES = 32, 4, 10


def augmented(image: Any, label: Any) -> tuple[Any, Any]:
    image = tf.pad(image, [[PADDING, PADDING], [PADDING, PADDING], [0, 0]])
    return tf.image.random_flip_left_right(tf.image.random_crop(image, [SIDE, SIDE, 3])), label


def build(settings: Settings) -> Epoch:
    pixels, workers = np.load(settings["array"]), settings["workers"]
    data = tf.data.Dataset.from_tensor_slices((pixels, np.arange(len(pixels)) % CLASSES)).shuffle(len(pixels))
    data = data.map(augmented, num_parallel_calls=workers).batch(settings["batch"]).prefetch(4)
    options = tf.data.Options()
    options.threading.private_threadpool_size = workers
    data = data.with_options(options)

    def epoch_of(epoch: int) -> Batches:
        return iter(data.as_numpy_iterator())

    return epoch_of


if __name__ == "__main__":
    serve(["tensorflow-cpu"], build)
