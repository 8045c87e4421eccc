"""Any figure as a picture file, drawn without a browser and without the network."""

from __future__ import annotations

import inspect
import os
import threading
from contextlib import suppress
from functools import lru_cache
from typing import Any, Literal, get_args

from dphist.arguments import explained
from dphist.errors import InputError
from dphist.extras import kept_folder, need

_bundling = threading.Lock()
Format = Literal["png", "svg"]
_MOST_SCALE = 20


@explained
def picture(chart: Any, kind: Format = "png", *, scale: float = 2.0, dark: bool = False) -> bytes:
    """Turn an Altair chart into the bytes of a PNG or SVG file.

    Args:
        chart: What `figure` gave.
        kind: ``"png"`` or ``"svg"``.
        scale: How much larger a PNG is.
        dark: Light on dark.

    Returns:
        The bytes of the file.

    Example:
        >>> import dphist, numpy as np
        >>> domain = dphist.Domain([dphist.Ordinal("age", range(100)), dphist.Nominal("sex", ["F", "M"])])
        >>> histogram = dphist.Histogram(domain, np.full((100, 2), 50))
        >>> release = dphist.publish(histogram, epsilon=1, mechanism="laplace")
        >>> dphist.report.picture(dphist.report.figure(release, "sex"), "svg")[:4]
        b'<svg'
    """
    converter = need("vl_convert", "report")
    if not hasattr(chart, "to_dict") or inspect.isclass(chart):
        raise InputError("chart must be what `figure` gives, an Altair chart")
    if kind not in get_args(Format):
        raise InputError('kind must be "png" or "svg"')
    if not 0 < scale <= _MOST_SCALE:
        raise InputError(f"scale must be a number above 0 and at most {_MOST_SCALE}")
    spec = chart.to_dict()
    spec.setdefault("config", {}).update(_look(dark))
    if kind == "svg":
        return str(converter.vegalite_to_svg(spec, allowed_base_urls=[])).encode()
    return bytes(converter.vegalite_to_png(spec, scale=scale, allowed_base_urls=[]))


def vega_script() -> str:
    """Give Vega, Vega-Lite and Vega-Embed as one script, from the package that is installed."""
    # Bundling takes seconds: whoever comes second waits for the first rather than starting over.
    with _bundling:
        return _bundle()


@lru_cache(maxsize=1)
def _bundle() -> str:
    converter = need("vl_convert", "report")
    kept = kept_folder() / f"vega-{getattr(converter, '__version__', 'unknown')}.js"
    try:
        return kept.read_text(encoding="utf-8")
    except (OSError, ValueError):
        script = str(converter.javascript_bundle())
    # Bundling takes seconds and gives the same for every report: once a machine is enough, if there is room for it.
    with suppress(OSError):
        kept.parent.mkdir(parents=True, exist_ok=True)
        fresh = kept.with_name(f"{kept.name}.{os.getpid()}")
        fresh.write_text(script, encoding="utf-8")
        fresh.replace(kept)
    return script


def _look(dark: bool) -> dict[str, Any]:
    ink, paper, line = ("#e6e9ee", "#14181d", "#3a424c") if dark else ("#1c2228", "#ffffff", "#d5dae0")
    letters = {"labelColor": ink, "titleColor": ink}
    return {
        "background": paper,
        "axis": letters | {"gridColor": line, "tickColor": line, "domainColor": line},
        "legend": letters,
        "title": {"color": ink},
        "view": {"stroke": None},
    }
