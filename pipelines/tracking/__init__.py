"""Experiments: configuration (Hydra), stages (DVC) and runs (MLflow), which nothing below this package knows."""

import os

from rlflow.extras import require

require("experiments", "tracking")
os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")  # read when mlflow is imported
os.environ.setdefault("DVC_NO_ANALYTICS", "1")

from tracking import job_folder  # noqa: E402, F401 - a resolver of conf/hydra_base.yaml, for every program that tracks
