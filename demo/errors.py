"""What the demo says when it cannot go on."""


class DemoError(Exception):
    """One sentence for the person at the terminal: what is wrong and what to do about it."""
