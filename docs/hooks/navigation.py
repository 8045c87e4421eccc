"""Put every mechanism page, whoever wrote it, into the navigation under its own heading."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def on_config(config: Any) -> Any:
    """Fill the section "Mechanisms" from the pages that are there."""
    pages = sorted((Path(config["docs_dir"]) / "mechanisms").glob("*.md"))
    for section in config["nav"]:
        if "Mechanisms" in section:
            section["Mechanisms"] = [{_heading(page): f"mechanisms/{page.name}"} for page in pages]
    return config


def _heading(page: Path) -> str:
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.startswith("# "):
            return line.removeprefix("# ").replace("`", "").strip()
    return page.stem
