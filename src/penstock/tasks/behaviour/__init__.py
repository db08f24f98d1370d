"""Behaviour: what animals do in every frame of a video."""
