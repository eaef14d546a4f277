"""The specification as an ordered list: what is true of the job, checked from top to bottom.

Each policy is named as a statement. It adds to the draft and returns True when nothing below it applies. A
job whose spec is refused, or whose edit is on trial, has a list of its own, in which nothing is made.
"""

import collections.abc as cabc

from spottrain.plan import actions, deadline, gang, lifecycle, report
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
WHILE_REFUSED: tuple[Policy, ...] = (
    lifecycle.leave_a_deleted_job_to_garbage_collection,
    lifecycle.clean_up_after_the_end,
    lifecycle.say_what_to_mend,
    *GO_ON,
)
ON_TRIAL: tuple[Policy, ...] = (
    lifecycle.leave_a_deleted_job_to_garbage_collection,
    lifecycle.clean_up_after_the_end,
    lifecycle.try_the_edit,
    *GO_ON,
)


def decide(snapshot: snap.Snapshot) -> actions.Plan:
    """The plan for one job. Decided again on the outcome of its own acts, it plans nothing new."""
    draft = drafts.Draft(snapshot)
    for policy in _policies(snapshot):
        if policy(draft):
            break
    report.describe(draft)
    return draft.plan()


def _policies(snapshot: snap.Snapshot) -> tuple[Policy, ...]:
    if snapshot.refused:
        return WHILE_REFUSED
    return ON_TRIAL if lifecycle.on_trial(snapshot) else POLICIES
