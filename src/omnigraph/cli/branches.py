"""Commands about branches and tags: branch, merge, tag."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from omnigraph.cli import completing
from omnigraph.cli.commits import diff_text, print_merge, short
from omnigraph.cli.context import (
    actor_of,
    branch_of,
    open_graph,
    point_of,
)
from omnigraph.cli.options import (
    At,
    Branch,
    Merging,
    OutputFormat,
    Show,
    Where,
    WriterOptions,
    Yes,
    examples,
    rust_shape,
)
from omnigraph.cli.output import Sheet, answer, contract_of, format_of, print_sheet, warn
from omnigraph.cli.progress import writing
from omnigraph.cli.removals import branch_deleted, consent, tag_deleted
from omnigraph.cli.shapes import answers, opened, shaped
from omnigraph.errors import OmnigraphError

if TYPE_CHECKING:
    from omnigraph.graph import Graph

DRY_RUN_ROWS = 20  # in the list of a dry-run merge
BranchName = Annotated[
    str, Argument(help="Branch name.", metavar="NAME", autocompletion=completing.branches)
]
Source = Annotated[
    str, Argument(help="Branch to merge.", metavar="SRC", autocompletion=completing.branches)
]
Into = Annotated[
    str | None,
    Option(
        "--into",
        help="Branch to merge into (default: main).",
        metavar="DST",
        autocompletion=completing.branches,
    ),
]


@examples("omnigraph branch list people", "omnigraph branch list --store people --json")
@rust_shape
def list_branches(where: Where, show: Show) -> None:
    """List branches with their newest commits."""
    from omnigraph.drawing.history import ago

    graph = opened(where, show)
    names = graph.branches()
    if contract_of(show) is not None:
        answer(show, "", shaped(show, graph, None, lambda: answers.BranchesOutput(sorted(names))))
        return
    newest = {name: graph.log(name, limit=1)[0] for name in names}
    document = {"branches": list(newest), "heads": {name: c.id for name, c in newest.items()}}
    rows = [[name, short(c.id), ago(c.time), c.message] for name, c in newest.items()]
    print_sheet(show, Sheet(["branch", "commit", "when", "message"], rows, document=document))


@examples(
    "omnigraph branch create people spring",
    "omnigraph branch create yesterday --store people --from main~1",
)
@rust_shape
def create_branch(
    name: BranchName,
    where: Where,
    show: Show,
    writer: WriterOptions,
    from_: Annotated[
        str,
        Option(
            "--from",
            help="Branch or point in time to start from.",
            metavar="POINT",
            autocompletion=completing.points,
        ),
    ] = "main",
) -> None:
    """Create a branch; no data is copied."""
    graph, actor = opened(where, show), actor_of(writer.actor)
    graph.create_branch(name, from_=from_, actor=actor)
    own = {"name": name, "from": from_}
    document = shaped(show, graph, own, lambda: answers.BranchOutput(graph.uri, name, actor, from_))
    answer(show, f"created branch {name} from {from_}", document)


@examples(
    "omnigraph branch delete people stale --yes",
    "omnigraph branch delete stale-too --store people --yes",
)
@rust_shape
def delete_branch(
    name: BranchName, where: Where, show: Show, writer: WriterOptions, yes: Yes = False
) -> None:
    """Delete a branch; other branches are not affected.

    It reports how many commits are lost, and asks for confirmation: --yes (or --confirm), or an answer on a terminal.
    """
    graph, actor = opened(where, show), actor_of(writer.actor)
    consent(yes, branch_deleted, graph, name)
    graph.delete_branch(name, actor=actor)
    own = {"name": name, "deleted": True}
    document = shaped(show, graph, own, lambda: answers.BranchOutput(graph.uri, name, actor))
    answer(show, f"deleted branch {name}", document)


@examples(
    "omnigraph branch merge people draft",
    "omnigraph branch merge draft --store people --into main --json",
)
@rust_shape
def merge_branch(
    source: Source,
    where: Where,
    show: Show,
    writer: WriterOptions,
    into: Into = None,
    delete_branch: Annotated[
        bool, Option("--delete-branch", help="Delete the branch after the merge.")
    ] = False,
) -> int:
    """Merge a branch into another; same as `omnigraph merge`.

    With --delete-branch the branch is deleted without confirmation, as its changes are merged. If the deletion is
    refused, the merge stands and a warning is printed.
    """
    return _merge(source, where, show, writer, Merging(), into, delete=delete_branch)


@examples(
    "omnigraph merge people draft --into main --dry-run",
    "omnigraph merge draft --into main --store people --json",
)
@rust_shape
def merge(
    source: Source,
    where: Where,
    show: Show,
    writer: WriterOptions,
    merging: Merging,
    into: Into = None,
) -> int:
    """Merge a branch into another.

    A merge with conflicts changes nothing: it lists each conflict with the three values, and exits with code 4.
    --decisions takes a JSON file of resolutions, in the format the explorer copies: {"strategy": {"Person": "ours"},
    "resolutions": [{"type": "Person", "id": "…", "field": "age", "take": "theirs"}]}. With --dry-run it lists the rows
    the merge would change; `omnigraph diff INTO...SOURCE` shows all of them.
    """
    return _merge(source, where, show, writer, merging, into)


def _merge(
    source: str,
    where: Where,
    show: Show,
    writer: WriterOptions,
    merging: Merging,
    into: str | None,
    *,
    delete: bool = False,
) -> int:
    graph, into = opened(where, show), branch_of(into)
    with writing(graph, into, "merge", writer, show):
        result = graph.merge(
            source,
            into,
            merging.dry_run,
            **merging.decided(),
            message=merging.message,
            actor=actor_of(writer.actor),
        )
    if contract_of(show) is not None:
        result.settled()  # in their format conflicts are an error
    document = shaped(
        show,
        graph,
        result.to_json(),
        lambda: answers.MergeOutput.of(result, source, into, actor_of(writer.actor)),
    )
    if delete and not result.conflicts:
        document |= _delete_merged(graph, source, actor_of(writer.actor))
    word = "would merge" if merging.dry_run else "merged"
    text = f"{word} {source} into {into}"
    code = print_merge(show, result, text, dry_run=merging.dry_run, document=document)
    if not merging.dry_run:
        return code
    if format_of(show) is OutputFormat.TABLE:
        print(diff_text(graph.diff(into, source, from_merge_base=True), DRY_RUN_ROWS))
    return code


def _delete_merged(graph: Graph, branch: str, actor: str | None) -> dict[str, Any]:
    try:
        graph.delete_branch(branch, actor=actor)
    except OmnigraphError as error:
        warn(f"the branch {branch} was merged, but not deleted: {error.message}")
        return {"branch_deleted": False, "branch_delete_error": error.message}
    return {"branch_deleted": True}


@examples("omnigraph tag people v1", "omnigraph tag before --at main~1 --store people --json")
def tag(
    where: Where,
    show: Show,
    writer: WriterOptions,
    name: Annotated[str | None, Argument(help="Tag to create.", metavar="[NAME]")] = None,
    at: At = None,
    branch: Branch = None,
    delete: Annotated[
        str | None,
        Option(
            "--delete", "-d", help="Tag to delete.", metavar="NAME", autocompletion=completing.tags
        ),
    ] = None,
    yes: Yes = False,
) -> None:
    """Tag a commit, so that cleanup keeps it; without a name, list tags.

    Deleting a tag asks for confirmation: --yes (or --confirm), or an answer on a terminal.
    """
    graph, branch = open_graph(where), branch_of(branch)
    if delete is not None:
        consent(yes, tag_deleted, graph, delete)
        graph.delete_tag(delete)
        answer(show, f"deleted tag {delete}", {"name": delete, "deleted": True})
    elif name is None:
        tags = graph.tags()
        rows = [[name, short(id)] for name, id in tags.items()]
        print_sheet(show, Sheet(["tag", "commit"], rows, document=tags))
    else:
        point = point_of(graph, at, branch)
        id = graph.tag(name, point, branch=branch, actor=actor_of(writer.actor))
        answer(show, f"tagged {short(id)} as {name}", {"name": name, "commit": id})
