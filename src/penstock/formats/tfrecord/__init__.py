"""TFRecord files as a Source."""
