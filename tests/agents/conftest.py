"""The small world model of the world_model tests, and dreams of it."""

from world_model.conftest import _one_thread, dream, rollouts, world_model

__all__ = ["_one_thread", "dream", "rollouts", "world_model"]
