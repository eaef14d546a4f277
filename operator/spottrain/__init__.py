"""GPU training on preemptible Kubernetes nodes, as one object."""
