"""The protocol as a model, explored state by state: every interleaving, crash and lost answer within small bounds.

`explorer` runs processes over a store and looks at every state. `protocol` is what the core does, request by request;
each rule it follows has a name and can be left out. `scenarios` say who meets whom, and where leaving a rule out shows.
`steps` compares the requests of the model with those of the real core, so that neither can change alone.
"""
