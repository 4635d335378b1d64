"""The policy that ships: files that `make study NAME=policy` writes and `agents.tokens.token_policy` reads."""
