"""Names people give, parsed once at the edge, and their reversible, path-safe encoding."""

from __future__ import annotations

import re
import unicodedata
from typing import NewType

from omnigraph.errors import NameInvalid

BranchName = NewType("BranchName", str)
NAME_BYTES_MAX = 255
SHOWN_CHARACTERS_MAX = 40  # of a name that is refused
MAIN = BranchName("main")
GRAPH_ID = re.compile(r"[a-zA-Z0-9-]{1,64}")  # of a graph of a server or a cluster

_ESCAPE = re.compile(rb"_([0-9a-f]{2})")
_ENCODED = re.compile(r"(?:[a-z0-9-]|_[0-9a-f]{2})+")
_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789-")


def is_unicode(text: str) -> bool:
    """Whether a text can be stored: half of a surrogate pair cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def canonical(text: str) -> str:
    """The one spelling of a name, or of a text that has one in it. Texts that Unicode considers equal are one name.

    >>> canonical("RIS\N{KELVIN SIGN}")
    'RISK'
    """
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def branch_name(text: object) -> BranchName:
    """A branch or tag name: NFC, no control characters, at most 255 bytes.

    >>> branch_name("review/häfen")
    'review/häfen'
    """
    if not isinstance(text, str):
        raise NameInvalid(f"a branch or tag name must be text, got {type(text).__name__}")
    plain = text.isascii() and text.isprintable()  # most names are, and need no closer look
    name = canonical(text)
    if not name or name != name.strip():
        raise NameInvalid(f"the name {_shown(text)} is empty or starts or ends with white space")
    if not plain and any(unicodedata.category(c) in ("Cc", "Cs") for c in name):
        raise NameInvalid(f"the name {_shown(text)} contains a control character")
    if len(name.encode()) > NAME_BYTES_MAX:
        raise NameInvalid(f"the name {_shown(text)} is longer than {NAME_BYTES_MAX} bytes")
    return BranchName(name)


def _shown(text: str) -> str:
    """A name in a message: its beginning, however long it is."""
    return repr(text) if len(text) <= SHOWN_CHARACTERS_MAX else f"{text[:SHOWN_CHARACTERS_MAX]!r}…"


def encode_name(name: str) -> str:
    """A path segment for the name that is safe on any file system, whatever its case rules.

    Lower-case letters, digits and `-` stand for themselves; every other byte is `_` and two hex digits. Long names are
    cut into segments that cannot be mistaken for one another.

    >>> encode_name("Fix a/b")
    '_46ix_20a_2fb'
    """
    text = "".join(chr(b) if b in _PLAIN else f"_{b:02x}" for b in name.encode())
    if len(text) <= 200:
        return text
    pieces = [text[i : i + 200] for i in range(0, len(text), 200)]
    return "/".join(["+" + piece for piece in pieces[:-1]] + [pieces[-1]])


def decode_name(path: str) -> str:
    """The name an encoded path stands for."""
    text = "".join(piece.removeprefix("+") for piece in path.split("/"))
    try:
        if _ENCODED.fullmatch(text) is None:
            raise NameInvalid(f"{_shown(path)} is not an encoded name")
        return _ESCAPE.sub(lambda hit: bytes([int(hit[1], 16)]), text.encode()).decode()
    except UnicodeDecodeError as bad:
        raise NameInvalid(f"{_shown(path)} is not an encoded name") from bad
