"""``tadropedge recover``: a new storage of trials from what can be read of a damaged one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument

from tadropedge._old.cli.options import Wait_, output_folder
from tadropedge._old.errors import TadropedgeError


def recover_command(
    storage: Annotated[Path, Argument(metavar="FILE", help="a damaged study.db or .journal file", show_default=False)],
    wait: Wait_ = False,
) -> None:
    """Keep every finished trial that can be read of a damaged storage; the damaged file stays beside it.

    Then run the interrupted command again: only what is lost is trained again.
    """
    from tadropedge._old.search.recover import recover

    if not storage.is_file():
        raise TadropedgeError(f"no such file: '{storage}'")
    with output_folder(storage.parent, wait=wait):
        print(recover(storage))
