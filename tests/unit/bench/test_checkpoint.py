"""Which of a save's requests are counted as its commit's, and which as those of removing an old one."""

from bench import checkpoint
from tests.contract import faults

DATA = "/b/run/steps/{step:010d}-a-00/{name}"
LISTS = {prefix: f"/b?list-type=2&prefix=run%2F{prefix}%2F" for prefix in ("lineage", "steps")}


def save(step: int) -> list[faults.Request]:
    name = DATA.format(step=step, name="model")
    return [
        faults.Request("POST", f"{name}?uploads"),
        faults.Request("PUT", f"{name}?partNumber=1&uploadId=x"),
        faults.Request("POST", f"{name}?uploadId=x"),
        faults.Request("PUT", DATA.format(step=step, name="rank")),
        faults.Request("GET", LISTS["lineage"]),
        faults.Request("PUT", DATA.format(step=step, name="COMMIT.json")),
        faults.Request("GET", LISTS["steps"]),
        faults.Request("GET", DATA.format(step=step, name="COMMIT.json")),
        faults.Request("POST", "/b?delete"),
    ]


def test_the_datas_own_requests_are_not_counted_and_each_save_has_its_own():
    requests = checkpoint.Requests()
    for step in range(3):
        for request in save(step):
            requests.note(request)
    commits, removals = requests.of(1)
    committed = DATA.format(step=1, name="COMMIT.json")
    assert commits == [f"GET {LISTS['lineage']}", f"PUT {committed}"]
    assert removals == [f"GET {LISTS['steps']}", f"GET {committed}", "POST /b?delete"]
    assert len(requests.of(2)[1]) == 3


def test_each_figure_that_is_promised_has_a_bar():
    assert sorted(checkpoint.BARS) == [
        "commit_requests",
        "kill_fuzz_losses",
        "kill_fuzz_rounds",
        "restore_ratio",
        "stall_ratio",
        "upload_ratio",
    ]
