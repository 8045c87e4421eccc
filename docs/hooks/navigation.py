"""Put every mechanism page and every page of results, whoever wrote it, into the navigation under its own heading."""

from __future__ import annotations

from pathlib import Path
from typing import Any

_FOLDERS = {"Mechanisms": "mechanisms", "Results": "results"}


def on_config(config: Any) -> Any:
    """Fill these sections from the pages that are there."""
    for section in config["nav"]:
        for title, folder in _FOLDERS.items():
            if title in section:
                pages = sorted((Path(config["docs_dir"]) / folder).glob("*.md"))
                section[title] = [{_heading(page): f"{folder}/{page.name}"} for page in pages]
    return config


def _heading(page: Path) -> str:
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.startswith("# "):
            return line.removeprefix("# ").replace("`", "").strip()
    return page.stem
