"""The planner forecasts like `dphist.planning.forecast`, takes nothing but a schema, and no record can be reached."""

import asyncio
import sys
import threading

import httpx
import pytest

from dphist.model.domain import Domain
from dphist.planning.forecast import plan
from dphist.release.asking import read_question
from dphist.web import create_app, planner

SCHEMA = planner._EXAMPLE


def test_a_forecast_is_the_plans_own(get):
    reply = get("/api/plan", "POST", data={"mechanism": "laplace", "epsilon": "0.5", "question": "age < 10"})
    said = reply.json()
    domain = Domain.from_toml(SCHEMA)
    own = plan(domain, "0.5", "ranges", mechanisms=["laplace"], records=100_000)[0]
    assert said["errors"]["ranges"] == own.error
    asked = plan(
        domain, "0.5", read_question("age < 10", domain), mechanisms=["laplace"], records=100_000, error=100
    )[0]
    assert said["errors"]["question"] == asked.error
    assert said["epsilon_needed"] == asked.epsilon_needed
    assert said["cells"] == 200


def test_currencies_stand_side_by_side_with_their_limits(get):
    form = {"mechanism": "gaussian", "question": "age < 10", "delta": "1e-6", "rho": "1/2"}
    said = get("/api/plan", "POST", data=form).json()
    assert [each["budget"] for each in said["currencies"]] == ["ε = 1", "(1, 1e-06)", "ρ = 0.5"]
    pure, bought, rho = said["currencies"]
    assert pure["error"] is None
    assert rho["error"] == pytest.approx(20**0.5)
    # A question of one's own follows no rule, and has no limit; ranges do.
    assert {each["limit"] for each in (pure, bought, rho)} == {None}
    pure, bought, rho = get("/api/plan", "POST", data=form | {"question": ""}).json()["currencies"]
    # Pure ε keeps the promise of (ε, δ), too.
    assert 0 < rho["limit"] < bought["limit"] == pytest.approx(pure["limit"])
    assert said["limits"]["cells"] == pytest.approx(2**0.5)
    assert get("/api/plan", "POST", data=form | {"delta": "2"}).status_code == 400


def test_a_larger_unit_needs_more(get):
    one, five = (
        get("/api/plan", "POST", data={"mechanism": "laplace", "rows": rows}).json() for rows in ("1", "5")
    )
    # Whole numbers are drawn: small noise is a little less than the continuous law says.
    assert 5.0 < five["errors"]["cells"] / one["errors"]["cells"] < 5.3


@pytest.mark.parametrize(
    "form",
    [
        {"schema": "not toml"},
        {"schema": "tests/web/conftest.py"},
        {"schema": "../../../../etc/hostname"},
        {"schema": ""},
        {"epsilon": "-1"},
        {"epsilon": "nan"},
        {"mechanism": "nosuch"},
        {"error": "0"},
        {"records": "many"},
        {"question": "height = 3"},
        {"rows": "0"},
        {"source": "visits.csv"},
        {"schema": '[[attribute]]\nname = "x"\nkind = "ordinal"\nrange = [0, 100000000]\n'},
    ],
)
def test_bad_plans_are_refused_in_words(get, form):
    reply = get("/api/plan", "POST", data=form)
    assert reply.status_code == 400, reply.text
    assert set(reply.json()) == {"error"}


def test_a_schema_is_never_taken_for_a_file(get, tmp_path):
    secret = tmp_path / "schema.toml"
    secret.write_text(SCHEMA)
    reply = get("/api/plan", "POST", data={"schema": str(secret)})
    assert reply.status_code == 400
    assert "TOML" in reply.json()["error"]


def test_a_huge_body_is_refused(get):
    assert get("/api/plan", "POST", content=b"schema=" + b"x" * 70_000).status_code == 413


def test_many_slow_forecasts_keep_no_other_page_waiting(monkeypatch):
    waited_for = threading.Event()

    def slow(form):
        assert waited_for.wait(120)
        return {}

    monkeypatch.setattr(planner, "forecast", slow)

    async def ask():
        transport = httpx.ASGITransport(app=create_app({}))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            forecasts = [asyncio.create_task(client.post("/api/plan", data={})) for _ in range(60)]
            try:
                # All of them have come by then.
                await asyncio.sleep(1)
                return await asyncio.wait_for(client.get("/plan"), 30)
            finally:
                waited_for.set()
                await asyncio.gather(*forecasts)

    assert asyncio.run(ask()).status_code == 200


def test_the_planner_alone_serves_no_release_and_opens_no_data(client):
    ask = client(create_app({}, begin={"epsilon": "0.25"}))
    assert 'value="0.25"' in ask("/").text
    assert ask("/api/view").status_code == 400
    assert ask("/report").status_code == 404
    opened = []

    def watch(event, arguments):
        if event == "open" and str(arguments[0]).endswith((".csv", ".parquet", ".duckdb", ".db")):
            opened.append(arguments[0])

    sys.addaudithook(watch)
    assert ask("/api/plan", "POST", data={"mechanism": "noisefirst", "only": "question"}).status_code == 200
    assert not opened
