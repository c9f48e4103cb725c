"""The reproduction of the paper."""
