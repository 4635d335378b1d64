"""A model of optimum, made faster in its folder: exported, optimised, and loaded again as an ORTModel.

Its inputs have open sizes, so the shapes are given with which it will mostly run; it accepts others as before, unless
the report says otherwise. It wants `pip install optimum-onnx`. The weights are drawn: nothing is downloaded.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from optimum.onnxruntime import ORTModelForSequenceClassification
from transformers import BertConfig, BertForSequenceClassification

import rlflow

INPUTS = ("input_ids", "attention_mask", "token_type_ids")
SMALL = BertConfig(vocab_size=100, hidden_size=64, num_hidden_layers=2, num_attention_heads=2, intermediate_size=128)

if __name__ == "__main__":
    torch.manual_seed(0)
    words = {name: torch.ones(1, 32, dtype=torch.int64) for name in INPUTS}
    with TemporaryDirectory() as folder:
        BertForSequenceClassification(SMALL).save_pretrained(folder)
        original = ORTModelForSequenceClassification.from_pretrained(folder, export=True)
        original.save_pretrained(folder)

        file = Path(folder, "model.onnx")
        optimised = rlflow.optimise(file, shapes=dict.fromkeys(INPUTS, (1, 32)), budget_s=20)
        optimised.save(file)

        faster = ORTModelForSequenceClassification.from_pretrained(folder)
        difference = (faster(**words).logits - original(**words).logits).abs().max()
    print(optimised.report.summary())
    print(f"The logits differ by {float(difference):.1e}.")
