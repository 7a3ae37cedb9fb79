"""The examples in docstrings work."""

from __future__ import annotations

import doctest
from importlib import import_module

import pytest

MODULES = (
    "omnigraph.lang.source",
    "omnigraph.lang.diagnostics",
    "omnigraph.lang.lexer",
    "omnigraph.lang.schema",
    "omnigraph.model.types",
)


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    failures, examples = doctest.testmod(import_module(name))
    assert examples
    assert not failures
