"""The schema language `.pg`: from text to a catalog with identities, and from one schema to the next.

In the order of control flow:

- `words`     keywords, types, annotations, and common alternatives for them
- `parser`    text to tree (`ast`), with `types` for types and values; its docstrings are the grammar
- `check`     tree to draft: every rule, with `members` for properties, `rules` for constraints, `values` for literals
- `identity`  draft to `ir`: identities that survive renames; `ir` is also the stored JSON
- `migrate`   two schemas to `steps`
- `merge`     three schemas to one, or to conflicts
- `format`    tree to canonical text, comments included; `unparse` prints a stored schema
- `translate` schemas of other graph databases to text
- `codes`     the catalogue of codes
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import omnigraph.lang.schema.codes  # noqa: F401  diagnostics look their codes up in the catalogue
from omnigraph.lang.diagnostics import Diagnostic, Diagnostics
from omnigraph.lang.schema.ir import SchemaIR, catalog_of, decode_ir, encode_ir
from omnigraph.lang.source import Source

if TYPE_CHECKING:
    from omnigraph.lang.schema.ast import Schema
    from omnigraph.lang.schema.check import Draft
    from omnigraph.lang.schema.merge import SchemaConflict, SchemaMerge, merge_schemas
    from omnigraph.lang.schema.migrate import MigrationPlan, SchemaChangeRefused
    from omnigraph.lang.schema.unparse import schema_to_text

__all__ = [
    "MigrationPlan",
    "Schema",
    "SchemaChangeRefused",
    "SchemaConflict",
    "SchemaIR",
    "SchemaMerge",
    "catalog_of",
    "check_schema",
    "compile_schema",
    "decode_ir",
    "encode_ir",
    "format_schema",
    "lint_schema",
    "merge_schemas",
    "parse_schema",
    "plan_migration",
    "schema_to_text",
]
# A query needs a stored schema but not the language: the modules for texts are imported with the first text.
_LAZY = {
    "MigrationPlan": "migrate",
    "Schema": "ast",
    "SchemaChangeRefused": "migrate",
    "SchemaConflict": "merge",
    "SchemaMerge": "merge",
    "merge_schemas": "merge",
    "schema_to_text": "unparse",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_LAZY[name]}"), name)


def parse_schema(text: str, name: str = "") -> Schema:
    """The tree of a schema text; raises `LanguageError` with every syntax error.

    >>> parse_schema("node Person { name: String }").declarations[0].kind
    'node'
    """
    from omnigraph.lang.schema.parser import Parser

    diagnostics = Diagnostics(Source(text, name))
    schema = Parser(diagnostics).schema()
    diagnostics.raise_errors()
    return schema


def check_schema(text: str, name: str = "") -> tuple[Diagnostic, ...]:
    """Check a schema text: raises `LanguageError` with every error, returns the warnings.

    >>> [d.code for d in check_schema("node Person { name: String @indx }")]
    ['S30']
    """
    diagnostics = Diagnostics(Source(text, name))
    _draft(diagnostics)
    return diagnostics.sorted()


def lint_schema(text: str, name: str = "") -> tuple[Diagnostic, ...]:
    """All errors and warnings of a schema text, without raising."""
    diagnostics = Diagnostics(Source(text, name))
    _checked(diagnostics)
    return diagnostics.sorted()


def compile_schema(text: str, *, accepted: SchemaIR | None = None, name: str = "") -> SchemaIR:
    """The schema of a text with identities; those of `accepted` are kept.

    >>> compile_schema("node Person { name: String @key }").nodes[0].table_id
    'n1'
    """
    from omnigraph.lang.schema.identity import identify

    diagnostics = Diagnostics(Source(text, name))
    ir = identify(accepted, _draft(diagnostics), diagnostics)
    diagnostics.raise_errors()
    return ir


def plan_migration(
    accepted: SchemaIR, text: str, *, allow_data_loss: bool = False, name: str = ""
) -> MigrationPlan:
    """The migration of a graph from its schema to that of a text; `compile_schema` makes the schema it leads to."""
    from omnigraph.lang.schema.identity import identify
    from omnigraph.lang.schema.migrate import MigrationPlan, compare
    from omnigraph.lang.schema.steps import UnsupportedChange

    diagnostics = Diagnostics(Source(text, name))
    desired = identify(accepted, _draft(diagnostics), diagnostics)
    diagnostics.raise_errors()
    steps = compare(accepted, desired, allow_data_loss=allow_data_loss)
    supported = not any(isinstance(step, UnsupportedChange) for step in steps)
    return MigrationPlan(supported, steps, diagnostics.sorted())


def format_schema(text: str, name: str = "") -> str:
    """A schema text in canonical form; comments survive.

    >>> print(format_schema("node A{b:I32? c:String@key}"), end="")
    node A {
      b: I32?
      c: String @key
    }
    """
    from omnigraph.lang.schema.format import print_schema

    return print_schema(parse_schema(text, name))


def _draft(diagnostics: Diagnostics) -> Draft:
    draft = _checked(diagnostics)
    diagnostics.raise_errors()
    return draft


def _checked(diagnostics: Diagnostics) -> Draft:
    from omnigraph.lang.schema.check import Checker
    from omnigraph.lang.schema.parser import Parser

    return Checker(Parser(diagnostics).schema(), diagnostics).check()
