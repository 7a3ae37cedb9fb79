"""A comparison of graph stores: one social network, the same questions to every engine, every answer checked.

What comes in is a size; what goes out are times. In the order of control flow:

gen         the network, as Arrow tables, from one seeded generator
oracle      its answers, from plain numpy
jobs        the questions: parameters, wanted answers, and the ratio to the best peer that is aimed at
engine      the parent's handle on an engine in a process of its own
worker      that process: reads requests as lines of JSON, times the calls itself
adapters    what an engine has to do: load files, answer a job
report      tables of times and ratios
"""
