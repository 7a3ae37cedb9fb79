"""`omnigraph diff`."""

from __future__ import annotations

from typing import Annotated

from typer import Argument, Option

from omnigraph.cli.app import Verb
from omnigraph.cli.commits import diff_text
from omnigraph.cli.context import branch_of, open_graph, point_of
from omnigraph.cli.exits import UsageMistake
from omnigraph.cli.options import Branch, Format, Show, Where
from omnigraph.cli.output import answer, format_of


def diff(
    points: Annotated[
        list[str], Argument(help="A..B, or A and B: points in time.", metavar="A..B")
    ],
    where: Where,
    show: Show,
    branch: Branch = None,
    rows: Annotated[int, Option("--rows", help="Changes to list; 0: all.")] = 20,
) -> None:
    """Show what is different between two points in time.

    First the numbers per type, then the rows: + added, - removed, ~ changed with the changed properties only.
    """
    graph, branch = open_graph(where), branch_of(branch)
    a, b = ends(points)
    found = graph.diff(point_of(graph, a, branch), point_of(graph, b, branch), branch=branch)
    if format_of(show) is Format.TABLE:
        print(diff_text(found, rows))
    else:
        answer(show, "", found.to_json())


def ends(points: list[str]) -> tuple[str, str]:
    """The two points of `A..B` or `A B`; the second is main where it is left out.

    >>> ends(["main~1..main"]), ends(["draft"])
    (('main~1', 'main'), ('main', 'draft'))
    """
    match points:
        case [a, b]:
            return a, b
        case [both] if "..." in both:
            raise UsageMistake(f"{both!r} is not understood", help="Write two points: A..B.")
        case [both] if ".." in both:
            a, _, b = both.partition("..")
            return a or "main", b or "main"
        case [b]:
            return "main", b
        case _:
            raise UsageMistake("give two points in time: A..B")


COMMAND = Verb(
    diff,
    (
        "omnigraph diff main..draft --store people",
        "omnigraph diff main~1..main --store people --json",
    ),
)
