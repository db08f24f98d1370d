"""Packs: a Source on disk, made to be read fast. Writing, reading and checking them.

options    what a user may choose              preparing  one sample → one row
splits     groups → train, val, …              parallel   many samples at once, in order
layout     names, versions, Arrow schema       shards     rows → record batches → shard files
columns    Arrow columns as rows               journal    what is finished, to go on after an interruption
index      one row per sample, memory-mapped   writer     the verb `pack`
manifest   pack.json                           reader     `open` and Pack
statistics channel means without rounding      verifying  every checksum
"""
