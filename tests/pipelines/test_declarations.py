"""Each dvc.yaml against the code: a stage runs again whenever something that it uses has changed."""

import ast
import os
from collections.abc import Callable
from itertools import product
from pathlib import Path

import grimp
import pytest
import yaml
from support.checkouts import checkout_of
from tracking.code import DIGESTS, WATCHING, modules_of
from tracking.declaration import read_declaration, stage_names

from rlflow.cost.models import COST_MODELS
from rlflow.optimise.methods import METHODS
from rlflow.passes.backends import BACKENDS
from rlflow.zoo.registry import BUILDERS

ROOT = Path(__file__).parents[2]
STUDIES = ROOT / "pipelines/studies"
PROJECTS = sorted(path.parent for path in ROOT.glob("data/*/dvc.yaml"))
POLICY = ROOT / "data/policy"
PACKAGES = {"rlflow": "src", "experiment": "pipelines", "studies": "pipelines", "tracking": "pipelines"}
"""Of each package the folder that it lies in."""


def script_of(stage: str, folder: Path) -> Path:
    """That of a stage."""
    return folder / f"{stage}.py"


DECLARED = stage_names(ROOT)
STAGES = tuple(name for name in DECLARED if script_of(name, ROOT / "pipelines").exists())
SCRIPTS = {name: (ROOT, script_of(name, ROOT / "pipelines")) for name in STAGES} | {
    name: (folder, script_of(name, STUDIES / folder.name)) for folder in PROJECTS for name in stage_names(folder)
}
"""Of each stage the folder of its dvc.yaml, and its script."""
REGISTRIES = {
    "rlflow.cost.models": COST_MODELS,
    "rlflow.optimise.methods": METHODS,
    "rlflow.passes.backends": BACKENDS,
    "rlflow.zoo.registry": BUILDERS,
}
"""What they name they import, when it is chosen."""
MATERIALS = ("tracking.factories", "studies.policy.curriculum")
"""What these import does count."""
PARTS = {
    "generate_rules": (),
    "collect_rollouts": ("rollouts",),
    "fit_world_model": ("world_model", "trust"),
    "train_controller": ("controller",),
    "evaluate": ("controller", "rollouts"),
    "temperature_sweep": ("controller",),
}
"""Of each stage the modules that it uses of a formulation."""


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    graph = grimp.build_graph(*PACKAGES, exclude_type_checking_imports=True)
    for importer, registry in REGISTRIES.items():
        for target in registry.built_in.values():
            graph.add_import(importer=importer, imported=target.partition(":")[0])
    return graph


def imported(script: Path, graph: grimp.ImportGraph) -> set[str]:
    """Modules that a script imports, with all that these import; those that watch are left out."""
    nodes = [node for node in ast.walk(ast.parse(script.read_text())) if isinstance(node, ast.ImportFrom)]
    direct: set[str] = set()
    for module, name in [(node.module or "", alias.name) for node in nodes for alias in node.names]:
        if module.partition(".")[0] in PACKAGES:
            direct |= {f"{module}.{name}"} & graph.modules or {module}
    found: set[str] = set()
    waiting = direct
    while waiting := {m for m in waiting - found if m in MATERIALS or not m.startswith(WATCHING)}:
        found |= waiting
        waiting = set().union(*(graph.find_modules_directly_imported_by(module) for module in waiting))
    return found - set(MATERIALS)


def test_every_stage_but_the_first_two_is_a_script():
    """Its name is the script's; the first two are modules of tracking."""
    assert set(DECLARED) - set(STAGES) == {"code", "config"}
    assert len({script for _, script in SCRIPTS.values() if script.parent == ROOT / "pipelines"}) >= 6


@pytest.mark.parametrize("stage", SCRIPTS)
def test_the_code_that_a_stage_uses_is_a_parameter_of_it(stage: str, graph: grimp.ImportGraph):
    """A graph of imports that is made otherwise finds no module that does not count."""
    root, script = SCRIPTS[stage]
    project = "" if root == ROOT else f"{root.name}."
    content = yaml.safe_load((root / "dvc.yaml").read_text())["stages"][stage]
    digests = os.path.relpath(ROOT / DIGESTS, root)
    assert {digests: [f"{project}{script.stem}"]} in content.get("do", content)["params"]
    modules = modules_of(script, ROOT)
    assert any(module.startswith("rlflow.") for module in modules), "or the stage does nothing"
    assert modules >= imported(script, graph)


def test_modules_that_are_named_in_a_text_count():
    """The evaluation reads the policy that ships from a package that no statement imports."""
    assert "rlflow.agents.shipped" in modules_of(SCRIPTS["evaluate"][1], ROOT)


def test_a_stage_uses_its_part_of_both_formulations():
    """Not vacuous: every stage but the first uses one; of another part the code would be a reason to run again."""
    package = "experiment.formulations."
    found = {
        stage: {
            m.removeprefix(package)
            for m in modules_of(SCRIPTS[stage][1], ROOT)
            if m.startswith((f"{package}graph_level", f"{package}match_level")) and not m.endswith(".pretrained")
        }
        for stage in STAGES
    }
    formulations = ("graph_level", "match_level")
    assert found == {stage: {".".join(names) for names in product(formulations, PARTS[stage])} for stage in STAGES}


@pytest.mark.parametrize("stage", SCRIPTS)
def test_every_dependency_exists_or_is_an_output(stage: str, repository: Path):
    """Or it lies in an output, or outputs lie in it."""
    outputs = [path for name, (root, _) in SCRIPTS.items() for path in expanded(name, root, "outputs")]
    written = [path for path in expanded(stage, SCRIPTS[stage][0], "dependencies") if not (repository / path).exists()]
    assert [p for p in written if not any(p.is_relative_to(out) or out.is_relative_to(p) for out in outputs)] == []


def expanded(stage: str, root: Path, kind: str) -> list[Path]:
    """The paths of a stage from the root; where it is one for each of several items, of all, with these filled in."""
    items = yaml.safe_load((root / "dvc.yaml").read_text())["stages"][stage].get("foreach", {"": {}})
    paths = getattr(read_declaration(stage, root), kind)
    filled = [_filled(path, key, item) for key, item in items.items() for path in paths]
    return [Path(os.path.relpath(root / path, ROOT)) for path in filled]


def _filled(path: str, key: str, item: dict[str, str]) -> str:
    for name, value in {"key": key, **{f"item.{name}": value for name, value in item.items()}}.items():
        path = path.replace(f"${{{name}}}", value)
    assert "$" not in path
    return path


def test_a_stage_of_several_items_has_the_paths_of_each():
    outputs = expanded("cells", ROOT / "data/paper", "outputs")
    assert {Path("data/paper/shapes"), Path("data/results/paper/graphs.json")} <= {*outputs}
    depended = expanded("cells", ROOT / "data/paper", "dependencies")
    assert Path("data/results/paper/agents.json") in depended, "of the part `unseen`"


def test_the_experiment_and_the_policy_do_not_depend_on_each_other():
    """Else `dvc repro` would train the policy that ships, or `make study NAME=policy` run the experiment."""
    of = {root: {kind: _paths(root, kind) for kind in ("outputs", "dependencies")} for root in (ROOT, POLICY)}
    for one, other in ((ROOT, POLICY), (POLICY, ROOT)):
        outputs, inputs = of[one]["outputs"], of[other]["dependencies"]
        assert outputs, "or there is nothing to depend on"
        assert not [pair for pair in product(outputs, inputs) if pair[0].is_relative_to(pair[1])]
        assert not [pair for pair in product(outputs, inputs) if pair[1].is_relative_to(pair[0])]


@pytest.mark.slow
def test_dvc_sees_no_study_in_the_experiment(tmp_path: Path, command: Callable):
    """Else a checkout that has run none lacks data: `dvc exp apply` would fail, and `dvc status` print pages."""
    projects = [str(project.relative_to(ROOT)) for project in PROJECTS]
    assert {"data/paper", "data/policy"} <= {*projects}, "or nothing is left out"
    settings = [
        f"{place}/{name}" for place in (".", *projects) for name in ("dvc.yaml", ".dvc/config", ".dvc/.gitignore")
    ]
    checkout = checkout_of(ROOT, [*settings, "params.yaml"], tmp_path)
    listed = command("dvc", "stage", "list", "--all", "--name-only", cwd=checkout).stdout.split()
    assert {*listed} == {*DECLARED}
    own = command("dvc", "stage", "list", "--all", "--name-only", cwd=checkout / "data/policy").stdout.split()
    assert {*own} == {*stage_names(POLICY)}


def test_what_ships_changes_no_stage_of_the_policy():
    """Else shipping it would be a reason to train it again."""
    shipped = Path("src/rlflow/agents/shipped")
    assert not [path for path in _paths(POLICY, "dependencies") if shipped.is_relative_to(path)]


def _paths(root: Path, kind: str) -> set[Path]:
    return {path for name, (place, _) in SCRIPTS.items() if place == root for path in expanded(name, root, kind)}
