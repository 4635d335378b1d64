"""The world model over match tokens: what a rewrite saves, which rewrites it ends, and which it makes possible."""
