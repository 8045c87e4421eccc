"""A record in the form of OpenDP's registry of deployments (registry.opendp.org), as YAML.

Its maintainers ask for: a name, curators, intended use, kind, region, description and day of publication (tier 1); the
variant of differential privacy, privacy unit, parameters and deployment model (tier 2); the domain, adjacent data sets,
accounting and implementation (tier 3). What a release knows is filled in; the rest is marked.
"""

from __future__ import annotations

import json
import re
from typing import Any

from dphist.model.phrases import so_many
from dphist.report.dossier.known import NO_DAY, Known, to_fill, variant


def registry_record(known: Known) -> dict[str, Any]:
    """The record, as plain values."""
    release = known.release
    unit = release.guarantee.unit
    published = release.about.created or NO_DAY
    curator = known.said("publisher")
    steps = ", then ".join(release.polish) or "none"
    return {
        "url_slug": _slug(known.title, release.about.publisher or "to-fill", published[:4]),
        "status": "Draft",
        "tier": 3,
        "deployment": {
            "basic": {
                "name": known.title,
                "data_curators": [curator],
                "intended_use": known.said("purpose"),
                "data_product_type": "Summary statistics",
                "data_product_region": to_fill("which region the records describe, and whose law applies"),
                "description": known.description,
                "publication_date": published,
            },
            "dp_variant": {
                "variant_name": variant(release)[0],
                "data_domain": (
                    f"{known.counted}. The cells were declared beforehand and are public; records outside of them are "
                    "not counted."
                ),
                "unprotected_quantities": "None: every number was measured with noise and paid for.",
            },
            "privacy_loss": {
                "privacy_unit": unit.describe(),
                "privacy_unit_details": (
                    "Two data sets are neighbours if one has the records of one more unit: "
                    f"{unit.describe()}. A unit's records move the counts by at most {unit.steps} in all."
                ),
                "privacy_parameters": variant(release)[1],
                "privacy_parameters_details": release.guarantee.describe(),
            },
            "deployment_model": {
                "model_name": "Central",
                "actors": to_fill("who sees the records, who sees the release, and who is trusted with what"),
                "release_type": "One release",
                "release_type_details": _paid(known),
                "access_type": "Non-interactive",
                "access_type_details": (
                    "One file is published; questions are asked of it and cost nothing more."
                ),
            },
            "accounting": {
                "post_processing": (
                    f"The estimate is computed from noisy answers alone. Polishing: {steps}."
                ),
                "composition": (
                    f"{so_many(release.questions, 'question')}; budgets of questions about the same cells add up, of "
                    "questions about disjoint cells the largest counts. Exact fractions; the transcript is in the file "
                    "and replays without data."
                ),
            },
            "implementation": {
                "preprocessing_and_hyperparameter_tuning": (
                    "The mechanism and its options were chosen without looking at the records, or by answers that are "
                    "part of the budget. " + to_fill("cleaning and exploration before publishing, if any")
                ),
                "mechanisms": (
                    f"{known.mechanism.name}: {known.mechanism.words} {known.mechanism.reference} "
                    f"Implemented by {known.software}: exact integer noise from a cryptographic keystream (no floating "
                    "point in a draw), budgets as exact fractions. The claim covers outputs; running time is "
                    "not hidden. "
                    + to_fill("how the records are protected and who has access")
                ),
                "justification": to_fill("why this ε and this unit"),
            },
            "administrative": {
                "sources": to_fill("links to the release and to what describes it"),
                "notes": f"Written by {known.software} from the release's own file (SHA-256 {known.digest}).",
                "registry_authors": [to_fill("who filled this record in")],
            },
        },
    }  # fmt: skip


def _paid(known: Known) -> str:
    receipt = known.release.receipt
    if receipt is None:
        return to_fill("whether more will be published from these records; no ledger was used")
    return (
        f"Payment {receipt[1]} of the budget {receipt[0]!r}; what else it may pay for is in the budget memo."
    )


def _slug(*parts: str) -> str:
    return "-".join(re.sub(r"\W+", "-", part.lower()).strip("-") for part in parts)


def registry_yaml(known: Known) -> str:
    """The record as YAML."""
    head = [
        "# A record for OpenDP's registry of deployments, drafted from the release.",
        "# Fields that say TO FILL are the custodian's. Optional, from lists that the registry keeps:",
        "# deployment.basic.data_product_sector, deployment.deployment_model.data_source_type (Static or Dynamic).",
    ]
    # JSON's texts, numbers and mappings are YAML's.
    return "\n".join([*head, json.dumps(registry_record(known), ensure_ascii=False, indent=2)]) + "\n"
