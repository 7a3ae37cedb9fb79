"""What a folder describes, and everything that can be wrong with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from omnigraph.cluster.files import read_folder, root_of
from omnigraph.cluster.resources import ClusterInvalid
from tests.unit.cluster.folders import write_folder


def codes(folder: Path) -> list[str]:
    with pytest.raises(ClusterInvalid) as wrong:
        read_folder(folder)
    return [problem["code"] for problem in wrong.value.details["diagnostics"]]


def test_a_folder_becomes_resources(tmp_path: Path) -> None:
    wanted = read_folder(write_folder(tmp_path / "c"))
    assert sorted(wanted.resources) == [
        "graph.films",
        "graph.people",
        "policy.team",
        "query.people.add",
        "query.people.all",
        "retention.people",
        "schema.films",
        "schema.people",
    ]
    assert wanted.root == str(tmp_path / "c")
    assert wanted.resources["graph.films"].uri == "graphs/films.omni"


def test_storage_may_be_elsewhere(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "c", storage="../data")
    assert root_of(str(folder)) == read_folder(folder).root == str(tmp_path / "data")
    assert root_of("s3://bucket/prefix/") == "s3://bucket/prefix"


def test_digests_ignore_layout_and_comments_of_the_file(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "c")
    before = read_folder(folder).digest
    file = folder / "cluster.yaml"
    file.write_text("# a comment\n" + file.read_text())
    assert read_folder(folder).digest == before
    (folder / "people.pg").write_text("node Person { name: String @key }")
    assert read_folder(folder).digest != before


PEOPLE = {"schema": "people.pg"}
MISTAKES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "no graphs": ({"graphs": {}, "policies": {}}, ["cluster_empty"]),
    "an id": ({"graphs": {"a b": PEOPLE}, "policies": {}}, ["invalid_resource_id"]),
    "no schema": ({"graphs": {"people": {"schema": "x.pg"}}}, ["schema_file_missing"]),
    "a retention": (
        {"graphs": {"people": {**PEOPLE, "retention": {"keep": 0}}}},
        ["retention_invalid"],
    ),
    "queries that are not there": (
        {"graphs": {"people": {**PEOPLE, "queries": ["x.gq"]}}},
        ["query_file_missing"],
    ),
    "a query under another name": (
        {"graphs": {"people": {**PEOPLE, "queries": {"other": {"file": "people.gq"}}}}},
        ["query_key_mismatch"],
    ),
    "queries twice": (
        {"graphs": {"people": {**PEOPLE, "queries": ["people.gq", "./people.gq"]}}},
        ["duplicate_query_name", "duplicate_query_name"],
    ),
    "queries of another schema": (
        {"graphs": {"people": {"schema": "films.pg", "queries": ["people.gq"]}}},
        ["query_typecheck_error", "query_typecheck_error"],
    ),
    "a policy for nobody": (
        {"policies": {"team": {"file": "team.policy.yaml"}}},
        ["policy_missing_applies_to"],
    ),
    "a policy for a graph that is not there": (
        {"policies": {"team": {"file": "team.policy.yaml", "applies_to": ["nowhere"]}}},
        ["dangling_graph_reference"],
    ),
    "a policy of graphs for the cluster": (
        {"policies": {"team": {"file": "team.policy.yaml", "applies_to": ["cluster"]}}},
        ["policy_invalid"],
    ),
    "two policies for one graph": (
        {
            "policies": {
                name: {"file": "team.policy.yaml", "applies_to": ["people"]} for name in ("a", "b")
            }
        },
        ["duplicate_policy_binding"],
    ),
    "a secret in the file": (
        {"providers": {"embedding": {"p": {"kind": "openai", "api_key": "sk-123"}}}},
        ["embedding_api_key_inline"],
    ),
    "no key": (
        {"providers": {"embedding": {"p": {"kind": "gemini"}}}},
        ["embedding_api_key_required"],
    ),
    "a provider that is not there": (
        {"graphs": {"people": {**PEOPLE, "embedding_provider": "p"}}},
        ["dangling_embedding_provider_reference"],
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_named(name: str, tmp_path: Path) -> None:
    changed, expected = MISTAKES[name]
    assert codes(write_folder(tmp_path / "c", **changed)) == expected


def test_all_mistakes_are_told_at_once(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "c")
    (folder / "films.pg").write_text("node Film {")
    (folder / "people.gq").write_text("query q() { match { $p: Nobody } return { $p.x as x } }")
    (folder / "team.policy.yaml").write_text("version: 2")
    assert codes(folder) == ["schema_parse_error", "query_typecheck_error", "policy_invalid"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "version: 2\ngraphs: {}",
        "version: 1\ngraphs: {}\ngraphs: {}",
        "version: 1\npipelines: {}",
        "version: 1\ngraphs: {a: {schema: x.pg, color: red}}",
    ],
)
def test_a_file_that_is_no_description_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "cluster.yaml").write_text(text)
    with pytest.raises(ClusterInvalid):
        read_folder(tmp_path)
    with pytest.raises(ClusterInvalid, match="cannot be read"):
        read_folder(tmp_path / "nowhere")
