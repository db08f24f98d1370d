"""Sources whose files have named columns: which column is which field, and how a value becomes one. Written once.

file ──► tables of columns (`tables`) ──► choosing ──► taken columns ──► fields of samples (`values`, `labelling`)
"""
