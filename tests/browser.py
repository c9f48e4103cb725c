"""Pages as a reader sees them: their tags and text, and a real browser."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html import escape, unescape
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


def driven(folder, page, script, *options, width=1280, height=900):
    """What a script returns that uses a page: it sees the window as ``view`` and the document as ``page``.

    The page is in a frame, which can be as narrow as a phone, other than a window.
    """
    wrapper = folder / "wrapper.html"
    frame = f'<iframe width="{width}" height="{height}" style="border:0" srcdoc="{escape(page)}"></iframe>'
    code = f"""onload = async () => {{ const view = document.querySelector("iframe").contentWindow;
        const page = view.document;
        document.title = JSON.stringify(await (async () => {{ {script} }})()) }}"""
    wrapper.write_text(f"<!doctype html><title>?</title><script>{code}</script>{frame}", encoding="utf-8")
    found = browse(folder, wrapper, "--dump-dom", f"--window-size={max(width, 500)},{height}", *options)
    return json.loads(unescape(re.search("<title>(.*?)</title>", found, re.DOTALL)[1]))


DARK, LIGHT = (f"--blink-settings=preferredColorScheme={scheme}" for scheme in (0, 1))
needs_chromium = pytest.mark.skipif(shutil.which("chromium") is None, reason="no chromium on this machine")
