"""The reference manual says what the parser does, and its examples work."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from omnigraph.lang.schema import check_schema, format_schema, parse_schema
from omnigraph.lang.schema.parser import Parser
from omnigraph.lang.schema.steps import Step
from omnigraph.lang.schema.types import TypeParser
from omnigraph.lang.schema.words import ANNOTATIONS, RESERVED, TYPE_WORDS
from tests.support.grammar import grammar_of

PAGE = (Path(__file__).parents[4] / "docs" / "reference" / "schema-language.md").read_text()
EXAMPLES = re.findall(r"```pg\n(.*?)```", PAGE, re.DOTALL)


def test_the_grammar_is_that_of_the_parser() -> None:
    shown = re.search(r"```ebnf\n(.*?)\n```", PAGE, re.DOTALL)
    assert shown is not None
    assert shown[1] == grammar_of(Parser, TypeParser)


def test_every_rule_that_is_used_is_defined() -> None:
    grammar = grammar_of(Parser, TypeParser)
    defined = set(re.findall(r"(?m)^(\w+) +=", grammar))
    bare = re.sub(r'"[^"]*"', "", grammar)
    used = set(re.findall(r"\b[a-z_]+\b", bare))
    lexical = {"ident", "string", "integer", "float", "letter", "digit"}
    assert used - defined == lexical


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_example_is_a_valid_schema_in_canonical_meaning(example: str) -> None:
    assert check_schema(example) == ()
    assert parse_schema(format_schema(example)) == parse_schema(example)


def test_every_word_of_the_language_is_explained() -> None:
    kinds = _kinds(Step)
    for word in (*ANNOTATIONS, *TYPE_WORDS, *RESERVED, *kinds):
        assert word in PAGE, f"{word} is missing from the manual"


def _kinds(step: type[Step]) -> list[str]:
    own = [step.kind] if step.kind else []
    return own + [kind for child in step.__subclasses__() for kind in _kinds(child)]
