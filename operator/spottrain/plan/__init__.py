"""Decisions: a snapshot of one job in, a plan out. Pure: no clock, client, logger, randomness or kopf."""
