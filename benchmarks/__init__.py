"""Seconds and memory, each beside a peer in the same run; ``python -m benchmarks`` lists the commands."""
