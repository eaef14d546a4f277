"""The specification as an ordered list: what is true of the job, checked from top to bottom.

Each policy is named as a statement. It adds to the draft and returns True when nothing below it applies. A
job whose spec is refused, or whose edit is on trial, has a list of its own, in which nothing is made. Each
mode has its lists; what they share is the life of the object.
"""

import collections.abc as cabc
import dataclasses

from spottrain.plan import (
    actions,
    bill,
    deadline,
    fallback,
    gang,
    independent,
    lifecycle,
    report,
    shard_report,
)
from spottrain.plan import draft as drafts
from spottrain.plan import snapshot as snap

Policy = cabc.Callable[[drafts.Draft], bool]

POLICIES: tuple[Policy, ...] = (
    lifecycle.leave_a_deleted_job_to_garbage_collection,
    lifecycle.clean_up_after_the_end,
    lifecycle.wait_for_a_newer_cluster,
    lifecycle.let_the_pods_of_a_deleted_job_end,
    lifecycle.have_a_job,
    gang.settle_causes,
    lifecycle.start_anew_when_the_template_changed,
    lifecycle.obey_suspend,
    gang.start_first_attempt,
    gang.fail_when_budget_is_spent,
    gang.complete_when_all_finished,
    deadline.fail_when_active_for_too_long,
    gang.restart_when_a_member_is_lost,
    gang.restart_when_it_makes_no_progress,
    gang.move_for_the_deadline,
    fallback.go_to_on_demand_while_spot_has_no_room,
    gang.withdraw_who_waits_in_vain,
    gang.forgive_nodes_when_nothing_else_fits,
    gang.give_back_what_cannot_be_completed,
    gang.run_the_attempt,
)

GO_ON: tuple[Policy, ...] = (
    lifecycle.have_nothing_that_could_go_on,
    lifecycle.stay_suspended,
    gang.settle_causes,
    gang.fail_when_budget_is_spent,
    gang.complete_when_all_finished,
    deadline.fail_when_active_for_too_long,
    gang.restart_when_a_member_is_lost,
    gang.give_back_what_cannot_be_completed,
    gang.let_what_runs_go_on,
)

INDEPENDENT_POLICIES: tuple[Policy, ...] = (
    lifecycle.leave_a_deleted_job_to_garbage_collection,
    lifecycle.clean_up_after_the_end,
    lifecycle.wait_for_a_newer_cluster,
    lifecycle.let_the_pods_of_a_deleted_job_end,
    lifecycle.have_a_job,
    independent.record_how_indexes_fare,
    independent.keep_few_ended_pods,
    lifecycle.start_anew_when_the_template_changed,
    lifecycle.obey_suspend,
    independent.start,
    independent.fail_when_failures_are_too_many,
    independent.end_when_every_index_has_ended,
    deadline.fail_when_active_for_too_long,
    fallback.go_to_on_demand_while_spot_has_no_room,
    independent.withdraw_who_waits_in_vain,
    independent.forgive_nodes_when_nothing_else_fits,
    independent.run_the_indexes,
)

INDEPENDENT_GO_ON: tuple[Policy, ...] = (
    lifecycle.have_nothing_that_could_go_on,
    independent.record_how_indexes_fare,
    independent.keep_few_ended_pods,
    lifecycle.stay_suspended,
    independent.fail_when_failures_are_too_many,
    independent.end_when_every_index_has_ended,
    deadline.fail_when_active_for_too_long,
    independent.let_what_runs_go_on,
)

WHILE_REFUSED: tuple[Policy, ...] = (
    lifecycle.leave_a_deleted_job_to_garbage_collection,
    lifecycle.clean_up_after_the_end,
    lifecycle.say_what_to_mend,
)
ON_TRIAL: tuple[Policy, ...] = (
    lifecycle.leave_a_deleted_job_to_garbage_collection,
    lifecycle.clean_up_after_the_end,
    lifecycle.try_the_edit,
)


@dataclasses.dataclass(frozen=True)
class Rules:
    """One mode's policies, `go_on` for while nothing may be made; `describe` has the last word in a pass."""

    policies: tuple[Policy, ...]
    go_on: tuple[Policy, ...]
    describe: cabc.Callable[[drafts.Draft], None]

    def of(self, snapshot: snap.Snapshot) -> tuple[Policy, ...]:
        """The list that holds for the job as it stands."""
        if snapshot.refused:
            return (*WHILE_REFUSED, *self.go_on)
        return (*ON_TRIAL, *self.go_on) if lifecycle.on_trial(snapshot) else self.policies


GANG = Rules(POLICIES, GO_ON, report.describe)
INDEPENDENT = Rules(INDEPENDENT_POLICIES, INDEPENDENT_GO_ON, shard_report.describe)


def decide(snapshot: snap.Snapshot) -> actions.Plan:
    """The plan for one job. Decided again on the outcome of its own acts, it plans nothing new."""
    draft = drafts.Draft(snapshot)
    rules = INDEPENDENT if snapshot.independent else GANG
    for policy in rules.of(snapshot):
        if policy(draft):
            break
    rules.describe(draft)
    bill.settle(draft)
    return draft.plan()
