"""One evaluator for every kind of write: all checks, in order, over its changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from omnigraph.core.plan import Reads
from omnigraph.core.txn import WriteTxn
from omnigraph.errors import Kind, OmnigraphError, Violation
from omnigraph.model.changes import Changes
from omnigraph.model.frozen import frozen
from omnigraph.storage import metrics
from omnigraph.validate.checks import CHECKS
from omnigraph.validate.findings import VIOLATIONS_MAX, Case, Finding, Looked

NAMED_MAX = 3  # violations a message spells out


class ValidationFailed(OmnigraphError):
    """The write would break rules of the schema.

    `details.violations` lists them, each with rule, type, id, property, value, message, and file and line when known.
    Nothing was written.
    """

    code, kind = "validation_failed", Kind.INVALID
    default_help = "Nothing was changed. Fix the rows named, or the schema, and write again."


class KeyConflict(OmnigraphError):
    """New rows already exist.

    `details.violations` lists them. Nothing was written.
    """

    code, kind = "key_conflict", Kind.CONFLICT
    default_help = "Nothing was changed. Use mode merge to change existing rows, or give new ids."


@frozen
class Report:
    """The findings of the checks, in a fixed order, and the facts the verdict depends on."""

    violations: tuple[Violation, ...]
    reads: Mapping[str, Reads]
    more: bool = False  # there are more violations than are listed

    def raise_violations(self) -> None:
        """Raise if there are any."""
        if self.violations:
            raise _error(self)


def evaluate(
    changes: Changes,
    txn: WriteTxn,
    *,
    found: Iterable[Violation] = (),
    cascaded: frozenset[str] = frozenset(),
    limit: int = VIOLATIONS_MAX,
) -> Report:
    """Check the changes of a write against the state it starts from.

    `found` are violations already known. `cascaded` names the tables of nodes whose edges the verb looked up in the
    same transaction, to delete them too.
    """
    case = Case(changes, txn, limit + 1, cascaded)  # one more shows that there are more
    sections: list[Iterable[Violation]] = [found]
    reads: dict[str, Reads] = {}
    for findings in _findings(case):
        broken = []
        for finding in findings:
            if isinstance(finding, Looked):
                reads[finding.table_id] = reads.get(finding.table_id, Reads()) | finding.reads
            else:
                broken.append(finding)
        sections.append(broken)
    return report_of(sections, reads, limit)


def report_of(
    sections: Iterable[Iterable[Violation]],
    reads: Mapping[str, Reads] | None = None,
    limit: int = VIOLATIONS_MAX,
) -> Report:
    """The report on the findings: those already known, then one section for each check."""
    violations = [v for section in sections for v in sorted(section, key=_place)]
    return Report(tuple(violations[:limit]), reads or {}, len(violations) > limit)


def _findings(case: Case) -> list[list[Finding]]:
    """The findings of each check. Checks that read tables run in parallel; the others cost no thread."""
    running = [check(case) for check in CHECKS]
    found = [_until_it_looks(findings) for findings in running]
    looking = [i for i, part in enumerate(found) if part and isinstance(part[-1], Looked)]
    rest: list[list[Finding]] = metrics.parallel([partial(list, running[i]) for i in looking])
    for i, part in zip(looking, rest, strict=True):
        found[i] += part
    return found


def _until_it_looks(findings: Iterator[Finding]) -> list[Finding]:
    found: list[Finding] = []
    for finding in findings:
        found.append(finding)
        if isinstance(finding, Looked):
            break
    return found


def require_valid(
    changes: Changes,
    txn: WriteTxn,
    *,
    found: Iterable[Violation] = (),
    cascaded: frozenset[str] = frozenset(),
    limit: int = VIOLATIONS_MAX,
) -> Mapping[str, Reads]:
    """The facts the verdict depends on, if valid; else raises `ValidationFailed` or `KeyConflict`."""
    report = evaluate(changes, txn, found=found, cascaded=cascaded, limit=limit)
    report.raise_violations()
    return report.reads


def _place(violation: Violation) -> tuple[str, str, str, str, str]:
    return (
        violation.type_name,
        violation.id or "",
        violation.rule,
        violation.property or "",
        violation.message,
    )


def _error(report: Report) -> OmnigraphError:
    first = report.violations[0]
    details: dict[str, Any] = {
        "violations": [violation.to_json() for violation in report.violations],
        "more": report.more,
    }
    conflicts = all(violation.rule == "key_conflict" for violation in report.violations)
    if conflicts:
        details |= {"type_name": first.type_name, "entity_id": first.id}
        return KeyConflict(_message(report), details=details)
    return ValidationFailed(_message(report), details=details)


def _message(report: Report) -> str:
    named = [_sentence(violation) for violation in report.violations[:NAMED_MAX]]
    rest = len(report.violations) - len(named)
    if rest:
        named.append(f"and {rest} more" if not report.more else f"and more than {rest} more")
    return "; ".join(named)


def _sentence(violation: Violation) -> str:
    place = [violation.file] if violation.file else []
    place += [f"line {violation.line}"] if violation.line is not None else []
    where = f" ({', '.join(place)})" if place else ""
    return f"{violation.message}{where}"
