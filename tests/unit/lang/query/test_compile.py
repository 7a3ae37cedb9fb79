"""Choosing, describing and linting queries of a text."""

from __future__ import annotations

import pytest

from omnigraph.errors import Kind
from omnigraph.lang.diagnostics import LanguageError
from omnigraph.lang.query import (
    QueryAmbiguous,
    QueryKindMismatch,
    QueryNotFound,
    Want,
    compile_query,
    describe_operation,
    lint_queries,
    parse_queries,
)

from .casefile import harbour

READ = "query find_it() { match { $p: Port } return { $p.code } }"
MUTATION = 'query m() { delete Crew where badge = "x" }'


def operation(text: str) -> dict[str, object]:
    return describe_operation(compile_query(text, harbour()), harbour()).to_json()


def types(text: str, side: str) -> list[str]:
    found = operation(text)[side]
    assert isinstance(found, list)
    return [f"{entry['kind']} {entry['type_name']}" for entry in found]


def test_the_only_query_needs_no_name() -> None:
    assert compile_query(READ, harbour()).name == "find_it"


@pytest.mark.parametrize(
    "body", ["match { $p: Port } return { $p.code } limit 2", 'delete Crew where badge = "x"']
)
def test_a_body_alone_is_a_query_without_parameters(body: str) -> None:
    assert compile_query(body, harbour()) == compile_query(f"query q() {{ {body} }}", harbour())


@pytest.mark.parametrize(
    ("body", "at", "words"),
    [
        ("match { $p: Port } return { $p.cod }", 31, "cod"),
        ("match { $p: Port return { $p.code }", 6, "never closed"),
        ("match { $p: Port } return { $p.code } }", 38, "the end of the query"),
        ("match { $p: Port } return { $p.code } " + READ, 38, "the end of the query"),
        ('delete Crew where badge = "x" }', 30, "found `}`"),
    ],
)
def test_mistakes_in_a_body_alone_are_shown_where_they_are(body: str, at: int, words: str) -> None:
    with pytest.raises(LanguageError) as caught:
        compile_query(body, harbour())
    assert words in caught.value.message
    assert caught.value.span is not None
    assert caught.value.span.start == at


def test_a_file_holds_whole_queries() -> None:
    with pytest.raises(LanguageError, match="expected `query`"):
        parse_queries("match { $p: Port } return { $p.code }", "ports.gq")


def test_several_queries_need_a_name() -> None:
    with pytest.raises(QueryAmbiguous):
        compile_query(READ + MUTATION, harbour())
    assert compile_query(READ + MUTATION, harbour(), "m").name == "m"


def test_the_first_of_several_with_one_name_runs() -> None:
    second = READ.replace("$p.code", "$p.depth")
    query = compile_query(READ + second, harbour(), "find_it")
    assert query == compile_query(READ, harbour())


def test_an_unknown_name_is_not_found_with_a_suggestion() -> None:
    with pytest.raises(QueryNotFound) as caught:
        compile_query(READ, harbour(), "fnd_it")
    assert caught.value.kind is Kind.NOT_FOUND
    assert "find_it" in caught.value.help
    with pytest.raises(QueryNotFound):
        compile_query("// nothing", harbour())


def test_a_read_is_not_a_mutation_nor_the_reverse() -> None:
    with pytest.raises(QueryKindMismatch):
        compile_query(READ, harbour(), want=Want.MUTATION)
    with pytest.raises(QueryKindMismatch):
        compile_query(MUTATION, harbour(), want=Want.READ)


def test_reads_name_every_type_a_pattern_touches() -> None:
    text = (
        "query q() { match { $v: Vessel $v calls|visits $x not { $c serves $v } "
        "exists { $v: Vessel { active: true } } } return { $x.label } }"
    )
    reads = ["node Crew", "node Depot", "node Port", "node Vessel"]
    assert types(text, "reads") == [*reads, "edge Calls", "edge Serves", "edge Visits"]
    assert types(text, "writes") == []


def test_an_interface_reads_its_implementers() -> None:
    text = "query q() { match { $n: Named } return { $n.label } }"
    assert types(text, "reads") == ["node Depot", "node Port"]


def test_mutations_read_and_write_what_they_touch() -> None:
    assert types('query m() { delete Crew where badge = "x" }', "writes") == [
        "node Crew",
        "edge Mentors",
        "edge Order",
        "edge Serves",
    ]
    insert = 'query m() { insert Calls { from: "a", to: "b" } }'
    assert types(insert, "reads") == ["node Port", "node Vessel", "edge Calls"]
    assert types(insert, "writes") == ["edge Calls"]


def test_result_columns_say_kind_and_nullability() -> None:
    text = (
        "query q() { match { $v: Vessel $v calls $p } return { $v, $v.imo as i, $v.teu as t, "
        "$p.tags as g, $v.shape as s, entity($p) as e, $v.active as a, $v.built as d, now() as n } }"
    )
    assert operation(text)["result"] == [
        {"name": "v", "kind": "object", "nullable": False},
        {"name": "i", "kind": "bigint", "nullable": False},
        {"name": "t", "kind": "int", "nullable": True},
        {"name": "g", "kind": "list", "item_kind": "string", "nullable": True},
        {"name": "s", "kind": "vector", "vector_dim": 2, "nullable": True},
        {"name": "e", "kind": "object", "nullable": False},
        {"name": "a", "kind": "bool", "nullable": False},
        {"name": "d", "kind": "date", "nullable": True},
        {"name": "n", "kind": "datetime", "nullable": False},
    ]


def codes(text: str) -> list[str]:
    return [finding.code for finding in lint_queries(text, harbour()).findings]


def test_a_property_no_update_sets_is_reported_once_per_file() -> None:
    one = "query a($b: String) { update Crew set { rank: 1 } where badge = $b }"
    other = 'query b($b: String) { update Crew set { email: "x" } where badge = $b }'
    report = lint_queries(one, harbour())
    assert [(f.code, f.property, f.query_names) for f in report.findings] == [
        ("L201", "email", ("a",))
    ]
    assert codes(one + other) == []
    assert report.status == "ok"


def test_a_file_that_does_not_parse_is_one_finding() -> None:
    report = lint_queries("query x( {", harbour(), "x.gq").to_json()
    assert (report["status"], report["queries_processed"]) == ("error", 0)
    assert [f["code"] for f in report["findings"]] == ["Q000"]
    assert report["findings"][0]["span"]["line"] == 1


def test_lint_reports_mixed_deletes_repeated_names_and_columns() -> None:
    mixed = lint_queries(
        "query m($b: String) { insert Crew { badge: $b } delete Crew where badge = $b }", harbour()
    )
    assert [r.errors[0].code for r in mixed.results] == ["Q015"]
    assert codes(READ + READ) == ["L203"]
    twice = "query q() { match { $p: Port } return { $p.code as c, $p.depth as c } }"
    assert [e.code for e in lint_queries(twice, harbour()).results[0].errors] == ["Q021"]
