"""The session options that a delivered model carries, in a report."""

from dataclasses import dataclass
from typing import Any

from rlflow.optimise.reported.latency import LatencyChange
from rlflow.runtime.session_options import DEFAULTS, SessionOptions


@dataclass(frozen=True)
class OptionsReport:
    """The session options that the delivered model carries, which are not ONNX Runtime's defaults, and its latency
    without and with them; or why it carries none.
    """

    options: SessionOptions = DEFAULTS
    latency: LatencyChange | None = None
    left_because: str = ""

    @property
    def reason(self) -> str:
        """The gain, as a clause."""
        ratio = "" if self.latency is None else f"{self.latency.verdict.ratio:.3f} times as fast "
        return f"{ratio}with session options"

    def summary(self, output: str) -> str:
        """Say what they gain, and how to open the model with them."""
        change = "" if self.latency is None else f", {self.latency.summary}"
        lines = "\n".join(f"  {line}" for line in self.options.lines(output))
        beside = ", on the wall clock beside what else ran here" if self.options.intra_op_num_threads else ""
        return f"Session options: {self.options}{change}{beside}. The model's metadata has them; in Python:\n{lines}"

    def to_json(self, output: str) -> dict[str, Any]:
        return {
            "options": self.options.to_json(),
            "python": [] if self.options == DEFAULTS else list(self.options.lines(output)),
            "latency": None if self.latency is None else self.latency.to_json(),
            "left_because": self.left_because,
        }
