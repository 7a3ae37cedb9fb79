"""How long the languages take: `python -m benchmarks.languages`.

Prints the median of several runs. Budgets: a schema of 2,000 lines parses and checks within 60 ms.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

from omnigraph.lang.schema import check_schema, compile_schema, encode_ir, format_schema

RUNS = 15


def schema_of(types: int) -> str:
    """A schema as people write them: ten lines per type, keys, enums, ranges, edges, comments."""
    head = "interface Named {\n  name: String @index\n}\n"
    return head + "".join(_type_text(i) for i in range(types))


def _type_text(i: int) -> str:
    return (
        f"// What the warehouse knows about kind {i}.\n"
        f'node Item{i} @description("kind {i}") implements Named {{\n'
        f"  code: String @key\n"
        f"  price: F64?\n"
        f"  state: enum(open, held, closed)\n"
        f"  tags: [String]?\n"
        f"  seen: DateTime? @index\n"
        f"  @range(price, 0.0..1000.0)\n"
        f"}}\n"
        f"edge Next{i}: Item{i} -> Item{max(0, i - 1)} @card(0..1)\n"
    )


def median_ms(work: Callable[[], object]) -> float:
    """The median time of several runs, in milliseconds."""
    times = []
    for _ in range(RUNS):
        started = time.perf_counter()
        work()
        times.append((time.perf_counter() - started) * 1000)
    return statistics.median(times)


def schemas() -> None:
    text = schema_of(200)
    ir = compile_schema(text)
    print(f"schema of {text.count(chr(10))} lines, {len(text)} characters")
    print(f"  parse and check {median_ms(lambda: check_schema(text)):8.1f} ms  (budget 60 ms)")
    print(f"  format          {median_ms(lambda: format_schema(text)):8.1f} ms")
    print(f"  compile         {median_ms(lambda: compile_schema(text)):8.1f} ms")
    print(f"  encode          {median_ms(lambda: encode_ir(ir)):8.1f} ms")


def main() -> None:
    schemas()


if __name__ == "__main__":
    main()
