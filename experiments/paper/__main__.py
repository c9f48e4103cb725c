"""``python -m experiments.paper ITEM… [--preset quick|paper] [--out FOLDER]``."""

import sys
from pathlib import Path

from experiments.frame import main
from experiments.paper import (  # noqa: F401
    augmentation,
    clusters,
    convergence,
    data,
    edge_errors,
    fixed,
    proposition1,
    smoothing,
    table1,
    table2,
    table3,
    theorem1,
    variance,
    weights,
)
from tadropedge import TadropedgeError

if __name__ == "__main__":
    try:
        main(Path(__file__).with_name("claims.toml"))
    except TadropedgeError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
