"""Batch inference on nodes that are taken away: one result for each input, after any number of reclaims.

    from spottrain import batch

    with batch.session(model="whisper-large@3f2a91", parameters={"beams": 5}) as run:
        for row in run.todo(rows):                  # this worker's, but for those that have a result
            run.write(row, transcribe(row))

docs/batch.md is for users.
"""

from spottrain.batch.layout import Identity
from spottrain.batch.life import worker
from spottrain.batch.reading import results
from spottrain.batch.run import Batch, session

__all__ = ["Batch", "Identity", "results", "session", "worker"]
