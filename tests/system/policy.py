"""Who may do what: the rules as they are written for the real system, and as a few lines of the model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

ACTORS = ("root", "writer", "reader")
PROTECTED = ("main", "K\u00f6ln")
RULES = """
version: 1
groups: {roots: [root], writers: [writer], readers: [reader]}
protected_branches: [main, "K\u00f6ln"]
rules:
  - {id: roots-rows, allow: {actors: {group: roots}, actions: [read, export, change], branch_scope: any}}
  - id: roots-versions
    allow:
      actors: {group: roots}
      actions: [branch_create, branch_delete, branch_merge, schema_apply]
      target_branch_scope: any
  - {id: roots-order, allow: {actors: {group: roots}, actions: [admin]}}
  - {id: all-read, allow: {actors: {group: writers}, actions: [read, export], branch_scope: any}}
  - {id: readers-read, allow: {actors: {group: readers}, actions: [read, export], branch_scope: any}}
  - {id: writers-write, allow: {actors: {group: writers}, actions: [change], branch_scope: unprotected}}
  - id: writers-versions
    allow:
      actors: {group: writers}
      actions: [branch_create, branch_delete, branch_merge, schema_apply]
      target_branch_scope: unprotected
"""
DENIED = "policy_denied"
WRITES = ("load", "mutate", "block", "revert", "cherry_pick", "reset")


def allows(actor: str, step: Mapping[str, Any]) -> bool:
    """Whether an actor may do a step. Everybody may read; who writes stays off the protected branches."""
    if actor == "root" or step["verb"] == "look":
        return True
    if actor == "reader":
        return False
    return target_of(step) not in PROTECTED


def target_of(step: Mapping[str, Any]) -> str | None:
    """The name a step would change something at."""
    match step["verb"]:
        case "merge":
            return str(step["into"])
        case "create_branch" | "delete_branch" | "tag" | "delete_tag":
            return str(step["name"])
        case _:
            return step.get("branch")
