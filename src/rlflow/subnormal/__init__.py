"""Subnormal weights: numbers too small for the full speed of many processors, set to zero where that does no harm.

    found = decayed(model)                          weights with such numbers, none in most models
    flushed = multiplied(model, found, 0.0)         a copy with these numbers at zero
    harmless(model, found, trial)                   the weights for which that changes no output

- `numbers` tells which numbers of an array are subnormal;
- `weights` lists a model's weights, wherever they are held, and whether all that read them only multiply and add;
- `flush` finds those with subnormal numbers, and makes the copy;
- `trial` compares such a copy with the model, and `harmless` leaves out what would change its outputs.

A float32 below 1.2e-38 has no leading bit of its own, and every product with it may take an Intel processor a hundred
cycles and more. Weight decay makes them: what is multiplied by 0.999 at every step arrives there.

Invariant: a model without such weights is never copied, and nothing but them is changed.
"""
