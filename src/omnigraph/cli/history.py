"""Commands about history: log, show, diff, changes, revert, cherry-pick, reset."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from omnigraph.cli import completing
from omnigraph.cli.commits import (
    change_line,
    checks_text,
    commit_line,
    commit_text,
    diff_text,
    merge_text,
    print_merge,
    short,
)
from omnigraph.cli.context import actor_of, branch_of, open_graph, point_of
from omnigraph.cli.exits import UsageError
from omnigraph.cli.options import (
    At,
    Branch,
    Merging,
    Message,
    OutputFormat,
    Show,
    Types,
    Where,
    WriterOptions,
    Yes,
    examples,
    rust_shape,
)
from omnigraph.cli.output import (
    Sheet,
    answer,
    contract_of,
    format_of,
    note,
    print_document,
    print_sheet,
    styled,
)
from omnigraph.cli.progress import writing
from omnigraph.cli.removals import consent, taken_back
from omnigraph.cli.shapes import answers, block_document, feed_document, opened, shaped

if TYPE_CHECKING:
    from omnigraph.graph import Graph
    from omnigraph.merge.feed import Change, Feed
    from omnigraph.outcomes import Commit

COLOURS = {"id": "33", "names": "1;32", "dim": "2"}
LOG_COMMITS = 20
COMMITS_MAX = (
    10_000  # in the form of the Rust project, whose list has no limit; the maximum of a server
)
COLUMNS = ["id", "time", "actor", "kind", "message", "changes"]


@examples(
    "omnigraph log people --draw",
    "omnigraph log --store people --branch draft --limit 3 --json",
)
@rust_shape
def log(
    where: Where,
    show: Show,
    branch: Branch = None,
    at: At = None,
    limit: Annotated[
        int | None, Option("--limit", "-n", help="Number of commits (default: 20).")
    ] = None,
    actor: Annotated[str | None, Option("--actor", help="Only commits by this actor.")] = None,
    kind: Annotated[str | None, Option("--kind", help="Only commits of this kind.")] = None,
    draw: Annotated[bool, Option("--draw", help="Draw all branches and merges.")] = False,
    maintenance: Annotated[
        bool, Option("--maintenance", help="Include maintenance commits.")
    ] = False,
) -> None:
    """List the commits of a branch, newest first."""
    graph, branch = opened(where, show), branch_of(branch)
    if draw:
        from omnigraph.drawing.history import draw_history

        most = limit or LOG_COMMITS
        print(draw_history(graph, most, lambda text, role: styled(text, COLOURS[role])))
        return
    point = point_of(graph, at, branch)
    most = limit or (LOG_COMMITS if contract_of(show) is None else COMMITS_MAX)
    commits = graph.log(branch, most, actor, kind, at=point, maintenance=maintenance)
    if format_of(show) is OutputFormat.TABLE:
        print("\n".join(commit_line(commit) for commit in commits))
        return
    documents = [commit.to_json() for commit in commits]
    rows = [[document[name] for name in COLUMNS] for document in documents]
    output = shaped(
        show,
        graph,
        documents,
        lambda: answers.CommitsOutput([answers.CommitOutput.of(c) for c in commits]),
    )
    print_sheet(show, Sheet(COLUMNS, rows, document=output))


@examples("omnigraph show people main", "omnigraph show main~1 --store people --json")
@rust_shape
def show_commit(
    commit: Annotated[
        str,
        Argument(
            help="Commit, tag, branch or time.",
            metavar="COMMIT",
            autocompletion=completing.points,
        ),
    ],
    where: Where,
    show: Show,
    branch: Branch = None,
) -> None:
    """Show one commit: who, when, why and what changed."""
    graph = opened(where, show)
    found = graph.commit(point_of(graph, commit, branch_of(branch)) or commit)
    document = shaped(show, graph, found.to_json(), lambda: answers.CommitOutput.of(found))
    runs = graph.check_results(found.id) if contract_of(show) is None else ()
    if not runs:
        answer(show, commit_text(found), document)
        return
    text = f"{commit_text(found)}\nchecks, when they were last run:\n{checks_text(runs[0])}"
    answer(show, text, found.to_json() | {"check_runs": [run.to_json() for run in runs]})


@examples(
    "omnigraph diff people main...draft",
    "omnigraph diff main~1..main --store people --json",
)
def diff(
    points: Annotated[
        list[str],
        Argument(
            help="A..B, or A and B: points in time. A...B: B since it diverged from A.",
            metavar="A..B",
            autocompletion=completing.points,
        ),
    ],
    where: Where,
    show: Show,
    branch: Branch = None,
    rows: Annotated[int, Option("--rows", help="Maximum number of rows; 0 for all.")] = 20,
) -> None:
    """Show the differences between two points in time.

    First the counts per type, then the rows: + added, - removed, ~ changed, with the changed properties only. A..B
    compares two states. A...B shows the changes of B since it diverged from A, or was last merged into it: what a
    merge would change.
    """
    graph, branch = open_graph(where), branch_of(branch)
    a, b, from_merge_base = ends(points)
    found = graph.diff(
        point_of(graph, a, branch),
        point_of(graph, b, branch),
        branch=branch,
        from_merge_base=from_merge_base,
    )
    if format_of(show) is OutputFormat.TABLE:
        print(diff_text(found, rows))
    else:
        answer(show, "", found.to_json())


def ends(points: list[str]) -> tuple[str, str, bool]:
    """The two points of `A..B`, `A...B` or `A B`, and whether they have three dots; an omitted one is main.

    >>> ends(["main~1..main"]), ends(["main...draft"]), ends(["draft"])
    (('main~1', 'main', False), ('main', 'draft', True), ('main', 'draft', False))
    """
    match points:
        case [a, b]:
            return a, b, False
        case [both] if ".." in both:
            dots = "..." if "..." in both else ".."
            a, _, b = both.partition(dots)
            return a or "main", b or "main", dots == "..."
        case [b]:
            return "main", b, False
        case _:
            raise UsageError("give two points in time: A..B")


@examples(
    "omnigraph changes people --after main~1",
    "omnigraph changes --store people --branch draft --json",
)
@rust_shape
def changes(
    where: Where,
    show: Show,
    after: Annotated[
        str | None, Option("--after", help="Last commit or cursor seen.", metavar="CURSOR")
    ] = None,
    commit: Annotated[
        str | None,
        Option(
            "--commit",
            help="Only the changes of this commit.",
            metavar="COMMIT",
            autocompletion=completing.points,
        ),
    ] = None,
    branch: Branch = None,
    limit: Annotated[int | None, Option("--limit", "-n", help="Number of commits.")] = None,
    kind: Annotated[
        list[str] | None, Option("--kind", help="Only node or edge changes; repeatable.")
    ] = None,
    type_: Types = None,
    op: Annotated[
        list[str] | None, Option("--op", help="Only insert, update or delete; repeatable.")
    ] = None,
    baseline: Annotated[
        str | None,
        Option("--baseline", help="Write all rows as of now to this file instead.", metavar="F"),
    ] = None,
) -> None:
    """Print the changes after a commit, commit by commit, oldest first.

    The cursor at the end marks where to continue; pass it to --after next time. --baseline writes the state to start
    from, as loadable records, and prints the cursor after it.
    """
    graph, branch = opened(where, show), branch_of(branch)
    _check_words("--kind", kind, ("node", "edge"))
    _check_words("--op", op, ("insert", "update", "delete"))
    if baseline is not None:
        _write_baseline(graph, branch, baseline, show, type_)
        return
    if commit is not None and (after is not None or limit is not None):
        raise UsageError("--commit names one commit: omit --after and --limit")
    if contract_of(show) is not None:
        chosen = {"kind": kind, "type": type_, "op": op}
        if commit is None:
            answer(show, "", feed_document(graph, branch, after, limit, chosen))
        else:
            answer(show, "", block_document(graph, _with_parent(graph, commit, branch), chosen))
        return
    if commit is not None:
        found = _with_parent(graph, commit, branch)
        after, branch, limit = found.parents[0], found.branch, 1
    start = {"beginning": None, "now": branch}.get(after or "", after)
    point = point_of(graph, start and start.removeprefix("after:"), branch)
    feed = graph.changes(after=point, branch=branch, limit=limit)
    _print_changes(show, feed, {"kind": kind, "type": type_, "operation": op})


def _with_parent(graph: Graph, commit: str, branch: str) -> Commit:
    found = graph.commit(point_of(graph, commit, branch) or commit)
    if not found.parents:
        raise UsageError(f"{commit} is the first commit: there is nothing to compare it with")
    return found


def _print_changes(show: Show, feed: Feed, wanted: dict[str, list[str] | None]) -> None:
    blocks = ((id, [c for c in found if _is_wanted(c, wanted)]) for id, found in feed.commits())
    match format_of(show):
        case OutputFormat.JSONL:
            for _, found in blocks:
                for change in found:
                    print_document(change.to_json(), one_line=True)
        case OutputFormat.JSON:
            output = [
                {"commit": id, "changes": [change.to_json() for change in found]}
                for id, found in blocks
            ]
            print_document({"blocks": output, "cursor": feed.cursor})
        case _:
            for id, found in blocks:
                print("\n".join([short(id), *(change_line(change) for change in found)]))
            print(f"cursor {feed.cursor}")


def _check_words(option: str, given: list[str] | None, known: tuple[str, ...]) -> None:
    wrong = [word for word in given or () if word not in known]
    if wrong:
        raise UsageError(f"{option} must be one of {', '.join(known)}, not {wrong[0]!r}")


def _is_wanted(change: Change, wanted: dict[str, list[str] | None]) -> bool:
    return all(not words or getattr(change, name) in words for name, words in wanted.items())


def _write_baseline(
    graph: Graph, branch: str, file: str, show: Show, types: list[str] | None
) -> None:
    """Write all rows of a state to one file, which appears once complete, and the cursor where the feed continues."""
    cursor = graph.snapshot(branch).commit_id
    place = Path(file)
    with tempfile.TemporaryDirectory(prefix=".baseline-", dir=place.parent) as folder:
        graph.export(folder, at=cursor, types=types, engine="local")
        whole = Path(folder, "whole")
        with whole.open("wb") as out:
            for part in sorted(Path(folder).glob("*.ndjson"), key=_nodes_first):
                with part.open("rb") as lines:
                    shutil.copyfileobj(lines, out)
            out.flush()
            os.fsync(out.fileno())
        os.replace(whole, place)
    document = {"baseline": {"snapshot_commit_id": cursor, "resume_cursor": cursor}}
    answer(show, f"wrote {file}\ncursor {cursor}", document)


def _nodes_first(part: Path) -> tuple[bool, str]:
    return not part.name.startswith("node-"), part.name


# --- new commits from old ones -----------------------------------------------------------------------------------


@examples(
    "omnigraph revert people main",
    "omnigraph revert draft --store people --branch draft --json",
)
def revert(
    commit: Annotated[
        str, Argument(help="Commit to undo.", metavar="COMMIT", autocompletion=completing.points)
    ],
    where: Where,
    show: Show,
    writer: WriterOptions,
    merging: Merging,
    branch: Branch = None,
) -> int:
    """Undo one commit with a new commit; history is kept.

    Rows changed again since then are conflicts: they are listed, nothing is changed, and the exit code is 4.
    """
    words = ("would revert", "reverted")
    return _replay("revert", words, commit, where, show, writer, merging, branch)


@examples(
    "omnigraph cherry-pick people draft --dry-run",
    "omnigraph cherry-pick draft --store people -m 'as on draft' --json",
)
def cherry_pick(
    commit: Annotated[
        str, Argument(help="Commit to apply.", metavar="COMMIT", autocompletion=completing.points)
    ],
    where: Where,
    show: Show,
    writer: WriterOptions,
    merging: Merging,
    branch: Branch = None,
) -> int:
    """Apply the changes of one commit, from any branch, to a branch.

    With conflicts nothing is changed: each is listed with the three values, and the exit code is 4.
    """
    words = ("would pick", "picked")
    return _replay("cherry_pick", words, commit, where, show, writer, merging, branch)


def _replay(
    verb: str,
    words: tuple[str, str],
    commit: str,
    where: Where,
    show: Show,
    writer: WriterOptions,
    merging: Merging,
    branch: str | None,
) -> int:
    """Revert or cherry-pick one commit."""
    graph, branch = open_graph(where), branch_of(branch)
    id = graph.commit(point_of(graph, commit, branch) or commit).id
    with writing(graph, branch, verb.replace("_", "-"), writer, show):
        result = getattr(graph, verb)(
            id,
            branch,
            merging.dry_run,
            **merging.decided(),
            message=merging.message,
            actor=actor_of(writer.actor),
        )
    text = f"{words[0 if merging.dry_run else 1]} {short(id)} on {branch}"
    return print_merge(show, result, text, dry_run=merging.dry_run)


@examples(
    "omnigraph reset people main~1 --yes",
    "omnigraph reset main --branch draft --store people --yes --json",
)
def reset(
    to: Annotated[
        str,
        Argument(help="Point to restore.", metavar="POINT", autocompletion=completing.points),
    ],
    where: Where,
    show: Show,
    writer: WriterOptions,
    branch: Branch = None,
    message: Message = None,
    yes: Yes = False,
) -> None:
    """Restore a branch to an earlier state with a new commit; history is kept.

    It shows what changes, and asks for confirmation: --yes (or --confirm), or an answer on a terminal.
    """
    graph, branch = open_graph(where), branch_of(branch)
    point = graph.commit(point_of(graph, to, branch) or to).id
    consent(yes, taken_back, graph, point, branch)
    with writing(graph, branch, "reset", writer, show):
        result = graph.reset(point, branch, message=message, actor=actor_of(writer.actor))
    answer(show, merge_text(result, f"reset {branch} to {to}"), result.to_json())
    note(show, f"`omnigraph revert {branch}` undoes it")
