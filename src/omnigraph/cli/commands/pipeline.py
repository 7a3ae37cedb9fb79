"""`omnigraph pipeline`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from omnigraph.cli.app import Group, Verb
from omnigraph.cli.commits import published
from omnigraph.cli.context import actor_of, open_graph
from omnigraph.cli.options import Show, Violations, Where, Writer
from omnigraph.cli.output import answer, note
from omnigraph.cli.progress import working

if TYPE_CHECKING:
    from omnigraph.graph import Graph
    from omnigraph.pipeline.spec import PipelineSpec


def run(
    file: Annotated[str, Argument(help="The pipeline file.", metavar="FILE")],
    where: Where,
    show: Show,
    writer: Writer,
    check: Annotated[bool, Option("--check", help="Validate everything, publish nothing.")] = False,
    load_id: Annotated[
        str | None,
        Option("--load-id", help="A repetition with it resumes or does nothing.", metavar="KEY"),
    ] = None,
    violations: Violations = None,
) -> None:
    """Run a pipeline file on Spark: load its sources as one commit, then optimise and merge if it says so.

    The file names the graph, the branch, the mode, the sources with their column mappings, and what follows.
    """
    from dataclasses import replace

    import msgspec

    from omnigraph.pipeline.spec import read_spec

    spec = read_spec(file)
    if violations is not None:
        spec = msgspec.structs.replace(spec, violations=violations)
    place = where if where.store or where.server else replace(where, store=spec.graph)
    graph = open_graph(place)
    if check:
        answer(show, f"{_counted(_checked(graph, spec))} can be loaded", {"valid": True})
        note(show, "nothing was changed")
        return
    with working(graph, spec.branch, "load", writer, show):
        document = _run(graph, spec, load_id or spec.load_id, actor_of(writer.actor))
    answer(show, document.pop("said"), document)


def _run(
    graph: Graph, spec: PipelineSpec, load_id: str | None, actor: str | None
) -> dict[str, Any]:
    from omnigraph.pipeline.spec import sources_of

    result = graph.load(
        sources_of(spec),
        mode=spec.mode,
        branch=spec.branch,
        create_from=spec.create_from,
        engine="spark",
        message=spec.message,
        actor=actor,
        idempotency_key=load_id,
        violations=spec.violations or True,
    )
    said = f"loaded {_counted(result)}: {published(result.commit, spec.branch)}"
    document: dict[str, Any] = {"load": result.to_json()}
    if spec.then.optimize:
        graph.optimize(spec.branch, engine="spark")
        document["optimized"] = True
    if spec.then.merge_into is not None:
        merged = graph.merge(spec.branch, into=spec.then.merge_into, actor=actor)
        document["merge"] = merged.to_json()
        said += f"; merge into {spec.then.merge_into}: {merged.outcome}"
    return {"said": said, **document}


def _checked(graph: Graph, spec: PipelineSpec) -> Any:
    from omnigraph.pipeline.engine import check_on_spark
    from omnigraph.pipeline.spec import sources_of

    branch = spec.branch if spec.branch in graph.branches() else spec.create_from or "main"
    lists = spec.violations or True
    return check_on_spark(graph._repo, sources_of(spec), spec.mode, branch, lists)


def _counted(result: Any) -> str:
    nodes, edges = sum(result.nodes.values()), sum(result.edges.values())
    return f"{nodes:,} nodes and {edges:,} edges"


COMMAND = Group(
    "Run pipeline files on Spark.",
    (
        Verb(
            run,
            (
                "omnigraph pipeline run pipeline.yaml",
                "omnigraph pipeline run pipeline.yaml --check",
            ),
        ),
    ),
)
