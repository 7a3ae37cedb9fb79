"""Notebook views of a graph, a result, a write, a log, a merge, a diff and a plan: short, readable at a glance."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from itertools import islice
from typing import Any

from omnigraph.drawing.entities import DrawnEntities, drawing_of, entities_of, interactive
from omnigraph.drawing.schema import schema_svg
from omnigraph.model.catalog import Catalog
from omnigraph.wording import counted

ROWS_SHOWN_MAX = 50
NODES_CLEAR_MAX = 60
VECTOR_SHOWN_MAX = 8
CHARACTERS_SHOWN_MAX = 120
CONFLICTS_SHOWN_MAX = 20
OPERATOR_FIELDS = {
    "operator", "detail", "rows", "stands_for", "milliseconds", "requests", "bytes_read", "inputs",
    "query_memory_bytes", "query_memory_bytes_max", "spilled_bytes",
}  # fmt: skip
NAMES = ("name", "title", "label")  # of a node, by which people recognize it
SIGNS = (("inserted", "+"), ("updated", "~"), ("deleted", "-"))
MARKS = {"insert": ("+", "#dcfce7"), "update": ("~", "#fef9c3"), "delete": ("-", "#fee2e2")}


def graph_html(
    uri: str, branches: Sequence[str], catalog: Catalog, counts: Mapping[str, int]
) -> str:
    """The schema drawn, with the counts of each type."""
    listed = ", ".join(escape(name) for name in branches[:10])
    return f"<p><b>{escape(uri)}</b> · branches: {listed}</p>{schema_svg(catalog, counts)}"


def result_html(heads: Sequence[tuple[str, str]], rows: Sequence[Sequence[Any]], total: int) -> str:
    """The first rows under their names and types; and the graph that whole nodes, edges and paths among them make."""
    head = "".join(f"<th>{escape(n)}<br><small>{escape(t)}</small></th>" for n, t in heads)
    shown = rows[:ROWS_SHOWN_MAX]
    body = "".join(f"<tr>{''.join(f'<td>{value_html(v)}</td>' for v in r)}</tr>" for r in shown)
    more = total - len(shown)
    foot = f"<caption>{more:,} more {'row' if more == 1 else 'rows'}</caption>" if more else ""
    table = f"<table>{foot}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    picture = _drawn(entities_of(rows))
    only_entities = bool(shown) and all(is_entity(v) for row in shown for v in row)
    return picture + table if only_entities else table + picture


def is_entity(value: Any) -> bool:
    """Whether a value is a node, an edge or a path."""
    match value:
        case {"id": str(), "type": str()} | {"nodes": list(), "edges": list()}:
            return True
        case _:
            return False


def value_html(value: Any) -> str:
    """One value of a result: a node by its name, a vector by its beginning, a long text cut."""
    match value:
        case {"id": str(id), "type": str(kind), "from": str(a), "to": str(b)}:
            return f'{escape(a)} <small title="{escape(id)}">{escape(kind)} →</small> {escape(b)}'
        case {"id": str(id), "type": str(kind)}:
            name = next((str(value[n]) for n in NAMES if value.get(n)), id)
            return f'<span title="{escape(id)}">{escape(_cut(name))}</span> <small>{escape(kind)}</small>'
        case {"nodes": list(nodes), "edges": list()}:
            return " → ".join(escape(_cut(str(node))) for node in nodes)
        case [float(), *_] if len(value) > VECTOR_SHOWN_MAX:
            start = ", ".join(f"{number:.3g}" for number in value[:3])
            return f"[{start}, … {len(value)} numbers]"
        case None:
            return "<small>null</small>"
        case _:
            return escape(_cut(str(value)))


def _cut(text: str) -> str:
    return text if len(text) <= CHARACTERS_SHOWN_MAX else text[: CHARACTERS_SHOWN_MAX - 1] + "…"


def _drawn(found: DrawnEntities) -> str:
    """A picture: open if it has edges and is small enough to be understood, else collapsed."""
    if not found.nodes:
        return ""
    clear = bool(found.edges) and len(found.nodes) <= NODES_CLEAR_MAX
    said = f"graph: {counted(len(found.nodes), 'node')}, {counted(len(found.edges), 'edge')}"
    opened = " open" if clear else ""
    drawing = interactive(drawing_of(found))
    return f"<details{opened}><summary>{said}</summary>{drawing}</details>"


def commit_html(commit: Mapping[str, Any]) -> str:
    """A commit as a small table."""
    facts = {k: v for k, v in commit.items() if k != "changes" and v not in (None, [])}
    rows = [[name, ", ".join(v) if isinstance(v, list) else v] for name, v in facts.items()]
    return table_html((), rows) + counts_html(commit["changes"])


def write_html(title: str, counts: Mapping[str, int], commit: Mapping[str, Any] | None) -> str:
    """The result of a load or a mutation: a sentence, the rows of each type, the commit."""
    rows = [[name, f"{count:,}"] for name, count in counts.items()]
    return f"<p>{escape(title)}{_at(commit)}</p>" + (
        table_html(("type", "rows"), rows) if rows else ""
    )


def _at(commit: Mapping[str, Any] | None) -> str:
    if commit is None:
        return " · no commit"
    return f" · <code>{escape(commit['id'])}</code> on {escape(commit['branch'])}"


def log_html(commits: Iterable[Mapping[str, Any]]) -> str:
    """Commits, one line each."""
    rows = []
    for commit in commits:
        changed = "; ".join(
            f"{name} " + " ".join(f"{sign}{n:,}" for key, sign in SIGNS if (n := counts.get(key)))
            for name, counts in commit["changes"].items()
        )
        when = commit["time"][:16].replace("T", " ")
        said = (commit["id"], when, commit["actor"] or "", commit["kind"])
        rows.append([*said, commit["message"] or "", changed])
    return table_html(("commit", "when (UTC)", "who", "what", "message", "changes"), rows)


def merge_html(merged: Mapping[str, Any]) -> str:
    """The outcome of a merge: its changes, or the conflicts to resolve."""
    found = merged["conflicts"]
    if not found:
        title = merged["outcome"].replace("_", " ")
        return f"<p>{escape(title)}{_at(merged['commit'])}</p>" + counts_html(merged["counts"])
    names = ("type", "id", "field", "base", "ours", "theirs")
    rows = [[_cut(str(c.get(n, ""))) for n in names] for c in found[:CONFLICTS_SHOWN_MAX]]
    noun = "conflict" if len(found) == 1 else "conflicts"
    return f"<p>{len(found):,} {noun}; nothing was changed</p>" + table_html(names, rows)


def operators_html(plan: Mapping[str, Any]) -> str:
    """The operators of a query that ran, each under the one it feeds, with rows, time and details."""
    rows = "".join(_operator(plan, 0)) if plan else ""
    head = "".join(f"<th>{name}</th>" for name in ("operator", "rows", "ms", "how"))
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _operator(found: Mapping[str, Any], depth: int) -> Iterator[str]:
    facts = {k: v for k, v in found.items() if k not in OPERATOR_FIELDS}
    how = ", ".join(f"{name.replace('_', ' ')}: {value}" for name, value in facts.items())
    name = f"<b>{escape(found['operator'])}</b> <code>{escape(found['detail'])}</code>"
    figures = ("" if found[k] is None else f"{found[k]:,}" for k in ("rows", "milliseconds"))
    cells = [*figures, escape(how)]
    indented = f'<td style="padding-left:{8 + 18 * depth}px;text-align:left">{name}</td>'
    yield f"<tr>{indented}{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
    for part in found["inputs"]:
        yield from _operator(part, depth + 1)


def counts_html(counts: Mapping[str, Mapping[str, int]]) -> str:
    """What changed, by type."""
    rows = [
        [name, *(c.get(k, 0) for k in ("inserted", "updated", "deleted"))]
        for name, c in counts.items()
    ]
    return table_html(("type", "+", "~", "-"), rows) if rows else ""


def diff_html(found: Any) -> str:
    """Counts by type, then the changed rows; marked by signs as well as colours."""
    parts = [f"<p><code>{escape(found.from_commit)}..{escape(found.to_commit)}</code></p>"]
    parts.append(counts_html(found.counts) or "<p>no difference</p>")
    body = "".join(_changed(row) for row in islice(found, ROWS_SHOWN_MAX))
    return "".join(parts) + (f"<table>{body}</table>" if body else "")


def _changed(row: Any) -> str:
    sign, colour = MARKS[row.operation]
    cells = [sign, row.type, row.id, ", ".join(_cells(row))]
    return f'<tr style="background:{colour};color:#1f2937">{"".join(f"<td>{escape(c)}</td>" for c in cells)}</tr>'


def _cells(row: Any) -> Iterator[str]:
    before, after = row.before or {}, row.after or {}
    for name in after or before:
        if row.operation == "update":
            yield f"{name}: {_plain(before.get(name))} → {_plain(after[name])}"
        elif name != "id" and (after or before)[name] is not None:
            yield f"{name}: {_plain((after or before)[name])}"


def _plain(value: Any) -> str:
    return "null" if value is None else _cut(str(value))


def plan_html(steps: Iterable[Mapping[str, Any]], supported: bool) -> str:
    """The steps of a schema change."""
    rows = [[step["kind"], step.get("code") or "", _about(step)] for step in steps]
    said = "" if supported else "<p><b>not supported as a whole</b></p>"
    return said + (table_html(("step", "code", "what"), rows) if rows else "<p>no difference</p>")


def _about(step: Mapping[str, Any]) -> str:
    """The subject of a step, by its names in the schema, not by internal identities."""
    shown = {k: v for k, v in step.items() if k not in ("kind", "code") and not k.endswith("_id")}
    return ", ".join(f"{name}={value}" for name, value in shown.items() if value)


def table_html(heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in heads)
    body = "".join(f"<tr>{''.join(f'<td>{escape(str(v))}</td>' for v in row)}</tr>" for row in rows)
    return (
        f"<table>{f'<thead><tr>{head}</tr></thead>' if head else ''}<tbody>{body}</tbody></table>"
    )
