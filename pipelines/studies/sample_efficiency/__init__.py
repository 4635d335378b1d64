"""Real steps of an agent that learns in a dream, beside those of a model-free one."""
