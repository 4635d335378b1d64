"""The learning chain on a small graph for several seeds, against the searches."""
