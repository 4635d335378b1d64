"""What a command cannot use, it refuses in one sentence before the work, and leaves nothing behind."""

import shlex

import numpy as np
import pytest

from rlflow import zoo

OPTIMISE, EQUIVALENCE = "optimise in.onnx -o out.onnx", "equivalence in.onnx in.onnx"
TRAIN, GENERATE = "train in.onnx --policy-out policy", "rules generate -o library.jsonl"
LEARNED_ALONE = "--policy and --trained-on are for --method rlflow alone, not for best"
REFUSED = {
    f"{OPTIMISE} --method magic": "there is no method 'magic': choose one of",
    f"{OPTIMISE} --cost-model magic": "there is no cost model 'magic': choose one of",
    f"{OPTIMISE} --policy data": LEARNED_ALONE,
    f"{OPTIMISE} --trained-on bert": LEARNED_ALONE,
    f"{OPTIMISE} --rules rules.txt": "rules.txt",
    f"{OPTIMISE} --passes xla": "passes of 'xla' make no ONNX model: choose onnx or onnx-contrib",
    f"{OPTIMISE} --setting fast": "there is no setting 'fast': choose one of",
    f"{OPTIMISE} --budget -5s": "'-5s' is not a budget",
    f"{OPTIMISE} --budget soon": "'soon' is not a budget",
    f"{OPTIMISE} --budget 0s": "'0s' is not a budget",
    f"{OPTIMISE} --disable no-such-rule": "the library has no rule 'no-such-rule'",
    f"{OPTIMISE} --shape x=32x64+": "'x=' is not a shape",
    f"{OPTIMISE} --shape z=32x64+5x64": "no input 'z'",
    f"{OPTIMISE} --shape x=32x64+5x64": "dimension 0 of input 'x' is 5, it must be 32",
    f"{OPTIMISE} --shape x=32x64+32x64": "the size x=32x64 is named twice",
    f"{OPTIMISE} --dispatch --shape x=32x64+5x64": "dimension 0 of input 'x' is 5, it must be 32",
    f"{OPTIMISE} --dispatch --shape x=32x64": "--dispatch writes a model for each of several sizes",
    f"{OPTIMISE} --method rlflow --policy nowhere": "no trained policy in nowhere",
    "optimise in.onnx -o missing/out.onnx": "there is no folder missing: create it first",
    "optimise in.onnx -o in.onnx/out.onnx": "there is no folder in.onnx: create it first",
    "optimise in.onnx -o .": ". is a folder: name a file to write the model to",
    "optimise in.onnx -o /proc/out.onnx": "/proc cannot be written to",
    f"{EQUIVALENCE} --draws 0": "draws is 0",
    f"{EQUIVALENCE} --seed -1": "the seed is -1",
    f"{EQUIVALENCE} --shape x": "is not a shape",
    f"{EQUIVALENCE} --shape z=4x4": "no input 'z'",
    f"{EQUIVALENCE} --shape x=5x64": "dimension 0 of input 'x' is 5, it must be 32",
    f"{EQUIVALENCE} --inputs missing.npz": "cannot read missing.npz as an .npz file",
    f"{EQUIVALENCE} --inputs in.onnx": "cannot read in.onnx as an .npz file",
    f"{EQUIVALENCE} --inputs half.npz": "cannot read half.npz as an .npz file",
    f"{EQUIVALENCE} --inputs array.npz": "cannot read array.npz as an .npz file",
    f"{EQUIVALENCE} --inputs empty.npz": "cannot read empty.npz as an .npz file",
    f"{EQUIVALENCE} --inputs .": "cannot read . as an .npz file",
    f"{EQUIVALENCE} --inputs other.npz": "could not be tried here",
    f"{TRAIN} --expert oracle": "there is no expert 'oracle': choose one of equality_saturation, chains",
    f"{TRAIN} --cost-model measured": "choose predicted",
    f"{TRAIN} --cost-model guess": "guess",
    f"{TRAIN} --policy nowhere": "policy: nowhere cannot be read",
    f"{TRAIN} --shape x": "'x' is not a shape",
    f"{TRAIN} --shape absent=1x2": "the model has no input 'absent'",
    "train in.onnx --policy-out mine": "exists already: name a new folder with --policy-out",
    "show missing.txt": "name a file that `rlflow show --text` printed",
    "show in.onnx --after missing.onnx": "missing.onnx",
    "show in.onnx -o a.bmp": "a.bmp does not name a picture format: let it end in one of .html, .svg, .png, .pdf, .dot",
    "show in.onnx -o none/picture.dot": "there is no folder none: create it first",
    "show in.onnx --text --after in.onnx": "--text prints one model",
    "show letter.txt": "line 2 of the graph cannot be read",
    f"{GENERATE} --family nonsense=2": "unknown family",
    f"{GENERATE} --family algebra": "as in algebra=2",
    f"{GENERATE} --family algebra=0": "as in algebra=2",
    "rules generate -o in.onnx/library.jsonl --family algebra=1": ": name another file\n",
    "rules list --library .": ": name another file\n",
    "rules verify -o own.jsonl": "--output is for rules of your own",
    "rules show nonsense": "the library has no rule 'nonsense'",
    "rules show merge-3-matmuls --picture rule.txt": "txt",
    "zoo build bert -o bert.onnx --set layers": "layers",
    "zoo build nothing -o nothing.onnx": "nothing",
}


@pytest.fixture(scope="module")
def model():
    return zoo.build("tiny_chain")


@pytest.mark.parametrize("line", REFUSED)
def test_what_cannot_be_used_is_refused(refused, model, tmp_path, monkeypatch, line):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.onnx").write_bytes(model.SerializeToString())
    (tmp_path / "letter.txt").write_text("opset 17\nDear friend,\n")
    (tmp_path / "mine").mkdir()
    np.savez(tmp_path / "other.npz", x=np.zeros((2, 2), np.float32))
    (tmp_path / "half.npz").write_bytes((tmp_path / "other.npz").read_bytes()[:100])
    (tmp_path / "empty.npz").touch()
    with (tmp_path / "array.npz").open("wb") as file:
        np.save(file, np.zeros((4, 4)))
    assert REFUSED[line] in refused(*shlex.split(line))
    assert (tmp_path / "in.onnx").read_bytes() == model.SerializeToString()
    assert not list((tmp_path / "mine").iterdir())
