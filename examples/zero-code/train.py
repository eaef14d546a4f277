"""Training of a small network on scikit-learn's handwritten digits, on the CPU, that saves after each epoch.

It is a program as people have them: it knows nothing of spottrain, keeps its state in one file that it writes
over, and goes on from that file if it is there. Environment: CHECKPOINTS (a folder), DIGITS_EPOCHS,
DIGITS_SEED, DIGITS_EPOCH_SECONDS (a pause per epoch: it stands for the time that a real model's takes).
"""

import os
import time
from pathlib import Path

import torch
from sklearn.datasets import load_digits
from torch import nn

EPOCHS = int(os.environ.get("DIGITS_EPOCHS", "40"))
SEED = int(os.environ.get("DIGITS_SEED", "1"))
PAUSE = float(os.environ.get("DIGITS_EPOCH_SECONDS", "0"))
STATE = Path(os.environ.get("CHECKPOINTS", "checkpoints")) / "state.pt"
BATCH = 32


def main() -> None:
    """Train, and print the loss over all digits at the end."""
    torch.manual_seed(SEED)
    digits = load_digits()
    pixels, labels = torch.tensor(digits.data / 16, dtype=torch.float32), torch.tensor(digits.target)
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Dropout(0.2), nn.Linear(128, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    first = 0
    if STATE.exists():
        state = torch.load(STATE)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        torch.set_rng_state(state["generator"])
        first = state["epoch"] + 1
    print(f"first_epoch={first}", flush=True)
    for epoch in range(first, EPOCHS):
        for chosen in torch.randperm(len(pixels)).split(BATCH):
            loss = nn.functional.cross_entropy(model(pixels[chosen]), labels[chosen])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        time.sleep(PAUSE)
        state = {
            "epoch": epoch,
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "generator": torch.get_rng_state(),
        }
        torch.save(state, STATE)
        print(f"epoch={epoch} loss={loss.item():.4f}", flush=True)
    model.eval()
    with torch.no_grad():
        print(f"final_loss={float(nn.functional.cross_entropy(model(pixels), labels))!r}", flush=True)


if __name__ == "__main__":
    main()
