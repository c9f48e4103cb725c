"""Check a built site: every link to a file and every fragment leads somewhere, and nothing is loaded from the network.

``python docs/_ext/check_links.py site`` prints what is wrong, one line each, and exits with 1 if anything is. Links to
other sites are listed with ``--external`` and never fetched.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# What a browser loads by itself, and from where; a link that is merely offered may lead to another site.
LOADED = {
    "script": "src", "img": "src", "source": "src", "iframe": "src", "video": "src", "audio": "src", "object": "data",
    "embed": "src", "use": "href",
}  # fmt: skip
LOADED_LINKS = {"stylesheet", "icon", "preload", "modulepreload", "prefetch", "preconnect", "dns-prefetch"}
REMOTE = ("http", "https", "")  # without a scheme but with a host: //cdn.example.org


class Page(HTMLParser):
    """The identifiers of a page, the addresses it links to and those that it loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.links: set[str] = set()
        self.loads: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what a tag names, links to and loads."""
        given = {name: value or "" for name, value in attrs}
        self.names.update(given[name] for name in ("id", "name") if name in given and tag != "meta")
        if tag == "a" and "href" in given:
            self.links.add(given["href"])
        if tag in LOADED and LOADED[tag] in given:
            self.loads.add(given[LOADED[tag]])
        if tag == "link" and LOADED_LINKS & set(given.get("rel", "").split()):
            self.loads.add(given.get("href", ""))
        for piece in given.get("srcset", "").split(","):
            self.loads.update(piece.split()[:1])


def is_remote(address: str) -> bool:
    """Whether an address is on another host."""
    parts = urlsplit(address)
    return bool(parts.netloc) and parts.scheme in REMOTE


def read_pages(site: Path) -> dict[Path, Page]:
    """Every page of a built site."""
    return {path.resolve(): Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}


def wrong(site: Path) -> list[str]:
    """What is wrong with a site, one line each."""
    pages, found = read_pages(site), []
    for path, page in pages.items():
        said = path.relative_to(site.resolve())
        found += [f"{said}: loads {address} from the network" for address in sorted(page.loads) if is_remote(address)]
        for address in sorted(page.links | page.loads):
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            if not target.is_file():
                found.append(f"{said}: {address} leads to no file")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].names:
                found.append(f"{said}: {address} leads to no such place in the page")
    return found + [f"{sheet.relative_to(site)}: loads a font or picture from the network" for sheet in _remote(site)]


def _remote(site: Path) -> list[Path]:
    """The style sheets that load something from another host."""
    texts = {sheet: sheet.read_text(encoding="utf-8").replace(" ", "") for sheet in sorted(site.rglob("*.css"))}
    marks = [f"{start}{quote}{host}" for start in ("url(", "@import") for quote in ("", '"', "'")
             for host in ("http:", "https:", "//")]  # fmt: skip
    return [sheet for sheet, text in texts.items() if any(mark in text for mark in marks)]


def external(site: Path) -> list[str]:
    """The addresses on other sites that pages link to."""
    return sorted({link for page in read_pages(site).values() for link in page.links if is_remote(link)})


def main() -> int:
    """Check the site that the command line names."""
    site = Path(sys.argv[1])
    if "--external" in sys.argv:
        print("\n".join(external(site)))
    found = wrong(site)
    print("\n".join(found) or f"{len(read_pages(site))} pages, no dead links, nothing loaded from the network")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
