"""What every parameter of the Python interface means: `help()`, notebooks and the reference say it in the same words.

A parameter that several verbs share is explained once, in `SHARED`. `OWN` has those of one verb, and those that mean
something else there. Verbs get them with their docstrings (see `verbs.verb`); a test sees that none is missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

HEADING = "Parameters:"

SHARED: Mapping[str, str] = {
    "actor": "who writes, as the commit will say. A server takes it from the token.",
    "allow_data_loss": "whether properties and types may be dropped together with their values.",
    "at": 'the point in time to read: a commit id, a tag, a branch, "main~2", a date or a datetime. None: the head.',
    "before": "the point to compare with, named as in `at`.",
    "branch": "the branch to read, or to write to.",
    "branches": "their names. None: all of them.",
    "commit": "the id of a commit, or any other name of one, such as a tag or `main~1`.",
    "dry_run": "do all of the work and every check, then publish nothing.",
    "edges": "the names of the edge types to follow.",
    "engine": '"local" works in this process, "spark" on Spark; "auto" decides by the size of the input.',
    "from_merge_base": "whether to leave out changes of `a` since the two diverged.",
    "head": "the id of the commit you looked at; if the branch has moved on since, the call is refused.",
    "id": "the id of the node or edge: its key, where it has one.",
    "idempotency_key": "any text you choose; a call repeated with the same key returns the first commit.",
    "if_commit": "the head the branch must still have; if it has moved on, the write is refused.",
    "into": "the branch that receives the changes.",
    "iterations": "how many rounds to run.",
    "language": '"gq" or "cypher", for texts that could be either. None: detected.',
    "limit": "how many to return at most, newest first.",
    "limits": "bounds on sizes, caches and retries; `dataclasses.replace(DEFAULT, …)` changes some.",
    "max_rows": "stop with an error once the result has more rows than this.",
    "message": "why, as `log` will show it.",
    "mode": '"merge" adds and changes rows, "append" only adds, "overwrite" replaces the types that are given.',
    "name": "which query of the text to run, where it has several.",
    "node": "the name of the node type to measure.",
    "number": "the number of the proposal.",
    "operations": 'which of "insert", "update" and "delete" to show. None: all three.',
    "params": "values of the query's parameters by name, without the `$`.",
    "property": "the name of the property.",
    "resolutions": 'decisions on conflicts: `{"type", "id", "field"}` with `"take"` ("ours" or "theirs") or `"value"`.',
    "source": "the branch whose changes to take.",
    "strategy": 'take "ours" or "theirs" in every conflict, or one of them by type: `{"Person": "theirs"}`.',
    "text": "the query or mutation, in `.gq` or in Cypher; a body alone (`match { … } return { … }`) is enough.",
    "timeout": "seconds after which to stop with an error. None: no limit.",
    "type": "the name of the node or edge type.",
    "types": "the names of the types. None: all of them.",
    "uri": 'a folder, `s3://bucket/prefix`, `memory://name`, or `https://server/graphs/id`.',
}  # fmt: skip

OWN: Mapping[str, Mapping[str, str]] = {
    "Analytics.degrees": {"direction": 'which edges count: "out", "in" or "both".'},
    "Analytics.distances": {"sources": "the ids of the nodes to start from."},
    "Analytics.pagerank": {"damping": "the probability of following an edge rather than jumping, from 0 to 1."},
    "Analytics.reach": {"hops": "the maximum number of steps."},
    "OmnigraphError.help_on": {"surface": '"cli" or "python": whose words to use.'},
    "Result.json_rows": {
        "first": "how many rows. None: all of them.",
        "safe_integers": "write integers JavaScript would round as text.",
    },
    "Result.to_batches": {"batch_rows": "how many rows a batch has at most."},
    "WriteBlock.load": {
        "digest": "identifies these rows under an idempotency key, if they can be read only once.",
        "source": "records, or rows by type, as `Graph.load` takes them.",
    },
    "apply_checks": {"text": "named queries in `.gq`, each with what it must return; an empty text removes all."},
    "apply_schema": {"text": "the whole schema in `.pg`, or the path of a file that ends in `.pg`."},
    "approve": {"text": "a remark beside the approval."},
    "branch": {"name": "the name of the branch."},
    "changes": {
        "after": "the id of the last commit you have seen. None: from the beginning.",
        "limit": "how many changes to return at most. None: all of them.",
    },
    "check": {
        "only": "the names of the checks to run. None: all of them.",
        "record": "whether to store the results with the commit.",
    },
    "cleanup": {
        "ended_days": "also remove the discussion of proposals that ended more than this many days ago.",
        "keep": "how many commits of each branch to keep in any case.",
        "older_than": "remove nothing younger than this: a `timedelta`, or a number of days.",
    },
    "clone": {
        "branch": "copy only the newest state of this branch, without history. None: everything.",
        "dest": "where to copy to; nothing may exist there yet.",
    },
    "close_proposal": {"text": "why it is closed."},
    "comment": {
        "id": "the row the comment is about, together with `type`.",
        "property": "the cell the comment is about, together with `type` and `id`.",
        "text": "what you want to say.",
        "type": "the type the comment is about. None: the proposal as a whole.",
    },
    "commit": {"id": "the id of the commit, or any other name of one, such as a tag or `main~1`."},
    "create_branch": {
        "from_": "where to start: a branch, or any point in time.",
        "name": "the name of the new branch.",
    },
    "delete_branch": {"name": "the branch to delete; `main` cannot be."},
    "delete_tag": {"name": "the tag to delete."},
    "diff": {
        "a": "the point to start from: a branch, tag, commit or time.",
        "b": "the point to arrive at.",
        "branch": "where times and `~2` are counted.",
    },
    "doctor": {"deep": "read every row and check it against the schema."},
    "embed": {
        "every": "recompute all vectors, including existing ones.",
        "property": "the name of one `@embed` property. None: all of them.",
    },
    "export": {
        "dest": "the folder to write to, on a disk or an object store.",
        "format": '"ndjson" (which loads again), "parquet", "arrow" or "csv".',
        "order": '"id" sorts rows by id. None: as they are stored.',
    },
    "infer": {
        "files": "paths of files of rows, or type names with a path each.",
        "options": "how to read the files: `omnigraph.Options`.",
    },
    "init": {"schema": "the schema in `.pg`, or the path of a file that ends in `.pg`."},
    "load": {
        "create_from": "make the branch from this one if it does not exist yet.",
        "options": "how to read the input, as `omnigraph.Options`: CSV format, time zone, quarantine, duplicates.",
        "progress": "called with the phase, the amount done and the total; it may raise to stop the load.",
        "source": "paths, records, or rows by type: `{\"Person\": \"people.csv\", \"Knows\": frame}`.",
        "violations": "a folder for the list of all violations. True: in Spark's log folder; False: none.",
    },
    "log": {
        "actor": "only commits by this actor.",
        "kind": 'only commits of this kind: "load", "mutation", "merge", "schema", …',
        "maintenance": "whether to show commits of maintenance, too.",
    },
    "maintain": {"branches": "the branches to work on. None: all of them."},
    "open": {
        "actor": "the actor the policy applies to, and the author of writes unless a call names another.",
        "group_commit": "let concurrent writers of this process share a commit.",
        "policy": "a file of rules. None: the one that is configured, if any.",
    },
    "plan_schema": {"text": "the whole schema in `.pg`, or the path of a file that ends in `.pg`."},
    "proposals": {
        "state": 'only those in this state: "open", "changes_wanted", "approved", "merged", "closed".',
        "target": "only those to be merged into this branch.",
    },
    "propose": {
        "reviewers": "who is asked to review it.",
        "source": "the branch to be merged.",
        "text": "what it does and why.",
        "title": "one line for lists.",
    },
    "publish": {
        "alone": "do not share a commit with other writers.",
        "create_from": "make the branch from this one by the same commit.",
        "deadline": "when to stop with an error.",
        "fingerprint": "identifies this write under its idempotency key.",
        "need": "what the policy must allow. None: changing the branch.",
        "verb": "a function from a transaction to a plan, such as `mutation` returns.",
    },
    "query": {
        "explain": "record what each step did; `result.explain()` shows it.",
        "settings": "the same as `set` lines, by name; lines of the text take precedence.",
    },
    "query_many": {
        "max_rows": "stop with an error once all results together have more rows than this.",
        "params": "a list with the parameters of each run.",
        "timeout": "seconds for all runs together. None: no limit.",
    },
    "request_changes": {"text": "what has to change."},
    "reset": {"to": "the point to reset the branch to: a commit, a tag, `main~2`, a time."},
    "set_retention": {
        "days": "remove nothing younger than this many days.",
        "every_hours": "how often maintenance runs.",
        "keep": "how many commits of each branch to keep in any case. None: everything.",
    },
    "spark": {"session": "your Spark session. None: the active one, or a new one."},
    "tag": {"at": "the commit to name. None: the head of the branch.", "name": "the name of the tag."},
    "merge_proposal": {"skip_checks": "merge although checks fail, where the policy does not demand them."},
    "upkeep": {"branches": "the branches to work on. None: all of them.", "every": "seconds between two runs."},
}  # fmt: skip


def meanings(path: str, names: Iterable[str]) -> dict[str, str]:
    """What the parameters of a verb ("load") or of a method ("Analytics.reach") mean; empty if undocumented."""
    own = OWN.get(path, {})
    return {name: own.get(name) or SHARED.get(name, "") for name in names}


def explained(doc: str, path: str, names: Iterable[str], indent: str = "        ") -> str:
    """A docstring with the parameters of its verb below it."""
    lines = "\n".join(f"{indent}    {k}: {v}" for k, v in meanings(path, names).items() if v)
    return f"{doc.rstrip()}\n\n{indent}{HEADING}\n{lines}\n{indent}" if lines else doc
