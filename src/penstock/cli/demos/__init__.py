"""Demonstrations: each makes a little world, and then types the commands that a user would."""
