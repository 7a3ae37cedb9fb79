"""Graphs for agents: a table of tools, what they answer, and the protocols that carry them.

In the order of control flow:

- `protocol`    MCP: a server of the SDK for one `Toolbox`, over stdio or one HTTP request; the only importer of `mcp`
- `tools`       the table: every tool with its arguments, what it changes and what handles it
- `toolbox`     the context of a tool: a graph, provenance, stored queries, limits
- `reading`     tools that read: types, search, entities, neighbours, paths, queries, differences
- `writing`     tools that change, on the agent's own branch unless another one is given
- `reviewing`   tools for working with people: checks, proposals, comments, blame
- `arguments`   what tools take: structs whose schemas agents see
- `stored`      stored queries, and how an agent runs one
- `answers`     the format of answers and errors: small, counted, and text from data in data fields alone
- `resources`   texts to read: schema, stored queries, states of branches, the language on one page
- `prompts`     instructions for common tasks

- `retriever`   text, vectors and neighbourhood in one call, in plain Python
- `walking`     neighbours and shortest paths over every type of edge, whole frontiers at a time
- `langchain`, `llama_index`   the same for these tool boxes; each needs its extra

Everything goes through the verbs of a `Graph`, so a policy, a server and their limits hold for agents as for people.
"""

from omnigraph.agents.retriever import FoundNode, Retriever

__all__ = ["FoundNode", "Retriever"]
