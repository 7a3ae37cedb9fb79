"""Requests made from the description of the routes: no failure of ours, and every error has a known code."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.config import SchemathesisConfig

from omnigraph.errors import CODES
from omnigraph.server import openapi
from omnigraph.server.routes import ROUTES
from tests.server import world as worlds
from tests.server.world import TOKENS
from tests.support import rings

EXAMPLES = rings.count(4, 30)
_document = openapi.document(ROUTES, authenticated=True)
schema = schemathesis.openapi.from_dict(_document, config=SchemathesisConfig())


@schemathesis.serializer("application/x-ndjson", "multipart/mixed")
def as_bytes(_: Any, value: Any) -> Any:
    """Bodies of any bytes, sent as they are."""
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "replace")


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder: Path = tmp_path_factory.mktemp("fuzzed")
    server, _ = worlds.build(folder)
    with worlds.listening(server) as found:
        yield found


@schema.parametrize()
@settings(
    max_examples=EXAMPLES,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
    deadline=None,
)
def test_no_request_is_too_strange(case: schemathesis.Case[Any], address: str) -> None:
    if "graph_id" in case.path_parameters:
        case.path_parameters["graph_id"] = "alpha"
    headers = {"Authorization": f"Bearer {TOKENS['admin']}"}
    answer = case.call(base_url=address, headers=headers)
    assert answer.status_code < 500, f"{case.method} {case.formatted_path}: {answer.text}"
    if answer.status_code >= 400 and case.method != "HEAD" and answer.content:
        told = answer.json()
        assert told["error"]
        assert told["error_code"] in CODES
