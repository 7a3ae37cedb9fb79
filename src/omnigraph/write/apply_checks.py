"""Apply a text of checks to a branch, as one commit that changes no rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from omnigraph.core.plan import PublishPlan, Verb
from omnigraph.core.repository import Repository
from omnigraph.core.txn import WriteTxn
from omnigraph.lang.checks import parse_checks
from omnigraph.lang.query import Want, compile_query
from omnigraph.model.frozen import frozen
from omnigraph.values.spelling import fields_json


@frozen
class ChangedChecks:
    """By name: checks that were added, changed, and removed."""

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.removed)

    def to_json(self) -> dict[str, Any]:
        """The shape every surface uses."""
        return fields_json(self)

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> ChangedChecks:
        return cls(*(tuple(kept.get(name, ())) for name in ("added", "changed", "removed")))


def changed_checks(before: str, after: str) -> ChangedChecks:
    """The differences between two texts of checks."""
    old, new = ({c.name: c.text for c in parse_checks(text)} for text in (before, after))
    return ChangedChecks(
        tuple(name for name in new if name not in old),
        tuple(name for name in new if name in old and old[name] != new[name]),
        tuple(name for name in old if name not in new),
    )


def apply_checks(repo: Repository, text: str) -> Verb:
    """The verb that applies checks; each has to fit the schema of the branch."""
    checks = parse_checks(text)

    def verb(txn: WriteTxn) -> PublishPlan:
        for check in checks:
            compile_query(check.text, txn.catalog, want=Want.READ)
        now = repo.checks(txn.snapshot.commit.checks)
        found = changed_checks(now, text)
        wanted = text if checks else ""
        if wanted == now:
            return PublishPlan(kind="checks", empty=True, value=found, result=found.to_json())
        return PublishPlan(kind="checks", checks=wanted, value=found, result=found.to_json())

    return verb
