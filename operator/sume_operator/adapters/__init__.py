"""One door per library: translate to and from the core's values, never decide, never sleep, never retry."""
