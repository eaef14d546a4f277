"""What the policies that place workers would have done on public traces of spot capacity."""
