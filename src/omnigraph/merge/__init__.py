"""Comparing and merging states of a graph: what changed, what two branches did, and how to publish both.

In the order of control flow:

- `lineage`    what a commit knows of every chain, the merge base of two commits, and the commits between them
- `schema_view` a table in the columns of another version of its type
- `rows`       the rows in which two versions of a table differ; its cost follows the change
- `changed`    the same for two commits, by their summaries where fragments say too little; and new summaries
- `diff`       two states compared for people
- `three_way`  base, ours and theirs to what happens to ours, row by row and field by field
- `conflicts`  what both sides did that cannot both stay, and what somebody decided about it
- `lost_cells` values the merged schema has no place for
- `resolution` the merged image judged by the one evaluator, and decisions applied until it stands
- `adopt`      from a merged image to actions: versions taken over where they fit, changed rows elsewhere
- `feed`       the changes of a branch, commit by commit; `row_history` those of one row
- `blame`      who wrote what a row says, cell by cell
"""
