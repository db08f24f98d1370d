"""How many workers, how far ahead, how long a task: chosen from what was measured, never changing a batch."""
