"""Tokens: where they come from, what is refused, and how they are renewed."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from omnigraph.server import access
from omnigraph.server.access import Identity, Unauthenticated
from omnigraph.server.settings import ServerInvalid


def test_tokens_come_from_the_environment() -> None:
    found = Identity(
        None,
        {
            "OMNIGRAPH_SERVER_BEARER_TOKEN": " one ",
            "OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": '{"ada": "two"}',
        },
    )
    assert found.actor("Bearer one") == "default"
    assert found.actor("Bearer two") == "ada"


def test_without_tokens_nobody_is_asked() -> None:
    found = Identity(None, {})
    assert (found.required, found.actor(None)) == (False, None)


@pytest.mark.parametrize(
    "header", [None, "", "bearer one", "Bearer", "Bearer  one", "Basic b25l", "Bearer two"]
)
def test_headers_that_convince_nobody(header: str | None) -> None:
    with pytest.raises(Unauthenticated):
        Identity(None, {"OMNIGRAPH_SERVER_BEARER_TOKEN": "one"}).actor(header)


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '[["a", "secret-token"]]',
        '{"a": 1}',
        '{"": "secret-token"}',
        '{"a": " "}',
        '{"a": "secret-token", "a": "other"}',
        '{"a": "secret-token", "b": "secret-token"}',
        '{"a": {"b": "secret-token"}}',
    ],
)
def test_bad_files_are_refused_without_quoting_them(text: str) -> None:
    with pytest.raises(ServerInvalid) as failure:
        Identity(None, {"OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": text})
    assert "secret-token" not in failure.value.render()


def test_plain_tokens_are_not_kept() -> None:
    found = Identity(None, {"OMNIGRAPH_SERVER_BEARER_TOKEN": "secret-token"})
    assert "secret-token" not in repr(vars(found))


def test_a_changed_file_takes_over_without_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access, "LOOK_SECONDS", 0.0)
    file = tmp_path / "tokens.json"
    file.write_text(json.dumps({"ada": "old"}))
    found = Identity(str(file), {})
    assert found.actor("Bearer old") == "ada"
    _replace(file, json.dumps({"ada": "new"}))
    assert found.actor("Bearer new") == "ada"
    with pytest.raises(Unauthenticated):
        found.actor("Bearer old")
    _replace(file, "{ half a file")
    assert found.actor("Bearer new") == "ada", "a file that cannot be read locks everybody out"


def _replace(file: Path, text: str) -> None:
    fresh = file.with_suffix(".new")
    fresh.write_text(text)
    os.replace(fresh, file)


def test_the_holder_of_a_secret_is_taken_at_their_word_and_nobody_else() -> None:
    secret = "x" * 24
    header = f"Bearer {secret}"
    asked = Identity(None, {}, secret)
    assert asked.actor(header) is None
    assert asked.actor(header, "Ida%20S%C3%A1enz") == "Ida Sáenz"
    assert len(asked.actor(header, "x" * 5000) or "") == 100
    known = Identity(None, {}, secret, holder="ida")
    assert known.actor(header, "somebody else") == "ida"
    tokens = Identity(None, {"OMNIGRAPH_SERVER_BEARER_TOKEN": "one"})
    assert tokens.actor("Bearer one", "admin") == "default"
