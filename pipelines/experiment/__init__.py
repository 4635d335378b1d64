"""The experiment: what its six stages share."""
