"""Releases over keys that nobody declared: `Nominal(discover=True)`.

The keys are found, noised and cut at a threshold in one question (`dphist.private.discovery` has the theorem). What
leaves is an ordinary release over the keys that were found: every cell with the noise that its mechanism states.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dphist.errors import EpsilonError, MechanismError, NotPrivate
from dphist.mechanisms import Gaussian, Laplace
from dphist.mechanisms.protocol import Mechanism
from dphist.model.about import About
from dphist.model.budget import Budget
from dphist.model.domain import Domain, Nominal
from dphist.model.exact import Number, exact
from dphist.model.law import Kind
from dphist.model.unit import Unit
from dphist.private.discovery import discover, price_of, terms, threshold
from dphist.private.noise import Noise
from dphist.publishing.account import account, watched
from dphist.release import Release
from dphist.release.cells import DenseCells
from dphist.release.guarantee import Guarantee
from dphist.sources.count import keys_of

if TYPE_CHECKING:
    from dphist.private.ledger import Ledger


def publish_discovered(
    source: Any,
    domain: Domain,
    unknown: Nominal,
    *,
    epsilon: Number | None,
    rho: Number | None,
    delta: Number | None,
    mechanism: Mechanism | str,
    unit: Unit | str | Mapping[str, Any] | None,
    ledger: Ledger | str | PathLike[str] | None,
    dataset: str | None,
    about: About,
    allowed: float | None = None,
    noise: Noise | None = None,
) -> Release:
    """Publish the keys that enough people have, with their noisy counts; see `dphist.publish` for the arguments.

    ``unknown`` is the attribute whose keys are not declared, ``allowed`` the share of rows that may be left out; None
    where nobody may learn of a stop.
    """
    protected = Unit.parse(unit)
    known = [each for each in domain.attributes if each is not unknown]
    shape = tuple(each.size for each in known)
    cells = int(np.prod(shape, dtype=object)) if shape else 1
    budget, chance = _price(epsilon, rho, delta, mechanism, protected, cells)
    price = price_of(budget, protected)
    price.check()
    level = threshold(price.kind, price.law.size, protected, chance, cells)
    purpose = " ".join(about.purpose.split()) or f"keys of {unknown.name}"
    import pyarrow.compute as pc

    texts: list[Any] = []

    def by_text(rows: NDArray[np.int64]) -> NDArray[np.int64]:
        found = keys.take(rows)
        order = pc.sort_indices(found)
        texts.append(found.take(order))
        return rows[np.asarray(order, dtype=np.int64)]

    with account(ledger, dataset, budget=budget, unit=protected, purpose=purpose, delta=chance) as payer:
        if allowed is not None:
            source = watched(source, payer, allowed, domain, protected)
        keys, counts = keys_of(source, domain, protected)
        axis = domain.axis(unknown.name)
        kept, transcript = discover(
            counts,
            budget,
            protected,
            chance,
            noise=noise,
            pay=payer.pay,
            sort=by_text,
            arrange=lambda rows: np.moveaxis(rows.reshape(-1, *shape), 0, axis),
        )
        if not kept.size:
            # What is said here follows from what the release would have shown: nothing.
            raise MechanismError(
                f"{unknown.name}: no name reached the threshold of {level:,}, and the budget is spent; publish with a "
                "larger budget or delta, or fewer rows a person, where many people share names"
            )
        found = Nominal(unknown.name, texts[0].to_pylist())
        values = np.asarray(transcript[0].answer, dtype=np.float64)
        values.setflags(write=False)
        release = Release(
            Domain([found if each is unknown else each for each in domain.attributes]),
            DenseCells(values),
            Guarantee(budget, protected, chance, level),
            Laplace() if price.kind == "laplace" else Gaussian(),
            transcript,
            test=noise is not None and noise.keystream.test,
        ).with_about(about)
        return payer.receipted(release)


def _price(
    epsilon: Number | None,
    rho: Number | None,
    delta: Number | None,
    mechanism: Mechanism | str,
    unit: Unit,
    cells: int,
) -> tuple[Budget, Fraction]:
    """What the noise costs, and the δ of the threshold."""
    if delta is None:
        raise NotPrivate(
            "discover: pure epsilon or rho alone cannot promise that a name which only one person has is never shown; "
            "give delta too, such as delta='1e-9', or list the categories"
        )
    chance = exact(delta, "delta")
    if not 0 < chance < 1:
        raise EpsilonError("delta must lie strictly between 0 and 1, far below one over the number of people")
    kinds: dict[object, Kind | None] = {
        "auto": None,
        "laplace": "laplace",
        Laplace: "laplace",
        "gaussian": "gaussian",
        Gaussian: "gaussian",
    }
    named = mechanism if isinstance(mechanism, str) else type(mechanism)
    if named not in kinds:
        raise MechanismError("discover: names are found with laplace or gaussian noise; name one, or auto")
    if rho is not None:
        if kinds[named] == "laplace":
            raise MechanismError("discover: under rho names are found with gaussian noise")
        return Budget.of(epsilon, rho=rho), chance
    return terms(epsilon, chance, unit, cells, kinds[named])
