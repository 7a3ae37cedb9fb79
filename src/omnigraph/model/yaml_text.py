"""Handwritten YAML, read within bounds: plain data, no references that multiply, no object construction."""

from __future__ import annotations

from functools import cache
from typing import Any

YAML_BYTES_MAX = 1 << 20
NESTED_MAX = 64  # nesting of lists and mappings


class YamlRefused(Exception):
    """A text is not YAML we read; the message says why."""


def read_yaml(text: str) -> Any:
    """The data of a text. A duplicate key is refused: one of the two would be lost.

    >>> read_yaml("a: [1, two]")
    {'a': [1, 'two']}
    """
    import yaml

    if len(text) > YAML_BYTES_MAX:
        raise YamlRefused(f"it is larger than {YAML_BYTES_MAX} bytes")
    try:
        _look_through(text)
        return _loader()(text).get_single_data()
    except (yaml.YAMLError, ValueError) as error:  # a date that does not exist is a ValueError
        raise YamlRefused(f"it is not YAML: {error}") from error


def _look_through(text: str) -> None:
    """Refuse references, a few lines of which can stand for gigabytes, and deep nesting, before anything is built."""
    import yaml

    depth = 0
    for event in yaml.parse(text, Loader=_loader()):
        if isinstance(event, yaml.AliasEvent):
            raise YamlRefused("references (`*name`) are not read: write the value again")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > NESTED_MAX:
                raise YamlRefused("it is nested too deeply")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


@cache
def _loader() -> Any:
    import yaml

    class Plain(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
        """In C if PyYAML has it, which takes a quarter of the time, including the scan beforehand."""

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            seen: set[str] = set()
            for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
                if key.value in seen:
                    line = key.start_mark.line + 1
                    raise YamlRefused(f"the key {key.value!r} is duplicated in line {line}")
                seen.add(key.value)
            return super().construct_mapping(node, deep)

    return Plain
