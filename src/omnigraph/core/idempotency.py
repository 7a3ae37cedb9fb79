"""One key, one write: claims of idempotency keys, and finding the writes made under them."""

from __future__ import annotations

from omnigraph.core import layout
from omnigraph.core.records import (
    ChainObject,
    Commit,
    KeyClaim,
    LiveRef,
    Seal,
    Tombstone,
    decode_ref,
    encode,
    object_at,
    operations_of,
)
from omnigraph.core.repository import Repository
from omnigraph.errors import IdempotencyMismatch, StoreOutcomeUnknown


def claim(repo: Repository, key: str, wanted: KeyClaim) -> KeyClaim:
    """Claim a key, or join the existing claim: the result names the operation id to work under."""
    if repo.put_once(layout.claim_key(key), encode(wanted)):
        return wanted
    found = joined(repo, key, wanted)
    if found is None:
        raise StoreOutcomeUnknown(f"the claim of the key {key!r} exists but cannot be read")
    return found


def joined(repo: Repository, key: str, wanted: KeyClaim) -> KeyClaim | None:
    """The claim of a key, if there is one; it must be of the same request."""
    found = existing_claim(repo, key)
    if found is None:
        return None
    for name in ("fingerprint", "branch"):
        if getattr(found, name) != getattr(wanted, name):
            raise mismatch(key, name, found.branch)
    return found


def existing_claim(repo: Repository, key: str) -> KeyClaim | None:
    """The claim of a key, if there is one."""
    return object_at(repo.objects, KeyClaim, layout.claim_key(key))


def mismatch(key: str, name: str, branch: str) -> IdempotencyMismatch:
    return IdempotencyMismatch(
        f"the idempotency key {key!r} was used for another request (its {name} differs)",
        details={"key": key, "differs": name, "branch": branch},
    )


def landed_anywhere(repo: Repository, claimed: KeyClaim) -> ChainObject | None:
    """The write made under a claim, on whatever chain its branch had then.

    A write that creates its branch claims its key before its chain exists.
    """
    if not claimed.chain:
        return made_by(repo, claimed.operation_id, claimed.branch)
    last: ChainObject | None = repo.chains.end(claimed.chain)
    if isinstance(last, Seal):
        last = repo.chains.get(last.chain, last.number - 1) if last.number else None
    if last is None or isinstance(last, Seal):
        return None
    return landed_before(repo, claimed.operation_id, claimed.base_number, last)


def landed_before(
    repo: Repository, operation_id: str, claimed_at: int, head: Commit | Tombstone
) -> ChainObject | None:
    """The commit of an operation, if it lies after `claimed_at` and not after `head`.

    Every commit remembers the keyed operations of the few hundred before it, so the search goes in strides. A claim
    older than the chain is searched for on every chain the name has had.
    """
    number = head.number
    at: ChainObject = head
    while number > claimed_at:
        for known in () if isinstance(at, Seal) else at.recent:
            if known.operation_id == operation_id:
                return repo.chains.expect(head.chain, known.number)
        number -= repo.limits.recent_commits
        if number > claimed_at:
            at = repo.chains.expect(head.chain, number)
    return made_by(repo, operation_id, head.branch) if claimed_at < 0 else None


def made_by(repo: Repository, operation_id: str, branch: str) -> ChainObject | None:
    """The first commit of the branch an operation created under this name, whatever the name refers to now."""
    for info in repo.objects.list(layout.ref_folder(branch)):
        state = decode_ref(repo.objects.get(info.key), info.key)
        if isinstance(state, LiveRef) and not state.tag:
            first = repo.chains.get(state.chain, 0)
            if first is not None and operation_id in operations_of(first):
                return first
    return None
