"""Rules as people write them: groups of actors, protected branches, and what each group may do.

    version: 1
    groups: {admins: [ada], readers: [grace]}
    protected_branches: [main]
    rules:
      - id: readers-read
        allow: {actors: {group: readers}, actions: [read], branch_scope: any}

Rules only allow; anything not allowed is denied. Actors who may change a branch must still meet the requirements of
its `protection`:

    protection:
      main: {push: [admins], approvals: 2, checks: true}
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from omnigraph.errors import NameInvalid
from omnigraph.model.names import branch_name
from omnigraph.model.yaml_text import YamlRefused, read_yaml
from omnigraph.policy.questions import (
    ON_BRANCH,
    ON_SERVER,
    ON_TARGET,
    ON_TYPES,
    Action,
    PolicyInvalid,
)

Scope = Literal["any", "protected", "unprotected"]
Mode = Literal["append", "merge", "overwrite"]
APPROVALS_MAX = 100


class _Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An unknown field is an error."""


class Actors(_Strict, frozen=True):
    group: str


class Allow(_Strict, frozen=True):
    actors: Actors
    actions: list[Action]
    branch_scope: Scope | None = None
    target_branch_scope: Scope | None = None
    load_modes: list[Mode] | None = None
    types: list[str] | None = None


class Rule(_Strict, frozen=True):
    id: str
    allow: Allow


class Protection(_Strict, frozen=True):
    """The requirements of a branch: who may write to it without a proposal, and what a proposal needs to be merged."""

    push: list[str] = []  # groups; all others change it by merging proposals
    approvals: int = 0
    approvers: list[str] | None = (
        None  # groups whose approvals count; without it, of all who may approve
    )
    checks: bool | list[str] = False  # all that are errors, or those named
    own_approvals: bool = False  # whether authors may approve their own changes
    stale_approvals: bool = False  # whether an approval counts after the branch has moved on

    @property
    def groups(self) -> set[str]:
        return {*self.push, *(self.approvers or ())}


class Bundle(_Strict, frozen=True):
    """A file of rules, checked."""

    version: int
    groups: dict[str, list[str]]
    rules: list[Rule]
    protected_branches: list[str] = []
    protection: dict[str, Protection] = {}

    @property
    def actors(self) -> frozenset[str]:
        return frozenset(name for members in self.groups.values() for name in members)

    @property
    def is_for_server(self) -> bool:
        """Whether the rules are about a server as a whole, not about a graph."""
        return any(action in ON_SERVER for rule in self.rules for action in rule.allow.actions)


def parse_bundle(text: str, name: str = "policy") -> Bundle:
    """A bundle from its YAML; raises for anything ambiguous.

    >>> parse_bundle("version: 1\\ngroups: {a: [ada]}\\nrules: []").actors
    frozenset({'ada'})
    """
    bundle = _converted(_yaml(text, name), name)
    for mistake in _mistakes(bundle):
        raise PolicyInvalid(f"{name}: {mistake}")
    return bundle


def _yaml(text: str, name: str) -> Any:
    try:
        content = read_yaml(text)
    except YamlRefused as error:
        raise PolicyInvalid(f"{name} cannot be read: {error}") from error
    if isinstance(content, dict) and content.get("kind") in ("server", "graph"):
        content.pop("kind")  # published bundles name their kind; the rules show it, too
    return content


def _converted(content: Any, name: str) -> Bundle:
    try:
        return msgspec.convert(content, Bundle)
    except msgspec.ValidationError as error:
        raise PolicyInvalid(f"{name}: {error}") from error


def _mistakes(bundle: Bundle) -> Any:
    """What is wrong with a bundle, first things first."""
    if bundle.version != 1:
        yield f"version must be 1, not {bundle.version}"
    for group, members in bundle.groups.items():
        if not group.strip() or not members or any(not m.strip() for m in members):
            yield f"the group {group!r} needs a name and members that have one"
    for branch in bundle.protected_branches:
        try:
            branch_name(branch)
        except NameInvalid as error:
            yield f"a protected branch needs a name: {error.message}"
    yield from _protection_mistakes(bundle)
    seen: set[str] = set()
    for rule in bundle.rules:
        if not rule.id.strip() or rule.id in seen:
            yield f"the rule id {rule.id!r} is blank or duplicated"
        seen.add(rule.id)
        yield from (f"rule {rule.id!r}: {why}" for why in _rule_mistakes(rule.allow, bundle))
    if bundle.is_for_server and any(set(r.allow.actions) - ON_SERVER for r in bundle.rules):
        yield "rules for a server and rules for graphs belong in separate files"


def _protection_mistakes(bundle: Bundle) -> Any:
    for branch, wanted in bundle.protection.items():
        try:
            branch_name(branch)
        except NameInvalid as error:
            yield f"protection needs the name of a branch: {error.message}"
        for group in sorted(wanted.groups - bundle.groups.keys()):
            yield f"protection of {branch!r}: unknown group {group!r}"
        if not 0 <= wanted.approvals <= APPROVALS_MAX:
            yield f"protection of {branch!r}: approvals is from 0 to {APPROVALS_MAX}"


def _rule_mistakes(allow: Allow, bundle: Bundle) -> Any:
    actions = set(allow.actions)
    if not actions:
        yield "at least one action is needed"
    if allow.actors.group not in bundle.groups:
        yield f"unknown group {allow.actors.group!r}"
    if allow.branch_scope is not None and allow.target_branch_scope is not None:
        yield "branch_scope and target_branch_scope exclude each other"
    if allow.branch_scope is not None and not actions <= ON_BRANCH:
        yield f"branch_scope fits only {', '.join(sorted(ON_BRANCH))}"
    if allow.target_branch_scope is not None and not actions <= ON_TARGET:
        yield f"target_branch_scope fits only {', '.join(sorted(ON_TARGET))}"
    if allow.load_modes is not None and actions != {Action.CHANGE}:
        yield "load_modes fits only change"
    if allow.types is not None and not actions <= ON_TYPES:
        yield f"types fits only {', '.join(sorted(ON_TYPES))}"
    if allow.types is not None and not (allow.types and all(map(_is_type_name, allow.types))):
        yield "types needs the names of types"


def _is_type_name(text: str) -> bool:
    """Whether a schema could have a type of this name; a rule for another would never apply."""
    return text.isascii() and text.isidentifier()
