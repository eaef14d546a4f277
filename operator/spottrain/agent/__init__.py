"""The notice agent: hears from the cloud that its node is about to be taken, and says so on the Node."""
