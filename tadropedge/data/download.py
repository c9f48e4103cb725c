"""Where datasets lie on disk, and how the citation sets get there."""

from __future__ import annotations

import hashlib
import os
import tempfile
from http.client import HTTPException
from pathlib import Path

from tadropedge.errors import TadropedgeError
from tadropedge.progress import Progress

# SHA-256 of the files one after the other. PyTorch Geometric's downloader does not verify the server's certificate.
CHECKSUMS = {
    "Cora": "0ce1f9117972bdd087a19062d3decca8abfdfef042468c282c2b977642e057dd",
    "CiteSeer": "cbadbc965a18fe92dd73960a02a21e4e098723aebcdbe7e03c407a3971644413",
    "PubMed": "34aaa088b00e246edbc2a4ab7c320063b5b07fc3b9839d5540a663f867238d4a",
}


def data_root(root: str | Path | None = None) -> Path:
    """The folder with all datasets: ``root``, else ``TADROPEDGE_DATA``, else ``tadropedge`` in the user's cache.

    >>> data_root("somewhere").name
    'somewhere'
    """
    if root is not None:
        return Path(root)
    if os.environ.get("TADROPEDGE_DATA"):
        return Path(os.environ["TADROPEDGE_DATA"])
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tadropedge"


def fetch_planetoid(name: str, folder: Path, files: list[str]) -> None:
    """Download those of the ``files`` of the citation set ``name`` that ``folder`` lacks.

    Each comes into place by one atomic move after all were checked, so a killed process leaves no half file.
    """
    missing = [file for file in files if not (folder / file).is_file()]
    if not missing:
        return
    from torch_geometric.data import download_url
    from torch_geometric.datasets import Planetoid

    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as temporary, Progress(f"downloading {name}", len(files)) as bar:
            for file in files:
                bar.note(file)
                download_url(f"{Planetoid.url}/{file}", temporary, log=False)
                bar.advance(1)
            content = b"".join((Path(temporary) / file).read_bytes() for file in files)
            if hashlib.sha256(content).hexdigest() != CHECKSUMS[name]:
                raise TadropedgeError(f"what was downloaded as {name} is not what was published: its checksum is wrong")
            for file in missing:
                (Path(temporary) / file).replace(folder / file)
    except (OSError, HTTPException) as error:  # urllib's own errors are of the first kind
        raise TadropedgeError(
            f"{name} is not in '{folder}' and cannot be downloaded from {Planetoid.url} ({error}); "
            f"put these files there: {', '.join(missing)}"
        ) from error
