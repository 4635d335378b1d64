"""The formulation over match tokens: rollouts tell of every match what it saves, and an action takes a class."""
