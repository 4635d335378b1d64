"""The policy that ships: lessons, fit, judgement, data sheet."""
