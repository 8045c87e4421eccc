"""The explorer's addresses as an OpenAPI schema, and schemathesis to ask them: what fits it, and what does not.

The explorer reads its parameters by itself (one page serves people and programs), so the schema is written down here.
"""

import numpy as np
import pytest
import schemathesis
from hypothesis import HealthCheck, settings

import dphist
from dphist.web import create_app

WORDS = {"type": "string", "maxLength": 60}
NUMBER = {"type": "string", "enum": ["0", "1"]}


def asked(**parameters):
    return [{"name": name, "in": "query", "schema": schema} for name, schema in parameters.items()]


def answers(kind, *statuses):
    refusal = (
        {"application/json": {"schema": {"type": "object", "required": ["error"]}}} if "json" in kind else {}
    )
    return {
        status: {"description": status, "content": {kind: {"schema": {}}} if status == "200" else refusal}
        for status in ("200", *statuses)
    }


def plan(kind):
    return {
        "requestBody": {
            "content": {
                "application/x-www-form-urlencoded": {
                    "schema": {
                        "type": "object",
                        "properties": dict.fromkeys(
                            ("schema", "epsilon", "records", "rows", "workload"), WORDS
                        ),
                    }
                }
            }
        },
        "responses": answers(kind, "400", "413"),
    }


VIEW = asked(
    release=NUMBER,
    q=WORDS,
    show=WORDS,
    by=WORDS,
    window=WORDS,
    node=WORDS,
    confidence={"type": "string", "enum": ["0.5", "0.9", "0.95", "0.99", "2"]},
)
SCHEMA = {
    "openapi": "3.1.0",
    "info": {"title": "dphist explore", "version": "1"},
    "paths": {
        "/": {"get": {"parameters": VIEW, "responses": answers("text/html", "400")}},
        "/api/view": {"get": {"parameters": VIEW, "responses": answers("application/json", "400")}},
        "/download.csv": {"get": {"parameters": VIEW, "responses": answers("text/csv", "400")}},
        "/compare": {
            "get": {
                "parameters": [*VIEW, *asked(other=NUMBER)],
                "responses": answers("text/html", "400"),
            }
        },
        "/report": {"get": {"parameters": asked(release=NUMBER), "responses": answers("text/html", "400")}},
        "/plan": {"get": {"responses": answers("text/html")}},
        "/api/plan": {"post": plan("application/json")},
        "/static/{name}": {
            "get": {
                "parameters": [{"name": "name", "in": "path", "required": True, "schema": WORDS}],
                "responses": answers("text/css", "404"),
            }
        },
    },
}


def application():
    domain = dphist.Domain([dphist.Ordinal("age", range(20)), dphist.Nominal("sex", ["F", "M"])])
    histogram = dphist.Histogram(domain, np.ones((20, 2), dtype=np.int64))
    return create_app(
        {name: dphist.publish(histogram, epsilon=1, mechanism="laplace") for name in ("one", "two")}
    )


schema = schemathesis.openapi.from_dict(SCHEMA)
schema.app = application()
CHECKS = [schemathesis.checks.not_a_server_error]
ASKED = {"times": 0}


@pytest.mark.slow
@schema.parametrize()
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
def test_every_address_answers_or_refuses_what_schemathesis_asks(case):
    ASKED["times"] += 1
    answer = case.call(headers={"host": "localhost"})
    case.validate_response(answer, checks=CHECKS)
    assert answer.status_code < 500
    assert b"Traceback" not in answer.content
    if answer.status_code == 200:
        (kind,) = answer.headers["content-type"]
        assert kind.split(";")[0] in (
            "text/html",
            "application/json",
            "text/csv",
            "text/css",
            "text/javascript",
        )
