"""Telling people what is there: pictures of samples and words about packs. Needs no torch."""
