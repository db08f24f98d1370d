"""WebDataset tar shards as a Source."""
