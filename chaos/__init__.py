"""Random faults, from a seed, against jobs on the lab's real kubelets, and a ledger of the work they do.

`make chaos`; docs/chaos.md says what is done and what is judged.
"""
