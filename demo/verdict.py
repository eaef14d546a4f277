"""Whether the run ended as if nothing had happened, and if not, in what it fell short. Pure."""

from demo import facts
from demo.facts import Run

LEAST_ATTEMPTS = 3


def shortcomings(broken: Run, unbroken: Run) -> list[str]:
    """A sentence for each thing that is not as it must be; empty: all is well."""
    found = [*_end(unbroken), *_end(broken)]
    if broken.completed and unbroken.completed:
        found += _loss_differs(broken, unbroken)
    if len(broken.attempts) < LEAST_ATTEMPTS:
        found.append(
            f"{broken.name} took {len(broken.attempts)} attempts, at least {LEAST_ATTEMPTS} were expected: "
            "a fault struck nobody"
        )
    for attempt in broken.attempts:
        if not attempt.agrees:
            found.append(f"the members of attempt {attempt.number} resumed at different steps")
    for loss in broken.losses():
        found += _lost_too_much(loss)
    return found


def _end(run: Run) -> list[str]:
    if run.completed:
        return []
    why = f": {run.message}" if run.message else ""
    return [f"{run.name} did not complete, it is {run.phase or 'without any status'}{why}"]


def _loss_differs(broken: Run, unbroken: Run) -> list[str]:
    silent = [run.name for run in (unbroken, broken) if run.final_loss is None]
    if silent:
        return [f"the workers of {' and '.join(silent)} named no final loss, or not the same one"]
    if broken.final_loss != unbroken.final_loss:
        return [f"the final loss is {broken.final_loss}, in the unbroken run it is {unbroken.final_loss}"]
    return []


def _lost_too_much(loss: facts.Loss) -> list[str]:
    what = f"the {loss.fault.kind} of {loss.fault.node}"
    if loss.lost_steps is None:
        missing = "the last step before it" if loss.last_step is None else "where the next attempt resumed"
        return [f"what {what} cost is unknown: no worker's log says {missing}"]
    if loss.fault.kind in facts.WITH_NOTICE:
        return [f"{what} cost {loss.lost_steps} steps, none was allowed"] if loss.lost_steps else []
    if loss.interval_steps is None:
        return [f"how many steps make a checkpoint interval is unknown, so {what} cannot be judged"]
    if loss.lost_steps > loss.interval_steps:
        allowed = f"the {loss.interval_steps} of one checkpoint interval"
        return [f"{what} cost {loss.lost_steps} steps, more than {allowed}"]
    return []
