"""Temporal values: durations, times with and without a zone, and operations on them.

- `calendar`    days, weeks and months of any year, in whole numbers
- `names`       of kinds and operations
- `kinds`       what each value holds, its text, and its bytes, which are ordered as the values are
- `zones`       offsets and zones of the zone database
- `making`      values from their parts
- `reading`     values from their texts
- `parts`       their parts by name
- `arithmetic`  sums, truncation, and the durations between them
- `operations`  all of this by name: what expressions are evaluated with
"""
