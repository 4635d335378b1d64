import json
import logging
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from omegaconf import OmegaConf
from support.stages import CONFIG, failed_at_the_first, worked_by_process
from tracking.factories import cost_model_of, each_priced_graph
from tracking.share import Share
from tracking.stage import Stage
from tracking.store import Store, open_store

from rlflow.cost.measured import empty_price_list
from rlflow.errors import InputError, RLFlowError


def test_outputs_appear_together_and_the_run_tells_them(start, project: Path, store_root: Path):
    def first(stage: Stage) -> None:
        stage.output("data/first").mkdir()
        figures = {"size": stage.settings["first"]["size"], "twice": 6, "seed": stage.seed, "graph": stage.graph}
        stage.metrics.write_text(json.dumps(figures))
        stage.report(figures)
        assert not (project / "data").exists()

    start(first)
    assert (project / "data/first").is_dir()
    assert json.loads((project / "data/results/first/metrics.json").read_text()) == {
        "size": 3,
        "twice": 6,
        "seed": 7,
        "graph": "small",
    }
    assert not list((store_root / ".checkpoints/first").iterdir())
    (run,) = open_store(store_root).client.search_runs(["1"])
    assert run.info.run_name == "first/small/7"
    assert run.data.metrics == {"twice": 6.0}, "size and seed are parameters"
    assert run.data.params | {"seed": "7", "graph": "small", "first.size": "3"} == run.data.params


def test_a_summary_that_is_not_declared_is_refused(start):
    def first(stage: Stage) -> None:
        stage.summary.write_text("size: 3")

    with pytest.raises(InputError, match=r"first has no summary; add data/results/NAME\.yaml to its outs in dvc\.yaml"):
        start(first)


def test_missing_output_publishes_none(start, project: Path):
    def first(stage: Stage) -> None:
        stage.output("data/first").mkdir()

    with pytest.raises(RLFlowError, match=r"first ended without writing data/results/first/metrics\.json"):
        start(first)
    assert not (project / "data").exists()


def test_failed_stage_keeps_the_outputs_of_the_last_good_one(start, project: Path):
    def second(stage: Stage) -> None:
        stage.output("data/second.txt").write_text("good")

    start(second)

    def failing(stage: Stage) -> None:
        stage.output("data/second.txt").write_text("half")
        raise RLFlowError("in the middle")

    failing.__name__ = "second"
    with pytest.raises(RLFlowError, match="in the middle"):
        start(failing)
    assert (project / "data/second.txt").read_text() == "good"


def test_checkpoint_belongs_to_settings_inputs_and_code(start, project: Path):
    """Each of the three changed in turn gives another folder; nothing changed gives the same one."""
    (project / "data/first").mkdir(parents=True)
    size = project / "data/first/size.txt"
    size.write_text("3")
    seen: list[Path] = []

    def second(stage: Stage) -> None:
        seen.append(stage.checkpoint)
        stage.output("data/second.txt").write_text("")

    def run(**changes: float) -> Path:
        start(second, OmegaConf.merge(CONFIG, changes))
        return seen[-1]

    reference = run()
    assert run() == reference
    assert run(temperature=0.5) != reference
    size.write_text("4")
    changed_input = run()
    assert changed_input != reference
    script = project / "pipelines/second.py"
    script.write_text(script.read_text() + "\n")
    assert run() not in (reference, changed_input)


def pieces(stage: Stage, share: Share) -> None:
    """Leaves a file for each of three pieces of work that are the worker's."""
    for piece in share.of(3):
        (stage.checkpoint / f"{piece}.txt").write_text(str(share.worker))


def test_what_workers_leave_is_found_by_the_stage_alone(start, project: Path, store_root: Path):
    """The numbers of workers are no setting, so that all have one folder of checkpoints."""
    found: list[str] = []

    def first(stage: Stage) -> None:
        found.extend((stage.checkpoint / f"{piece}.txt").read_text() for piece in range(3))
        stage.output("data/first").mkdir()
        stage.metrics.write_text("{}")

    def run(**workers: int) -> None:
        start(first, OmegaConf.merge(CONFIG, workers), work=pieces)

    for worker in range(2):
        run(worker=worker, workers=2)
        assert not found
        assert not (project / "data").exists()
    run(worker=0, workers=1)
    assert found == ["0", "1", "0"]
    assert (project / "data/first").is_dir()
    assert not list((store_root / ".checkpoints/first").iterdir())


def test_a_stage_that_workers_cannot_share_is_refused(start):
    with pytest.raises(InputError, match="first is the work of one process: leave `workers` at 1"):
        start(first_by_graph, OmegaConf.merge(CONFIG, {"worker": 0, "workers": 2}))


TWO_GRAPHS = OmegaConf.merge(CONFIG, {"graphs": {"large": {"kind": "zoo", "entry": "tiny_merge"}}})


def first_by_graph(stage: Stage) -> None:
    """Writes what each graph's work saw."""

    def work(on_graph: Stage) -> dict[str, str]:
        on_graph.log(0, {"loss": 1.0})
        seen = {"entry": on_graph.settings["graph"]["entry"], "checkpoint": str(on_graph.checkpoint)}
        on_graph.output(f"data/first/{on_graph.graph}").write_text("done")
        return seen

    stage.metrics.write_text(json.dumps(stage.each_graph(work)))


first_by_graph.__name__ = "first"


def test_work_by_graph_sees_one_graph_after_another(start, project: Path, store_root: Path):
    start(first_by_graph, TWO_GRAPHS)
    seen = json.loads((project / "data/results/first/metrics.json").read_text())
    assert list(seen) == ["small", "large"]
    assert [found["entry"] for found in seen.values()] == ["tiny_chain", "tiny_merge"]
    assert [Path(found["checkpoint"]).name for found in seen.values()] == ["small", "large"]
    assert sorted(path.name for path in (project / "data/first").iterdir()) == ["large", "small"]
    (run,) = open_store(store_root).client.search_runs(["1"])
    assert run.info.run_name == "first/small+large/7"
    assert set(run.data.metrics) == {"small/loss", "large/loss"}


def test_an_experiment_on_one_graph_has_that_one(start, project: Path):
    start(first_by_graph)
    assert list(json.loads((project / "data/results/first/metrics.json").read_text())) == ["small"]


def test_undeclared_graphs_are_refused(start, project: Path):
    """DVC would not notice that others were chosen."""
    declarations = project / "dvc.yaml"
    declarations.write_text(declarations.read_text().replace("[seed, graphs, first]", "[seed, first]"))
    with pytest.raises(InputError, match="section graph is read but not declared"):
        start(first_by_graph, TWO_GRAPHS)


def test_a_stage_that_failed_at_the_first_graph_finds_the_checkpoints_of_the_first(start, project: Path):
    worked: list[str] = []

    def first(stage: Stage) -> None:
        def work(on_graph: Stage) -> None:
            done = on_graph.checkpoint / "done.txt"
            if not done.exists():
                worked.append(on_graph.graph)
                if worked == ["small", "large"]:
                    raise RLFlowError("in the middle of the second graph")
                done.write_text("")

        stage.each_graph(work)
        stage.output("data/first").mkdir()
        stage.metrics.write_text("{}")

    with pytest.raises(RLFlowError, match="in the middle of the second graph"):
        start(first, TWO_GRAPHS)
    start(first, TWO_GRAPHS)
    assert worked == ["small", "large", "large"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "processes", "own"),
    [
        ("analytic", 1, False),
        ("analytic", 3, True),
        pytest.param("predicted", 2, True, marks=pytest.mark.study),  # as the analytic one
        ("measured", 2, False),
    ],
)
def test_graphs_are_worked_on_at_once_by_processes_of_their_own_unless_prices_are_measured(
    start, project: Path, store_root: Path, kind: str, processes: int, own: bool
):
    """What they return, write and log is there as if one process had done it; each has a cost model as asked for."""
    declarations = project / "dvc.yaml"
    declarations.write_text(declarations.read_text().replace("[seed, graphs, first]", "[seed, graphs, first, cost]"))
    listed = project / "prices.json"
    empty_price_list(threads=1).save(listed)
    found: dict[str, dict[str, int | str]] = {}

    def first(stage: Stage) -> None:
        found.update(each_priced_graph(stage, listed, stage.output("data/first/prices.json"), worked_by_process))
        stage.metrics.write_text("{}")

    start(first, OmegaConf.merge(TWO_GRAPHS, {"cost": {"kind": kind}}), processes=processes)
    assert [(graph, seen["checkpoint"]) for graph, seen in found.items()] == [("small", "small"), ("large", "large")]
    assert {seen["cost_model"] for seen in found.values()} == {cost_model_of({"kind": kind}).name}
    numbers = {seen["process"] for seen in found.values()}
    assert len(numbers) == 1 + own
    assert (os.getpid() in numbers) == (not own)
    assert sorted(path.name for path in (project / "data/first").iterdir()) == ["large", "prices.json", "small"]
    client = open_store(store_root).client
    (run,) = client.search_runs(["1"])
    assert run.info.status == "FINISHED"
    for graph in ("small", "large"):
        logged = client.get_metric_history(run.info.run_id, f"{graph}/loss")
        assert [(one.step, one.value) for one in logged] == [(0, 1.0), (1, 2.0), (2, 3.0)]


@pytest.mark.slow
def test_a_process_that_fails_fails_the_stage(start, project: Path, store_root: Path, caplog: pytest.LogCaptureFixture):
    """With its own error, which is told at once; the work on the other graph is brought to its end, and kept."""

    def first(stage: Stage) -> None:
        stage.graphs_at_once(failed_at_the_first)

    with pytest.raises(RLFlowError, match="at the very beginning"):
        start(first, TWO_GRAPHS, processes=2)
    assert "first failed on small: at the very beginning" in caplog.messages
    assert len(list((store_root / ".checkpoints").rglob("graphs/large/done.txt"))) == 1
    assert not (project / "data").exists()
    (run,) = open_store(store_root).client.search_runs(["2"])
    assert run.info.status == "FAILED"


AT_ONCE = """
from support import stages

from tracking.stage import Stage, pipeline_stage


@pipeline_stage
def first(stage: Stage) -> None:
    stage.output("data/first").mkdir()
    stage.graphs_at_once(stages.{work})
    stage.metrics.write_text("{{}}")


if __name__ == "__main__":
    first()
"""


@pytest.mark.slow
@pytest.mark.parametrize("launcher", ["basic", pytest.param("joblib", marks=pytest.mark.study)])  # loky starts slowly
def test_a_sweep_gives_children_and_leaves_the_outputs_alone(project: Path, command: Callable, launcher: str):
    """Its jobs start no processes: joblib's could not, and those of all launchers run beside each other already."""
    (project / "pipelines/first.py").write_text(AT_ONCE.format(work="left_process"))
    (project / "data/first").mkdir(parents=True)
    (project / "data/first/small").write_text("as it was")
    sweep = ("--multirun", "seed=0,1", f"hydra/launcher={launcher}", "+processes=2", "graph=[small,large]")
    command("python", "pipelines/first.py", *sweep, cwd=project, PYTHONPATH=os.pathsep.join(sys.path))
    assert (project / "data/first/small").read_text() == "as it was"
    written = sorted((project / "multirun").rglob("data/first/*"))
    assert [path.name for path in written] == ["large", "small"] * 2
    assert {path.read_text() for path in written} == {"MainProcess" if launcher == "basic" else "LokyProcess"}

    client = open_store(project).client
    (parent,) = client.search_runs(["1"], "attributes.run_name = 'first by seed'")
    children = client.search_runs(["1"], f"tags.mlflow.parentRunId = '{parent.info.run_id}'")
    assert sorted(run.data.params["seed"] for run in children) == ["0", "1"]
    assert sorted(run.info.run_name for run in children) == ["seed=0", "seed=1"]
    assert {run.info.status for run in (parent, *children)} == {"FINISHED"}


@pytest.mark.slow
def test_no_process_outlives_a_stage_that_was_killed(project: Path):
    """Nor the one that holds the queue: whoever reads the stage's output would wait for it."""
    (project / "pipelines/first.py").write_text(AT_ONCE.format(work="working_for_ever"))
    arguments = [sys.executable, "pipelines/first.py", "+processes=2", "graph=[small,large]"]
    paths = os.pathsep.join(sys.path)
    variables = {**os.environ, "PYTHONPATH": paths, "DVC_ROOT": str(project)}
    stage = subprocess.Popen(arguments, cwd=project, env=variables, stderr=subprocess.PIPE)
    try:
        numbers = eventually(lambda: [int(one.read_text()) for one in project.rglob("process.txt")], 2)
        children = psutil.Process(stage.pid).children(recursive=True)
        assert {child.pid for child in children} > set(numbers), "and the process of the queue"
    finally:
        stage.kill()
    stage.communicate(timeout=60)
    _, alive = psutil.wait_procs(children, timeout=60)
    assert not alive


def eventually(found: Callable[[], list[int]], number: int) -> list[int]:
    end = time.monotonic() + 120
    while len(now := found()) < number:
        assert time.monotonic() < end
        time.sleep(0.2)
    return now


def test_the_run_says_what_it_read_what_it_did_and_what_the_machine_did(
    start, project: Path, store_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a stage that reads a folder, with a summary for DVC; the machine is looked at every few milliseconds."""
    monkeypatch.delenv("MLFLOW_ENABLE_SYSTEM_METRICS_LOGGING")
    monkeypatch.setenv("MLFLOW_SYSTEM_METRICS_SAMPLING_INTERVAL", "0.05")
    declared = (project / "dvc.yaml").read_text()
    summed_up = "desc: Halve the size.\n    outs:\n      - data/results/half.yaml\n      - data/second.txt"
    (project / "dvc.yaml").write_text(declared.replace("outs: [data/second.txt]", summed_up))
    (project / "data/first").mkdir(parents=True)
    (project / "data/first/size.txt").write_text("3")

    def second(stage: Stage) -> float:
        end = time.monotonic() + 60
        while not stage.run.store.client.get_run(stage.run.run_id).data.metrics and time.monotonic() < end:
            time.sleep(0.1)
        stage.output("data/second.txt").write_text("")
        stage.summary.write_text("size: 1.5\n")
        return 1.5

    assert start(second) == 1.5
    (run,) = open_store(store_root).client.search_runs(["1"])
    (read,) = run.inputs.dataset_inputs
    assert read.dataset.name == "data/first"
    assert run.data.tags["mlflow.note.content"] == "Halve the size.\n\nGraphs: small. Seed: 7.\n\nsize: 1.5"
    assert "system/cpu_utilization_percentage" in run.data.metrics

    (project / "data/first/size.txt").write_text("4")
    start(second)
    digests = {run.inputs.dataset_inputs[0].dataset.digest for run in open_store(store_root).client.search_runs(["1"])}
    assert len(digests) == 2, "a digest tells other content"


def test_the_run_has_settings_results_and_log_as_files(
    start, project: Path, store_root: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The log of a stage that fails, too: there it matters most."""
    log = tmp_path_factory.mktemp("log") / "first.log"
    handler = logging.FileHandler(log)
    logging.getLogger().addHandler(handler)

    def first(stage: Stage) -> None:
        logging.getLogger("first").warning("in the middle")
        if stage.settings["first"]["size"] == 4:
            raise RLFlowError("too large")
        stage.output("data/first").mkdir()
        stage.metrics.write_text('{"size": 3}')

    try:
        start(first)
        with pytest.raises(RLFlowError, match="too large"):
            start(first, OmegaConf.merge(CONFIG, {"first": {"size": 4}}))
    finally:
        logging.getLogger().removeHandler(handler)
        handler.close()
    store = open_store(store_root)
    (good,), (failed,) = (store.client.search_runs([one]) for one in (store.experiment_id, store.aside_id))
    kept = {run: files_of(store, run.info.run_id) for run in (good, failed)}
    assert json.loads(kept[good]["metrics.json"]) == {"size": 3}
    assert [OmegaConf.create(kept[run]["config.yaml"]).first.size for run in kept] == [3, 4]
    assert all("in the middle" in kept[run]["first.log"] for run in kept)
    assert "metrics.json" not in kept[failed]


def files_of(store: Store, run_id: str) -> dict[str, str]:
    folder = Path(store.client.download_artifacts(run_id, ""))
    return {path.name: path.read_text() for path in folder.iterdir()}


def test_one_line_tells_what_begins_how_long_it_took_and_where_its_run_is(
    start, project: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def second(stage: Stage) -> None:
        stage.output("data/second.txt").write_text("")

    for _ in range(2):
        with caplog.at_level(logging.INFO, logger="told"):
            start(second)
    first, again = (record.message for record in caplog.records if record.name == "told")
    assert re.fullmatch(r"second: http://127\.0\.0\.1:5000/#/experiments/1/runs/[0-9a-f]{32}", first)
    assert re.fullmatch(r"second: \d+\.\d min the last time\. http://\S+", again)
