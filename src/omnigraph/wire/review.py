"""Requests and answers about checks, proposals, profiles and who wrote what."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal, Self

import msgspec
from msgspec import field

from omnigraph.lang.checks import GraphCheck, parse_checks
from omnigraph.outcomes import Blame, BlamedCell, ChecksResult
from omnigraph.proposed import Proposal, Review, ReviewVerdict, ThreadEntry
from omnigraph.read.checking import CheckReport, CheckResult
from omnigraph.read.profile import ColumnProfile, Degrees, Profile, TypeProfile
from omnigraph.wire.answers import CommitOutput, ConflictOutput, commit_of, maybe_commit
from omnigraph.wire.requests import Message, StrictRequest, WireRequest

Title = Annotated[str, msgspec.Meta(max_length=500)]
Text = Annotated[str, msgspec.Meta(max_length=64_000)]

# --- checks --------------------------------------------------------------------------------------------------------


class ChecksRequest(StrictRequest, frozen=True):
    """`text` is a `.gq` text whose queries are the checks."""

    text: str
    branch: str | None = None
    message: Message | None = None
    dry_run: bool = False


class CheckRequest(StrictRequest, frozen=True):
    branch: str | None = None
    at: str | None = None
    before: str | None = field(default=None, name="compare_to")
    only: list[str] | None = None
    record: bool = True
    timeout: float | None = None


class ProfileQuery(WireRequest, frozen=True):
    branch: str | None = None
    at: str | None = None
    before: str | None = field(default=None, name="compare_to")
    types: list[str] | None = None


class CheckOutcome(msgspec.Struct, frozen=True):
    name: str
    text: str
    message: str
    severity: str
    measure: str
    bound: str


class ChecksOutput(msgspec.Struct, frozen=True):
    checks: list[CheckOutcome]

    @classmethod
    def of(cls, checks: list[GraphCheck]) -> Self:
        return cls([CheckOutcome(**check.to_json()) for check in checks])

    def value(self) -> list[GraphCheck]:
        return list(parse_checks("\n\n".join(check.text for check in self.checks)))


class ChecksAppliedOutput(msgspec.Struct, frozen=True):
    added: list[str]
    changed: list[str]
    removed: list[str]
    commit: CommitOutput | None

    @classmethod
    def of(cls, done: ChecksResult) -> Self:
        lists = (list(done.added), list(done.changed), list(done.removed))
        return cls(*lists, maybe_commit(done.commit))

    def value(self) -> ChecksResult:
        tuples = (tuple(self.added), tuple(self.changed), tuple(self.removed))
        return ChecksResult(*tuples, commit_of(self.commit))


class CheckReportOutput(msgspec.Struct, frozen=True):
    """The results of checks on a commit; `passed` unless a check of severity error failed."""

    graph_commit_id: str
    before: str | None
    passed: bool
    results: list[CheckResult]
    time: int = 0
    actor_id: str | None = None

    @classmethod
    def of(cls, report: CheckReport) -> Self:
        results = list(report.results)
        said = (report.commit, report.before, report.passed, results)
        return cls(*said, report.time, report.actor)

    def value(self) -> CheckReport:
        results = tuple(self.results)
        return CheckReport(self.graph_commit_id, self.before, results, self.time, self.actor_id)


class CheckResultsOutput(msgspec.Struct, frozen=True):
    runs: list[CheckReportOutput]

    @classmethod
    def of(cls, reports: list[CheckReport]) -> Self:
        return cls([CheckReportOutput.of(report) for report in reports])

    def value(self) -> list[CheckReport]:
        return [run.value() for run in self.runs]


class TypeProfileOutput(msgspec.Struct, frozen=True):
    type: str
    kind: str
    rows: int
    columns: list[ColumnProfile]
    degrees: dict[str, Degrees]

    def value(self) -> TypeProfile:
        return TypeProfile(self.type, self.kind, self.rows, tuple(self.columns), self.degrees)


class StateProfileOutput(msgspec.Struct, frozen=True):
    commit: str
    types: list[TypeProfileOutput]

    def value(self) -> Profile:
        return Profile(self.commit, tuple(each.value() for each in self.types))


class ProfileOutput(msgspec.Struct, frozen=True):
    commit: str
    types: list[TypeProfileOutput]
    before: StateProfileOutput | None = None

    @classmethod
    def of(cls, found: Profile) -> Self:
        return msgspec.convert(found.to_json(), cls)

    def value(self) -> Profile:
        earlier = None if self.before is None else self.before.value()
        return Profile(self.commit, tuple(each.value() for each in self.types), earlier)


class BlamedCellOutput(msgspec.Struct, frozen=True):
    """A property, the commit that wrote it, and the merge that brought it here."""

    property: str
    value: Any
    commit: CommitOutput | None
    via: CommitOutput | None


class BlameOutput(msgspec.Struct, frozen=True):
    type: str
    id: str
    cells: list[BlamedCellOutput]

    @classmethod
    def of(cls, found: Blame) -> Self:
        cells = [
            BlamedCellOutput(
                cell.property,
                cell.to_json()["value"],
                maybe_commit(cell.commit),
                maybe_commit(cell.via),
            )
            for cell in found.cells
        ]
        return cls(found.type, found.id, cells)

    def value(self) -> Blame:
        cells = (
            BlamedCell(c.property, c.value, commit_of(c.commit), commit_of(c.via))
            for c in self.cells
        )
        return Blame(self.type, self.id, tuple(cells))


# --- proposals -----------------------------------------------------------------------------------------------------

ProposalStateName = Literal["open", "changes_wanted", "approved", "merged", "closed"]


class ProposalsQuery(WireRequest, frozen=True):
    names = WireRequest.names | {"target"}
    state: ProposalStateName | None = None
    target: str | None = None
    limit: int | None = None


class ReviewQuery(WireRequest, frozen=True):
    timeout: float | None = None


class ProposeRequest(StrictRequest, frozen=True):
    source: str
    title: Title
    into: str | None = field(default=None, name="target")
    text: Text = ""
    reviewers: list[str] = []
    dry_run: bool = False


class CommentRequest(StrictRequest, frozen=True):
    """A comment on the proposal, or on a type, a row or a cell."""

    text: Text
    type: str | None = None
    id: str | None = None
    property: str | None = None
    dry_run: bool = False


class ApproveRequest(StrictRequest, frozen=True):
    """With `head`, only if the branch is at that commit."""

    head: str | None = None
    text: Text = ""
    dry_run: bool = False


class ChangesRequest(StrictRequest, frozen=True):
    text: Text
    head: str | None = None
    dry_run: bool = False


class CloseRequest(StrictRequest, frozen=True):
    text: Text = ""
    dry_run: bool = False


class MergeProposalRequest(StrictRequest, frozen=True):
    dry_run: bool = False
    head: str | None = None
    strategy: str | dict[str, str] | None = None
    resolutions: list[dict[str, Any]] | None = None
    skip_checks: bool = False
    message: Message | None = None


class ProposalOutput(msgspec.Struct, frozen=True):
    """A branch offered for merging; `thread` only if it was requested by its number."""

    number: int
    title: str
    state: str
    author: str | None
    source: str
    target: str
    created: datetime
    updated: datetime
    head: str | None
    reviewers: list[str]
    reviews: list[ReviewVerdict]
    commit: str | None
    thread: list[ThreadEntry]

    @classmethod
    def of(cls, found: Proposal) -> Self:
        said = {name: getattr(found, name) for name in cls.__struct_fields__}
        lists = {name: list(said[name]) for name in ("reviewers", "reviews", "thread")}
        return cls(**said | lists)

    def value(self) -> Proposal:
        said = {name: getattr(self, name) for name in self.__struct_fields__}
        tuples = {name: tuple(said[name]) for name in ("reviewers", "reviews", "thread")}
        return Proposal(**said | tuples)


class ProposalsOutput(msgspec.Struct, frozen=True):
    proposals: list[ProposalOutput]

    @classmethod
    def of(cls, found: list[Proposal]) -> Self:
        return cls([ProposalOutput.of(each) for each in found])

    def value(self) -> list[Proposal]:
        return [each.value() for each in self.proposals]


class ReviewOutput(msgspec.Struct, frozen=True):
    """The changes of a proposal; `GET /diff` from `base` to `head` shows the rows."""

    proposal: ProposalOutput
    base: str
    head: str
    counts: dict[str, dict[str, int]]
    schema: list[dict[str, Any]]
    changed_checks: dict[str, list[str]]
    outcome: str
    conflicts: list[ConflictOutput]
    checks: CheckReportOutput
    missing: list[str]
    mergeable: bool

    @classmethod
    def of(cls, found: Review, kinds: Mapping[str, str]) -> Self:
        """`kinds`: the kind of each type, node by default."""
        return cls(
            proposal=ProposalOutput.of(found.proposal),
            base=found.base,
            head=found.head,
            counts={name: dict(counts) for name, counts in found.counts.items()},
            schema=[dict(step) for step in found.schema],
            changed_checks={name: list(names) for name, names in found.changed_checks.items()},
            outcome=found.outcome,
            conflicts=[ConflictOutput.of(c, kinds.get(c.type, "node")) for c in found.conflicts],
            checks=CheckReportOutput.of(found.checks),
            missing=list(found.missing),
            mergeable=found.mergeable,
        )

    def value(self) -> Review:
        return Review(
            proposal=self.proposal.value(),
            base=self.base,
            head=self.head,
            counts=self.counts,
            schema=tuple(self.schema),
            changed_checks=self.changed_checks,
            outcome=self.outcome,
            conflicts=tuple(conflict.value() for conflict in self.conflicts),
            checks=self.checks.value(),
            missing=tuple(self.missing),
        )
