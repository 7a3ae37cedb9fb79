"""How commits, changes and plans read."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from omnigraph.cli.output import styled

if TYPE_CHECKING:
    from omnigraph.outcomes import Commit

CHAIN_CHARACTERS = 8
SIGNS = {"inserted": "+", "updated": "~", "deleted": "-"}
COLOURS = {"+": "32", "~": "33", "-": "31"}


def short(id: str) -> str:
    """A commit's id, short enough to read; the command line accepts it as it is.

    >>> short("0123456789abcdef.7")
    '01234567.7'
    """
    chain, dot, rest = id.partition(".")
    return chain[:CHAIN_CHARACTERS] + dot + rest


def counts_line(changes: Mapping[str, Mapping[str, int]]) -> str:
    """`Person +3 ~1, Knows -2`."""
    parts = [f"{name} {' '.join(_signed(counts))}" for name, counts in changes.items()]
    return ", ".join(part.rstrip() for part in parts)


def _signed(counts: Mapping[str, int]) -> list[str]:
    return [f"{sign}{counts[word]:,}" for word, sign in SIGNS.items() if counts.get(word)]


def coloured(line: str) -> str:
    """A line that starts with a sign of change, in its colour."""
    return styled(line, COLOURS[line.lstrip()[0]]) if line.lstrip()[:1] in COLOURS else line


def one_line(commit: Commit) -> str:
    """A commit in a log."""
    who = f" {commit.actor}" if commit.actor else ""
    said = f"  {commit.message}" if commit.message else ""
    changed = counts_line(commit.changes)
    return f"{styled(short(commit.id), '33')}  {ago(commit.time):>8}{who}  {commit.kind}{said}" + (
        f"  ({changed})" if changed else ""
    )


def whole(commit: Commit) -> str:
    """A commit on its own."""
    facts = {
        "commit": commit.id,
        "parents": ", ".join(commit.parents) or "none",
        "branch": commit.branch,
        "actor": commit.actor or "not given",
        "time": commit.time.strftime("%Y-%m-%d %H:%M:%S UTC"),
        "kind": commit.kind,
        "message": commit.message or "",
    }
    lines = [f"{styled(f'{name:<8}', '2')} {value}".rstrip() for name, value in facts.items()]
    for name, counts in commit.changes.items():
        lines.append(f"  {name:<20} {' '.join(_signed(counts))}")
    return "\n".join(lines)


def published(commit: Commit | None, branch: str) -> str:
    """What a write says about itself when it is done."""
    if commit is None:
        return "nothing to change: no commit was made"
    return f"commit {short(commit.id)} on {branch}"


def ago(time: datetime, now: datetime | None = None) -> str:
    """How long ago, in one unit.

    >>> ago(datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 1, 3, tzinfo=UTC))
    '2d ago'
    """
    seconds = max(0, int(((now or datetime.now(UTC)) - time).total_seconds()))
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= size:
            return f"{seconds // size}{unit} ago"
    return f"{seconds}s ago"


def human_bytes(count: float) -> str:
    """
    >>> human_bytes(1536)
    '1.5 KiB'
    """
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"


def facts(document: Mapping[str, Any]) -> str:
    """The numbers of a report, in brackets."""
    numbers = [
        f"{k.replace('_', ' ')} {v:,}" for k, v in document.items() if isinstance(v, int) and v
    ]
    return f" ({', '.join(numbers)})" if numbers else ""


# --- changes -----------------------------------------------------------------------------------------------------


def change_lines(changes: list[dict[str, Any]]) -> list[str]:
    """Changed rows, one per line; of an update only what differs."""
    return [coloured(_change_line(change)) for change in changes]


def _change_line(change: dict[str, Any]) -> str:
    name = change["type"]["name"] if isinstance(change["type"], dict) else change["type"]
    before, after = _properties(change.get("before")), _properties(change.get("after"))
    match change["op"]:
        case "insert":
            return f"  + {name} {change['id']} {_assignments(after)}".rstrip()
        case "delete":
            return f"  - {name} {change['id']} {_assignments(before)}".rstrip()
        case _:
            names = [n for n in {**before, **after} if before.get(n) != after.get(n)]
            moved = ", ".join(f"{n}: {before.get(n)!r} → {after.get(n)!r}" for n in names)
            return f"  ~ {name} {change['id']} {moved}"


def _properties(image: dict[str, Any] | None) -> dict[str, Any]:
    if image is None:
        return {}
    found: dict[str, Any] = {**image.get("properties", {}), **(image.get("endpoints") or {})}
    return found


def _assignments(properties: dict[str, Any]) -> str:
    return ", ".join(
        f"{name}: {value!r}" for name, value in properties.items() if value is not None
    )


def diff_text(document: dict[str, Any], rows_max: int) -> str:
    """Numbers per type, then rows."""
    changes = document["changes"]
    if not changes:
        return "no difference"
    counts: dict[str, dict[str, int]] = {}
    words = {"insert": "inserted", "update": "updated", "delete": "deleted"}
    for change in changes:
        name = change["type"]["name"] if isinstance(change["type"], dict) else change["type"]
        per_type = counts.setdefault(name, {})
        per_type[words[change["op"]]] = per_type.get(words[change["op"]], 0) + 1
    shown = changes if rows_max <= 0 else changes[:rows_max]
    lines = [f"{name}: {' '.join(_signed(numbers))}" for name, numbers in counts.items()]
    lines += change_lines(shown)
    if len(shown) < len(changes):
        lines.append(f"  … {len(changes) - len(shown):,} more; --rows 0 shows all")
    return "\n".join(lines)


def merge_text(result: Any, said: str) -> str:
    """The outcome of a merge or of a revert."""
    if result.outcome == "conflict":
        listed = "\n".join(_conflict(c.to_json()) for c in result.conflicts)
        return f"{len(result.conflicts)} conflicts; nothing was changed\n{listed}"
    if result.commit is None:
        return f"{said}: {result.outcome}"
    changed = counts_line(result.commit.changes)
    return f"{said}: {result.outcome}, commit {short(result.commit.id)}" + (
        f" ({changed})" if changed else ""
    )


def _conflict(found: dict[str, Any]) -> str:
    place = ".".join(str(found[k]) for k in ("type", "field") if found.get(k))
    sides = ", ".join(f"{side} {found.get(side)!r}" for side in ("base", "ours", "theirs"))
    return f"  ! {found.get('kind')}: {place} of {found.get('id')}: {sides}"
