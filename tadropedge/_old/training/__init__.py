"""Training: many models of one architecture at once, each with its own settings."""
