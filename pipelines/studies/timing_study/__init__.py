"""How often is the timing of two models wrong?"""
