"""Atomic versions of a whole graph, on any store, by any number of processes.

    verb(txn) -> PublishPlan -> stage -> one create-only object -> Commit

In the order a write meets them: `repository` knows where branches are; `snapshot` is one pinned state, and `txn` is
that state as a verb sees it, `overlaid` as queries see it during a write; `plan` is what the verb returns;
`group` folds writers of a process together; `stage` writes unpublished table versions; `publisher` creates the next
object of the chain, the only moment anything becomes visible, after `verify` has verified the state it would publish;
`footprints` and `conflicts` decide what a writer that lost may do, and `room` is the last resort of one that lost
often; `refusals` are the errors of what was not published; `idempotency` makes repeated requests harmless;
`first_commit` is a write that creates its own branch.

Around it: `records` are the stored objects and `layout` their keys; `chain` reads them; `branches` and `history` are
names and points in time; `proposals` are branches offered for merging, and `check_results` results of checks; `create`
makes a graph; `leases` protect long operations from collection; `commit_time` gives commits their times; `clock` is
time, randomness and deadlines. Removing unreferenced objects is maintenance's job.
"""
