"""B11: interrupted again before the next save, it resumes from the same step each time."""

import signal

from tests.contract import gateway
from tests.train import processes


def test_b11_interrupted_again_before_the_next_save(
    bench: processes.Bench, s3_server: gateway.Gateway, bucket: str
):
    env = {
        "SPOTTRAIN_CHECKPOINT_URI": f"s3://{bucket}/tr",
        "SPOTTRAIN_CHECKPOINT_ENDPOINT": s3_server.endpoint,
        "SPOTTRAIN_CHECKPOINT_INTERVAL": 3600,
    }
    first = bench.start("counter.py", 10_000, STEP_SECONDS=0.005, **env)
    first.wait_for("\nstep 100\n")
    first.send(signal.SIGTERM)
    assert first.wait() == 75
    resumed = []
    for _ in range(5):
        again = bench.start("counter.py", 10_000, **env)
        resumed.append(int(again.wait_for(r"resume (\d+) count")[1]))
        again.wait_for(r"\nstep \d+\n")
        again.send(signal.SIGKILL)
        again.wait()
    saved = first.steps()[-1]
    assert resumed == [saved + 1] * 5
    keys = s3_server.client().list_objects_v2(Bucket=bucket)["Contents"]
    names = [item["Key"] for item in keys]
    assert sum("/lineage/" in name for name in names) == 6
    assert len({name.split("/")[2] for name in names if "/steps/" in name}) == 1
