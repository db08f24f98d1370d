"""Packs: a Source on disk, made to be read fast. Writing, reading and checking them.

The way in:                                        The way out:
  options        what a user may choose              manifest    pack.json
  preconditions  what is asked before it begins      index       one row per sample, memory-mapped
  splits, splitting  groups → train, val, …          mapping     one shard as mapped memory
  work, parallel     many samples at once, in order  columns     Arrow columns as rows
  preparing      one sample → one row                reader      `open` and Pack
  stamps         whether a sample has changed        verifying   every checksum
  statistics     channel sums without rounding
  shards         rows → record batches → shard files
  journal, locking   going on after an interruption, one writer at a time
  estimating     what each codec would cost for a video
  writer         the verb `pack`                   Both: layout (names, versions, Arrow schema)
"""
