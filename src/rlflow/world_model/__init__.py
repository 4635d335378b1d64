"""V and M: the learned model of the substitution environment, and the dream made of it."""
