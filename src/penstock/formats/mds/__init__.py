"""Shards of MosaicML Streaming (MDS), read without that library."""
