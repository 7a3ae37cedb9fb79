"""What commands remove, told before they do it: with --yes, or an answer on a terminal, they go on.

One rule for local and served graphs. What changes a graph in the usual way, rows that `mutate` deletes and merges, is
not asked about: a revert takes it back.
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

COMMITS_COUNTED_MAX = 1_000  # of a branch that is to be deleted


class ConfirmationNeeded(UsageError):
    """Something would be removed, and there is no terminal to ask on."""

    code = "confirmation_needed"
    default_help = "Nothing was changed. Repeat with --yes (or --confirm) to agree."


def consent(yes: bool, removed: Callable[..., str | None], *given: Any) -> None:
    """Continue only if whoever asks agrees to what is removed; where that is nothing, nobody is asked."""
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
    """What goes with a branch: commits that cleanup will remove where no other branch has merged them."""
    own = sum(commit.branch == name for commit in graph.log(name, limit=COMMITS_COUNTED_MAX))
    if not own:
        return None
    commits = f"{counted(own, 'commit')}{' or more' if own == COMMITS_COUNTED_MAX else ''}"
    return f"This deletes the branch {name} of {graph.uri}, with {commits} of its own"


def deleted_by(graph: Graph, text: str, language: str | None = None) -> str | None:
    """The branch that a statement deletes, if it is one that does."""
    from omnigraph.lang.query import ast
    from omnigraph.statements import lone_statement

    match lone_statement(text, language):
        case ast.BranchStatement(verb="delete", name=str(name)):
            return branch_deleted(graph, name)
        case _:
            return None


def tag_deleted(graph: Graph, name: str) -> str:
    """The commit that loses its name."""
    graph.delete_tag(name, dry_run=True)  # says so if there is none
    commit = short(graph.tags()[name])
    return f"This deletes the tag {name} of {graph.uri}: cleanup may then remove commit {commit}"


# --- rows --------------------------------------------------------------------------------------------------------


def taken_back(graph: Graph, to: str, branch: str) -> str | None:
    """What a reset changes."""
    changed = counts_line(graph.reset(to, branch, dry_run=True).counts)
    return f"This changes {branch} of {graph.uri} back: {changed}" if changed else None


def replaced(graph: Graph, branch: str, rehearse: Callable[[], LoadResult] | None) -> str | None:
    """The rows an overwrite replaces: all of the types in the data, as a rehearsal finds them."""
    place = f"{branch} of {graph.uri}"
    if rehearse is None:  # it can be read only once
        return f"This replaces all rows of the types in the data on {place}"
    if branch not in graph.branches():
        return None
    found, held = rehearse(), _row_counts(graph.snapshot(branch))
    gone = {name: held[name] for name in (*found.nodes, *found.edges) if held.get(name)}
    told = ", ".join(f"{count:,} {name}" for name, count in gone.items())
    return f"This replaces all rows of these types on {place}: {told}" if gone else None


def _row_counts(state: Any) -> dict[str, int]:
    if hasattr(state, "rows"):  # a served one
        return {name: count for (_, name), count in state.rows.items()}
    return {table.type_name: table.rows for table in state.commit.tables.values()}


# --- history -----------------------------------------------------------------------------------------------------


def pruned(graph: Graph, keep: int, days: float | None, ended_days: float | None) -> str:
    """What a cleanup takes."""
    plan = graph.cleanup(keep, days, ended_days=ended_days, dry_run=True)
    return f"This {collected(plan)} of {graph.uri} permanently"


def pruned_by_policy(graph: Graph) -> str | None:
    """What the policy of retention lets go now."""
    policy = graph.retention()
    if policy is None:
        return None
    plan = graph.cleanup(policy.keep, policy.days, dry_run=True)
    return f"This {collected(plan)} of {graph.uri} permanently" if plan.commits_pruned else None


def let_go(graph: Graph, keep: int, days: float | None) -> str:
    """What a policy of retention lets go from now on."""
    older = "" if days is None else f" that are older than {days:g} days"
    history = f"all but the newest {keep:,} commits of each branch{older}"
    return f"Maintenance will permanently remove {history} of {graph.uri}"


def collected(done: Collected) -> str:
    """What a collection did, or would do."""
    verb = "would remove" if done.dry_run else "removed"
    objects = f"{counted(done.objects_deleted, 'object')}, {human_bytes(done.bytes_deleted)}"
    return f"{verb} {counted(done.commits_pruned, 'commit')}, {objects}"
