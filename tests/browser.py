"""Pages as a reader sees them: their tags and text, and a real browser."""

from __future__ import annotations

import re
import shutil
import subprocess
from html.parser import HTMLParser

import pytest


class Page(HTMLParser):
    """The tags and the visible text of a page."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.words = [], []
        self.feed(page)
        self.text = re.sub(r"\s+", " ", " ".join(self.words))

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.words.append(data)


def browse(folder, page, *options):
    """Open a page in headless Chromium and return what it prints."""
    command = [
        *(shutil.which("chromium"), "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
        *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars"),
        *(f"--user-data-dir={folder / 'profile'}", "--virtual-time-budget=2000", *options, page.as_uri()),
    ]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=60, check=True)
    return done.stdout


needs_chromium = pytest.mark.skipif(shutil.which("chromium") is None, reason="no chromium on this machine")
