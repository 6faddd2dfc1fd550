"""Commands that change a running broker, asked over the control socket (`harebell users ...`).

A command is a name, the fields that it takes (a `msgspec.Struct`) and a function; each module here
has those of one noun. `desk.Desk` finds them and waits until what they changed is on disk.
"""
