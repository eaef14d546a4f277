"""The jobs that run while faults happen, and the objects that make them. Pure.

A slot always holds one job: when that is complete the next one takes its place. A new mode is one more Slot.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from chaos import modes
from demo import manifests
from demo.manifests import Pace, Store, Workers

LEDGER: Final = "/ledger"
STEP_SECONDS: Final = 0.25
SAVE_SECONDS: Final = 2.0
"""Between saves, so that at most so much is done again after a loss without notice."""
STORE_TRIES: Final = 10
"""How often a worker asks a store that refuses: more than the longest outage lasts."""


@dataclass(frozen=True)
class Slot:
    """A place for one job after the other, all alike."""

    name: str
    mode: str
    workers: int
    floor: int
    steps: int
    parallelism: int = 0
    """Of an Independent job."""


SLOTS: Final = (
    Slot("solo", modes.GANG, workers=1, floor=0, steps=160),
    Slot("pair", modes.GANG, workers=2, floor=1, steps=120),
    Slot("trio", modes.GANG, workers=3, floor=1, steps=120),
    Slot("shards", modes.INDEPENDENT, workers=6, floor=1, steps=60, parallelism=3),
)


@dataclass(frozen=True)
class JobRun:
    """The job number `number` (from 1) of a slot."""

    slot: Slot
    number: int

    @property
    def name(self) -> str:
        """Of the object."""
        return f"{self.slot.name}-{self.number}"

    @property
    def removed_early(self) -> bool:
        """Whether it is deleted as soon as it is complete; the others stay until the end."""
        return self.number % 2 == 0


def program() -> dict[str, str]:
    """The files that the workers run."""
    return {"worker.py": (Path(__file__).parent / "programs" / "worker.py").read_text()}


def document(run: JobRun, workers: Workers, store: Store, ledger: Path) -> dict[str, Any]:
    """The SpotTrainingJob; `workers` and `store` are the demo's, `ledger` a folder that all nodes see."""
    slot = run.slot
    env = {
        "CHAOS_STEPS": str(slot.steps),
        "CHAOS_STEP_SECONDS": f"{STEP_SECONDS:g}",
        "CHAOS_LEDGER": LEDGER,
        "CHAOS_TOGETHER": "yes" if slot.mode == modes.GANG else "no",
        "SPOTTRAIN_SCRATCH": "/tmp",  # noqa: S108 - in the worker's container
        "SPOTTRAIN_STORE_TRIES": str(STORE_TRIES),
    }
    made = replace(workers, count=slot.workers, floor=slot.floor, gpus=1)
    found = manifests.job(run.name, made, store, Pace(interval=SAVE_SECONDS, env=env))
    found["spec"]["mode"] = slot.mode
    if slot.parallelism:
        found["spec"]["parallelism"] = slot.parallelism
    _fit(found["spec"]["template"]["spec"], ledger)
    return found


def _fit(pod: dict[str, Any], ledger: Path) -> None:
    """The demo's pod with our program and the ledger."""
    container = pod["containers"][0]
    container["command"] = ["python3", f"{manifests.PROGRAM_FOLDER}/worker.py"]
    node = {"fieldRef": {"fieldPath": "spec.nodeName"}}
    container["env"].append({"name": "CHAOS_NODE", "valueFrom": node})
    container["volumeMounts"].append({"name": "ledger", "mountPath": LEDGER})
    pod["volumes"].append({"name": "ledger", "hostPath": {"path": str(ledger), "type": "Directory"}})
