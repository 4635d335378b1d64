"""Inputs of products, recurrent networks, attention and transforms, whose sizes must fit each other."""

import numpy as np

from support.opset_changes.drawing import Draw, Value

HIDDEN = 3


def product(d: Draw) -> list[Value]:
    m, k, n = d.counts(1, 4, 3)
    batch = d.counts(1, 3, d.count(0, 3))
    left = (k,) if d.chance(0.15) else (*batch, m, k)
    right = (k,) if d.chance(0.15) else (*batch[d.count(0, len(batch)) :], k, n)
    return [d.tensor(0, left), d.tensor(1, right)]


def quantised_product(d: Draw) -> list[Value]:
    m, k, n = d.counts(1, 4, 3)
    shapes = ((m, k), (), (), (k, n), (), (), (), ())
    values = [d.tensor(place, shape) for place, shape in enumerate(shapes)]
    for place in (1, 4, 6):
        values[place] = np.abs(values[place]) + values[place].dtype.type(0.1)
    return values


def general_product(d: Draw) -> list[Value]:
    m, k, n = d.counts(1, 4, 3)
    left = (k, m) if d.attributes.get("transA") else (m, k)
    right = (n, k) if d.attributes.get("transB") else (k, n)
    third = d.tensor(2, d.one_of(((), (n,), (m, n), (1, n), (m, 1), (1,))))
    return [d.tensor(0, left), d.tensor(1, right), third if d.chance(0.7) or d.schema.since_version < 11 else None]


def recurrent(d: Draw) -> list[Value]:
    steps, batch, size = d.counts(1, 4, 3)
    ways = 2 if d.attributes.get("direction") == "bidirectional" else 1
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[d.schema.name]
    d.attributes["hidden_size"] = HIDDEN
    batch_first = d.attributes.get("layout", 0) == 1
    state = (batch, ways, HIDDEN) if batch_first else (ways, batch, HIDDEN)
    values = [
        d.tensor(0, (batch, steps, size) if batch_first else (steps, batch, size)),
        d.tensor(1, (ways, gates * HIDDEN, size)),
        d.tensor(2, (ways, gates * HIDDEN, HIDDEN)),
        d.optional(3, (ways, 2 * gates * HIDDEN)),
        d.indices((batch,), steps + 1, "int32", low=1) if d.chance(0.3) else None,
        d.optional(5, state),
    ]
    return values + ([d.optional(6, state), d.optional(7, (ways, 3 * HIDDEN))] if gates == 4 else [])


def attended(d: Draw) -> list[Value]:
    batch, queries, keys, size = d.count(1, 2), d.count(1, 3), d.count(1, 4), 4
    flat, many = d.chance(0.4), d.one_of((2, 4))
    if flat:
        d.attributes |= {"q_num_heads": many, "kv_num_heads": 2}
        data = [d.tensor(0, (batch, queries, many * size)), *(d.tensor(p, (batch, keys, 2 * size)) for p in (1, 2))]
    else:
        d.attributes = {k: v for k, v in d.attributes.items() if not k.endswith("num_heads")}
        data = [d.tensor(0, (batch, many, queries, size)), *(d.tensor(p, (batch, 2, keys, size)) for p in (1, 2))]
    past = d.count(1, 2) if d.chance(0.3) else 0
    mask = d.tensor(3, (queries, keys + past)) if d.chance() else None
    earlier = [d.tensor(place, (batch, 2, past, size)) if past else None for place in (4, 5)]
    valid = d.indices((batch,), keys + 1, low=1) if d.chance(0.3) and not past else None
    return [*data, mask, *earlier, valid][: len(d.schema.inputs)]


def transformed(d: Draw) -> list[Value]:
    length = np.array(d.count(1, 5), d.type_of(1)) if d.chance(0.3) else None
    axis = [np.array(d.count(1, d.rank - 2), np.int64) if d.chance() else None] if len(d.schema.inputs) > 2 else []
    return [d.tensor(0, d.shape), length, *axis]


def einsum(d: Draw) -> list[Value]:
    equation, *shapes = d.one_of(
        (("ij,jk->ik", (2, 3), (3, 2)), ("ij->ji", (2, 3)), ("...i,i->...", (2, 2, 3), (3,)), ("ii->i", (3, 3)))
    )
    d.attributes["equation"] = equation
    return [d.tensor(0, shape) for shape in shapes]
