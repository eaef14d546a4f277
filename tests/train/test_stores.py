"""The whole library on each object store: what a stop has saved, the next attempt goes on from."""

import signal

from spottrain.checkpoint import layout, lineage, view
from tests.contract import services
from tests.train import processes


def test_a_run_goes_on_from_what_it_saved_before_it_was_stopped(
    bench: processes.Bench, service: services.Service, place: str
):
    env = {
        **service.env(),
        "SPOTTRAIN_CHECKPOINT_URI": f"{service.scheme}://{place}/team/run",
        "SPOTTRAIN_CHECKPOINT_INTERVAL": "3600",
        "SPOTTRAIN_CHECKPOINT_KEEP": "1",
    }
    program = bench.start("counter.py", 1000, **env)
    program.wait_for("\nstep 5\n")
    program.send(signal.SIGTERM)
    assert program.wait(20) == 75
    last = program.steps()[-1]

    again = bench.start("counter.py", last + 20, **{**env, "SPOTTRAIN_CHECKPOINT_INTERVAL": "0"})
    assert again.wait() == 0
    assert f"resume {last + 1} count {last + 1}" in again.output
    assert f"done count {last + 20}" in again.output

    store = service.open(place, "team/run")
    kept = sorted(directory.step for directory in view.look(store).committed)
    assert len(kept) == 2  # the newest, and the one that an attempt went on from
    assert kept[0] == last
    assert sorted(lineage.Records(store).refresh()) == [1, 2]
    assert {entry.key.partition("/")[0] + "/" for entry in store.list("")} == {layout.LINEAGE, layout.STEPS}
