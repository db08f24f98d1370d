"""Using what was learned: models from Runs and checkpoints, evaluation, prediction that streams."""
