"""Detection: where things are in an image, and what they are."""
