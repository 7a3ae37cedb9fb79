"""Every target takes what once broke it, what is valid, and what valid input becomes when bytes are damaged."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.fuzz.seeds import FOUND, WORDS, seeds
from tests.fuzz.targets import TARGETS, assert_ours
from tests.support import rings

DAMAGED = rings.count(40, 300)
SLOW = {"schema_grammar", "query_grammar", "http_request"}


@pytest.mark.parametrize("name", TARGETS)
def test_only_our_errors_come_out(name: str) -> None:
    chance = random.Random(name)
    valid = seeds(name)
    for data in valid:
        assert_ours(name, data)
    for _ in range(DAMAGED // 4 if name in SLOW else DAMAGED):
        damaged = _damaged(chance.choice(valid), chance)
        try:
            assert_ours(name, damaged)
        except BaseException as error:
            error.add_note(f"target {name}, input {damaged!r}")
            raise


def _damaged(data: bytes, chance: random.Random) -> bytes:
    """Some bytes flipped, cut out, repeated, or replaced by words the targets know."""
    bytes_ = bytearray(data)
    for _ in range(chance.randint(1, 6)):
        at = chance.randint(0, len(bytes_))
        match chance.randrange(5):
            case 0:
                bytes_[at:at] = bytes([chance.randrange(256)])
            case 1:
                bytes_[at : at + 1] = bytes([chance.randrange(256)])
            case 2:
                del bytes_[at : at + chance.randint(1, 16)]
            case 3:
                bytes_[at:at] = chance.choice(WORDS).encode()
            case 4:
                end = min(len(bytes_), at + chance.randint(1, 64))
                bytes_[at:at] = bytes_[at:end] * chance.randint(1, 4)
    return bytes(bytes_)


def test_what_was_found_belongs_to_a_target() -> None:
    assert {folder.name for folder in Path(FOUND).iterdir()} <= set(TARGETS)
