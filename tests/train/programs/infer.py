"""A batch over lines of {"id", "text"}: it shouts. Texts that say so are rejected, or fail.

Environment: INPUTS, MODEL, LEDGER (a line for each call of the model), ITEM_SECONDS, LONG_ID (that item takes
a minute), TAG (put behind each output), EVERY, SECONDS, and the library's own.
"""

import json
import os
import time
from pathlib import Path

from spottrain import batch

ledger = Path(os.environ["LEDGER"])
pause = float(os.environ.get("ITEM_SECONDS", "0"))


def shout(row: dict[str, str]) -> str:
    """The model."""
    with ledger.open("a") as out:
        out.write(f"{row['id']}\n")
    time.sleep(60 if row["id"] == os.environ.get("LONG_ID") else pause)
    if row["text"] == "fail":
        raise ValueError("no voice")
    return row["text"].upper() + os.environ.get("TAG", "")


with (
    Path(os.environ["INPUTS"]).open() as lines,
    batch.session(
        model=os.environ.get("MODEL", "shout@1"),
        parameters={"mark": "!"},
        every=int(os.environ.get("EVERY", "1000")),
        seconds=float(os.environ.get("SECONDS", "60")),
    ) as run,
):
    print("begun", flush=True)
    for row in run.todo(map(json.loads, lines)):
        print(f"doing {row['id']}", flush=True)
        if row["text"] == "reject":
            run.skip(row)
            continue
        try:
            run.write(row, shout(row))
        except ValueError as error:
            run.fail(row, error)
        print(f"done with {row['id']}", flush=True)
print("all done", flush=True)
