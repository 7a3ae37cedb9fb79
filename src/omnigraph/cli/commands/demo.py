"""`omnigraph demo`."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from omnigraph.cli.app import Verb
from omnigraph.cli.commits import diff_text, human_bytes, merge_text, published
from omnigraph.cli.exits import UsageMistake
from omnigraph.cli.output import styled
from omnigraph.cli.table import draw


def demo(
    folder: Annotated[str, Argument(help="Where to put it.", metavar="[DIR]")] = "omnigraph-demo",
    engine: Annotated[str, Option("--engine", help="local or spark.")] = "local",
    small: Annotated[bool, Option("--small", help="A tenth of the size.")] = False,
) -> None:
    """Show the point in under a minute: load, index, search, branch, edit, review, merge, travel in time.

    It needs no server and no network, and leaves a graph to play with.
    """
    from omnigraph.demo.tour import Tour
    from omnigraph.demo.world import Size

    place = Path(folder)
    if (place / "graph").exists():
        raise UsageMistake(f"there is a demo in {place}", help="Name another folder, or delete it.")
    tour = Tour(place, engine, Size(1_200, 3_000, 15_000) if small else Size())
    total = 0.0
    for number, (step, seconds, outcome) in enumerate(tour.run(), 1):
        print(styled(f"{number:>2}. {step.title}", "1") + f"  {seconds:.2f} s")
        print(textwrap.indent(styled(step.shown.strip(), "2"), "      "))
        print(textwrap.indent(_told(outcome), "    "))
        sys.stdout.flush()
        total += seconds
    print(styled(f"Done in {total:.1f} s. Three commands to try:", "1"))
    print(_next(tour.uri))


def _told(outcome: Any) -> str:
    """What came out of a step."""
    from omnigraph.merge.diff import Diff
    from omnigraph.outcomes import LoadResult, MergeResult, MutateResult
    from omnigraph.read import Result

    match outcome:
        case Result():
            rows = [list(row.values()) for row in outcome.json_rows()]
            return draw(outcome.columns, [str(kind) for kind in outcome.types], rows)
        case LoadResult():
            nodes, edges = sum(outcome.nodes.values()), sum(outcome.edges.values())
            return f"{nodes:,} nodes, {edges:,} edges: {published(outcome.commit, outcome.branch)}"
        case MutateResult():
            return published(outcome.commit, "review")
        case MergeResult():
            return merge_text(outcome, "merged review into main")
        case Diff():
            return diff_text(outcome, 10)
        case list():
            indexed = ", ".join(f"{r.type}.{name}" for r in outcome for name in r.indexed)
            size = human_bytes(sum(r.topology_bytes for r in outcome))
            return f"indices: {indexed}; topology: {size}"
        case _:
            return str(outcome)


def _next(uri: str) -> str:
    query = (
        "match { $s: Scholar $s wrote $p $p.year >= 2020 } return { $s.name, count($p) as papers } "
    )
    return "\n".join(
        [
            f"  omnigraph shell {uri}",
            f"  omnigraph query --store {uri} -e '{query}order {{ papers desc }} limit 5'",
            f"  omnigraph log --graph {uri}",
        ]
    )


COMMAND = Verb(demo, ("omnigraph demo", "omnigraph demo small-demo --small"))
