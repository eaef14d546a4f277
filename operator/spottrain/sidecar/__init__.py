"""Checkpoints of programs that don't use the library: they are brought to a directory, and taken from there.

    restore   (init container) waits for `go`, takes the attempt's place in the lineage, fills the directory
    watch     (native sidecar) stores each checkpoint that the program completes there, the last after its end

Both keep to the protocol of docs/checkpoint-format.md, with the code that the library uses.
"""
