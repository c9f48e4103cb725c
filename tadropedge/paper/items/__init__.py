"""One file an item of the paper; each has a function ``run(bench) -> Item``."""
