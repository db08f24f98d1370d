"""What a worker does: from a range of positions to finished rows of a batch."""
