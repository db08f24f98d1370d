"""WebDataset tar shards: `webdataset` is the Source, `webdataset_writer` writes them."""
