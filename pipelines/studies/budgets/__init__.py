"""Does `rlflow optimise` keep to its budget, and what does it find in it?"""
