"""Raw files as Sources: images, boxes, rasters, videos. They are read and never written to."""
