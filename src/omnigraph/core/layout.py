"""The layout of a graph under its root. The only place that spells keys."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Mapping

from omnigraph.errors import CommitNotFound
from omnigraph.model.names import decode_name, encode_name
from omnigraph.storage.objects import numbered

GRAPH = "graph.json"
CHAINS = "__manifest"
REFS = "_refs"
RECORDS = "_gc"
CLAIMS = "_keys"
SCHEMAS = "_schemas"
CHECKS = "_checks"
CHECKED = "_checked"  # results of checks, by commit
PROPOSALS = "_proposals"
PLANS = "__recovery"
JOBS = "_jobs"
EXPORTS = "_exports"
RETENTION = "_maintenance/retention.json"  # how much history is kept
MAINTENANCE = "_maintenance/status.json"  # which process maintains the graph, and what was done
UPLOADS = "uploads"  # uploaded files to be loaded
TABLE_FOLDERS = {"node": "nodes", "edge": "edges"}

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
COMMIT_ID = re.compile(rf"([{_ALPHABET}]{{16}})\.([0-9]{{1,15}})(?:\.([0-9]{{1,6}}))?")


def fresh_id() -> str:
    """A random name that never repeats: 80 bits in 16 characters, safe in paths and easy to copy."""
    return "".join(secrets.choice(_ALPHABET) for _ in range(16))


def chain_folder(chain: str) -> str:
    return f"{CHAINS}/{chain}"


def ref_folder(name: str) -> str:
    """The states of a name. Branches and tags share one folder each, so that a name can only be one of them."""
    return f"{REFS}/{encode_name(name)}"


def name_in(key: str) -> str:
    """The branch or tag name in the key of one of its states."""
    return decode_name(key.removeprefix(REFS + "/").rsplit("/", 1)[0])


def claim_key(idempotency_key: str) -> str:
    return f"{CLAIMS}/{hashlib.sha256(idempotency_key.encode()).hexdigest()}"


def schema_hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def schema_key(hashed: str) -> str:
    return f"{SCHEMAS}/{hashed}"


def checks_key(hashed: str) -> str:
    return f"{CHECKS}/{hashed}"


def checked_folder(chain: str, number: int) -> str:
    """The results of checks on a commit, run by run."""
    return f"{CHECKED}/{chain}/{number}"


def proposal_folder(number: int) -> str:
    """The states of a proposal."""
    return f"{PROPOSALS}/{number}"


def record_key(epoch: int) -> str:
    """Collections are counted from 1; epoch 0: none yet."""
    return numbered(RECORDS, epoch - 1)


def plan_key(plan: str) -> str:
    return f"{PLANS}/{plan}.json"


def job_key(job: str) -> str:
    return f"{JOBS}/{job}.json"


def job_cancel_key(job: str) -> str:
    """The object that asks the process of a job to cancel it."""
    return f"{JOBS}/{job}.cancel"


def export_folder(job: str) -> str:
    """The parts an export job wrote."""
    return f"{EXPORTS}/{job}"


def table_path(kind: str, table_id: str, fresh: str) -> str:
    """The folder of a table; the fresh part is drawn anew for every attempt to create it."""
    return f"{TABLE_FOLDERS[kind]}/{table_id}-{fresh}"


def commit_id(chain: str, number: int, member: int | None = None) -> str:
    """The id of a commit says where it is: chain, number, and its place in a group.

    >>> commit_id("0123456789abcdef", 7)
    '0123456789abcdef.7'
    """
    return f"{chain}.{number}" + ("" if member is None else f".{member}")


def content_id(chain: str, number: int, members: int) -> str:
    """The id of a commit with content: that of its only member, or of the last of a group."""
    return commit_id(chain, number, members - 1 if members > 1 else None)


def parse_commit_id(text: str) -> tuple[str, int, int | None]:
    """Chain, number and member of a commit id."""
    match = COMMIT_ID.fullmatch(text)
    if match is None:
        raise CommitNotFound(f"{text[:80]!r} is not a commit id")
    chain, number, member = match.groups()
    return chain, int(number), None if member is None else int(member)


def newest_of(*known: Mapping[str, str]) -> dict[str, str]:
    """Per chain the newest of the commits named."""
    found: dict[str, str] = {}
    for chain, commit in (item for names in known for item in names.items()):
        if chain not in found or parse_commit_id(commit)[1] > parse_commit_id(found[chain])[1]:
            found[chain] = commit
    return found
