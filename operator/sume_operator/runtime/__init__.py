"""The roles: order of steps, loops, threads. No rule lives here."""
