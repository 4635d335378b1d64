"""What a graph costs: counted, or measured on the runtime that will run it."""
