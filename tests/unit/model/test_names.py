"""Names people give: which are allowed, and their way into a path and back."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.errors import NameInvalid
from omnigraph.model.names import NAME_BYTES_MAX, branch_name, decode_name, encode_name


def is_allowed(text: str) -> bool:
    try:
        branch_name(text)
    except NameInvalid:
        return False
    return True


allowed = st.text(min_size=1, max_size=80).filter(is_allowed)


@given(allowed)
def test_a_name_comes_back_from_its_path(text: str) -> None:
    name = branch_name(text)
    assert decode_name(encode_name(name)) == name


@given(allowed, allowed)
def test_two_names_never_share_a_path_nor_lie_inside_each_other(one: str, other: str) -> None:
    first, second = branch_name(one), branch_name(other)
    if first != second:
        paths = encode_name(first).casefold(), encode_name(second).casefold()
        assert paths[0] != paths[1]
        assert not paths[0].startswith(paths[1] + "/")


@given(allowed)
def test_a_path_is_safe_everywhere(text: str) -> None:
    path = encode_name(branch_name(text))
    for segment in path.split("/"):
        assert re.fullmatch(r"\+?[a-z0-9_-]+", segment)
        assert len(segment) <= 255


def test_long_names_are_cut_and_not_confused() -> None:
    names = ["x" * 255, "x" * 200, "X" * 85, "ü" * 127, "x" * 201]
    paths = [encode_name(branch_name(name)) for name in names]
    assert len(set(paths)) == len(names)
    assert [decode_name(path) for path in paths] == names
    for one in paths:
        assert not any(other.startswith(one + "/") for other in paths if other != one)


def test_a_name_is_normalised() -> None:
    assert branch_name("ha\u0308fen") == "h\u00e4fen"


@pytest.mark.parametrize(
    "text", ["", " ", " a", "a ", "\ta", "a\nb", "\x00", "\x7f", "\ud800", "x" * 256, "ü" * 128]
)
def test_what_is_not_allowed(text: str) -> None:
    with pytest.raises(NameInvalid) as caught:
        branch_name(text)
    assert caught.value.help


@pytest.mark.parametrize("thing", [None, 7, b"dev", ["dev"]])
def test_what_is_no_text(thing: object) -> None:
    with pytest.raises(NameInvalid):
        branch_name(thing)


def test_the_limit_is_in_bytes() -> None:
    assert branch_name("x" * NAME_BYTES_MAX)
    assert branch_name("ü" * (NAME_BYTES_MAX // 2))


@pytest.mark.parametrize("path", ["_", "_4", "_zz", "a_", "_ff"])
def test_a_path_that_stands_for_no_name(path: str) -> None:
    with pytest.raises(NameInvalid):
        decode_name(path)


def test_every_letter_of_the_alphabet_has_a_way_back() -> None:
    for point in [*range(0x20, 0x250), 0x4E00, 0x1F333]:
        text = f"a{chr(point)}b"
        if unicodedata.category(chr(point)) != "Cc":
            name = branch_name(text)
            assert decode_name(encode_name(name)) == name
