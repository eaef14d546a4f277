"""A clock that the test moves."""


class VirtualClock:
    def __init__(self, now: float = 1000.0) -> None:
        self.now = now

    def monotonic(self) -> float:
        return self.now

    def unix(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
