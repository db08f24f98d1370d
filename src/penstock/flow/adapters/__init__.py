"""Batches as frameworks want them; each framework is imported when it is asked for."""
