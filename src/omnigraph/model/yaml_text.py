"""YAML that people write, read within bounds: plain data, no references that multiply, nothing constructed."""

from __future__ import annotations

from functools import cache
from typing import Any

YAML_BYTES_MAX = 1 << 20
NESTED_MAX = 64  # open brackets; the scanner looks at each of them for every further token
TOO_DEEP = "it is nested too deeply"


class YamlRefused(Exception):
    """A text is not YAML we read; the message says why."""


def read_yaml(text: str) -> Any:
    """The data a text stands for. A key that stands twice is refused: one of the two would be lost.

    >>> read_yaml("a: [1, two]")
    {'a': [1, 'two']}
    """
    import yaml

    if len(text) > YAML_BYTES_MAX:
        raise YamlRefused(f"it is larger than {YAML_BYTES_MAX} bytes")
    try:
        return _loader()(text).get_single_data()
    except (yaml.YAMLError, ValueError) as error:  # a date that does not exist is a ValueError
        raise YamlRefused(f"it is not YAML: {error}") from error
    except RecursionError:
        raise YamlRefused(TOO_DEEP) from None


@cache
def _loader() -> Any:
    import yaml

    class Plain(yaml.SafeLoader):  # type: ignore[misc]
        """Without references, a few lines of which can stand for gigabytes, and without deep nesting."""

        def fetch_flow_collection_start(self, token: Any) -> None:
            if self.flow_level >= NESTED_MAX:
                raise YamlRefused(TOO_DEEP)
            super().fetch_flow_collection_start(token)

        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):
                raise YamlRefused("references (`*name`) are not read: write the value again")
            return super().compose_node(parent, index)

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            seen: set[str] = set()
            for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
                if key.value in seen:
                    line = key.start_mark.line + 1
                    raise YamlRefused(f"the key {key.value!r} is given twice, again in line {line}")
                seen.add(key.value)
            return super().construct_mapping(node, deep)

    return Plain
