"""The policy that ships: files that `make study NAME=policy` writes and `agents.match_level.guide` reads."""
