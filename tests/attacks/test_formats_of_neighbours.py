"""Every form a release can take is a function of the released numbers: same numbers, same bytes, whatever the data."""

import asyncio
import json
from dataclasses import replace

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dphist
from dphist.mechanisms.options import parse
from dphist.mechanisms.protocol import bare, made_by, with_reason
from dphist.release import SparseCells
from dphist.report.page import report_page
from dphist.web import create_app
from dphist_bench.audit.campaign import claims

DOMAIN = dphist.Domain([dphist.Ordinal("x", range(6)), dphist.Nominal("y", ["a", "b"])])
HERE = np.array([[5, 0], [0, 3], [9, 9], [0, 0], [1, 2], [0, 40]])
THERE = HERE + (np.arange(12).reshape(6, 2) == 3)


def publish(counts, mechanism, **options):
    return dphist.publish(dphist.Histogram(DOMAIN, counts), epsilon=1, mechanism=mechanism, **options)


def disguised(release, other):
    """The other neighbour's release, had its noise brought out the very same numbers."""
    if isinstance(release.cells, SparseCells):
        return replace(other, cells=release.cells, transcript=release.transcript)
    # Words such as "kept 5 of 12 coordinates", and what is chosen, are functions of the answers: a replay without data
    # finds the same.
    recipe = bare(other.mechanism)
    found = replace(other, transcript=release.transcript, mechanism=recipe)._replay()
    mechanism = with_reason(made_by(recipe, found), found.note)
    return replace(
        other, cells=release.cells, transcript=release.transcript, note=found.note, mechanism=mechanism
    )


def parquet(release, folder):
    path = folder / "r.parquet"
    release.save(path)
    raw = path.read_bytes()
    path.unlink()
    return raw


@pytest.mark.parametrize("text", claims())
def test_the_file_of_every_mechanism_tells_nothing_but_the_numbers(text, tmp_path):
    one, other = publish(HERE, parse(text)), publish(THERE, parse(text))
    for release in (one, other):
        # Bit for bit what the paid answers give: no rounding of a count can hide in the cells.
        release.verify()
    first, second = parquet(one, tmp_path), parquet(disguised(one, other), tmp_path)
    assert first == second
    shapes = []
    for release in (one, other):
        path = tmp_path / "r.parquet"
        release.save(path)
        schema = pq.read_schema(path)
        story = json.loads(schema.metadata[b"dphist"])
        kinds = [(field.name, str(field.type), field.nullable) for field in schema]
        # What is made of the answers, and how it is called, is a function of them, as the same bytes above show.
        own = ("transcript", "receipt", "note", "model", "maker")
        rest = {key: story[key] for key in story if key not in own}
        for filled_in in ("why", "chosen"):
            rest.get("mechanism", {}).get("options", {}).pop(filled_in, None)
        shapes.append((kinds, sorted(schema.metadata), list(story), rest))
        assert np.array_equal(dphist.load(path).counts, release.counts)
    assert shapes[0] == shapes[1]


def served(release, path):
    app = create_app({"r": release})

    async def go():
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            answer = await client.get(path)
        assert answer.status_code == 200
        return answer.content

    return asyncio.run(go())


def arrow(table):
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


FORMS = {
    "parquet": parquet,
    "csv of a pandas frame": lambda release, _: release.to_pandas().to_csv(),
    "json of a pandas frame": lambda release, _: release.to_pandas().to_json(),
    "types of a pandas frame": lambda release, _: str(release.to_pandas().dtypes),
    "arrow": lambda release, _: arrow(release.to_arrow()),
    "xarray": lambda release, _: json.dumps(release.to_xarray().to_dict(), default=str),
    "synthetic records": lambda release, _: release.records().to_csv(),
    "answers": lambda release, _: repr(release.answer(where={"x": (1, 3)})),
    "projection": lambda release, _: repr(release.project("x")),
    "picture": lambda release, _: json.dumps(release.plot("x").to_dict()),
    "report": lambda release, _: report_page(release),
    "notebook card": lambda release, _: release._repr_html_(),
    "explorer": lambda release, _: served(release, "/api/view?show=x"),
    "explorer's download": lambda release, _: served(release, "/download.csv?show=x"),
    "words": lambda release, _: repr(release) + repr(release.transcript),
    "whole numbers": lambda release, folder: parquet(
        release.polished(nonnegative=True, integer=True), folder
    ),
}
# A labelled array and a row per bar of very many are refused, by name.
SPARSE = set(FORMS) - {"xarray", "explorer's download"}


@pytest.fixture(scope="module", params=["laplace", "privelet", "dpcube"])
def alike(request):
    """A release and its neighbour's, had that the same numbers: releases do not change, so all forms are of these."""
    one, other = publish(HERE, request.param), publish(THERE, request.param)
    return one, disguised(one, other)


@pytest.mark.parametrize("form", FORMS)
def test_every_form_tells_nothing_but_the_numbers(form, alike, tmp_path):
    one, other = alike
    assert FORMS[form](one, tmp_path) == FORMS[form](other, tmp_path)


@pytest.fixture(scope="module")
def alike_and_sparse():
    """The same of a very large domain."""
    from dphist.mechanisms.sparselaplace import SparseLaplace

    domain = dphist.Domain([dphist.Ordinal("x", range(10**6)), dphist.Nominal("y", ["a", "b"])])
    rows = {"x": [3] * 60 + [999_999] * 70, "y": ["a"] * 130}
    more = {"x": [*rows["x"], 12], "y": [*rows["y"], "b"]}  # type: ignore[misc]
    one, other = (dphist.publish(pa.table(table), domain, 1, SparseLaplace()) for table in (rows, more))
    assert isinstance(one.cells, SparseCells)
    one.verify()
    return one, disguised(one, other)


@pytest.mark.parametrize("form", sorted(SPARSE))
def test_every_form_of_a_sparse_release_tells_nothing_but_the_numbers(form, alike_and_sparse, tmp_path):
    one, other = alike_and_sparse
    assert FORMS[form](one, tmp_path) == FORMS[form](other, tmp_path)


def test_a_form_that_told_more_would_show(tmp_path):
    """The comparison can fail: a receipt with the number of rows in it, and a file that carries it."""
    one, other = publish(HERE, "laplace"), publish(THERE, "laplace")
    leaky = [
        replace(release, note=f"{counts.sum()} rows") for release, counts in ((one, HERE), (other, THERE))
    ]
    assert parquet(leaky[0], tmp_path) != parquet(disguised(*leaky), tmp_path)
