"""Forgers: whoever edits a release's file is refused, or has done no harm, and then the test says why.

`verify` shows that the counts follow from the answers in the file, that those were paid for within ε, and that the file
holds nothing else. It cannot know who wrote the file: a release that was invented as a whole, consistently, replays
like any other. For that there is the digest in the ledger.
"""

from __future__ import annotations

import json
import struct
import zlib
from base64 import b64decode, b64encode
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dphist
from dphist.errors import DphistError, ReleaseError, RightUsed, VerificationError
from dphist.model.transcript import same_answers
from dphist.model.unit import Unit
from dphist.publishing.checking import digest, verify_file
from dphist.release import reading, writing
from dphist.release.held import is_one_frame, page_headers, read_footer, stamped, wanted_memory
from dphist.release.release import Release
from dphist.release.writing import HOW

DOMAIN = dphist.Domain([dphist.Ordinal("age", range(20, 26)), dphist.Nominal("sex", ["F", "M"])])
TRUE = np.array([[518, 3], [0, 77], [41, 0], [9, 12], [0, 0], [1, 6]])
HISTOGRAM = dphist.Histogram(DOMAIN, TRUE)
Story = dict[str, Any]
Forge = Callable[[Story, pa.Table], tuple[Story, pa.Table]]


def publish(**options: Any) -> Release:
    usual: dict[str, Any] = {"epsilon": 1, "mechanism": "tree", "unit": Unit(rows=2)}
    return dphist.publish(HISTOGRAM, **(usual | options))


def forged(release: Release, path: Path, forge: Forge) -> Path:
    """Save a release, and write its file again after the forger had it."""
    release.save(path)
    table = pq.read_table(path)
    story = json.loads(table.schema.metadata[b"dphist"])
    story, table = forge(story, table)
    metadata = {
        key: value
        for key, value in (table.schema.metadata or {}).items()
        if key not in (b"dphist", b"pandas")
    }
    told = table.replace_schema_metadata(stamped({b"dphist": json.dumps(story).encode()} | metadata))
    pq.write_table(told, path, write_statistics=False, **HOW)
    return path


def accepted(path: Path) -> bool:
    try:
        dphist.load(path).verify()
    except RightUsed:
        raise
    except DphistError:
        return False
    return True


def story(change: Callable[[Story], Any]) -> Forge:
    def forge(told: Story, table: pa.Table) -> tuple[Story, pa.Table]:
        change(told)
        return told, table

    return forge


def columns(change: Callable[[pa.Table], pa.Table]) -> Forge:
    return lambda told, table: (told, change(table))


def edit_answer(told: Story, number: int = 0) -> None:
    """Move one answer by one."""
    entry = told["transcript"][number]
    size = int(np.prod(entry["shape"])) * np.dtype(entry["dtype"]).itemsize
    raw = pa.decompress(b64decode(entry["data"]), decompressed_size=size, codec="zstd", asbytes=True)
    answer = np.frombuffer(raw, dtype=entry["dtype"]).copy()
    answer[0] += 1
    entry["data"] = packed(answer)


def packed(answer: np.ndarray) -> str:
    return b64encode(pa.compress(answer.tobytes(), codec="zstd", asbytes=True)).decode()


def true_answer(told: Story, path: str, epsilon: str) -> dict[str, Any]:
    """An entry that carries the true counts."""
    return told["transcript"][0] | {  # type: ignore[no-any-return]
        "path": path,
        "epsilon": epsilon,
        "dtype": "int64",
        "shape": [TRUE.size],
        "data": packed(TRUE.reshape(-1)),
    }


def set_in(*keys: Any, to: Any) -> Callable[[Story], None]:
    def change(told: Story) -> None:
        place = told
        for key in keys[:-1]:
            place = place[key]
        assert place.get(keys[-1]) != to if isinstance(place, dict) else True
        place[keys[-1]] = to

    return change


def words(**told: str) -> Forge:
    """Say something in the file's own words that its description does not."""

    def forge(description: Story, table: pa.Table) -> tuple[Story, pa.Table]:
        said = {name.encode(): text.encode() for name, text in told.items()}
        return description, table.replace_schema_metadata((table.schema.metadata or {}) | said)

    return forge


def replaced(table: pa.Table, name: str, values: Any) -> pa.Table:
    return table.set_column(table.schema.get_field_index(name), name, values)


def column(name: str, change: Callable[[np.ndarray], Any]) -> Forge:
    """Other values in a column."""
    return columns(lambda t: replaced(t, name, pa.array(change(t[name].to_numpy()))))


def last(value: float) -> Callable[[np.ndarray], Any]:
    return lambda values: np.append(values[:-1], value)


FORGERIES: dict[str, Forge] = {
    # Numbers.
    "a count edited": column("estimate", last(6.0)),
    "true counts in place of the estimate": column("estimate", lambda _: TRUE.reshape(-1).astype(float)),
    "a lower bound edited": column("low", lambda low: low + 1.0),
    "an upper bound edited": column("high", last(5e5)),
    "true counts as bounds": column("low", lambda _: TRUE.reshape(-1).astype(float)),
    "a bound missing": column("low", lambda low: [None, *low[1:]]),
    "bounds exchanged": columns(lambda t: replaced(replaced(t, "low", t["high"]), "high", t["low"])),
    "bounds for another confidence": story(set_in("confidence", to=0.5)),
    "a confidence that is none": story(set_in("confidence", to=2)),
    "bounds in other columns": story(set_in("bounds", to={"low": "estimate", "high": "high"})),
    "a count missing": column("estimate", lambda counts: [None, *counts[1:]]),
    "an answer edited": story(edit_answer),
    "rows in another order": columns(lambda t: t.take(list(range(t.num_rows))[::-1])),
    "a row twice": columns(lambda t: pa.concat_tables([t, t.slice(0, 1)])),
    "a row dropped": columns(lambda t: t.slice(1)),
    # Questions.
    "true counts as one more answer, for nothing": story(
        lambda s: s["transcript"].append(true_answer(s, "root/s9", "0"))
    ),
    "true counts as one more answer, beside the others": story(
        lambda s: s["transcript"].append(true_answer(s, "root/d7", "1"))
    ),
    "true counts as the first answer": story(
        lambda s: s["transcript"].insert(0, true_answer(s, "root/d7", "0"))
    ),
    "an answer dropped": story(lambda s: s["transcript"].pop()),
    "all answers dropped": story(lambda s: s["transcript"].clear()),
    "an answer twice": story(lambda s: s["transcript"].append(s["transcript"][-1])),
    "another question": story(set_in("transcript", 0, "verb", to="choose")),
    "another place in the budget": story(set_in("transcript", 0, "path", to="root/d0")),
    "another price of one answer": story(set_in("transcript", 0, "epsilon", to="1/3")),
    "a negative price": story(set_in("transcript", 0, "epsilon", to="-1")),
    "a question's options": story(lambda s: s["transcript"][0]["question"].update(extra=TRUE.tolist())),
    # Promises.
    "a smaller ε": story(set_in("guarantee", "epsilon", to="1/10")),
    "a larger ε": story(set_in("guarantee", "epsilon", to="2")),
    "another mechanism": story(set_in("mechanism", to={"name": "laplace", "options": {}})),
    "another option of the mechanism": story(lambda s: s["mechanism"]["options"].update(root=False)),
    "a mechanism nobody has": story(set_in("mechanism", to={"name": "elsewhere:X", "options": {}})),
    "a polish that was not made": story(set_in("polish", to=["nonnegative total 667.0"])),
    "a polish nobody knows": story(set_in("polish", to=["shiny"])),
    "another domain": story(lambda s: s["domain"]["attributes"].reverse()),
    # Stowaways.
    "true counts in a column": columns(lambda t: t.append_column("truth", pa.array(TRUE.reshape(-1)))),
    "true counts in the metadata": columns(
        lambda t: t.replace_schema_metadata({b"remark": json.dumps(TRUE.tolist()).encode()})
    ),
    "a stronger promise in words": words(guarantee="0.1-differential privacy for one row"),
    "another confidence in words": words(confidence="0.99"),
    "another publisher in words": words(publisher="somebody else"),
    "true counts in words": words(remark="518 women of twenty"),
    "true counts as the program's name": words(software="dphist 518 women of twenty"),
    "true counts in what the custodian says": story(lambda s: s["about"].update(truth="518")),
    "true counts in a column's metadata": columns(
        lambda t: t.cast(
            pa.schema([t.schema.field(0).with_metadata({b"truth": b"518"}), *list(t.schema)[1:]])
        )
    ),
    "true counts in the description": story(set_in("remark", to=TRUE.tolist())),
    "true counts in the guarantee": story(set_in("guarantee", "truth", to=518)),
    "true counts in the unit": story(set_in("guarantee", "unit", "truth", to=518)),
    "true counts beside an answer": story(set_in("transcript", 0, "truth", to=518)),
    "another shape": story(lambda s: s["shape"].append(518)),
    "true counts in the domain": story(lambda s: s["domain"].update(truth=518)),
    "true counts in an attribute": story(lambda s: s["domain"]["attributes"][0].update(truth=518)),
    "true counts in the note": story(set_in("note", to="518 women of twenty")),
    "a column under another name": columns(
        lambda t: t.rename_columns(["age", "sex", "count", "low", "high"])
    ),
    "labels exchanged": columns(lambda t: replaced(t, "sex", pa.array(["M", "F"] * 6).dictionary_encode())),
    "a label as a message": columns(
        lambda t: replaced(t, "sex", pa.array(["F 518", "M"] * 6).dictionary_encode())
    ),
    "a label missing": columns(
        lambda t: replaced(t, "sex", pa.array([None, "M", *["F", "M"] * 5]).dictionary_encode())
    ),
    "numbers of a label shifted": column("age", lambda _: np.arange(12) // 2 + 21),
    "junk in an answer's text": story(
        lambda s: s["transcript"][0].update(data="!*! " + s["transcript"][0]["data"])
    ),
}


def test_a_file_written_again_as_it_was_is_accepted(tmp_path: Path) -> None:
    assert accepted(forged(publish(), tmp_path / "out.parquet", lambda told, table: (told, table)))


@pytest.fixture(scope="module")
def release() -> Release:
    return publish()


@pytest.mark.parametrize("forgery", FORGERIES)
def test_what_was_forged_is_refused(forgery: str, release: Release, tmp_path: Path) -> None:
    assert not accepted(forged(release, tmp_path / "out.parquet", FORGERIES[forgery]))


@pytest.mark.parametrize("mechanism", ["laplace", "noisefirst", "dpcube", "privelet", "efpa", "auto"])
def test_with_any_mechanism(mechanism: str, tmp_path: Path) -> None:
    release = publish(mechanism=mechanism)
    assert accepted(forged(release, tmp_path / "as-it-is.parquet", lambda told, table: (told, table)))
    for forgery in (
        "true counts as one more answer, beside the others",
        "an answer dropped",
        "a smaller ε",
        "true counts in a column",
        "true counts in the note",
        "rows in another order",
    ):
        assert not accepted(forged(release, tmp_path / "out.parquet", FORGERIES[forgery])), forgery


def test_bytes_that_belong_to_nothing_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "out.parquet"
    publish().save(path)
    whole = path.read_bytes()
    footer = int.from_bytes(whole[-8:-4], "little") + 8
    path.write_bytes(whole[:-footer] + b"518 women of twenty" + whole[-footer:])
    assert not accepted(path)
    path.write_bytes(b"PAR1518 women" + whole[4:])
    assert not accepted(path)


def test_a_polish_that_is_hidden_is_refused(tmp_path: Path) -> None:
    release = publish()
    polished = release.polished(nonnegative=True, integer=True)
    path = tmp_path / "out.parquet"
    assert accepted(forged(polished, path, lambda told, table: (told, table)))
    for steps in ([], ["nonnegative"], ["nonnegative total 1000.0", "integer"]):
        assert not accepted(forged(polished, path, story(set_in("polish", to=steps))))
    # The tree is nowhere negative: these steps mostly give the very same numbers, and then tell nothing else.
    same = bool((release.polished(integer=True).counts == polished.counts).all())
    assert accepted(forged(polished, path, story(set_in("polish", to=["integer"])))) == same


def test_a_workload_that_decided_the_noise_cannot_be_exchanged(tmp_path: Path) -> None:
    path = tmp_path / "out.parquet"
    release = publish(mechanism="mwem", workload=dphist.Workload.prefixes(DOMAIN))
    assert accepted(forged(release, path, lambda told, table: (told, table)))
    assert not accepted(forged(release, path, story(set_in("workload", to={"kind": "cells"}))))
    # Where it decided nothing it is a remark about what people meant to ask: harmless, and accepted.
    plain = publish(mechanism="laplace", workload=dphist.Workload.prefixes(DOMAIN))
    assert accepted(forged(plain, path, story(set_in("workload", to={"kind": "cells"}))))


def test_two_releases_glued_together_are_refused(tmp_path: Path) -> None:
    one, other = publish(), publish()
    other.save(tmp_path / "other.parquet")
    table = pq.read_table(tmp_path / "other.parquet")
    second = json.loads(table.schema.metadata[b"dphist"])
    path = tmp_path / "out.parquet"

    def both(told: Story) -> None:
        told["transcript"] += second["transcript"]

    def paid(told: Story) -> None:
        both(told)
        told["guarantee"]["epsilon"] = "2"

    for glue in (story(both), story(paid), columns(lambda t: replaced(t, "estimate", table["estimate"]))):
        assert not accepted(forged(one, path, glue))
    assert not accepted(forged(one, path, story(set_in("transcript", to=second["transcript"]))))


def edited_with_its_answer(told: Story, table: pa.Table) -> tuple[Story, pa.Table]:
    """Laplace publishes its answer as it is, so one column is both."""
    return column("estimate", lambda counts: np.append(counts[0] + 1, counts[1:]))(told, table)


def stronger(told: Story) -> None:
    """Every price a tenth of what it was: consistent, and untrue."""
    told["guarantee"]["epsilon"] = "1/10"
    for entry in told["transcript"]:
        entry["epsilon"] = str(Fraction(entry["epsilon"]) / 10)


INVENTED: dict[str, Forge] = {
    "a count and its answer": edited_with_its_answer,
    "every price": story(stronger),
    "more rows a person than there is noise for": story(set_in("guarantee", "unit", "rows", to=3)),
    "another payment": story(set_in("receipt", to=["people", 2, "0" * 64])),
    "another population": story(set_in("receipt", to=["others", 3, "0" * 64])),
    "no payment": story(set_in("receipt", to=None)),
    "another publisher": story(lambda s: s["about"].update(publisher="somebody else")),
}


def invented(release: Release, path: Path, forge: Forge) -> Path:
    """A forger who knows the format: the words, the model and the bounds are made to fit what was forged."""
    file = pq.ParquetFile(forged(release, path, forge))
    read = reading._read(file, json.loads(file.schema_arrow.metadata[b"dphist"]))
    object.__setattr__(read, "_story", None)
    read.save(path)
    return path


@pytest.mark.parametrize("forgery", INVENTED)
def test_what_is_invented_as_a_whole_is_known_by_the_ledger(forgery: str, tmp_path: Path) -> None:
    # It replays like any other release: nothing in a file can show who wrote it. The ledger can.
    path = tmp_path / "out.parquet"
    with dphist.Ledger.open(tmp_path / "budget.db") as book:
        book.create("people", 1)
        book.create("others", 1)
        release = publish(mechanism="laplace", ledger=book, dataset="people")
        release.save(path)
        with pytest.raises(VerificationError, match="digest"):
            verify_file(path, book)  # not written down yet
        book.complete(release.receipt[1], digest(path))  # type: ignore[index]
        assert verify_file(path, book).epsilon == 1
        invented(release, tmp_path / "forged.parquet", INVENTED[forgery])
        assert accepted(tmp_path / "forged.parquet")
        with pytest.raises(VerificationError):
            verify_file(tmp_path / "forged.parquet", book)


def test_an_insider_who_writes_down_the_forged_file_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "out.parquet"
    for forgery in ("every price", "more rows a person than there is noise for"):
        with dphist.Ledger.open(tmp_path / f"{forgery}.db") as book:
            book.create("people", 1)
            release = publish(mechanism="laplace", ledger=book, dataset="people")
            book.complete(release.receipt[1], digest(invented(release, path, INVENTED[forgery])))  # type: ignore[index]
            with pytest.raises(VerificationError, match="something else"):
                verify_file(path, book)


def test_a_saved_transcript_is_the_same(tmp_path: Path) -> None:
    # Also where a polish moved the counts away from the answers.
    for release in (publish(mechanism="laplace"), publish(mechanism="laplace").polished(nonnegative=True)):
        release.save(tmp_path / "out.parquet")
        assert same_answers(dphist.load(tmp_path / "out.parquet").transcript, release.transcript)


# ---- sparse releases ------------------------------------------------------------------------------------

SPARSE: dict[str, Forge] = {
    "a count below the threshold": column("estimate", last(0)),
    "a cell moved": column("cell", last(10**6 - 1)),
    "a cell outside": column("cell", last(10**6)),
    "cells in another order": columns(lambda t: t.take(list(range(len(t)))[::-1])),
    "a bound edited": column("low", lambda low: low / 2),
    "a stronger promise in words": words(guarantee="0.1-differential privacy for one row"),
    "another threshold": story(set_in("threshold", to=1)),
    "a smaller ε": story(set_in("guarantee", "epsilon", to="1/10")),
    "more rows a person, which means another threshold": story(set_in("guarantee", "unit", "rows", to=3)),
    "another price": story(set_in("entry", "epsilon", to="1/2")),
    "another question": story(set_in("entry", "verb", to="choose")),
    "true counts in a column": columns(lambda t: t.append_column("truth", pa.array(np.arange(len(t))))),
    "true counts in the metadata": columns(lambda t: t.replace_schema_metadata({b"truth": b"518"})),
    "true counts in the description": story(set_in("truth", to=518)),
    "true counts beside the answer": story(set_in("entry", "truth", to=518)),
    "a label that is another cell's": column("x", lambda x: (x + 1) % 1000),
}


def test_a_forged_sparse_release_is_refused(tmp_path: Path) -> None:
    domain = dphist.Domain([dphist.Ordinal("x", range(1000)), dphist.Ordinal("y", range(1000))])
    rows = pa.table({"x": np.repeat([3, 500, 900], 400), "y": np.repeat([8, 1, 999], 400)})
    release = dphist.publish(rows, domain, 1, "sparselaplace", unit=Unit(rows=2))
    path = tmp_path / "out.parquet"
    assert accepted(forged(release, path, lambda told, table: (told, table)))
    for name, forge in SPARSE.items():
        assert not accepted(forged(release, path, forge)), name


@pytest.mark.parametrize("form", ["dense", "sparse", "tables"])
def test_rows_that_stand_for_billions_are_not_read(form: str, tmp_path: Path, monkeypatch: Any) -> None:
    # Equal numbers pack so well that a megabyte of a file can fill any memory.
    path = tmp_path / "out.parquet"
    workload = "marginals:age" if form == "tables" else None
    mechanism = {"dense": "laplace", "sparse": "sparselaplace", "tables": "residuals"}[form]
    release = publish(mechanism=mechanism, workload=workload)
    release.save(path)
    table = pq.read_table(path)
    many = pa.concat_tables([table] * 100)
    pq.write_table(many, path)
    read: list[Any] = []
    whole = pq.ParquetFile.read

    def noted(*given: Any, **more: Any) -> Any:
        read.append(given)
        return whole(*given, **more)

    monkeypatch.setattr(pq.ParquetFile, "read", noted)
    with pytest.raises(ReleaseError, match="other rows than its description has cells"):
        dphist.load(path)
    assert not read


def test_what_a_footer_says_of_values_must_be_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tools pass over rows that cannot match by it: of a release that verified, DuckDB found no one of twenty."""
    monkeypatch.setattr(writing, "_ROWS", 4)
    path = tmp_path / "out.parquet"
    publish(mechanism="laplace").save(path)
    assert accepted(path)
    stated = pq.ParquetFile(path).metadata.row_group(0).column(0).statistics
    raw = path.read_bytes()
    begin = len(raw) - 8 - int.from_bytes(raw[-8:-4], "little")
    true, false = struct.pack("<q", stated.max), struct.pack("<q", stated.max + 1000)
    assert raw[begin:].count(true)
    path.write_bytes(raw[:begin] + raw[begin:].replace(true, false))
    assert pq.ParquetFile(path).metadata.row_group(0).column(0).statistics.max == stated.max + 1000
    assert not accepted(path)


def rewritten(path: Path, **how: Any) -> Path:
    """A file whose table was read and written by pyarrow."""
    table = pq.read_table(path)
    pq.write_table(table, path, **({"write_statistics": False} | HOW | how))
    return path


def test_a_file_that_was_packed_otherwise_verifies(tmp_path: Path) -> None:
    path = tmp_path / "out.parquet"
    publish().save(path)
    whole = path.read_bytes()
    assert accepted(rewritten(path, compression_level=19))
    assert path.read_bytes() != whole
    for how in ({"compression": "snappy"}, {"write_statistics": True}, {"data_page_version": "2.0"}):
        assert not accepted(rewritten(path, **how))


def footer_of(raw: bytes) -> int:
    return len(raw) - 8 - int.from_bytes(raw[-8:-4], "little")


def test_both_places_where_words_stand_must_say_the_same(tmp_path: Path) -> None:
    """Footers say it in plain letters, to DuckDB; and once more in a copy of the schema, which Arrow believes."""
    path = tmp_path / "out.parquet"
    publish().save(path)
    raw = path.read_bytes()
    begin, word = footer_of(raw), b"1-differential privacy"
    assert raw.count(word, begin) == 1
    path.write_bytes(raw.replace(word, b"0" + word[1:]))
    assert b"0-differential" in pq.read_metadata(path).metadata[b"guarantee"]
    with pytest.raises(ReleaseError, match="twice"):
        dphist.load(path)
    copy = pq.ParquetFile(path).metadata.metadata[b"ARROW:schema"]
    forged_copy = b64encode(b64decode(copy).replace(word, b"0" + word[1:]))
    path.write_bytes(raw.replace(copy, forged_copy))
    with pytest.raises(ReleaseError, match="twice"):
        dphist.load(path)


@pytest.mark.parametrize(
    "spelt",
    [
        lambda told: told.replace(b"{", b'{"note": "518 women", ', 1),
        lambda told: json.dumps(json.loads(told), indent=1).encode(),
        lambda told: told.replace(b'"age"', b'"\\u0061ge"', 1),
        lambda told: json.dumps(dict(reversed(json.loads(told).items()))).encode(),
    ],
    ids=["a key twice", "room", "letters by their numbers", "another order"],
)
def test_a_description_is_spelt_in_one_way(spelt: Callable[[bytes], bytes], tmp_path: Path) -> None:
    path = tmp_path / "out.parquet"
    publish().save(path)
    table = pq.read_table(path)
    told = dict(table.schema.metadata)
    assert spelt(told[b"dphist"]) != told[b"dphist"]
    told[b"dphist"] = spelt(told[b"dphist"])
    pq.write_table(table.replace_schema_metadata(stamped(told)), path, write_statistics=False, **HOW)
    with pytest.raises((ReleaseError, VerificationError), match=r"written in another way|says more"):
        dphist.load(path).verify()


def test_an_entry_of_a_dictionary_that_no_row_has_is_refused(tmp_path: Path) -> None:
    unused = pa.DictionaryArray.from_arrays(
        pa.array([0, 1] * 6, pa.int32()), ["F", "M", "518 women of twenty"]
    )
    path = forged(publish(), tmp_path / "out.parquet", columns(lambda t: replaced(t, "sex", unused)))
    assert b"518 women" in b"".join(_pages(path))
    assert pq.read_table(path)["sex"].to_pylist() == ["F", "M"] * 6
    assert not accepted(path)


def _pages(path: Path) -> list[bytes]:
    with path.open("rb") as file:
        told, _ = read_footer(file)
        found = [page for column in told[4][0][1] for page in page_headers(file, column[3])]
    raw = path.read_bytes()
    return [
        pa.decompress(raw[start : start + header[3]], header[2], "zstd", asbytes=True)
        for header, start in found
    ]


def skippable(size: int) -> bytes:
    """A frame that Zstandard's readers pass over."""
    return (
        bytes.fromhex("502a4d18")
        + struct.pack("<I", size - 8)
        + b"518 women of twenty"[: size - 8].ljust(size - 8)
    )


def test_frames_that_readers_pass_over_are_refused(tmp_path: Path) -> None:
    packed = pa.compress(bytes(range(256)) * 9, codec="zstd", asbytes=True)
    assert is_one_frame(packed)
    assert not any(
        map(is_one_frame, (packed + skippable(20), skippable(20) + packed, packed + packed, packed[:-1], b""))
    )

    def add(told: Story) -> None:
        entry = told["transcript"][0]
        entry["data"] = b64encode(b64decode(entry["data"]) + skippable(24)).decode()

    assert not accepted(forged(publish(), tmp_path / "out.parquet", story(add)))


def test_a_page_with_a_frame_that_readers_pass_over_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "out.parquet"
    domain = dphist.Domain([dphist.Ordinal("age", range(3000))])
    dphist.publish(dphist.Histogram(domain, np.ones(3000, int)), epsilon=1, mechanism="laplace").save(path)
    # Packed badly, so that there is room in the same place.
    rewritten(path, compression_level=-50)
    assert accepted(path)
    raw = path.read_bytes()
    with path.open("rb") as file:
        told, _ = read_footer(file)
        header, start = next(page_headers(file, told[4][0][1][0][3]))
    old = raw[start : start + header[3]]
    page = pa.decompress(old, header[2], "zstd", asbytes=True)
    packed = pa.Codec("zstd", compression_level=19).compress(page, asbytes=True)
    assert len(packed) + 8 <= len(old)
    new = packed + skippable(len(old) - len(packed))
    known, sums = varint(header[4]), varint(zlib.crc32(new))
    while len(sums) != len(known):
        new = new[:-1] + bytes([new[-1] + 1])
        sums = varint(zlib.crc32(new))
    place = raw.index(known, 4, start)
    path.write_bytes(raw[:place] + sums + raw[place + len(known) : start] + new + raw[start + len(old) :])
    assert pq.read_table(path, page_checksum_verification=True)["age"].to_pylist() == list(range(3000))
    assert not accepted(path)


def varint(number: int) -> bytes:
    """A checksum as Thrift writes it: signed, its sign last, seven bits at a time."""
    signed = (number ^ 1 << 31) - (1 << 31) if number >= 0 else number
    bits, found = (signed << 1 ^ signed >> 31) & 0xFFFFFFFF, b""
    while bits >= 128:
        found += bytes([bits & 127 | 128])
        bits >>= 7
    return found + bytes([bits])


def test_memory_is_added_up_over_columns_and_groups_before_any_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dphist import memory
    from dphist.release import held

    path = tmp_path / "out.parquet"
    monkeypatch.setattr(writing, "_ROWS", 4)
    publish().save(path)
    with path.open("rb") as file:
        wanted = wanted_memory(file)
    told = json.loads(pq.read_schema(path).metadata[b"dphist"])
    packed_here = [each for each in [*told["transcript"], *told["model"]["arrays"]] if "data" in each]
    answers = sum(8 * int(np.prod(each["shape"])) for each in packed_here)
    # Twelve rows in five columns, at eight bytes and what their pages take.
    assert wanted >= 12 * 5 * 8 + sum(map(len, _pages(path)))
    monkeypatch.setattr(held, "_MUCH", 1)
    monkeypatch.setattr(memory, "available_memory", lambda: wanted + answers)
    dphist.load(path)
    monkeypatch.setattr(memory, "available_memory", lambda: wanted + answers - 1)
    with pytest.raises(ReleaseError, match="cannot be read here"):
        dphist.load(path)


def test_the_last_digits_of_bounds_carry_nothing_either(tmp_path: Path) -> None:
    """Nine digits are the replay's on any processor; those behind them are looked at on request."""
    path = tmp_path / "out.parquet"
    publish(mechanism="laplace").save(path)
    dphist.load(path).verify(exact=True)
    forged(publish(mechanism="laplace"), path, column("high", lambda high: high * (1 + 1e-11)))
    dphist.load(path).verify()
    with pytest.raises(VerificationError, match="a bound in the file"):
        dphist.load(path).verify(exact=True)
