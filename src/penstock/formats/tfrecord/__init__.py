"""TFRecord files of tf.train.Examples: `framing` is the file, `examples` the wire format, `tfrecords` the Source."""
