"""The grammar of a language, read from the docstrings of its parser.

A parser method whose docstring starts with a rule (`name = … ;`) implements that rule; the reference manuals show the
rules in the order of the methods, so that manual and parser cannot drift apart.
"""

from __future__ import annotations

import re

RULE = re.compile(r"^(?P<name>[a-z_]+)\s*=\s*(?P<body>.*?;)(?:\s|$)", re.DOTALL)
WIDTH = 100


def grammar_of(*parsers: type) -> str:
    """The rules of some parser classes, one per paragraph line, aligned at the equals sign."""
    rules: dict[str, str] = {}
    for parser in parsers:
        for method in vars(parser).values():
            match = RULE.match(getattr(method, "__doc__", None) or "")
            if match is not None:
                rules[match["name"]] = " ".join(match["body"].split())
    width = max(map(len, rules), default=0)
    return "\n".join(_wrap(f"{name:<{width}} = {body}", width + 3) for name, body in rules.items())


def _wrap(line: str, indent: int) -> str:
    """A long rule goes on below its own right side; it is broken between alternatives where there are any."""
    lines: list[str] = []
    while len(line) > WIDTH:
        cut = max(line.rfind(" | ", indent, WIDTH), line.rfind(" [ ", indent, WIDTH))
        if cut <= indent:
            cut = line.rfind(" ", indent, WIDTH)
        if cut <= indent:
            break
        lines.append(line[:cut])
        line = " " * indent + line[cut + 1 :]
    return "\n".join([*lines, line])
