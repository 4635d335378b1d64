"""Policies over match tokens: they point at a kind of match, or terminate."""
