"""A comparison of searches by predicted and by measured prices, in measured prices."""
