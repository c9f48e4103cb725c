"""Training: any list of trials, hundreds as one program, with a loop that reads top to bottom."""
