"""Commits, changes and plans as text."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

from omnigraph.cli.exits import EXIT_CODES, OK
from omnigraph.cli.options import Show
from omnigraph.cli.output import answer, note, styled
from omnigraph.errors import Kind
from omnigraph.wording import counted, human_bytes

if TYPE_CHECKING:
    from omnigraph.merge.conflicts import Conflict
    from omnigraph.merge.diff import Diff, RowDiff
    from omnigraph.merge.feed import Change
    from omnigraph.outcomes import Commit, MergeResult
    from omnigraph.read.checking import CheckReport

CHAIN_CHARACTERS = 8
CELL_CHARACTERS_MAX = 60
OUTCOMES = {"fast_forward": " (fast-forward)", "already_up_to_date": ": already up to date"}
STEP_SIGNS = {"add": "+", "extend": "+", "drop": "-", "unsupported": "!"}
STEP_HIDDEN = {"kind", "code", "table_id", "type_id", "property_id", "type_kind"}
SIGNS = {"inserted": "+", "updated": "~", "deleted": "-"}
CHECK_COLOURS = {"passed": "32", "failed": "31", "skipped": "2"}
COLOURS = {"+": "32", "~": "33", "-": "31"}


def short(id: str) -> str:
    """A commit ID, shortened; commands accept it in this form.

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
    """A line in the colour of its change sign (+ - ~)."""
    return styled(line, COLOURS[line.lstrip()[0]]) if line.lstrip()[:1] in COLOURS else line


BECAME = ("new", "changed", "deleted", "repeated", "late")
PHASES = ("read", "check", "stage", "verify")


def commit_line(commit: Commit) -> str:
    """A commit as one line of a log."""
    from omnigraph.drawing.history import ago

    actor = f" {commit.actor}" if commit.actor else ""
    message = f"  {commit.message}" if commit.message else ""
    changed = counts_line(commit.changes)
    return (
        f"{styled(short(commit.id), '33')}  {ago(commit.time):>8}{actor}  {commit.kind}{message}"
        + (f"  ({changed})" if changed else "")
        + (f"  {passed_line(commit.checks)}" if commit.checks else "")
    )


def passed_line(checks: Mapping[str, str]) -> str:
    """`2 checks passed`, or the failed ones."""
    failed = [name for name, outcome in checks.items() if outcome == "failed"]
    return f"failed: {', '.join(failed)}" if failed else f"{counted(len(checks), 'check')} passed"


def commit_text(commit: Commit) -> str:
    """A commit in full."""
    facts = {
        "commit": commit.id,
        "parents": ", ".join(commit.parents) or "none",
        "branch": commit.branch,
        "actor": commit.actor or "none",
        "time": commit.time.strftime("%Y-%m-%d %H:%M:%S UTC"),
        "kind": commit.kind,
        "message": commit.message or "",
    }
    if commit.proposal is not None:
        facts["proposal"] = str(commit.proposal)
    if commit.checks:
        facts["checks"] = passed_line(commit.checks)
    lines = [f"{styled(f'{name:<8}', '2')} {value}".rstrip() for name, value in facts.items()]
    for name, counts in commit.changes.items():
        lines.append(f"  {name:<20} {' '.join(_signed(counts))}")
    return "\n".join([*lines, *load_lines(commit.load)])


def load_lines(load: Mapping[str, Any]) -> list[str]:
    """The report of a load: rows read, their outcomes by type, and the cost."""
    cost = load.get("cost", {})
    if not cost:
        return []
    lines = [f"{styled('load', '2')}     {_cost_text(cost)}"]
    given = {**load.get("nodes", {}), **load.get("edges", {})}
    for name, count in given.items():
        known = load.get("rows", {}).get(name, {})
        left = count - sum(known.values())
        parts = [f"{count:,} in", *(f"{known[what]:,} {what}" for what in BECAME if what in known)]
        parts += [f"{left:,} unchanged"] if left > 0 else []
        refused = load.get("quarantined", {}).get(name)
        lines.append(
            f"  {name:<20} {', '.join([*parts, *([f'{refused:,} refused'] if refused else [])])}"
        )
    return lines


def _cost_text(cost: Mapping[str, Any]) -> str:
    seconds = cost.get("seconds", {})
    parts = [f"{what} {seconds[what]:.1f} s" for what in PHASES if what in seconds]
    if cost.get("bytes"):
        parts.append(f"{human_bytes(cost['bytes'])} read")
    parts += [f"{cost[name]:,} {name}" for name in ("pieces", "stages", "tasks") if name in cost]
    for name in ("shuffled", "spilled"):
        if cost.get(f"{name}_bytes"):
            parts.append(f"{human_bytes(cost[f'{name}_bytes'])} {name}")
    if cost.get("skew", 0) > 1:
        parts.append(f"skew {cost['skew']}")
    return f"{cost.get('engine', 'local')}: {', '.join(parts)}"


def changed_branches(outcome: Mapping[str, str]) -> str:
    """The outcome of a statement about branches, worded like that of the equivalent command."""
    match outcome["kind"]:
        case "created":
            return f"created branch {outcome['name']} from {outcome['from']}"
        case "deleted":
            return f"deleted branch {outcome['name']}"
        case _:
            return f"merged {outcome['source']} into {outcome['target']}: {outcome['merge']}"


def published(commit: Commit | None, branch: str) -> str:
    """The outcome of a write."""
    if commit is None:
        return "nothing to change, no commit made"
    return f"commit {short(commit.id)} on {branch}"


# --- changes -----------------------------------------------------------------------------------------------------


def change_line(row: RowDiff | Change) -> str:
    """One changed row; an update shows only the differing properties."""
    before, after = row.before or {}, row.after or {}
    match row.operation:
        case "insert":
            line = f"  + {row.type} {row.id}  {_assignments(after)}"
        case "delete":
            line = f"  - {row.type} {row.id}  {_assignments(before)}"
        case _:
            names = [n for n in after if before.get(n) != after[n]]
            moved = (f"{n}: {_value(before.get(n))} → {_value(after[n])}" for n in names)
            line = f"  ~ {row.type} {row.id}  {', '.join(moved)}"
    return coloured(_within(line.rstrip()))


def _within(line: str) -> str:
    """A line cut to the width of the terminal; programs get all of it."""
    from omnigraph.cli.table import width_available

    width = width_available()
    return line if width is None or len(line) <= width else line[: width - 1] + "…"


def _assignments(properties: Mapping[str, Any]) -> str:
    given = {k: v for k, v in properties.items() if v is not None and k != "id"}
    return ", ".join(f"{name}: {_value(value)}" for name, value in given.items())


def _value(value: Any) -> str:
    from omnigraph.cli.table import cell
    from omnigraph.values.spelling import to_json

    text = cell(to_json(value))
    return text if len(text) <= CELL_CHARACTERS_MAX else text[: CELL_CHARACTERS_MAX - 1] + "…"


def diff_text(found: Diff, rows_max: int) -> str:
    """Schema steps, counts per type, then rows."""
    if found.is_empty:
        return "no difference"
    lines = [coloured(step_line(step)) for step in found.schema]
    wide = max(map(len, found.counts), default=0)
    lines += [f"{n:<{wide}}  {' '.join(_signed(c))}" for n, c in found.counts.items()]
    total = sum(sum(counts.values()) for counts in found.counts.values())
    shown = total if rows_max <= 0 else rows_max
    lines += [change_line(row) for row in islice(found, shown)]
    if shown < total:
        lines.append(f"  … {total - shown:,} more; --rows 0 shows all")
    return "\n".join(lines)


def step_line(step: Mapping[str, Any]) -> str:
    """One step of a schema change, with its sign."""
    kind = str(step["kind"])
    sign = STEP_SIGNS.get(kind.partition("_")[0], "~")
    shown = {k: v for k, v in step.items() if k not in STEP_HIDDEN and v not in (None, [], "")}
    about = " ".join(f"{name}={value}" for name, value in shown.items())
    code = f" [{step['code']}]" if step.get("code") else ""
    return f"{sign} {kind.replace('_', ' ')}{code} {about}".rstrip()


def print_merge(
    show: Show, result: MergeResult, text: str, *, dry_run: bool, document: Any = None
) -> int:
    """Print the outcome of a merge, revert or cherry-pick; returns the exit code."""
    answer(show, merge_text(result, text), result.to_json() if document is None else document)
    if dry_run:
        note(show, "nothing was changed")
    return merge_code(show, result)


def merge_code(show: Show, result: MergeResult) -> int:
    """The exit code of a merge; conflicts are followed by a hint on how to resolve them."""
    if result.outcome != "conflict":
        return OK
    note(show, "next: --strategy ours or theirs resolves all conflicts, --decisions FILE each")
    return EXIT_CODES[Kind.CONFLICT]


def merge_text(result: MergeResult, text: str) -> str:
    """The outcome of a merge: the text with commit and counts, or the conflicts."""
    if result.outcome == "conflict":
        found = counted(len(result.conflicts), "conflict")
        return f"{found}; nothing was changed\n{conflict_lines(result)}"
    commit = f", commit {short(result.commit.id)}" if result.commit else ""
    changed = counts_line(result.counts)
    how = OUTCOMES.get(result.outcome, "")
    return f"{text}{how}{commit}" + (f": {changed}" if changed else "")


def conflict_lines(result: MergeResult) -> str:
    """The conflicts of a merge, a line each."""
    return "\n".join(_conflict(conflict) for conflict in result.conflicts)


def _conflict(found: Conflict) -> str:
    place = f"{found.type}.{found.field}" if found.field else found.type
    sides = ", ".join(f"{s} {_value(getattr(found, s))}" for s in ("base", "ours", "theirs"))
    return f"  ! {found.kind}: {place} of {found.id}: {sides}"


# --- checks ------------------------------------------------------------------------------------------------------


def checks_text(report: CheckReport) -> str:
    """The results of checks, with the rows of the failed ones."""
    lines = []
    for result in report.results:
        lines.append(styled(str(result), CHECK_COLOURS[result.outcome]))
        lines += [f"    {_row(row)}" for row in result.rows]
    return "\n".join(lines) or "there are no checks"


def _row(row: Any) -> str:
    return ", ".join(f"{name}: {value}" for name, value in row.items())
