"""Boxes in every format that people have.

box_tables, voc, coco, yolo, layers ─► rows ─► assembly (+ locating, box_checks) ─► annotations ─► boxes, rasters
"""
