"""One file per item of the paper; each has a function ``run(bench) -> Item`` and the kinds of its ``ROWS``."""
