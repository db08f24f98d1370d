"""Which sample stands where: pure functions from a position of an epoch to a sample, and how positions are dealt."""
