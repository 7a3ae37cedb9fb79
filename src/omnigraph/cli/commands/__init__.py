"""One command, one module, one `COMMAND`: a verb, or a group of verbs. `app.SECTIONS` lists them.

Heavy packages are imported when a command runs.
"""
