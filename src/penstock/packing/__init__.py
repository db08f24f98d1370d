"""Packs: a Source on disk, made to be read fast. Writing, reading and checking them.

The way in:                                        The way out:
  options        what a user may choose              manifest    pack.json
  splits, splitting  groups → train, val, …          index       one row per sample, memory-mapped
  shards         rows → record batches → shard files mapping     one shard as mapped memory
  journal        which shards are finished           columns     Arrow columns as rows
  estimating     what each codec would cost          reader      `open` and Pack
  writer         the verb `pack`                     verifying   every checksum

Both: layout (names, versions, Arrow schema). How samples become rows, and how work goes on after an interruption, is
in `storage/writing`, for packs and exports alike.
"""
