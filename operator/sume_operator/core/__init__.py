"""Pure values and rules: what a render is, what to do next, what an answer means. No library, no clock, no I/O."""
