"""`rlflow train MODEL.onnx ... --policy-out FOLDER`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from rlflow.atomic_file import written_whole
from rlflow.cli.arguments import parse_shape
from rlflow.cli.progress import progress_bar
from rlflow.cost.base import CostContext, CostModel
from rlflow.cost.models import COST_MODELS
from rlflow.errors import InputError
from rlflow.extras import needs
from rlflow.ir.graph import Graph
from rlflow.method import Budget, OnProgress
from rlflow.optimise import DEFAULT_COST_MODEL
from rlflow.optimise.source import Source
from rlflow.optimise.specialise import Assumptions
from rlflow.rules.library import Library
from rlflow.rules.library import load as load_library
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.rules.matching.sharing import SharingRewriter
from rlflow.runtime.inputs import dimensions_of
from rlflow.search.greedy import Greedy

with needs("learn", "rlflow train"):
    from rlflow.agents.match_level import taught_guide
    from rlflow.agents.match_level.fine_tuning import PracticeConfig, TuningConfig, fine_tuned, practised
    from rlflow.agents.match_level.lessons import Expert, Lesson, Taught, teach
    from rlflow.agents.match_level.taught_guide import TaughtGuide
    from rlflow.agents.token_collection import TokenCollectionConfig
    from rlflow.processes.token_process import TokenProcess

EXPERTS: Mapping[str, Callable[[int], Expert]] = {
    "equality_saturation": lambda effort: Expert(
        "equality_saturation",
        {"exploration": {"max_nodes": effort}, "limits": {"time_s": None, "nodes": 200}},
    ),
    "chains": lambda effort: Expert("chains", expansions=effort),
}
"""Searches that show the way, by the effort after which they end."""
MEASURED = "measured"
_PRACTICE = PracticeConfig()

ExpertName = Annotated[
    str, typer.Option(help=f"The search that shows how each model is optimised: one of {', '.join(EXPERTS)}.")
]
Effort = Annotated[
    int,
    typer.Option(
        min=1,
        help="After which the expert ends: nodes of the e-graph of equality saturation, expansions of chains. A "
        "transformer of two layers takes it seconds at 3000, one of twelve a minute or more.",
    ),
]
Prices = Annotated[
    str, typer.Option(help="How a graph is priced: predicted, analytic or gpu; by the clock it would take too long.")
]
Shapes = Annotated[
    list[str] | None,
    typer.Option(help="Shape of an input with dynamic dimensions, as in x=1x128, in all models; repeatable."),
]
Rewrites = Annotated[int, typer.Option(min=1, help="Rewrites after which the policy is compared before and after.")]
Epochs = Annotated[
    int, typer.Option(min=1, help="Passes over what the expert showed; with more of them it forgets more.")
]

Episodes = Annotated[
    int,
    typer.Option(
        min=0,
        help="Episodes on each model, of which the controller dreams; on a transformer of twelve layers they take a "
        "minute or two. 0: it stays as it is.",
    ),
]
DreamSteps = Annotated[int, typer.Option(min=1, help="Steps of the controller's training in the dream of the models.")]


@dataclass(frozen=True, eq=False)
class _Subject:
    """A model that is trained on, with the prices that it is rewritten by."""

    name: str
    graph: Graph
    cost_model: CostModel


def train(
    models: Annotated[list[Path], typer.Argument(help="The ONNX models to train on.", metavar="MODEL...")],
    policy_out: Annotated[Path, typer.Option(help="The folder to write the policy to, which is made.")],
    policy: Annotated[Path | None, typer.Option(help="The policy to begin with; else the one that ships.")] = None,
    expert: ExpertName = "equality_saturation",
    effort: Effort = 3000,
    cost_model: Prices = DEFAULT_COST_MODEL,
    shape: Shapes = None,
    rewrites: Rewrites = 500,
    evaluations: Annotated[int | None, typer.Option(min=1, hidden=True, help="An older name of --rewrites.")] = None,
    epochs: Epochs = TuningConfig.encoder_epochs,
    episodes: Episodes = _PRACTICE.play.episodes,
    dream_steps: DreamSteps = _PRACTICE.ppo.total_steps,
    seed: Annotated[int, typer.Option(min=0, help="Of all that is drawn: the same models give the same policy.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was found as JSON.")] = False,
) -> None:
    """Fine-tune the policy of `rlflow optimise --method rlflow` on models of your own.

    On each model an expert search shows a way to optimise it. The policy goes on learning from these ways, in small
    steps, so that it forgets little of what it knows. A model in which the expert finds nothing is left out. Then the
    policy plays episodes on the models, and its controller goes on learning in the dream of them. The folder
    is one for `rlflow optimise --method rlflow --policy`; it is written whole or not at all, also when Ctrl-C ends the
    training. At last the policy's search is run on each model with the policy as it was and as it is.

    Exit code 0 if the policy was written, 2 if a model, the folder or an option cannot be used, 1 on any other failure.
    """
    _check_free(policy_out)
    rewrites = evaluations or rewrites
    shown = _expert(expert, effort)
    before = taught_guide.shipped() if policy is None else TaughtGuide.load(policy)
    library, shapes = load_library(), dict(parse_shape(text) for text in shape or ())
    subjects = [_subject(name, file, cost_model, library, shapes) for name, file in _named(models).items()]

    with progress_bar("training") as on_progress:
        taught = _taught(subjects, shown, library, before, seed, on_progress)
        after = _tuned(before, taught, epochs, seed, on_progress)
        if episodes:
            after = _practised(after, taught, library, episodes, dream_steps, seed, on_progress)
        with written_whole(policy_out) as draft:
            after.save(draft)
        rows = _rows(taught, library, {"before": before, "after": after}, rewrites, on_progress)
    document = {
        "policy": str(policy_out),
        "expert": expert,
        "evaluations": rewrites,
        "models": rows,
        "left_out": [subject.name for subject in subjects if subject not in taught],
    }
    typer.echo(json.dumps(document, indent=1) if as_json else _summary(document))


def _check_free(folder: Path) -> None:
    if folder.exists():
        raise InputError(f"{folder} exists already: name a new folder with --policy-out, or remove it first")


def _expert(name: str, effort: int) -> Expert:
    if name not in EXPERTS:
        raise InputError(f"there is no expert {name!r}: choose one of {', '.join(EXPERTS)}")
    return EXPERTS[name](effort)


def _named(files: Sequence[Path]) -> dict[str, Path]:
    """The files by their names without suffix, or by their whole paths if two have the same name."""
    stems = {file.stem: file for file in files}
    return stems if len(stems) == len(files) else {str(file): file for file in files}


def _subject(name: str, file: Path, cost_model: str, library: Library, shapes: Mapping[str, Any]) -> _Subject:
    if cost_model == MEASURED:
        raise InputError("--cost-model measured would take too long, as every rewrite is priced: choose predicted")
    model = Source.of(file).model
    dimensions = dimensions_of(model, shapes)
    graph = Assumptions(model, dimensions, library.rules).searched
    return _Subject(name, graph, COST_MODELS.get(cost_model)(CostContext(dimensions=dimensions)))


def _taught(
    subjects: Sequence[_Subject],
    expert: Expert,
    library: Library,
    policy: TaughtGuide,
    seed: int,
    on_progress: OnProgress,
) -> dict[_Subject, Taught]:
    """Return what the expert shows on each subject in which it finds anything. `InputError` if there is none."""
    taught, vocabulary = {}, policy.model.arguments.vocabulary
    for number, subject in enumerate(subjects):
        on_progress(0.4 * number / len(subjects), f"{expert.method} on {subject.name}")
        lesson = Lesson(subject.name, expert=expert, play=TokenCollectionConfig(episodes=1, steps=10), seed=seed)
        shown = teach(lesson, subject.graph, library, subject.cost_model, vocabulary)
        if shown.found.trajectory.steps:
            taught[subject] = shown
    if not taught:
        names = ", ".join(subject.name for subject in subjects)
        raise InputError(f"there is nothing to learn: the expert found nothing to rewrite in {names}")
    return taught


def _tuned(
    policy: TaughtGuide, taught: Mapping[_Subject, Taught], epochs: int, seed: int, on_progress: OnProgress
) -> TaughtGuide:
    """Return the policy after it has learned what was shown."""
    config = TuningConfig(encoder_epochs=epochs)

    def on_epoch(epoch: int, _: dict[str, float]) -> None:
        on_progress(0.4 + 0.1 * (epoch + 1) / (epochs + config.epochs), f"epoch {epoch + 1}")

    return fine_tuned(policy, [lesson.rollouts for lesson in taught.values()], config, seed=seed, on_epoch=on_epoch)


def _practised(
    policy: TaughtGuide,
    subjects: Iterable[_Subject],
    library: Library,
    episodes: int,
    dream_steps: int,
    seed: int,
    on_progress: OnProgress,
) -> TaughtGuide:
    """Return the policy after its controller has learned in the dream of these subjects."""
    play, ppo = replace(_PRACTICE.play, episodes=episodes), replace(_PRACTICE.ppo, total_steps=dream_steps)
    config = PracticeConfig(play, ppo=ppo)
    rewriter, vocabulary = SharingRewriter(library.rules), policy.model.arguments.vocabulary
    processes = {s.name: TokenProcess(s.graph, rewriter, s.cost_model, vocabulary) for s in subjects}

    def on_step(fraction: float, text: str) -> None:
        on_progress(0.5 + 0.3 * fraction, text)

    return practised(policy, processes, config, seed=seed, library_hash=library.hash, on_step=on_step)


def _rows(
    taught: Mapping[_Subject, Taught],
    library: Library,
    policies: Mapping[str, TaughtGuide],
    rewrites: int,
    on_progress: OnProgress,
) -> list[dict[str, Any]]:
    """Compare the policies on each subject."""
    rows = []
    for number, (subject, lesson) in enumerate(taught.items()):
        on_progress(0.8 + 0.2 * number / len(taught), f"the policies on {subject.name}")
        rows.append(_row(subject, lesson, library, policies, rewrites))
    return rows


def _row(
    subject: _Subject, taught: Taught, library: Library, policies: Mapping[str, TaughtGuide], rewrites: int
) -> dict[str, Any]:
    """Run the searches that are compared on a model; what each saves is in percent of its price."""
    rewriter = Rewriter(library.rules)
    greedy = Greedy(library, rewriter, subject.cost_model)
    searches = {
        name: policy.guide.search(library, rewriter, subject.cost_model, rewrites=rewrites)
        for name, policy in policies.items()
    }
    found = {name: search.optimise(subject.graph, Budget()) for name, search in {"greedy": greedy, **searches}.items()}
    saved = {"expert": taught.found, **found}
    return {
        "model": subject.name,
        "steps": len(taught.found.trajectory.steps),
        **{f"{name}_percent": result.improvement_percent for name, result in saved.items()},
    }


def _summary(document: Mapping[str, Any]) -> str:
    lines = [
        f"{row['model']}: greedy search saves {row['greedy_percent']:.2f} %, the expert {row['expert_percent']:.2f} % "
        f"in {row['steps']} steps; the policy saved {row['before_percent']:.2f} % in {document['evaluations']} "
        f"rewrites, and now saves {row['after_percent']:.2f} %"
        for row in document["models"]
    ]
    lines += [f"{name}: the expert found nothing to rewrite, so nothing was learned" for name in document["left_out"]]
    use = f"rlflow optimise MODEL -o OUT --method rlflow --policy {document['policy']}"
    return "\n".join([*lines, f"written to {document['policy']}, for {use}"])
