"""Boxes and tiles: pure functions on arrays, in pixels, with x1 y1 x2 y2 in float32."""

from penstock.geometry.boxes import LARGEST_SIDE, Boxes, Window, areas, as_boxes, clipped, parse_size, scaled
from penstock.geometry.tiling import Placement, TileGrid, boxes_on_tiles, place_boxes, tile_starts, tiles

__all__ = [
    "LARGEST_SIDE",
    "Boxes",
    "Placement",
    "TileGrid",
    "Window",
    "areas",
    "as_boxes",
    "boxes_on_tiles",
    "clipped",
    "parse_size",
    "place_boxes",
    "scaled",
    "tile_starts",
    "tiles",
]
