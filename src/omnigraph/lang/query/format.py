"""The canonical text of a file: two spaces per level, one clause per line, comments where they were.

A comment stays before what it was before or inside of, or after the line it ended. Single blank lines between
clauses and statements are kept; queries stand one blank line apart.
"""

from __future__ import annotations

from collections.abc import Sequence

from omnigraph.lang.query import ast
from omnigraph.lang.query.unparse import (
    format_block,
    format_clause,
    format_expr,
    format_fields,
    format_header,
    format_ordering,
    format_projection,
    format_setting,
    format_statement,
)
from omnigraph.lang.source import Place

INDENT = "  "
LINE_CHARS_MAX = 100


def print_queries(tree: ast.QueryFile, text: str) -> str:
    """The canonical text of a tree that was read from `text`."""
    return _Printer(tree, text).print()


class _Printer:
    def __init__(self, tree: ast.QueryFile, text: str) -> None:
        self.tree = tree
        self.text = text
        self.comments = list(reversed(tree.comments))  # the next one last
        self.lines: list[str] = []
        self.end = 0  # how far the source has been printed
        self.params: frozenset[str] = frozenset()  # of the query being printed
        self.fresh = True  # no blank line is needed: at the start, or in an opened block

    def print(self) -> str:
        for setting in self.tree.settings:
            self.line(0, format_setting(setting), setting.at, gap=True)
        statement = self.tree.statement
        if statement is not None and not self.tree.queries:
            self.line(0, format_statement(statement), statement.at, gap=True)
        for query in self.tree.queries:
            self.query(query)
        self.flush(len(self.text) + 1, 0)
        return "\n".join(self.lines) + "\n" if self.lines else ""

    # --- lines and comments ---

    def line(self, level: int, text: str, at: Place, *, gap: bool = False) -> None:
        """Print a line; the comments before and inside its place go first."""
        self.flush(at.end, level)
        if gap and not self.fresh and self.has_gap(at.start):
            self.lines.append("")
        self.lines.append(INDENT * level + text)
        self.end, self.fresh = max(self.end, at.end), False

    def has_gap(self, start: int) -> bool:
        return self.text[self.end : start].count("\n") > 1

    def open(self, level: int, text: str, at: Place, *, gap: bool = False) -> None:
        self.line(level, text, at, gap=gap)
        self.fresh = True

    def close(self, level: int, end: int, text: str = "}") -> None:
        """Print a closing brace; the comments before it still belong to the block."""
        self.flush(end, level + 1)
        self.lines.append(INDENT * level + text)
        self.end, self.fresh = max(self.end, end), False

    def flush(self, before: int, level: int) -> None:
        """Print the comments up to an offset: after the last line if they ended it, else on separate lines."""
        while self.comments and self.comments[-1].start < before:
            comment = self.comments.pop()
            written = comment.text.rstrip()
            if self.lines and self.lines[-1] and "\n" not in self.text[self.end : comment.start]:
                self.lines[-1] += " " + written
            else:
                if not self.fresh and self.has_gap(comment.start):
                    self.lines.append("")
                self.lines.append(INDENT * level + written)
                self.fresh = False
            self.end = max(self.end, comment.end)

    def after(self, brace: str, start: int) -> int:
        """The end of the next such brace outside comments."""
        at = self.text.index(brace, start)
        for comment in reversed(self.comments):
            if comment.start > at:
                break
            if at < comment.end:
                at = self.text.index(brace, comment.end)
        return at + 1

    def has_comment(self, at: Place) -> bool:
        return any(at.start <= c.start < at.end for c in self.comments)

    # --- queries ---

    def query(self, query: ast.Query) -> None:
        self.params = frozenset(p.name for p in query.params)
        self.flush(query.name_at.end, 0)
        if self.lines and not self.lines[-1].lstrip().startswith(("//", "/*")):
            self.lines.append("")
        prefix = "explain " if self.tree.statement is not None else ""
        self.open(0, prefix + format_header(query), Place(query.at.start, query.name_at.end))
        self.flush(query.body.at.start, 1)
        match query.body:
            case ast.Read():
                self.read(query.body)
            case ast.Mutation(statements):
                for statement in statements:
                    self.statement(statement)
        self.close(0, query.at.end)

    def read(self, read: ast.Read) -> None:
        joins = ["", *("union all" if keep else "union" for keep in read.keeps_duplicates)]
        for branch, word in zip(read.branches, joins, strict=True):
            if word:
                self.line(1, word, Place(branch.at.start, branch.at.start))
            self.branch(branch)
        if read.order:
            parts = [(format_ordering(o), o.at) for o in read.order]
            self.listed(1, "order {", parts, "}", comma=True)
        for word, count in (("skip", read.skip), ("limit", read.limit)):
            if count is not None:
                self.line(1, f"{word} {format_expr(count)}", count.at)

    def branch(self, branch: ast.ReadBranch) -> None:
        self.open(1, "match {", Place(branch.at.start, branch.at.start))
        self.clauses(branch.clauses, 2)
        self.close(1, self.after("}", branch.clauses[-1].at.end if branch.clauses else self.end))
        word = "return distinct {" if branch.distinct else "return {"
        self.listed(1, word, [(format_projection(p), p.at) for p in branch.projections], "}")
        if branch.having:
            parts = [(format_expr(e), e.at) for e in branch.having]
            self.listed(1, "having {", parts, "}")

    def clauses(self, clauses: Sequence[ast.Clause], level: int) -> None:
        for clause in clauses:
            match clause:
                case ast.Block(clauses=inner):
                    start = Place(clause.at.start, clause.at.start + 1)
                    opening, closing = format_block(clause)
                    self.open(level, opening, start, gap=True)
                    self.clauses(inner, level + 1)
                    self.close(level, clause.at.end, closing)
                case _:
                    self.line(level, format_clause(clause, self.params), clause.at, gap=True)

    def listed(
        self,
        level: int,
        opening: str,
        parts: list[tuple[str, Place]],
        closing: str,
        *,
        comma: bool = True,
    ) -> None:
        """Parts between braces: on one line if they fit and no comment is among them."""
        opened = self.after("{", self.end)
        whole = Place(opened, self.after("}", parts[-1][1].end if parts else opened))
        short = f"{opening} {', '.join(text for text, _ in parts)} {closing}"
        fits = len(INDENT * level + short) <= LINE_CHARS_MAX and "\n" not in short
        if fits and not self.has_comment(whole):
            self.line(level, short, whole)
            return
        self.open(level, opening, Place(opened, opened))
        for index, (text, at) in enumerate(parts):
            last = index == len(parts) - 1
            self.line(level + 1, text if last or not comma else f"{text},", at)
        self.close(level, whole.end, closing)

    # --- statements ---

    def statement(self, node: ast.Statement) -> None:
        match node:
            case ast.Insert(name, rows):
                self.insert(f"insert {name}", rows, node.at)
            case ast.Update(name, fields, where):
                self.update(name, fields, format_expr(where), node)
            case ast.Delete(name, where):
                self.line(1, f"delete {name} where {format_expr(where)}", node.at, gap=True)

    def update(
        self, name: str, fields: tuple[ast.Field, ...], where: str, node: ast.Update
    ) -> None:
        opening, condition = f"update {name} set" + " {", f"where {where}"
        short = f"{opening} {format_fields(fields)} }} {condition}"
        if len(short) + len(INDENT) <= LINE_CHARS_MAX:
            self.line(1, short, node.at, gap=True)
        else:
            self.assignments(opening, fields, node.at)
            self.line(1, condition, node.where.at)

    def insert(self, opening: str, rows: tuple[ast.Row, ...], at: Place) -> None:
        texts = [f"{{ {format_fields(row.fields)} }}" for row in rows]
        short = f"{opening} {', '.join(texts)}"
        if len(short) + len(INDENT) <= LINE_CHARS_MAX:
            self.line(1, short, at, gap=True)
        elif len(rows) == 1:
            self.assignments(f"{opening} {{", rows[0].fields, at)
        else:
            self.open(1, opening, Place(at.start, at.start + 1), gap=True)
            for index, (row, text) in enumerate(zip(rows, texts, strict=True)):
                self.line(2, text if index == len(rows) - 1 else f"{text},", row.at)

    def assignments(self, opening: str, fields: tuple[ast.Field, ...], at: Place) -> None:
        """Values one per line, when they do not fit on one."""
        self.open(1, opening, Place(at.start, at.start + 1), gap=True)
        for index, part in enumerate(fields):
            last = index == len(fields) - 1
            text = f"{part.name}: {format_expr(part.value)}"
            self.line(2, text if last else f"{text},", part.at)
        self.close(1, self.after("}", fields[-1].at.end) if fields else self.end)
