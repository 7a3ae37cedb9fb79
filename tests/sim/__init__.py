"""Simulated worlds: the real core over dictionaries, interleaved, disturbed and judged, all from one seed.

`scheduler` gives one actor at a time the turn, at every request to the store, and brings the disturbances. `actors` are
the workloads. `judge` looks at what became of the graph and at what the actors were told. `planted` are bugs put into
the core on purpose: a judge that does not catch them is no judge. `world` puts one run together.
"""
