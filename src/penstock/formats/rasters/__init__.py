"""Rasters as tiles.

raster_options   how to cut, and how pixels become RGB      raster_windows   open handles, row bands of large files
raster_files     one raster: its header, tiles, stream      raster_pixels    the rules from any raster to RGB
tile_boxes       boxes dealt to tiles                       raster_annotations   boxes of many rasters
raster_parts     one raster as a part of the source         rasters          the source
cropping         `split_raster`: tiles as files
"""
