"""Tools for those who work on Penstock; not shipped in the wheel."""
