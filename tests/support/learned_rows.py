"""Rows of the study of learning, written down by hand."""

from studies.learned.cells import Key, Row


def row(*milestones: tuple[int, float], training_s: float = 0.0, training_rewrites: int = 0) -> Row:
    """A search that had saved so many percent after so many rewrites, each of which took a tenth of a second."""
    return {
        "improvement_percent": milestones[-1][1],
        "evaluations": milestones[-1][0] + 10,
        "prices_measured": 0,
        "measuring_s": 0.0,
        "search_s": milestones[-1][0] / 10,
        "milestones": [[after, 0, after / 10, percent] for after, percent in milestones],
        "training_s": training_s,
        "training_evaluations": training_rewrites,
    }


GREEDY = row((0, 0.0), (90, 6.0))
ROWS: dict[Key, Row] = {
    ("gpt2", "greedy", 0): GREEDY,
    ("gpt2", "chains", 0): row((0, 0.0), (150, 6.5), (1000, 10.0)),
    ("gpt2", "rlflow", 0): row((0, 0.0), (90, 6.0), (120, 8.0), (600, 9.0)),
    ("gpt2", "rlflow", 1): row((0, 0.0), (90, 6.0), (300, 8.0)),
    ("vit", "greedy", 0): row((0, 0.0), (90, 6.0)),
    ("vit", "rlflow", 0): row((0, 0.0), (90, 6.05)),
}
