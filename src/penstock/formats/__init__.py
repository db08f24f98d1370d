"""Every format that Penstock reads or writes, a folder for each: recognising, reading and writing stand together.

tfrecord      webdataset    hdf5    numpy    arrow (Parquet, Hugging Face)    mds
boxes         COCO, YOLO, VOC, tables, layers: each gives rows → one entry per image; whole images with boxes
images        class folders, plain folders, name patterns, tables; image files are written here
rasters       overlapping tiles of rasters of any size, with the boxes that fall on them
videos        frames of videos with a vector of behaviours each; deepethogram: projects of it
exports       what any export of Penstock says of itself, and how it is read again

`registry` lists them; `format` says what a format is. In each folder `format.py` says how it is recognised, and
`…_writer.py` writes it.

What they share: `columns` and `indexed` (formats with named columns, formats of few large files), `exporting` (the
verb `export`), `paths` and `patterns` (which files are meant), `text_tables` and `tables` (CSV, Parquet and
DataFrames with line numbers), `reading` (options of reading), `grouping` (what must stay together), `provenance`
(what a pack says of its source), and `checking` (the verb `check`).
"""
