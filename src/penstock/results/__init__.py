"""What users see of results: tables of boxes, how well boxes agree, where they are on the map."""

from penstock.results.box_frames import BOX_COLUMNS, box_frame

__all__ = ["BOX_COLUMNS", "box_frame"]
