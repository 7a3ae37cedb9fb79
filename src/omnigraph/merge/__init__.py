"""Comparing and merging states of a graph: what changed, what two branches did, and how to publish both.

In the order of control flow:

- `lineage`    which commits of every chain a commit includes, merge bases, and the commits between two
- `schema_view` a table in the columns of another version of its type
- `rows`       the rows in which two versions of a table differ; its cost follows the change
- `changed`    the same for two commits, by their summaries if fragments are not enough; and new summaries
- `diff`       two states compared for people
- `three_way`  base, ours and theirs to what happens to ours, row by row and field by field
- `conflicts`  incompatible changes of both sides, and decisions about them
- `lost_cells` values the merged schema has no place for
- `resolution` the merged image judged by the one evaluator, and decisions applied until it is valid
- `adopt`      from a merged image to actions: versions taken over where they fit, changed rows elsewhere
- `feed`       the changes of a branch, commit by commit; `row_history` those of one row
- `blame`      who wrote the values of a row, cell by cell
"""
