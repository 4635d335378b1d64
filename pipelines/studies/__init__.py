"""Studies: one folder each, with its program, its computation and its page; what they share lies here."""
