"""Descriptions for catalogues: Croissant (MLCommons) for programs that load data, DCAT (W3C) for open-data portals."""

from __future__ import annotations

from typing import Any

from dphist.release.exporting import web_type
from dphist.report.dossier.known import NO_DAY, Known, to_fill

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
    story = {
        "@context": _CROISSANT,
        "@type": "sc:Dataset",
        "name": _plain_name(known.title),
        "alternateName": known.title,
        "description": known.description,
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "url": to_fill("where the release is published"),
        "creator": {"@type": "sc:Organization"},
        "datePublished": NO_DAY,
        "citeAs": to_fill("how to cite the release"),
        "rai:personalSensitiveInformation": (
            f"Derived from records of people under {known.release.guarantee.describe()}; no record is in it."
        ),
        "rai:dataManipulationProtocol": (
            f"{known.mechanism.name} of {known.software}; the file verifies by replay."
        ),
        "rai:dataLimitations": (
            "Every number is an estimate with noise; read it with its interval. Cells with no interval were not "
            "measured."
        ),
        "distribution": [
            {
                "@type": "cr:FileObject",
                "@id": known.file.name,
                "name": known.file.name,
                "description": "A row per cell, with its interval.",
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


_TYPES = {"integer": "Integer", "number": "Float", "date": "Date", "boolean": "Boolean", "string": "Text"}


def _plain_name(title: str) -> str:
    """A name that catalogues take: letters, digits, blanks and dashes."""
    kept = "".join(each if each.isalnum() or each in " _-" else " " for each in title)
    return " ".join(kept.split()) or "release"


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
            "dcterms:description": (
                f"{known.release.guarantee.describe()}; made by {known.mechanism.name} of {known.software}."
            ),
        },
        "dcat:distribution": distribution,
    }
    known.release.about.describe("dcat", story, to_fill)
    # Portals look for the terms at the file, too.
    distribution["dcterms:license"] = story["dcterms:license"]
    return story
