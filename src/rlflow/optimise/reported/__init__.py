"""The parts of a report, one a module: each says itself in words and in JSON."""
