"""A comparison of learned and other searches on families of models that no policy has seen."""
