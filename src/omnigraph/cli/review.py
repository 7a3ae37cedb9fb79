"""Commands about proposals and checks: propose, proposals, review, comment, approve, check, stats, blame."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from omnigraph.cli.commits import checks_text, counts_line, diff_text, print_merge, published, short
from omnigraph.cli.context import actor_of, branch_of, open_graph, point_of, read_text
from omnigraph.cli.exits import FAILURE, OK, UsageError
from omnigraph.cli.options import (
    At,
    Branch,
    DryRun,
    Merging,
    Message,
    OutputFormat,
    Show,
    Where,
    WriterOptions,
    examples,
)
from omnigraph.cli.output import Sheet, answer, format_of, print_sheet, styled
from omnigraph.cli.progress import writing
from omnigraph.wording import counted

if TYPE_CHECKING:
    from omnigraph.graph import Graph
    from omnigraph.proposed import Proposal, Review, ThreadEntry

ROWS_SHOWN = 20
Number = Annotated[int, Argument(help="Number of the proposal.", metavar="NUMBER")]
Before = Annotated[str | None, Option("--before", help="Point to compare with.", metavar="POINT")]
SAID = {
    "opened": "proposed this",
    "commented": "said",
    "approved": "approved",
    "changes_wanted": "wants changes",
    "closed": "closed it",
    "merging": "began to merge it",
    "merged": "merged it",
    "not_merged": "could not merge it",
}


# --- proposals -----------------------------------------------------------------------------------------------------


@examples(
    "omnigraph propose draft --title 'Add Grace' --store people",
    "omnigraph propose draft --title 'Add Grace' --text 'From the archive.' --reviewer ada --store people --json",
)
def propose(
    source: Annotated[str, Argument(help="Branch to offer.", metavar="BRANCH")],
    where: Where,
    show: Show,
    writer: WriterOptions,
    title: Annotated[str, Option("--title", "-t", help="One-line summary.")],
    text: Annotated[str, Option("--text", help="Description for reviewers.")] = "",
    into: Annotated[
        str | None, Option("--into", help="Branch to merge into (default: main).", metavar="DST")
    ] = None,
    reviewer: Annotated[
        list[str] | None, Option("--reviewer", help="Requested reviewer.", metavar="ACTOR")
    ] = None,
    dry_run: DryRun = False,
) -> None:
    """Offer a branch for merging into another."""
    made = open_graph(where).propose(
        source,
        title,
        branch_of(into),
        text=text,
        reviewers=reviewer or (),
        actor=actor_of(writer.actor),
        dry_run=dry_run,
    )
    would = "would be" if dry_run else "is"
    answer(show, f"{source} {would} proposal {made.number} for {made.target}", made.to_json())


@examples(
    "omnigraph proposals --store people", "omnigraph proposals --state open --store people --json"
)
def proposals(
    where: Where,
    show: Show,
    state: Annotated[
        str | None,
        Option(
            "--state", help="open, changes_wanted, approved, merged or closed.", metavar="STATE"
        ),
    ] = None,
    into: Annotated[str | None, Option("--into", help="Only for this branch.")] = None,
    limit: Annotated[int, Option("--limit", "-n", help="Number of proposals.")] = 20,
) -> None:
    """List branches offered for merging, newest first."""
    found = open_graph(where).proposals(state, into, limit)
    rows = [[p.number, p.state, p.source, p.target, p.author, p.title] for p in found]
    names = ["number", "state", "branch", "into", "author", "title"]
    print_sheet(show, Sheet(names, rows, document=[p.to_json() for p in found]))


@examples(
    "omnigraph review 1 --store people",
    "omnigraph review 1 --merge --as ada --store people",
)
def review(
    number: Number,
    where: Where,
    show: Show,
    writer: WriterOptions,
    merging: Merging,
    merge: Annotated[bool, Option("--merge", help="Merge it.")] = False,
    request_changes: Annotated[
        str | None, Option("--request-changes", help="Request changes.", metavar="TEXT")
    ] = None,
    close: Annotated[bool, Option("--close", help="Close it without merging.")] = False,
    rows: Annotated[int, Option("--rows", help="Maximum number of rows; 0 for all.")] = ROWS_SHOWN,
    skip_checks: Annotated[
        bool,
        Option("--skip-checks", help="Merge despite failed checks, unless a policy forbids it."),
    ] = False,
) -> int:
    """Show the changes and comments of a proposal, or decide on it.

    It shows the rows that changed since the branch diverged from its target, whether it would merge, the results of
    the checks, and what is missing before it may be merged. --merge publishes it as one commit, with exit code 4 if
    there are conflicts.
    """
    graph, actor = open_graph(where), actor_of(writer.actor)
    if sum((merge, close, request_changes is not None)) > 1:
        raise UsageError("choose one of --merge, --close and --request-changes")
    if request_changes is not None:
        done = graph.request_changes(number, request_changes, actor=actor, dry_run=merging.dry_run)
        return _said(show, done)
    if close:
        return _said(show, graph.close_proposal(number, actor=actor, dry_run=merging.dry_run))
    if merge:
        with writing(graph, graph.proposal(number).target, "merge", writer, show):
            result = graph.merge_proposal(
                number,
                merging.dry_run,
                strategy=merging.strategy,
                skip_checks=skip_checks,
                message=merging.message,
                actor=actor,
            )
        word = "would merge" if merging.dry_run else "merged"
        return print_merge(show, result, f"{word} proposal {number}", dry_run=merging.dry_run)
    found = graph.review(number)
    answer(show, _review_text(graph, found, rows), found.to_json())
    return OK


def _said(show: Show, found: Proposal) -> int:
    state = found.state.replace("_", " ")
    answer(show, f"proposal {found.number}: {state}", found.to_json())
    return OK


def _review_text(graph: Graph, found: Review, rows: int) -> str:
    shown = found.proposal
    lines = [
        styled(f"{shown.number}  {shown.title}", "1"),
        f"{shown.state.replace('_', ' ')}, by {shown.author or 'anonymous'}: {shown.source} into {shown.target}",
        f"from {short(found.base)} to {short(found.head)}: {counts_line(found.counts) or 'no rows'}",
    ]
    lines += [f"checks {what}: {', '.join(n)}" for what, n in found.changed_checks.items() if n]
    lines += ["", diff_text(graph.diff(found.base, found.head), rows), ""]
    lines += [_entry(entry) for entry in shown.thread]
    if found.checks.results:
        lines += ["", checks_text(found.checks)]
    lines += ["", *(f"missing: {each}" for each in found.missing)]
    outcome = found.outcome.replace("_", " ")
    lines.append(f"a merge would be: {outcome}" if shown.state not in ("merged", "closed") else "")
    lines += [f"  ! {c.kind}: {c.type} {c.id} {c.field or ''}".rstrip() for c in found.conflicts]
    return "\n".join(lines).rstrip()


def _entry(entry: ThreadEntry) -> str:
    from omnigraph.drawing.history import ago

    place = "" if entry.type is None else entry.type
    place += "" if entry.id is None else f"/{entry.id}"
    place += "" if entry.property is None else f".{entry.property}"
    on = f" on {place}" if place else ""
    about = f" ({short(entry.head)})" if entry.head and entry.kind == "approved" else ""
    text = f": {entry.text}" if entry.text else ""
    return f"{ago(entry.time):>8}  {entry.actor or 'anonymous'} {SAID[entry.kind]}{about}{on}{text}"


@examples(
    "omnigraph comment 1 'Where is that from?' --as ada --store people",
    "omnigraph comment 1 'Is she 46?' --on Person/Grace.age --as ada --store people --json",
)
def comment(
    number: Number,
    text: Annotated[str, Argument(help="Text of the comment.", metavar="TEXT")],
    where: Where,
    show: Show,
    writer: WriterOptions,
    on: Annotated[
        str | None,
        Option("--on", help="Type, Type/ID or Type/ID.property.", metavar="PLACE"),
    ] = None,
) -> None:
    """Comment on a proposal, or on a type, a row or a cell it changes."""
    graph = open_graph(where)
    type, id, property = (None, None, None) if on is None else place_of(on)
    done = graph.comment(
        number, text, type=type, id=id, property=property, actor=actor_of(writer.actor)
    )
    answer(show, f"proposal {number}: comment added", done.to_json())


def place_of(text: str) -> tuple[str, str | None, str | None]:
    """The parts of `Type`, `Type/ID` or `Type/ID.property`; an id may have dots if the property is given.

    >>> place_of("Person/ada.age"), place_of("Person")
    (('Person', 'ada', 'age'), ('Person', None, None))
    """
    type, slash, rest = text.partition("/")
    if not slash:
        return type, None, None
    id, dot, property = rest.rpartition(".")
    return (type, id, property) if dot and property.isidentifier() else (type, rest, None)


@examples(
    "omnigraph approve 1 --as ada --store people",
    "omnigraph approve 1 --text 'Checked with the archive.' --as ada --store people --json",
)
def approve(
    number: Number,
    where: Where,
    show: Show,
    writer: WriterOptions,
    text: Annotated[str, Option("--text", help="Why.")] = "",
    head: Annotated[
        str | None, Option("--head", help="Only if the branch is at this commit.", metavar="COMMIT")
    ] = None,
) -> None:
    """Approve a proposal at the current head of its branch; later commits need another approval."""
    done = open_graph(where).approve(number, head=head, text=text, actor=actor_of(writer.actor))
    _said(show, done)


# --- checks --------------------------------------------------------------------------------------------------------


@examples(
    "omnigraph check --apply checks.gq --store people",
    "omnigraph check --store people --branch draft --before main --json",
)
def check(
    where: Where,
    show: Show,
    writer: WriterOptions,
    branch: Branch = None,
    at: At = None,
    before: Before = None,
    only: Annotated[
        list[str] | None, Option("--only", help="Only run this check.", metavar="NAME")
    ] = None,
    apply: Annotated[
        str | None,
        Option("--apply", help="First apply the checks of a file.", metavar="C.gq"),
    ] = None,
    listed: Annotated[bool, Option("--list", help="Print the checks in force.")] = False,
    engine: Annotated[str, Option("--engine", help="auto, local or spark.")] = "auto",
    message: Message = None,
) -> int:
    """Run the checks of a branch on one commit; exit code 1 if one of severity error fails.

    Checks are queries of a .gq file that must return no rows, or rows within a bound. They are versioned with the
    graph: --apply replaces those of a branch with those of a file, as one commit. Some compare two states: the commit
    and the one before it, or the point given with --before.
    """
    graph, branch = open_graph(where), branch_of(branch)
    actor = actor_of(writer.actor)
    if apply is not None:
        done = graph.apply_checks(read_text(apply), branch, message, actor)
        counts = f"{counted(len(done.added), 'check')} added, {len(done.changed)} changed"
        text = f"{counts}, {len(done.removed)} removed: {published(done.commit, branch)}"
        print(text, file=sys.stderr)
    if listed:
        found = graph.checks(branch, point_of(graph, at, branch))
        text = "\n\n".join(each.text for each in found) or "there are no checks"
        answer(show, text, [each.to_json() for each in found])
        return OK
    report = graph.check(
        branch,
        point_of(graph, at, branch),
        before=point_of(graph, before, branch),
        only=only,
        engine=engine,
        actor=actor,
    )
    answer(show, checks_text(report), report.to_json())
    return OK if report.passed else FAILURE


@examples(
    "omnigraph stats --store people",
    "omnigraph stats --store people --branch draft --before main --json",
)
def stats(
    where: Where,
    show: Show,
    branch: Branch = None,
    at: At = None,
    before: Before = None,
    type: Annotated[
        list[str] | None, Option("--type", help="Only this type.", metavar="TYPE")
    ] = None,
) -> None:
    """Show a profile of a state: rows, nulls, distinct values and ranges of each column."""
    graph, branch = open_graph(where), branch_of(branch)
    found = graph.profile(
        branch,
        point_of(graph, at, branch),
        before=point_of(graph, before, branch),
        types=type or None,
    )
    names = ["type", "column", "rows", "nulls", "distinct", "least", "most"]
    known = {} if found.before is None else {each.type: each.rows for each in found.before.types}
    rows: list[list[Any]] = []
    for each in found.types:
        count: Any = (
            each.rows if found.before is None else f"{known.get(each.type, 0)} → {each.rows}"
        )
        rows.append([each.type, "", count, None, None, None, None])
        rows += [
            [each.type, c.name, None, c.nulls, c.distinct, c.least, c.most] for c in each.columns
        ]
        rows += [
            [each.type, f"{way}-degree", None, None, d.nodes, None, d.most]
            for way, d in each.degrees.items()
        ]
    print_sheet(show, Sheet(names, rows, document=found.to_json()))


@examples(
    "omnigraph blame Person/Ada --store people",
    "omnigraph blame Person/Grace --branch draft --store people --json",
)
def blame(
    entity: Annotated[str, Argument(help="Node or edge: Type/ID.", metavar="TYPE/ID")],
    where: Where,
    show: Show,
    branch: Branch = None,
    at: At = None,
) -> None:
    """Show who wrote each property of a node or edge: the commit that set its value."""
    from omnigraph.drawing.history import ago

    graph, branch = open_graph(where), branch_of(branch)
    type, slash, id = entity.partition("/")
    if not slash:
        raise UsageError("name the node or edge as Type/ID")
    found = graph.blame(type, id, branch, point_of(graph, at, branch))
    rows: list[list[Any]] = []
    for cell in found.cells:
        commit, via = cell.commit, cell.via
        proposal = via.proposal if via is not None else None
        rows.append(
            [
                cell.property,
                cell.to_json()["value"],
                None if commit is None else short(commit.id),
                None if commit is None else commit.actor,
                None if commit is None else ago(commit.time),
                None if commit is None else commit.message,
                None if via is None else short(via.id),
                proposal,
            ]
        )
    names = ["property", "value", "commit", "actor", "when", "message", "merged by", "proposal"]
    if format_of(show) is OutputFormat.TABLE and not any(row[-2] for row in rows):
        names, rows = names[:-2], [row[:-2] for row in rows]
    print_sheet(show, Sheet(names, rows, document=found.to_json()))
