"""What is learned: a task makes flows, networks, losses and scores from a few settings."""
