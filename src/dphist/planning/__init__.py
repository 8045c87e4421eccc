"""Forecasts before paying, and mechanisms side by side on data that are public.

Planning opens gates and draws noise as the door does, some of it from keystreams for tests, so that a comparison can be
repeated. That costs nobody anything: the counts behind these gates are public or made up, and nothing that comes out
of them is a release.
"""

from dphist.planning.compare import Row, compare
from dphist.planning.currencies import Quote, currencies
from dphist.planning.forecast import Forecast, plan, release_forecasts
from dphist.planning.nuclear import limit

__all__ = [
    "Forecast",
    "Quote",
    "Row",
    "compare",
    "currencies",
    "limit",
    "plan",
    "release_forecasts",
]
