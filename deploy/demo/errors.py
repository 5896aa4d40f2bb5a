"""What can go wrong, as far as the demo can say something useful about it."""


class DemoError(RuntimeError):
    """The demo cannot go on; the text says why, and what to do."""
