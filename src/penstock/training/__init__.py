"""Training: a task and data in, a Run folder out; Lightning does the loop, at arm's length."""
