"""Finding boxes in rasters of any size and in images: windows are read ahead, answered, and put together."""
