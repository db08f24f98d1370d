"""Raw files as Sources. They are read and never written to.

images   class folders, plain folders, name patterns, tables
boxes    every format of boxes → rows → one entry per image; whole images with boxes
rasters  overlapping tiles of rasters of any size, with the boxes that fall on them
videos   frames of videos with a vector of behaviours each

What they share: `paths` and `patterns` (which files are meant), `text_tables` and `tables` (CSV, Parquet and
DataFrames with line numbers), `reading` (options of reading), `grouping` (what must stay together), `provenance`
(what a pack says of its source), and `checking` (the verb `check`).
"""
