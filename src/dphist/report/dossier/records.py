"""Records that catalogues keep of a release.

OpenDP's registry of deployments (registry.opendp.org) asks for a name, curators, intended use, kind, region,
description and day of publication (tier 1); the variant of differential privacy, privacy unit, parameters and
deployment model (tier 2); the domain, adjacent data sets, accounting and implementation (tier 3). Croissant (MLCommons)
is for programs that load data, DCAT (W3C) for open-data portals. What a release knows is filled in; the rest is marked.
"""

from __future__ import annotations

import re
from typing import Any

from dphist.model.phrases import counted
from dphist.release.exporting import web_type
from dphist.report.dossier.known import Known, to_fill

# Where a form wants a day and nobody said one.
_NO_DAY = "1900-01-01"


def registry(known: Known) -> dict[str, Any]:
    """A record in the form of OpenDP's registry."""
    release = known.release
    unit, receipt = release.guarantee.unit, release.receipt
    published = release.about.created or _NO_DAY
    slug = (known.title, release.about.publisher or "to-fill", published[:4])
    return {
        "url_slug": "-".join(re.sub(r"\W+", "-", part.lower()).strip("-") for part in slug),
        "status": "Draft",
        "tier": 3,
        "deployment": {
            "basic": {
                "name": known.title,
                "data_curators": [known.said("publisher")],
                "intended_use": known.said("purpose"),
                "data_product_type": "Summary statistics",
                "data_product_region": to_fill("which region the records describe, and whose law applies"),
                "description": known.description,
                "publication_date": published,
            },
            "dp_variant": {
                "variant_name": known.variant,
                "data_domain": f"{known.counted}. The values were declared beforehand and are public; records outside "
                "of them are not counted.",
                "unprotected_quantities": "None: every number was measured with noise and paid for.",
            },
            "privacy_loss": {
                "privacy_unit": unit.describe(),
                "privacy_unit_details": "Two data sets are neighbours if one has the records of one more unit: "
                f"{unit.describe()}. A unit's records move the counts by at most {unit.steps} in all.",
                "privacy_parameters": known.parameters,
                "privacy_parameters_details": release.guarantee.describe(),
            },
            "deployment_model": {
                "model_name": "Central",
                "actors": to_fill("who sees the records, who sees the release, and who is trusted with what"),
                "release_type": "One release",
                "release_type_details": f"Payment {receipt.payment} of the budget {receipt.dataset!r}; what else it "
                "may pay for is in the budget memo."
                if receipt
                else to_fill("whether more will be published from these records; no ledger was used"),
                "access_type": "Non-interactive",
                "access_type_details": "One file is published; questions are asked of it and cost nothing more.",
            },
            "accounting": {
                "post_processing": "The estimate is computed from noisy answers alone. Polishing: "
                f"{', then '.join(release.polish) or 'none'}.",
                "composition": f"{counted(release.questions, 'question')}; budgets of questions about the same counts "
                "add up, of questions about disjoint counts only the largest. Exact fractions; the transcript is in "
                "the file and replays without data.",
            },
            "implementation": {
                "preprocessing_and_hyperparameter_tuning": "The mechanism and its options were chosen without looking "
                "at the records, or by answers that are part of the budget. "
                + to_fill("cleaning and exploration before publishing, if any"),
                "mechanisms": f"{release.maker.name}: {release.maker.words} {release.maker.reference} "
                f"Implemented by {known.software}: exact integer noise from a cryptographic keystream (no floating "
                "point in a draw), budgets as exact fractions. The claim covers outputs; running time is not hidden. "
                + to_fill("how the records are protected and who has access"),
                "justification": to_fill("why this ε and this unit"),
            },
            "administrative": {
                "sources": to_fill("links to the release and to what describes it"),
                "notes": f"Written by {known.software} from the release's own file (SHA-256 {known.digest}).",
                "registry_authors": [to_fill("who filled this record in")],
            },
        },
    }  # fmt: skip


# What the names of a Croissant 1.0 description stand for.
_CROISSANT = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "sc": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "dct": "http://purl.org/dc/terms/",
    "conformsTo": "dct:conformsTo",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    **{
        name: f"cr:{name}"
        for name in (
            "citeAs", "column", "equivalentProperty", "extract", "field", "fileObject", "fileProperty", "fileSet",
            "format", "includes", "isLiveDataset", "jsonPath", "key", "md5", "parentField", "path", "recordSet",
            "references", "regex", "repeated", "replace", "samplingRate", "separator", "source", "subField",
            "transform",
        )
    },
}  # fmt: skip
_TYPES = {"integer": "Integer", "number": "Float", "date": "Date", "boolean": "Boolean", "string": "Text"}


def croissant(known: Known) -> dict[str, Any]:
    """A Croissant description: the file, and every column with its type and what it says."""
    schema = known.release.to_arrow().schema
    fields = [
        {
            "@type": "cr:Field",
            "@id": f"cells/{name}",
            "name": name,
            "description": words,
            "dataType": f"sc:{_TYPES[web_type(schema.field(name).type)]}",
            "source": {"fileObject": {"@id": known.file.name}, "extract": {"column": name}},
        }
        for name, words in known.columns.items()
    ]
    # Catalogues take letters, digits, blanks and dashes.
    name = "".join(each if each.isalnum() or each in " _-" else " " for each in known.title)
    story = {
        "@context": _CROISSANT,
        "@type": "sc:Dataset",
        "name": " ".join(name.split()) or "release",
        "alternateName": known.title,
        "description": known.description,
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "url": to_fill("where the release is published"),
        "creator": {"@type": "sc:Organization"},
        "datePublished": _NO_DAY,
        "citeAs": to_fill("how to cite the release"),
        "rai:personalSensitiveInformation": "Derived from records of people under "
        f"{known.release.guarantee.describe()}; no record is in it.",
        "rai:dataManipulationProtocol": f"{known.release.maker.name} of {known.software}; the file verifies by replay.",
        "rai:dataLimitations": "Every number is an estimate with noise; read it with its interval. Counts with no "
        "interval were not measured.",
        "distribution": [
            {
                "@type": "cr:FileObject",
                "@id": known.file.name,
                "name": known.file.name,
                "description": "A row per count, with its interval.",
                "contentUrl": known.file.name,
                "encodingFormat": "application/x-parquet",
                "sha256": known.digest,
            }
        ],
        "recordSet": [
            {
                "@type": "cr:RecordSet",
                "@id": "cells",
                "name": "cells",
                "description": known.counted,
                "field": fields,
            }
        ],
    }  # fmt: skip
    return known.release.about.describe("schema", story, to_fill)


def dcat(known: Known) -> dict[str, Any]:
    """A DCAT 3 description as JSON-LD."""
    distribution: dict[str, Any] = {
        "@type": "dcat:Distribution",
        "dcterms:title": known.file.name,
        "dcat:downloadURL": to_fill("where the file can be downloaded"),
        "dcat:mediaType": "application/vnd.apache.parquet",
        "dcat:byteSize": {"@type": "xsd:nonNegativeInteger", "@value": str(known.file.stat().st_size)},
        "spdx:checksum": {
            "@type": "spdx:Checksum",
            "spdx:algorithm": {"@id": "spdx:checksumAlgorithm_sha256"},
            "spdx:checksumValue": known.digest,
        },
    }
    story = {
        "@context": {
            "dcat": "http://www.w3.org/ns/dcat#",
            "dcterms": "http://purl.org/dc/terms/",
            "foaf": "http://xmlns.com/foaf/0.1/",
            "spdx": "http://spdx.org/rdf/terms#",
            "vcard": "http://www.w3.org/2006/vcard/ns#",
            "xsd": "http://www.w3.org/2001/XMLSchema#",
        },
        "@type": "dcat:Dataset",
        "dcterms:title": known.title,
        "dcterms:description": known.description,
        "dcterms:identifier": known.digest,
        "dcterms:publisher": {"@type": "foaf:Agent"},
        "dcat:contactPoint": {"@type": "vcard:Kind"},
        "dcterms:issued": {"@type": "xsd:date"},
        "dcat:keyword": [*known.release.domain.names, "differential privacy"],
        "dcterms:spatial": to_fill("which region the records describe"),
        "dcterms:temporal": to_fill("which time the records describe"),
        "dcterms:accrualPeriodicity": to_fill("how often it is published"),
        "dcterms:accessRights": "public",
        "dcterms:provenance": {
            "@type": "dcterms:ProvenanceStatement",
            "dcterms:description": f"{known.release.guarantee.describe()}; made by {known.release.maker.name} of "
            f"{known.software}.",
        },
        "dcat:distribution": distribution,
    }  # fmt: skip
    known.release.about.describe("dcat", story, to_fill)
    # Portals look for the terms at the file, too.
    distribution["dcterms:license"] = story["dcterms:license"]
    return story
