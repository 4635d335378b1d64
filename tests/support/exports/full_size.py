"""Ten public architectures at sizes that people run, exported as they export: run this file to write them to a folder.

    PYTHONPATH=tests python -m support.exports.full_size FOLDER             each by the first exporter that takes it
    PYTHONPATH=tests python -m support.exports.full_size FOLDER script dynamo       by each of these that takes it

Weights are drawn; nothing is downloaded. A model that is there already is not exported again. What the older exporter
refuses goes through the newer one.
"""

import logging
import sys
from collections.abc import Sequence
from itertools import product
from pathlib import Path

from rlflow.onnx_io import save_model
from support.exports.architecture import Architecture
from support.exports.exporting import Export, Exporter, RefusedError
from support.exports.from_transformers import of
from support.exports.inputs import floats, image, together, tokens

EXPORTERS = {"script": Exporter(17), "dynamo": Exporter(18, is_new=True)}
_TEXT = tokens("input_ids", "attention_mask", length=128)
_PIXELS = image(224)
_LOGGER = logging.getLogger(__name__)

FULL_SIZE: tuple[Architecture, ...] = (
    of("minilm_l6", "BertModel", "BertConfig", _TEXT, hidden_size=384, num_hidden_layers=6, num_attention_heads=12,
        intermediate_size=1536),
    of("distilbert_base", "DistilBertModel", "DistilBertConfig", _TEXT),
    of("gpt2_small", "GPT2LMHeadModel", "GPT2Config", tokens("input_ids", length=64)),
    of("t5_small_encoder", "T5EncoderModel", "T5Config", _TEXT, d_model=512, d_kv=64, d_ff=2048, num_heads=8,
        num_layers=6),
    of("deit_small", "DeiTForImageClassification", "DeiTConfig", _PIXELS, hidden_size=384, num_attention_heads=6,
        intermediate_size=1536),
    of("convnext_tiny", "ConvNextForImageClassification", "ConvNextConfig", _PIXELS),
    of("resnet_50", "ResNetForImageClassification", "ResNetConfig", _PIXELS),
    of("mobilevit_small", "MobileViTForImageClassification", "MobileViTConfig", image(256)),
    of("segformer_b0", "SegformerForSemanticSegmentation", "SegformerConfig", image(256)),
    of("whisper_tiny", "WhisperModel", "WhisperConfig",
        together(floats(1, 80, 3000, name="input_features", batch=0), tokens("decoder_input_ids")), d_model=384,
        encoder_layers=4, decoder_layers=4, encoder_attention_heads=6, decoder_attention_heads=6,
        encoder_ffn_dim=1536, decoder_ffn_dim=1536),
)  # fmt: skip


def main(folder: Path, exporters: Sequence[str] = ()) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, architecture in product(exporters, FULL_SIZE):
        path = folder / f"{architecture.name}_{name}.onnx"
        try:
            if not path.exists():
                save_model(EXPORTERS[name](architecture).model, path)
        except RefusedError as error:
            _LOGGER.info("%s refuses %s: %s", name, architecture.name, str(error).splitlines()[0])
    if exporters:
        return
    for architecture in FULL_SIZE:
        path = folder / f"{architecture.name}.onnx"
        if not path.exists():
            _LOGGER.info("exporting %s", architecture.name)
            save_model(_exported(architecture).model, path)


def _exported(architecture: Architecture) -> Export:
    """`RefusedError` of the last exporter if all refuse."""
    *others, last = EXPORTERS.values()
    for exporter in others:
        try:
            return exporter(architecture)
        except RefusedError as error:
            _LOGGER.info("%s refuses %s: %s", exporter.name, architecture.name, error)
    return last(architecture)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    main(Path(sys.argv[1]), sys.argv[2:])
