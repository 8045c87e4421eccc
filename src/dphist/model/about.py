"""What a custodian says of a release in plain words: who publishes it, under which terms, whom to ask.

The fields of `About` are the one list of what may be said. The command line has an option for each; the file, pages,
spreadsheets and catalogues show what was given; and the reference of commands says what each is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import date
from typing import Any, Literal

from dphist.arguments import explained
from dphist.errors import InputError

_LONGEST = 2_000


@dataclass(frozen=True)
class Fact:
    """One thing that may be said of a release."""

    help: str
    """What to write, for the custodian."""
    dcat: str
    """Where a DCAT description has it; a step after another with ``/`` between."""
    schema: str
    """Where schema.org has it, whose words Croissant uses."""
    wanted: str = ""
    """What a catalogue asks for where nobody said it; nothing if it does without."""
    label: str = ""
    """What readers see before it; the name, by default."""
    name: str = ""


def _fact(*told: str, **more: str) -> Any:
    return field(default="", metadata={"fact": Fact(*told, **more)})


@explained
@dataclass(frozen=True, kw_only=True)
class About:
    """Facts that the custodian gives and a reader of the file sees; nothing in them comes from the records.

    Each is an option of `dphist publish`, and `dphist publish --help` says what it is.

    Example:
        >>> from dphist.release import About
        >>> About.of({"publisher": "City of Example", "licence": "CC-BY-4.0"}).given()
        {'publisher': 'City of Example', 'licence': 'CC-BY-4.0'}
    """

    title: str = _fact("What the release is called, for its readers.", "dcterms:title", "alternateName")
    publisher: str = _fact(
        "Who publishes it.", "dcterms:publisher/foaf:name", "creator/name", "who publishes the release"
    )
    licence: str = _fact(
        "Under which terms, such as CC-BY-4.0.", "dcterms:license", "license",
        "under which terms the release may be used",
    )  # fmt: skip
    contact: str = _fact(
        "Whom to ask: an address or a page.", "dcat:contactPoint/vcard:fn", "creator/email", "whom to ask"
    )
    contact_point: str = _fact(
        "Which office answers there, such as a statistics desk.", "dcat:contactPoint/vcard:organization-name",
        "creator/contactPoint/name",
    )  # fmt: skip
    purpose: str = _fact(
        "What it is for; the ledger keeps it with the spend.", "dcterms:abstract", "rai:dataUseCases",
        "what the release is for",
    )  # fmt: skip
    created: str = _fact(
        "The day it was made, such as 2024-01-31; today by default.", "dcterms:issued/@value", "datePublished",
        "the day of publication, such as 2024-01-31",
    )  # fmt: skip
    version: str = _fact(
        "Which version of the publication this is.", "dcat:version", "version", "the version, such as 1.0.0"
    )
    doi: str = _fact(
        "Its digital object identifier, such as 10.1234/abcd.",
        "dcterms:identifier",
        "identifier",
        label="DOI",
    )

    def __post_init__(self) -> None:
        for name, text in self.given().items():
            value: Any = text
            if not isinstance(value, str):
                raise InputError(f"about: {name} must be a text, not a {type(value).__name__}")
            if len(text) > _LONGEST or not all(each.isprintable() or each == "\n" for each in text):
                raise InputError(f"about: {name} must be readable text of at most {_LONGEST:,} characters")
        if self.created:
            try:
                date.fromisoformat(self.created)
            except ValueError:
                raise InputError("about: created must be a day such as 2024-01-31") from None

    @staticmethod
    def of(value: About | Mapping[str, Any] | None) -> About:
        """Read what a user wrote.

        Args:
            value: An `About`, a mapping with some of its fields, or nothing.

        Returns:
            The same, checked.

        Raises:
            InputError: if a field is unknown or no text.
        """
        if value is None:
            return About()
        if isinstance(value, About):
            return value
        if not isinstance(value, Mapping) or not set(value) <= set(FACTS):
            raise InputError(f"about takes {', '.join(FACTS)}, each a text")
        written = {
            name: text.isoformat() if isinstance(text, date) else text
            for name, text in value.items()
            if text is not None
        }
        return About(**written)

    def given(self) -> dict[str, str]:
        """What was said: the fields that are not empty."""
        return {name: getattr(self, name) for name in FACTS if getattr(self, name)}

    def labelled(self) -> dict[str, str]:
        """What was said, under the labels that readers see."""
        return {FACTS[name].label: text for name, text in self.given().items()}

    def with_more(self, other: About | Mapping[str, Any] | None) -> About:
        """What was said, with more, or said anew."""
        return replace(self, **About.of(other).given())

    def describe(
        self,
        by: Literal["dcat", "schema"],
        story: dict[str, Any],
        missing: Callable[[str], str] | None = None,
    ) -> dict[str, Any]:
        """Say it in a catalogue's words.

        Args:
            by: Whose words.
            story: What the catalogue is told anyway; what was said comes in, and instead of what stands there.
            missing: What to write where nobody said what the catalogue wants, and nothing stands there.

        Returns:
            The story.
        """
        for name, fact in FACTS.items():
            *above, last = getattr(fact, by).split("/")
            if text := getattr(self, name):
                _below(story, above)[last] = text
            elif missing and fact.wanted:
                _below(story, above).setdefault(last, missing(fact.wanted))
        return story


def _below(story: dict[str, Any], steps: list[str]) -> dict[str, Any]:
    for step in steps:
        story = story.setdefault(step, {})
    return story


FACTS = {
    each.name: replace(
        each.metadata["fact"],
        name=each.name,
        label=each.metadata["fact"].label or each.name.replace("_", " ").capitalize(),
    )
    for each in fields(About)
}
"""What may be said, by name."""

About.__doc__ = f"{About.__doc__}\n    Args:\n" + "".join(
    f"        {name}: {fact.help}\n" for name, fact in FACTS.items()
)
