"""The parent run of a sweep."""

import pickle
from contextlib import contextmanager

from rlflow.tracking.sweep import SweepParent


@contextmanager
def run():
    yield "open"


def test_a_launcher_may_send_the_callback_to_jobs_elsewhere():
    """Submitit pickles what a job is called with while the parent is open, which a generator does not survive."""
    parent = SweepParent()
    assert parent._open.enter_context(run()) == "open"
    sent = pickle.loads(pickle.dumps(parent))
    sent._open.close()
    parent._open.close()
