"""Training: many models of one architecture at once, each with settings of its own."""
