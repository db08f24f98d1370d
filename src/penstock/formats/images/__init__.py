"""Images with a class each, or without."""
