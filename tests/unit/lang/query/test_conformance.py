"""The conformance cases, as far as the language alone decides them."""

from __future__ import annotations

from typing import Any

import pytest

from omnigraph.errors import OmnigraphError
from omnigraph.lang.languages import is_file_text
from omnigraph.lang.query import Want, bind_params, compile_query, lint_queries, parse_queries
from omnigraph.model.catalog import Catalog
from tests.conformance import checks

from .casefile import CONFORMANCE, catalog_for, conformance

WANT = {"query": Want.READ, "mutate": Want.MUTATION}


def schema_text(source: str) -> str:
    return (CONFORMANCE / source).read_text() if source == "base.pg" else source


def language_steps() -> list[Any]:
    """The steps that hold query texts, up to the first that changes the schema."""
    found = []
    for case in conformance():
        for number, step in enumerate(case["steps"], 1):
            if step["op"] in ("apply_schema", "init"):
                break
            if step["op"] in ("query", "mutate", "lint"):
                found.append(pytest.param(case, step, id=f"{case['id']}-{number}"))
    return found


def error_of(step: dict[str, Any], catalog: Catalog) -> OmnigraphError | None:
    """What compiling the text and binding its parameters raises; a statement alone is only read."""
    try:
        want: Want | None = WANT[step["op"]]
        if is_file_text(step["text"]):
            file = parse_queries(step["text"], bare=True)
            if not file.queries:
                return None
            want = want if file.statement is None else None
        query = compile_query(step["text"], catalog, step.get("name"), want=want)
        bind_params(query, step.get("params"))
    except OmnigraphError as error:
        return error
    return None


@pytest.mark.parametrize(("case", "step"), language_steps())
def test_step(case: dict[str, Any], step: dict[str, Any]) -> None:
    catalog = catalog_for(schema_text(case["schema"]))
    wanted = step.get("expect", "ok")
    if step["op"] == "lint":
        checks.lint(wanted, lint_queries(step["text"], catalog).to_json())
        return
    error = error_of(step, catalog)
    if error is not None:
        assert "error" in wanted, f"{error.code}: {error.message}"
        checks.error(wanted["error"], error)
    else:
        # An error without a code may come from the data, which is not here.
        codes = set(wanted["error"]["codes"] or ()) if "error" in wanted else set()
        assert not {code for code in codes if code[1:].isdigit()}, wanted


def test_most_cases_are_covered() -> None:
    assert len(language_steps()) > 180
