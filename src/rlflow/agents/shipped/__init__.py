"""The policy that ships with the library: files that `make policy` writes and `agents.tokens.token_policy` reads."""
