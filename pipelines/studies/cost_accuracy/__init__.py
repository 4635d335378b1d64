"""How near is the sum of measured regions to the time of the whole model?"""
