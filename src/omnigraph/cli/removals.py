"""Descriptions of what commands will remove: they continue with --yes, or an answer on a terminal.

The rule is the same for local and served graphs. Ordinary changes, such as rows that `mutate` deletes and merges, need
no confirmation: a revert undoes them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from omnigraph.cli.commits import counts_line, short
from omnigraph.cli.exits import UsageError
from omnigraph.errors import Cancelled
from omnigraph.wording import counted, human_bytes

if TYPE_CHECKING:
    from omnigraph.graph import Graph
    from omnigraph.maintenance.collection import Collected
    from omnigraph.outcomes import LoadResult

COMMITS_COUNTED_MAX = 1_000  # of a branch to delete


class ConfirmationNeeded(UsageError):
    """A removal needs confirmation, and there is no terminal to prompt on."""

    code = "confirmation_needed"
    default_help = "Nothing was changed. Repeat with --yes (or --confirm) to agree."


def consent(yes: bool, removed: Callable[..., str | None], *given: Any) -> None:
    """Continue only with consent to what is removed; no prompt if that is nothing."""
    what = None if yes else removed(*given)
    if what is not None:
        confirm(f"{what}. Continue?", yes=False)


def confirm(question: str, *, yes: bool) -> None:
    """Continue only with consent: --yes, or an answer on a terminal."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise ConfirmationNeeded(f"confirmation needed: {question}")
    import typer

    if not typer.confirm(question, err=True):
        raise Cancelled("nothing was changed", help="Answer `y`, or repeat with --yes.")


# --- names -------------------------------------------------------------------------------------------------------


def branch_deleted(graph: Graph, name: str) -> str | None:
    """The loss with a branch: commits that cleanup will remove unless another branch has merged them."""
    own = sum(commit.branch == name for commit in graph.log(name, limit=COMMITS_COUNTED_MAX))
    if not own:
        return None
    commits = f"{counted(own, 'commit')}{' or more' if own == COMMITS_COUNTED_MAX else ''}"
    return f"This deletes the branch {name} of {graph.uri}, with {commits} only it has"


def deleted_by(graph: Graph, text: str, language: str | None = None) -> str | None:
    """The branch a statement deletes, if any."""
    from omnigraph.lang.query import ast
    from omnigraph.statements import lone_statement

    match lone_statement(text, language):
        case ast.BranchStatement(verb="delete", name=str(name)):
            return branch_deleted(graph, name)
        case _:
            return None


def tag_deleted(graph: Graph, name: str) -> str:
    """The commit that loses its name."""
    graph.delete_tag(name, dry_run=True)  # raises if it does not exist
    commit = short(graph.tags()[name])
    return f"This deletes the tag {name} of {graph.uri}: cleanup may then remove commit {commit}"


# --- rows --------------------------------------------------------------------------------------------------------


def taken_back(graph: Graph, to: str, branch: str) -> str | None:
    """The changes of a reset."""
    changed = counts_line(graph.reset(to, branch, dry_run=True).counts)
    return f"This resets {branch} of {graph.uri}: {changed}" if changed else None


def replaced(graph: Graph, branch: str, rehearse: Callable[[], LoadResult] | None) -> str | None:
    """The rows an overwrite replaces: all of the types in the data, as found by a dry run."""
    place = f"{branch} of {graph.uri}"
    if rehearse is None:  # it can be read only once
        return f"This replaces all rows of the types in the data on {place}"
    if branch not in graph.branches():
        return None
    found, held = rehearse(), _row_counts(graph.snapshot(branch))
    gone = {name: held[name] for name in (*found.nodes, *found.edges) if held.get(name)}
    rows = ", ".join(f"{count:,} {name}" for name, count in gone.items())
    return f"This replaces all rows of these types on {place}: {rows}" if gone else None


def _row_counts(state: Any) -> dict[str, int]:
    if hasattr(state, "rows"):  # a served one
        return {name: count for (_, name), count in state.rows.items()}
    return {table.type_name: table.rows for table in state.commit.tables.values()}


# --- history -----------------------------------------------------------------------------------------------------


def pruned(graph: Graph, keep: int, days: float | None, ended_days: float | None) -> str:
    """What a cleanup removes."""
    plan = graph.cleanup(keep, days, ended_days=ended_days, dry_run=True)
    return f"This {collected(plan)} of {graph.uri} permanently"


def pruned_by_policy(graph: Graph) -> str | None:
    """What the retention policy removes now."""
    policy = graph.retention()
    if policy is None:
        return None
    plan = graph.cleanup(policy.keep, policy.days, dry_run=True)
    return f"This {collected(plan)} of {graph.uri} permanently" if plan.commits_pruned else None


def let_go(graph: Graph, keep: int, days: float | None) -> str:
    """What a retention policy removes from now on."""
    older = "" if days is None else f" that are older than {days:g} days"
    history = f"all but the newest {keep:,} commits of each branch{older}"
    return f"Maintenance will permanently remove {history} of {graph.uri}"


def collected(done: Collected) -> str:
    """What a collection removed, or would remove."""
    verb = "would remove" if done.dry_run else "removed"
    objects = f"{counted(done.objects_deleted, 'object')}, {human_bytes(done.bytes_deleted)}"
    return f"{verb} {counted(done.commits_pruned, 'commit')}, {objects}"
