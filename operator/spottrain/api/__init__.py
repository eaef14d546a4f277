"""The words of the system: names, the parsed resource, its status, conditions and reasons, marks of clouds.

Pure and frozen. Dictionaries from the API server are parsed into these types once, in `kube`.
"""
