"""The verbs of a graph about its schema: show it, plan a change, apply it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from omnigraph.deferred import Deferred
from omnigraph.policy.questions import Action
from omnigraph.verbs import verb
from omnigraph.versions import Versions

if TYPE_CHECKING:
    from omnigraph import operations as ops
    from omnigraph import outcomes
    from omnigraph.lang.schema import MigrationPlan
    from omnigraph.outcomes import SchemaResult
    from omnigraph.write.apply_schema import SchemaOutcome
else:
    ops = Deferred("omnigraph.operations")
    outcomes = Deferred("omnigraph.outcomes")


class Schemas(Versions):
    """What a `Graph` can do with its schema."""

    @verb
    def schema(self, branch: str = "main", at: object = None) -> str:
        """The text of the schema in force."""
        commit = self._state(branch, at).commit
        return self._repo.schema(commit.schema).stored.source

    def _may_read(self, branch: str, type: str) -> bool:  # noqa: ARG002
        """Whether rows of a type may be read on a branch; the hook of a policy."""
        return True

    @verb
    def plan_schema(
        self, text: str, branch: str = "main", *, allow_data_loss: bool = False
    ) -> MigrationPlan:
        """What applying a schema would do, step by step; unlike a dry run, it reads no rows."""
        from omnigraph.lang.schema import plan_migration

        accepted = self._repo.schema(self._state(branch).commit.schema).ir
        return plan_migration(accepted, schema_text(text), allow_data_loss=allow_data_loss)

    @verb
    def apply_schema(
        self,
        text: str,
        branch: str = "main",
        allow_data_loss: bool = False,
        message: str | None = None,
        actor: str | None = None,
        *,
        dry_run: bool = False,
        timeout: float | None = None,
    ) -> SchemaResult:
        """Apply a schema to a branch, as one commit; new rules are checked against existing rows."""
        write = ops.apply_schema(
            schema_text(text),
            lambda hashed: self._repo.schema(hashed).ir,
            allow_data_loss=allow_data_loss,
        )
        need = ops.Need(Action.SCHEMA_APPLY, target_branch=branch)
        done = self._alone("apply_schema", write, branch, need, message, actor, timeout, dry_run)
        outcome: SchemaOutcome = done.value
        if outcome.collect and done.commit is not None:
            # hard drops: the branch's own past goes with the data
            ops.collect(self._repo, ops.Retention(keep=1, chain=done.commit.chain))
        return outcomes.SchemaResult(
            outcome.plan.supported,
            outcome.plan.steps,
            outcome.applied and not dry_run,
            outcomes.Commit.published(done),
        )


def schema_text(schema: str | os.PathLike[str]) -> str:
    """A schema given as text, or as the path of a file that holds it."""
    if isinstance(schema, os.PathLike):
        return Path(schema).read_text(encoding="utf-8")
    is_path = schema.strip().endswith(".pg") and "\n" not in schema and "{" not in schema
    return Path(schema).read_text(encoding="utf-8") if is_path else schema
