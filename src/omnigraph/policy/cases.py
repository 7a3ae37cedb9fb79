"""Expectations about decisions: a file of cases with the decision expected of a policy.

version: 1
cases:
  - {id: readers cannot write, actor: grace, action: change, branch: main, expect: deny}
"""

from __future__ import annotations

from typing import Literal

import msgspec

from omnigraph.model.frozen import frozen
from omnigraph.model.yaml_text import YamlRefused, read_yaml
from omnigraph.policy.cedar import Policy
from omnigraph.policy.questions import ON_SERVER, Action, PolicyDecision, PolicyInvalid, Question


class PolicyCase(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One expectation."""

    id: str
    actor: str
    action: Action
    expect: Literal["allow", "deny"]
    graph: str = "graph"
    branch: str | None = None
    target_branch: str | None = None
    mode: str | None = None
    type: str | None = None

    @property
    def question(self) -> Question:
        graph = None if self.action in ON_SERVER else self.graph
        return Question(
            self.actor, self.action, graph, self.branch, self.target_branch, self.mode, self.type
        )


class CaseFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    version: Literal[1]
    cases: list[PolicyCase]


@frozen
class Mismatch:
    """A case that was not decided as expected."""

    case: PolicyCase
    decision: PolicyDecision

    def __str__(self) -> str:
        return f"{self.case.id}: expected {self.case.expect}, but {self.decision.message}"


def parse_cases(text: str, name: str = "cases") -> list[PolicyCase]:
    """The cases of a file."""
    try:
        return msgspec.convert(read_yaml(text), CaseFile).cases
    except (YamlRefused, msgspec.ValidationError) as error:
        raise PolicyInvalid(f"{name}: {error}") from error


def run_cases(policy: Policy, cases: list[PolicyCase]) -> list[Mismatch]:
    """The cases a policy does not decide as expected."""
    decided = ((case, policy.decide(case.question)) for case in cases)
    return [Mismatch(case, d) for case, d in decided if d.allowed is not (case.expect == "allow")]
