"""Contests of input pipelines: who takes part, on which data, and how they are timed."""
