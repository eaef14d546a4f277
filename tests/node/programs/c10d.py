"""One collective under torchrun's c10d rendezvous, which tells the others the host name of its first rank."""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
counted = torch.ones(1)
dist.all_reduce(counted)
print(f"counted workers={int(counted)}", flush=True)
