"""Checks that all parts of a graph exist and are consistent.

Nothing is repaired here: each finding says in one line what to do. A short check covers names, heads and the files they
need; a deep one reads the whole history, counts unreferenced files, and follows every edge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.core import layout
from omnigraph.core.branches import live_refs
from omnigraph.core.leases import stored_plans
from omnigraph.core.proposals import newest_of, numbers
from omnigraph.core.records import Commit, Seal
from omnigraph.core.repository import Repository
from omnigraph.core.snapshot import Snapshot
from omnigraph.errors import OmnigraphError
from omnigraph.lang.checks import parse_checks
from omnigraph.maintenance.collection import Retention, collect
from omnigraph.model.frozen import frozen
from omnigraph.model.instants import time_of
from omnigraph.model.names import MAIN
from omnigraph.storage.disk import strays
from omnigraph.storage.objects import number_of
from omnigraph.storage.probe import probe
from omnigraph.values.spelling import fields_json

FINDINGS_MAX = 10  # of one kind
ERROR, WARNING, INFO = "error", "warning", "info"
RESTORE = "Restore it from a backup (`omnigraph clone` makes one), or reset the branch to an older commit."


@frozen
class Finding:
    """One problem."""

    severity: str  # error: data is missing or wrong; warning: act soon; info: nothing is wrong
    check: str
    message: str
    fix: str

    def to_json(self) -> dict[str, Any]:
        return fields_json(self)


@frozen
class Diagnosis:
    """What was checked, and what was found."""

    findings: tuple[Finding, ...]
    checked: tuple[str, ...]
    branches: int

    @property
    def healthy(self) -> bool:
        return not any(finding.severity == ERROR for finding in self.findings)

    def to_json(self) -> dict[str, Any]:
        return {
            "healthy": self.healthy,
            "branches": self.branches,
            "checked": list(self.checked),
            "findings": [finding.to_json() for finding in self.findings],
        }


@dataclass(slots=True)
class Patient:
    """A graph under examination."""

    repo: Repository
    heads: dict[str, Commit] = field(default_factory=dict)  # by branch
    deep: bool = False

    def snapshots(self) -> Iterator[tuple[str, Snapshot]]:
        for branch, head in self.heads.items():
            yield branch, self.repo.snapshot(head)


def diagnose(repo: Repository, *, deep: bool = False) -> Diagnosis:
    """Examine a graph. Nothing is changed, except for a small temporary object in the store."""
    patient = Patient(repo, deep=deep)
    checks = CHECKS + DEEP_CHECKS if deep else CHECKS
    findings: list[Finding] = []
    for check in checks:
        name = check.__name__.removeprefix("check_")
        try:
            findings += check(patient)
        except OmnigraphError as error:
            findings.append(Finding(ERROR, name, error.message, error.help or RESTORE))
    names = tuple(check.__name__.removeprefix("check_") for check in checks)
    return Diagnosis(tuple(findings), names, len(patient.heads))


# --- names and chains --------------------------------------------------------------------------------------------


def check_store(patient: Patient) -> Iterator[Finding]:
    """The store gives the guarantees commits depend on."""
    probe(patient.repo.objects)
    return iter(())


def check_files(patient: Patient) -> Iterator[Finding]:
    """Everything under the root is a regular file or folder: nothing leads out of the graph."""
    place = patient.repo.place
    if place.scheme == "file":
        for stray in islice(strays(Path(place.uri)), FINDINGS_MAX):
            fix = "Find out who put it there: a graph never creates one. Put back what belongs there, or remove it."
            yield Finding(ERROR, "files", f"{stray}, which may lead out of the graph", fix)


def check_branches(patient: Patient) -> Iterator[Finding]:
    """Every name in use leads to a readable head. One that does not implies nothing about the others."""
    repo = patient.repo
    yield from _look_at_newest(patient, MAIN, repo.stamp.main_chain)
    for ref in live_refs(repo):
        if not ref.state.tag:
            yield from _look_at_newest(patient, ref.name, ref.state.chain)


def _look_at_newest(patient: Patient, branch: str, chain: str) -> Iterator[Finding]:
    try:
        newest = patient.repo.chains.end(chain)
    except OmnigraphError as error:
        message = f"the newest commit of branch {branch!r} cannot be read: {error}"
        yield Finding(ERROR, "branches", message, RESTORE)
        return
    match newest:
        case Commit() as head:
            patient.heads[branch] = head
        case None if branch != MAIN:
            yield Finding(
                WARNING,
                "branches",
                f"the creation of branch {branch!r} was never finished",
                "Create it again, or leave it: two runs of `omnigraph cleanup` remove it.",
            )
        case Seal():
            yield Finding(
                INFO,
                "branches",
                f"branch {branch!r} is deleted, but its name was not released",
                f"`omnigraph branch create {branch}` reuses the name; nothing else is needed.",
            )
        case _:
            message = f"the newest commit of branch {branch!r} is gone"
            yield Finding(ERROR, "branches", message, RESTORE)


def check_chains(patient: Patient) -> Iterator[Finding]:
    """The commits of a chain are numbered without a gap."""
    for branch, head in patient.heads.items():
        folder = layout.chain_folder(head.chain)
        numbers = {number_of(info.key) for info in patient.repo.objects.list(folder)}
        missing = sorted(set(range(max(numbers, default=0) + 1)) - numbers)
        for number in missing[:10]:
            yield Finding(
                ERROR,
                "chains",
                f"commit {head.chain}.{number} of branch {branch!r} is missing",
                "Restore the object from a backup: until then the branch may seem to end before it.",
            )


def check_times(patient: Patient) -> Iterator[Finding]:
    """No branch ends in the future: its commits would have wrong times until then."""
    repo = patient.repo
    latest = repo.clock.now() + repo.limits.clock_skew_seconds_max * 1_000_000
    for branch, head in patient.heads.items():
        if head.time > latest:
            when = time_of(head.time).date()
            yield Finding(
                WARNING,
                "times",
                f"the newest commit of branch {branch!r} is dated {when}: a clock was wrong",
                "Times only grow, so later commits follow that one until then. Name commits by their ids or tags, "
                "or continue in a copy (`omnigraph clone --branch`), whose history starts anew.",
            )


def check_plans(patient: Patient) -> Iterator[Finding]:
    """Plans of long operations, which protect their tables from cleanup."""
    for plan in stored_plans(patient.repo):
        yield Finding(
            INFO,
            "plans",
            f"a {plan.kind} of branch {plan.branch!r} (plan {plan.plan}) is running or was abandoned",
            f"If it is not running, repeat it or delete {layout.plan_key(plan.plan)}.",
        )


# --- tables ------------------------------------------------------------------------------------------------------


def check_tables(patient: Patient) -> Iterator[Finding]:
    """Every table of every head opens, has its files and the row count of its commit."""
    repo = patient.repo
    listed = repo.place.scheme != "memory"  # Lance does not expose the files of a graph in memory
    for branch, snapshot in patient.snapshots():
        for table_id, entry in snapshot.commit.tables.items():
            where = f"table {entry.path} ({entry.type_name}) of branch {branch!r}"
            try:
                table = snapshot.table(table_id)
                missing = _missing(repo, entry.path, table.files()) if listed else []
                rows = table.count()
            except OmnigraphError as error:
                yield Finding(ERROR, "tables", f"{where} cannot be read: {error}", RESTORE)
                continue
            for name in missing[:10]:
                yield Finding(ERROR, "tables", f"{where} lacks its file {name}", RESTORE)
            if rows != entry.rows:
                message = f"{where} has {rows} rows, its commit says {entry.rows}"
                yield Finding(ERROR, "tables", message, RESTORE)


def _missing(repo: Repository, path: str, files: frozenset[str]) -> list[str]:
    there = {info.key.removeprefix(path + "/") for info in repo.objects.list(path)}
    there |= {f"{folder}/" for name in there for folder in _folders(name)}
    return sorted(name for name in files if name not in there and not _is_optional(name))


def _folders(name: str) -> Iterator[str]:
    parts = name.split("/")
    return ("/".join(parts[:i]) for i in range(1, len(parts)))


def _is_optional(name: str) -> bool:
    """Folders of blobs exist only if a fragment has blobs, and Lance can do without its hint."""
    return name == "_versions/latest_version_hint.json" or (
        name.startswith("data/") and name.endswith("/")
    )


def check_schemas(patient: Patient) -> Iterator[Finding]:
    """The schema of every head exists and describes exactly its tables; and its checks can be read."""
    for branch, snapshot in patient.snapshots():
        parse_checks(patient.repo.checks(snapshot.commit.checks))
        described = {kind.table_id for kind in snapshot.catalog.entities()}
        for table in sorted(described ^ set(snapshot.commit.tables)):
            yield Finding(
                ERROR,
                "schemas",
                f"schema and tables of branch {branch!r} disagree about table {table}",
                RESTORE,
            )


def check_proposals(patient: Patient) -> Iterator[Finding]:
    """The last state of every proposal can be read."""
    newest_of(patient.repo, numbers(patient.repo))
    return iter(())


# --- the deep check ----------------------------------------------------------------------------------------------


def check_edges(patient: Patient) -> Iterator[Finding]:
    """Ids are unique, and edges end at nodes."""
    for branch, snapshot in patient.snapshots():
        ids: dict[str, pa.Array] = {}
        for kind in snapshot.catalog.entities():
            held = snapshot.table_of(kind).scan(["id"])["id"].combine_chunks()
            repeated = len(held) - pc.count_distinct(held).as_py()
            if repeated:
                message = f"{repeated} ids of {kind.name} on branch {branch!r} are duplicated"
                yield Finding(ERROR, "edges", message, RESTORE)
            if kind.kind == "node":
                ids[kind.name] = held
        for edge in snapshot.catalog.edges.values():
            table = snapshot.table_of(edge)
            for side, node in (("src", edge.from_type), ("dst", edge.to_type)):
                ends = table.scan([side])[side].combine_chunks()
                count = pc.sum(pc.invert(pc.is_in(ends, value_set=ids[node]))).as_py() or 0
                if count:
                    message = f"{count} {edge.name} edges on branch {branch!r} have no {side} node"
                    fix = f"Delete them, or insert the {node} nodes they name."
                    yield Finding(ERROR, "edges", message, fix)


def check_orphans(patient: Patient) -> Iterator[Finding]:
    """Unreferenced files, left over from failed or lost writes."""
    found = collect(patient.repo, Retention(keep=1 << 62), dry_run=True)
    if found.objects_deleted:
        yield Finding(
            INFO,
            "orphans",
            f"{found.objects_deleted} files ({found.bytes_deleted} bytes) belong to no commit",
            "`omnigraph cleanup` removes them.",
        )


Check = Callable[[Patient], Iterator[Finding]]
CHECKS: tuple[Check, ...] = (
    check_files,
    check_store,
    check_branches,
    check_chains,
    check_times,
    check_plans,
    check_schemas,
    check_proposals,
    check_tables,
)
DEEP_CHECKS: tuple[Check, ...] = (check_edges, check_orphans)
