"""Random work on random branches, merged at random, beside a model of plain states and a graph of commits."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field, replace

from hypothesis import HealthCheck, event, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from omnigraph.graph import Graph, init
from omnigraph.merge.diff import Diff
from tests.merge_truth_table.operations import SCHEMA
from tests.merge_truth_table.specification import (
    ENDS,
    Image,
    Row,
    broken_rules,
    image_of,
    specified,
)
from tests.support import rings

PEOPLE = ("a", "b", "c", "d")
CITIES = ("x", "y")
EMAILS = (None, "e", "f")
BRANCHES = ("main", "b1", "b2")
PAIRS = st.sampled_from([(one, other) for one in BRANCHES for other in BRANCHES if one != other])


@dataclass(eq=False, slots=True)
class Node:
    """A commit of the model."""

    number: int
    image: Image
    parents: tuple[Node, ...] = ()
    _known: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._known = {self.number}.union(*(parent._known for parent in self.parents))

    def knows(self, other: Node) -> bool:
        return other.number in self._known


class MergeModel(RuleBasedStateMachine):
    """Everything the graph does is done to the model as well."""

    @initialize()
    def begin(self) -> None:
        self.graph: Graph = init(f"memory://{uuid.uuid4().hex}", schema=SCHEMA)
        self.graph.load(
            {
                "Person": [{"name": n, "age": 0} for n in PEOPLE[:3]],
                "City": [{"name": n} for n in CITIES],
                "Knows": [{"from": "a", "to": "b", "since": 0}],
            }
        )
        self.catalog = self.graph.snapshot().catalog
        self.nodes: list[Node] = []
        self.heads: dict[str, Node] = {"main": self._node(self._real("main"))}
        for name in BRANCHES[1:]:
            self._branch(name, "main")

    def _branch(self, name: str, source: str) -> None:
        self.graph.create_branch(name, from_=source)
        self.heads[name] = self.heads[source]

    def _node(self, image: Image, *parents: Node) -> Node:
        self.nodes.append(Node(len(self.nodes), image, parents))
        return self.nodes[-1]

    def _real(self, branch: str) -> Image:
        return image_of(self.graph, branch, self.catalog)

    # --- work ------------------------------------------------------------------------------------------------------

    @rule(pair=PAIRS)
    def branch_anew(self, pair: tuple[str, str]) -> None:
        name, source = pair
        if name != "main":
            self.graph.delete_branch(name)
            self._branch(name, source)

    def _change(self, branch: str, text: str, after: dict[tuple[str, str], Row]) -> None:
        """A mutation, unless what it leads to breaks a rule: then the graph must refuse it."""
        before = self.heads[branch]
        image = replace(before.image, rows=after)
        if after == before.image.rows or broken_rules(image):
            return
        self.graph.mutate(f"query q() {{ {text} }}", branch=branch)
        assert self._real(branch) == image, f"{text} on {branch} did something else"
        self.heads[branch] = self._node(image, before)

    @rule(
        branch=st.sampled_from(BRANCHES),
        name=st.sampled_from(PEOPLE),
        age=st.integers(0, 3),
        email=st.sampled_from(EMAILS),
    )
    def put_person(self, branch: str, name: str, age: int, email: str | None) -> None:
        rows = dict(self.heads[branch].image.rows)
        old = rows.get(("Person", name), {"id": name, "name": name, "nick": None})
        rows["Person", name] = {**old, "age": age, "email": email}
        value = "null" if email is None else f'"{email}"'
        text = f'insert Person {{ name: "{name}", age: {age}, email: {value} }}'
        self._change(branch, text, rows)

    @rule(
        branch=st.sampled_from(BRANCHES),
        name=st.sampled_from(PEOPLE),
        nick=st.sampled_from(("p", "q")),
    )
    def name_person(self, branch: str, name: str, nick: str) -> None:
        rows = dict(self.heads[branch].image.rows)
        if ("Person", name) in rows:
            rows["Person", name] = {**rows["Person", name], "nick": nick}
            text = f'update Person set {{ nick: "{nick}" }} where name = "{name}"'  # noqa: S608
            self._change(branch, text, rows)

    @rule(branch=st.sampled_from(BRANCHES), name=st.sampled_from(PEOPLE))
    def delete_person(self, branch: str, name: str) -> None:
        rows = self.heads[branch].image.rows
        left = {
            key: row
            for key, row in rows.items()
            if key != ("Person", name) and not _ends_at(key[0], row, name)
        }
        self._change(branch, f'delete Person where name = "{name}"', left)

    @rule(
        branch=st.sampled_from(BRANCHES),
        ends=st.tuples(st.sampled_from(PEOPLE), st.sampled_from(PEOPLE)),
        since=st.integers(0, 2),
    )
    def put_edge(self, branch: str, ends: tuple[str, str], since: int) -> None:
        rows = dict(self.heads[branch].image.rows)
        id = f'["{ends[0]}","{ends[1]}"]'
        rows["Knows", id] = {"id": id, "src": ends[0], "dst": ends[1], "since": since}
        text = f'insert Knows {{ from: "{ends[0]}", to: "{ends[1]}", since: {since} }}'
        self._change(branch, text, rows)

    @rule(branch=st.sampled_from(BRANCHES), source=st.sampled_from(PEOPLE))
    def delete_edges(self, branch: str, source: str) -> None:
        rows = self.heads[branch].image.rows
        left = {k: row for k, row in rows.items() if k[0] != "Knows" or row["src"] != source}
        self._change(branch, f'delete Knows where from = "{source}"', left)

    @rule(
        branch=st.sampled_from(BRANCHES), name=st.sampled_from(PEOPLE), city=st.sampled_from(CITIES)
    )
    def move(self, branch: str, name: str, city: str) -> None:
        """An edge whose id only the graph knows: the model takes it over."""
        before = self.heads[branch]
        rows = before.image.rows
        lives = any(k[0] == "Lives" and row["src"] == name for k, row in rows.items())
        if lives or ("Person", name) not in rows:
            return
        self.graph.mutate(
            f'query q() {{ insert Lives {{ from: "{name}", to: "{city}" }} }}', branch=branch
        )
        self.heads[branch] = self._node(self._real(branch), before)

    @rule(branch=st.sampled_from(BRANCHES))
    def optimize(self, branch: str) -> None:
        self.graph.optimize(branch)

    @rule(keep=st.integers(1, 3))
    def cleanup(self, keep: int) -> None:
        self.graph.cleanup(keep=keep)

    # --- merging ---------------------------------------------------------------------------------------------------

    @rule(pair=PAIRS)
    def merge(self, pair: tuple[str, str]) -> None:
        self._merge(*pair, None)

    @rule(pair=PAIRS, strategy=st.sampled_from(("ours", "theirs")))
    def merge_by_strategy(self, pair: tuple[str, str], strategy: str) -> None:
        self._merge(*pair, strategy)

    @rule(pair=PAIRS)
    def merge_both_ways(self, pair: tuple[str, str]) -> None:
        self._merge(*pair, None)
        self._merge(pair[1], pair[0], None)

    def _merge(self, source: str, into: str, strategy: str | None) -> None:
        ours, theirs = self.heads[into], self.heads[source]
        result = self.graph.merge(source, into=into, strategy=strategy)
        event(result.outcome)
        wanted, image = self._specified(ours, theirs)
        after = self._real(into)
        case = f"{source} into {into} by {strategy}: {result}"
        assert not broken_rules(after), case
        if strategy is not None and wanted == "conflict":
            assert result.outcome == "merged", case
            self.heads[into] = self._node(after, ours, theirs)
            return
        assert after == image, case
        if result.outcome == "already_up_to_date":
            assert wanted == result.outcome or ours.image == theirs.image, f"{wanted}: {case}"
            return
        assert result.outcome == wanted, f"{wanted}: {case}"
        if wanted != "conflict":
            self.heads[into] = self._node(after, ours, theirs)

    def _specified(self, ours: Node, theirs: Node) -> tuple[str, Image]:
        base = self._base(ours, theirs)
        if base is theirs:
            return "already_up_to_date", ours.image
        if base is ours:
            return "fast_forward", theirs.image
        verdict = specified(base.image, ours.image, theirs.image)
        return ("conflict", ours.image) if verdict.kinds else ("merged", verdict.image)

    def _base(self, ours: Node, theirs: Node) -> Node:
        common = [n for n in self.nodes if ours.knows(n) and theirs.knows(n)]
        best = [n for n in common if not any(m is not n and m.knows(n) for m in common)]
        return max(best, key=lambda node: node.number)

    # --- what always holds -------------------------------------------------------------------------------------------

    @rule(pair=PAIRS)
    def compare(self, pair: tuple[str, str]) -> None:
        one, other = pair
        found = self.graph.diff(one, other)
        image = self.heads[one].image
        assert applied(found, image) == self.heads[other].image.rows, f"{one}..{other}: {found}"

    @invariant()
    def no_row_is_there_twice(self) -> None:
        for branch in getattr(self, "heads", {}):
            snapshot = self.graph.snapshot(branch)
            for kind in snapshot.catalog.entities():
                ids = snapshot.table_of(kind).scan(["id"])["id"].to_pylist()
                assert len(ids) == len(set(ids)), f"{kind.name} on {branch}: {ids}"


def _ends_at(type_name: str, row: Row, person: str) -> bool:
    ends = ENDS.get(type_name, ())
    return any(
        row[side] == person
        for side, node in zip(("src", "dst"), ends, strict=False)
        if node == "Person"
    )


def applied(found: Diff, image: Image) -> dict[tuple[str, str], Row]:
    """The rows of a state after a diff."""
    rows: dict[tuple[str, str], Row] = dict(image.rows)
    for change in found:
        key = change.type, change.id
        if change.after is None:
            del rows[key]
        elif change.operation == "insert":
            rows[key] = change.after
        else:
            assert {n: rows[key][n] for n in change.after} == change.before, f"{key}: {change}"
            rows[key] = {**rows[key], **change.after}
    return rows


MergeModel.TestCase.settings = settings(
    max_examples=rings.count(40, 1_000),
    stateful_step_count=rings.count(30, 40),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
TestMergeModel = MergeModel.TestCase
