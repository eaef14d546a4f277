"""Kubernetes objects as plain dictionaries, from the spec and what a plan asks for. Pure."""
