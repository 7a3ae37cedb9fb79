"""YAML that people write: plain data within bounds, and a sentence for everything else."""

from __future__ import annotations

import pytest

from omnigraph.model.yaml_text import YAML_BYTES_MAX, YamlRefused, read_yaml


def test_plain_data_is_read() -> None:
    assert read_yaml("a: [1, 2.5, x]\nb: {c: true, d: null}") == {
        "a": [1, 2.5, "x"],
        "b": {"c": True, "d": None},
    }


MULTIPLYING = "a: &a [x, x]\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [{', '.join(['*' + chr(97 + n)] * 9)}]\n" for n in range(9)
)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (MULTIPLYING, "references"),
        ("[" * 50_000, "nested"),
        ("x: " + "y" * YAML_BYTES_MAX, "larger"),
        ("day: 2020-13-45", "not YAML"),
        ("a: !!python/object/apply:os.system [ls]", "not YAML"),
        ("a: 'open", "not YAML"),
        ("a: \ud800", "not YAML"),
    ],
)
def test_everything_else_is_refused(text: str, why: str) -> None:
    with pytest.raises(YamlRefused, match=why):
        read_yaml(text)
