"""Exports of Penstock as the data that they were made from: export.yaml says what no other file of a format says."""
