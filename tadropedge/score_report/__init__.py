"""What the weights of a graph look like: computed in parts that survive a kill, summed up, written and drawn."""
