"""Seventeen public architectures at sizes that people run, as exporters write them: run this file.

    PYTHONPATH=tests python -m support.exports.full_size FOLDER             each by the first exporter that takes it
    PYTHONPATH=tests python -m support.exports.full_size FOLDER script dynamo       by each of these that takes it

Weights are drawn; nothing is downloaded. A model that is there already is not exported again. What the older exporter
refuses goes through the newer one.
"""

import logging
import sys
from collections.abc import Sequence
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
    of("electra_small", "ElectraModel", "ElectraConfig", _TEXT, hidden_size=256, embedding_size=128,
        num_attention_heads=4, intermediate_size=1024),
    of("albert_base", "AlbertModel", "AlbertConfig", _TEXT, hidden_size=768, num_attention_heads=12,
        intermediate_size=3072),
    of("swin_tiny", "SwinForImageClassification", "SwinConfig", _PIXELS),
    of("efficientnet_b0", "EfficientNetForImageClassification", "EfficientNetConfig", _PIXELS, image_size=224,
        width_coefficient=1.0, depth_coefficient=1.0, hidden_dim=1280),
    of("regnet_y_004", "RegNetForImageClassification", "RegNetConfig", _PIXELS, hidden_sizes=[48, 104, 208, 440],
        depths=[1, 3, 6, 6], groups_width=8, layer_type="y"),
    of("dinov2_small", "Dinov2Model", "Dinov2Config", _PIXELS, hidden_size=384, num_attention_heads=6, image_size=224),
    of("mobilenet_v2", "MobileNetV2ForImageClassification", "MobileNetV2Config", _PIXELS),
)  # fmt: skip


def main(folder: Path, exporters: Sequence[str] = ()) -> None:
    for name in exporters:
        written(folder, FULL_SIZE, name)
    if exporters:
        return
    folder.mkdir(parents=True, exist_ok=True)
    for architecture in FULL_SIZE:
        path = folder / f"{architecture.name}.onnx"
        if not path.exists():
            _LOGGER.info("exporting %s", architecture.name)
            save_model(_exported(architecture).model, path)


def written(folder: Path, architectures: Sequence[Architecture], exporter: str) -> None:
    """Write each architecture that this exporter takes to a folder; what is there already stays."""
    folder.mkdir(parents=True, exist_ok=True)
    for architecture in architectures:
        path = folder / f"{architecture.name}_{exporter}.onnx"
        try:
            if not path.exists():
                _LOGGER.info("exporting %s", path.name)
                save_model(EXPORTERS[exporter](architecture).model, path)
        except RefusedError as error:
            _LOGGER.info("%s refuses %s: %s", exporter, architecture.name, str(error).splitlines()[0])


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
    if len(sys.argv) < 2:
        sys.exit("name the folder that the models are written to")
    main(Path(sys.argv[1]), sys.argv[2:])
