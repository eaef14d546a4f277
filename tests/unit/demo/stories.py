"""Runs for the tests, made of the very log lines that workers write."""

from demo import lines
from demo.facts import Attempt, Fault, Member, Run

WORKERS = 3
START = 1_795_966_400.0
"""When the first step of the first attempt was done; a step takes 0.1 s."""


def log(steps: range, *, began: float, saves: tuple[int, ...] = (), fresh: bool = False) -> list[str]:
    """What rank 0 writes while it does `steps`, the first of them at `began`."""
    first = steps.start
    resumed = f"step={first - 1} next_step={first}" if not fresh else "next_step=0"
    event = "fresh" if fresh else "restored"
    found = [f"spottrain: a sentence event={event} {resumed} rank=0 time={began - 1:.3f}"]
    for step in steps:
        time = began + (step - first) / 10
        found.append(f"step={step} loss=0.5321 time={time:.3f} rank=0")
        if step in saves:
            found.append(
                f"spottrain: saved step {step} in 0.04 s event=saved step={step} time={time + 0.05:.3f}"
            )
    return found


def attempt(
    number: int,
    steps: range,
    *,
    began: float,
    saves: tuple[int, ...] = (),
    final: str = "",
    nodes: tuple[str, ...] = ("od-1", "spot-1", "spot-2"),
    cause: str = "Reclaimed",
) -> Attempt:
    """An attempt of three members that all report each step."""
    texts = log(steps, began=began, saves=saves, fresh=number == 1)
    last = [f"2026-11-29T15:34:30.325573678Z final_loss={final}"] if final else []
    members = [
        Member(
            index=index,
            attempt=number,
            pod=f"digits-{index}-{number}",
            node=node,
            capacity="on-demand" if node.startswith("od") else "spot",
            running=began - 10,
            said=lines.parse_all([*texts, *last] if index == 0 else texts),
        )
        for index, node in enumerate(nodes)
    ]
    return Attempt(number, tuple(members), cause=cause)


def fault(kind: str, attempt: int, *, step: int, time: float, node: str = "spot-1", rank: int = 1) -> Fault:
    """A fault, at a step and a time."""
    return Fault(kind, attempt, node, rank, step, time)


def run(
    *attempts: Attempt, faults: tuple[Fault, ...] = (), phase: str = "Complete", name: str = "digits"
) -> Run:
    """A run of three workers that saves every 5 s."""
    return Run(name, WORKERS, 5.0, attempts=attempts, faults=faults, phase=phase)


def as_it_should_be() -> Run:
    """Told at step 70 with all saved, killed at step 135 with 108 saved, and complete."""
    told, killed = START + 7, START + 40
    return run(
        attempt(1, range(71), began=START, saves=(41, 70), cause="Initial"),
        attempt(2, range(71, 136), began=START + 30, saves=(108,)),
        attempt(3, range(109, 300), began=START + 70, saves=(150, 192, 299), final="0.1445"),
        faults=(
            fault("notice", 1, step=68, time=told),
            fault("kill", 2, step=134, time=killed, node="spot-2", rank=2),
        ),
    )


def unbroken(final: str = "0.1445") -> Run:
    """The run to compare with."""
    return run(attempt(1, range(300), began=START, saves=(299,), final=final), name="digits-unbroken")
