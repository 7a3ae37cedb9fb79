"""Rules as Cedar policies, and the decision.

A bundle becomes one `permit` for each rule and action; files in Cedar itself are used unchanged. The decision
is "allowed" only if Cedar says so without a single error: everything else, including an internal failure, is a denial.

Entities are `Omnigraph::Actor` (member of `Omnigraph::Group`), `Omnigraph::Graph` and `Omnigraph::Server::"root"`. The
context has `has_branch`, `branch`, `branch_is_protected`, the same three for `target_branch`, `has_mode` and `mode`,
`has_type` and `type`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from functools import lru_cache
from pathlib import Path
from typing import Any

from omnigraph.errors import Kind, OmnigraphError
from omnigraph.model.frozen import frozen
from omnigraph.model.names import branch_name
from omnigraph.policy.bundle import Allow, Bundle, Protection, Rule, parse_bundle
from omnigraph.policy.questions import ON_SERVER, PolicyDecision, PolicyInvalid, Question

DECISIONS_CACHED_MAX = 4096


class CedarMissing(OmnigraphError):
    """The package that evaluates policies is not installed."""

    code, kind = "cedar_missing", Kind.INVALID
    default_help = "Install it with `pip install 'omnigraph[server]'`."


@frozen
class PolicyRules:
    """Cedar text, the actors' groups, and the branches that are protected."""

    text: str
    groups: dict[str, list[str]]
    protected: frozenset[str] = frozenset()
    actors: frozenset[str] | None = None  # all actors; None: the rules name them themselves
    for_server: bool | None = None  # for a server, or for graphs; None: unknown
    protection: Mapping[str, Protection] = field(default_factory=dict)  # by branch

    def are_in(self, actor: str, groups: Iterable[str]) -> bool:
        """Whether an actor is in one of some groups."""
        return any(actor in self.groups.get(group, ()) for group in groups)


def compile_bundle(bundle: Bundle) -> PolicyRules:
    """The Cedar policies equivalent to a bundle."""
    text = "\n\n".join(
        _policy(rule, action) for rule in bundle.rules for action in rule.allow.actions
    )
    return PolicyRules(
        text,
        bundle.groups,
        frozenset(branch_name(name) for name in bundle.protected_branches),
        bundle.actors,
        bundle.is_for_server if bundle.rules else None,
        {branch_name(name): wanted for name, wanted in bundle.protection.items()},
    )


def _policy(rule: Rule, action: str) -> str:
    resource = "Omnigraph::Server" if action in ON_SERVER else "Omnigraph::Graph"
    conditions = " && ".join(_conditions(rule.allow)) or "true"
    return (
        f"@id({_quoted(rule.id)})\n"
        f"permit(principal in Omnigraph::Group::{_quoted(rule.allow.actors.group)}, "
        f'action == Omnigraph::Action::"{action}", resource is {resource})\n'
        f"when {{ {conditions} }};"
    )


def _conditions(allow: Allow) -> Iterator[str]:
    for name, scope in (
        ("branch", allow.branch_scope),
        ("target_branch", allow.target_branch_scope),
    ):
        if scope in ("protected", "unprotected"):
            mark = "" if scope == "protected" else "!"
            yield f"context.has_{name} && {mark}context.{name}_is_protected"
    if allow.load_modes is not None:
        modes = ", ".join(_quoted(mode) for mode in allow.load_modes)
        yield f"(!context.has_mode || [{modes}].contains(context.mode))"
    if allow.types is not None:
        types = ", ".join(_quoted(name) for name in allow.types)
        yield f"(!context.has_type || [{types}].contains(context.type))"


def _quoted(text: str) -> str:
    """A Cedar string: nothing in it can end it."""
    plain = (c if c.isprintable() and c not in '"\\' else f"\\u{{{ord(c):x}}}" for c in text)
    return '"' + "".join(plain) + '"'


class Policy:
    """Rules ready for decisions. Safe to share between threads."""

    def __init__(self, rules: PolicyRules, name: str = "policy") -> None:
        cedar = _cedar()
        self.rules = rules
        self.name = name
        self._cedar = cedar
        try:
            self._policies = cedar.PolicySet.from_str(rules.text)
            self._entities = cedar.Entities.from_json_str(json.dumps(_entities(rules)))
        except ValueError as error:
            raise PolicyInvalid(f"{name}: {error}") from error
        self._decided = lru_cache(maxsize=DECISIONS_CACHED_MAX)(self._ask)

    def decide(self, question: Question) -> PolicyDecision:
        """Whether the rules allow it. Anything but a clear yes is a no."""
        return self._decided(question)

    def _ask(self, question: Question) -> PolicyDecision:
        known = self.rules.actors
        if known is not None and question.actor not in known:
            return PolicyDecision(
                False, None, f"policy denied {question}: the actor is in no group"
            )
        try:
            found = self._cedar.is_authorized(
                _request(question, self.rules), self._policies, self._entities
            )
        except Exception as error:  # a policy that cannot be evaluated allows nothing
            return PolicyDecision(False, None, f"policy denied {question}: {type(error).__name__}")
        clear = found.allowed and not found.diagnostics.errors
        if clear and self._is_refused_push(question):
            message = (
                f"policy denied {question}: branch '{question.pushed}' is changed by proposals"
            )
            return PolicyDecision(False, None, message)
        names = sorted(
            found.diagnostics.id_annotations_by_reason.values() or found.diagnostics.reasons
        )
        rule = names[0] if clear and names else None
        verb = "allowed" if clear else "denied"
        return PolicyDecision(clear, rule, f"policy {verb} {question}")

    def protection(self, branch: str) -> Protection | None:
        """The requirements of a branch for changes."""
        return self.rules.protection.get(branch_name(branch))

    def _is_refused_push(self, question: Question) -> bool:
        """Whether a branch accepts this only through a proposal."""
        wanted = None if question.pushed is None else self.protection(question.pushed)
        return wanted is not None and not self.rules.are_in(question.actor, wanted.push)


def _cedar() -> Any:
    try:
        import cedarpy
    except ModuleNotFoundError as missing:
        raise CedarMissing("policies need the package cedarpy") from missing
    return cedarpy


def _entities(rules: PolicyRules) -> list[dict[str, Any]]:
    actors = sorted({name for members in rules.groups.values() for name in members})
    groups = [_entity("Group", name) for name in rules.groups]
    return groups + [
        _entity("Actor", name, [g for g, members in rules.groups.items() if name in members])
        for name in actors
    ]


def _entity(kind: str, id: str, groups: list[str] | None = None) -> dict[str, Any]:
    parents = [{"type": "Omnigraph::Group", "id": group} for group in groups or ()]
    return {"uid": {"type": f"Omnigraph::{kind}", "id": id}, "attrs": {}, "parents": parents}


def _request(question: Question, rules: PolicyRules) -> dict[str, Any]:
    resource = ("Server", "root") if question.graph is None else ("Graph", question.graph)
    return {
        "principal": {"type": "Omnigraph::Actor", "id": question.actor},
        "action": {"type": "Omnigraph::Action", "id": str(question.action)},
        "resource": {"type": f"Omnigraph::{resource[0]}", "id": resource[1]},
        "context": {
            **_branch_context("branch", question.branch, rules),
            **_branch_context("target_branch", question.target_branch, rules),
            "has_mode": question.mode is not None,
            "mode": question.mode or "",
            "has_type": question.type is not None,
            "type": question.type or "",
        },
    }


def _branch_context(name: str, branch: str | None, rules: PolicyRules) -> dict[str, Any]:
    return {
        f"has_{name}": branch is not None,
        name: branch or "",
        f"{name}_is_protected": branch in rules.protected,
    }


def read_policy(path: str | os.PathLike[str]) -> Policy:
    """The policy in a file: a YAML bundle, or Cedar when the name ends in `.cedar`."""
    place = Path(path)
    try:
        text = place.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise PolicyInvalid(f"{place} cannot be read: {error}") from error
    return policy_of(text, place.name)


def policy_of(text: str, name: str) -> Policy:
    """The policy in a text that was in a file of this name."""
    if name.endswith(".cedar"):
        return Policy(PolicyRules(text, {}), name)
    return Policy(compile_bundle(parse_bundle(text, name)), name)
