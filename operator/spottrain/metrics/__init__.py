"""Metrics of the operator, each name declared once. Labels are bounded: never a pod, node, UID or event."""
