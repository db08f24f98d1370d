"""Keras' own way from a folder of images to batches: image_dataset_from_directory, prefetched as its guide says."""

from __future__ import annotations

import keras
import tensorflow as tf

from benchmarks.feeding.protocol import Batches, Epoch, Settings, serve


def build(settings: Settings) -> Epoch:
    data = keras.utils.image_dataset_from_directory(
        settings["folder"], image_size=(224, 224), batch_size=settings["batch"], shuffle=True, seed=7, verbose=False
    )
    data = data.prefetch(tf.data.AUTOTUNE)

    def epoch_of(epoch: int) -> Batches:
        return iter(data.as_numpy_iterator())

    return epoch_of


if __name__ == "__main__":
    tf.config.threading.set_inter_op_parallelism_threads(2)
    tf.config.threading.set_intra_op_parallelism_threads(2)
    serve(["keras", "tensorflow-cpu"], build)
