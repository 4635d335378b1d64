"""Public architectures from which prices are learned, at middling sizes, as exporters write them: run this file.

    PYTHONPATH=tests python -m support.exports.priced FOLDER      all that conf/study/prices.yaml names

None of them is among the architectures of `full_size`, by which prices are judged.
"""

import logging
import sys
from pathlib import Path

from support.exports.architecture import Architecture
from support.exports.from_transformers import of
from support.exports.full_size import written
from support.exports.inputs import Example, floats, image, together, tokens

_WORDS = 2000


def _text(length: int) -> Example:
    return tokens("input_ids", "attention_mask", length=length)


def _sizes(width: int, layers: int, heads: int, times: int = 4) -> dict[str, int]:
    return {
        "hidden_size": width,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "intermediate_size": times * width,
    }


def _words(width: int, layers: int, heads: int, times: int = 4) -> dict[str, int]:
    return {**_sizes(width, layers, heads, times), "vocab_size": _WORDS, "max_position_embeddings": 512}


_PAIR = {
    "vocab_size": _WORDS, "d_model": 384, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 6,
    "decoder_attention_heads": 6, "encoder_ffn_dim": 1536, "decoder_ffn_dim": 1536, "max_position_embeddings": 256,
    "decoder_start_token_id": 1, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0,
}  # fmt: skip
_TWO_SIDES = tokens("input_ids", "attention_mask", "decoder_input_ids", length=96)
_STAGES = {"hidden_sizes": [32, 64, 160, 256], "depths": [2, 2, 2, 2]}

SCRIPTED: tuple[Architecture, ...] = (
    of("roberta", "RobertaModel", "RobertaConfig", _text(96), **_words(512, 3, 8)),
    of("mpnet", "MPNetModel", "MPNetConfig", _text(64), **_words(256, 4, 8)),
    of("squeezebert", "SqueezeBertModel", "SqueezeBertConfig", _text(128), embedding_size=384, **_words(384, 3, 6)),
    of("roformer", "RoFormerModel", "RoFormerConfig", _text(128), embedding_size=256, **_words(256, 4, 4)),
    of("convbert", "ConvBertModel", "ConvBertConfig", _text(96), embedding_size=128, **_words(256, 3, 4)),
    of("opt", "OPTForCausalLM", "OPTConfig", _text(64), vocab_size=_WORDS, hidden_size=512, num_hidden_layers=3,
        num_attention_heads=8, ffn_dim=2048, max_position_embeddings=128, word_embed_proj_dim=512),
    of("gptj", "GPTJModel", "GPTJConfig", _text(48), vocab_size=_WORDS, n_positions=128, n_embd=512, n_layer=3,
        n_head=4, rotary_dim=32),
    of("bart", "BartModel", "BartConfig", _TWO_SIDES, **_PAIR),
    of("clip_vision", "CLIPVisionModel", "CLIPVisionConfig", image(224), image_size=224, patch_size=32,
        **_sizes(512, 4, 8)),
    of("vit_mae", "ViTMAEModel", "ViTMAEConfig", image(192), image_size=192, patch_size=16, **_sizes(256, 4, 8)),
    of("swinv2", "Swinv2Model", "Swinv2Config", image(192), image_size=192, patch_size=4, embed_dim=64,
        depths=[2, 2, 2], num_heads=[2, 4, 8], window_size=6),
    of("focalnet", "FocalNetForImageClassification", "FocalNetConfig", image(160), image_size=160, patch_size=4,
        embed_dim=64, depths=[2, 2, 2], focal_levels=[2, 2, 2], focal_windows=[3, 3, 3], hidden_sizes=[128, 256, 512]),
    of("pvt", "PvtForImageClassification", "PvtConfig", image(224), image_size=224, **_STAGES,
        num_attention_heads=[1, 2, 5, 8]),
    of("poolformer", "PoolFormerModel", "PoolFormerConfig", image(192), hidden_sizes=[64, 128, 256, 320],
        depths=[2, 2, 2, 2]),
    of("bit", "BitForImageClassification", "BitConfig", image(128), embedding_size=32,
        hidden_sizes=[64, 128, 256, 512], depths=[1, 2, 2, 1], num_groups=16),
    of("mobilenet_v1", "MobileNetV1ForImageClassification", "MobileNetV1Config", image(192), tf_padding=True),
    of("glpn", "GLPNForDepthEstimation", "GLPNConfig", image(192), **_STAGES, num_attention_heads=[1, 2, 5, 8],
        decoder_hidden_size=64),
    of("yolos", "YolosForObjectDetection", "YolosConfig", image(224), image_size=[224, 224], patch_size=16,
        num_detection_tokens=60, **_sizes(192, 4, 3)),
    of("wav2vec2", "Wav2Vec2ForCTC", "Wav2Vec2Config", floats(1, 16000, name="input_values", batch=0),
        conv_dim=(128,) * 5, conv_stride=(5, 4, 2, 2, 2), conv_kernel=(10, 4, 3, 3, 2), num_feat_extract_layers=5,
        num_conv_pos_embeddings=64, num_conv_pos_embedding_groups=8, vocab_size=32, **_sizes(256, 3, 8)),
)  # fmt: skip
"""Those that the older exporter writes."""

TRACED: tuple[Architecture, ...] = (
    of("layoutlm", "LayoutLMModel", "LayoutLMConfig", _text(128), **_words(320, 4, 5)),
    of("modernbert", "ModernBertModel", "ModernBertConfig", _text(96), **_words(384, 3, 6, 3), bos_token_id=1,
        eos_token_id=2, pad_token_id=0, cls_token_id=1, sep_token_id=2),
    of("gpt_neox", "GPTNeoXModel", "GPTNeoXConfig", _text(64), **_words(512, 3, 8)),
    of("llama", "LlamaForCausalLM", "LlamaConfig", _text(48), num_key_value_heads=2, **_words(512, 3, 8, 3)),
    of("qwen3", "Qwen3ForCausalLM", "Qwen3Config", _text(32), num_key_value_heads=2, head_dim=96,
        **_words(384, 3, 4, 3)),
    of("pegasus", "PegasusModel", "PegasusConfig", _TWO_SIDES, **_PAIR),
    of("t5", "T5ForConditionalGeneration", "T5Config", _TWO_SIDES, vocab_size=_WORDS, d_model=384, d_kv=48, d_ff=1024,
        num_heads=8, num_layers=2, feed_forward_proj="gated-gelu", decoder_start_token_id=0),
    of("siglip_vision", "SiglipVisionModel", "SiglipVisionConfig", image(224), image_size=224, patch_size=16,
        **_sizes(256, 4, 4)),
    of("beit", "BeitModel", "BeitConfig", image(224), use_relative_position_bias=True, image_size=224, patch_size=16,
        **_sizes(384, 3, 12)),
    of("convnextv2", "ConvNextV2Model", "ConvNextV2Config", image(192), hidden_sizes=[40, 80, 160, 320],
        depths=[2, 2, 4, 2]),
    of("regnet_x", "RegNetForImageClassification", "RegNetConfig", image(192), embedding_size=32,
        hidden_sizes=[32, 64, 160, 384], depths=[1, 2, 5, 3], groups_width=16, layer_type="x"),
    of("levit", "LevitForImageClassification", "LevitConfig", image(224), hidden_sizes=[128, 256, 384],
        num_attention_heads=[4, 6, 8], depths=[2, 2, 2], key_dim=[16, 16, 16]),
    of("dpt", "DPTForDepthEstimation", "DPTConfig", image(160), image_size=160, patch_size=16, **_sizes(192, 4, 3),
        backbone_out_indices=[0, 1, 2, 3], neck_hidden_sizes=[24, 48, 96, 192], fusion_hidden_size=48),
    of("videomae", "VideoMAEModel", "VideoMAEConfig", floats(1, 4, 3, 112, 112, name="pixel_values", batch=0),
        num_frames=4, tubelet_size=2, image_size=112, patch_size=16, **_sizes(256, 3, 4)),
    of("audio_spectrogram_transformer", "ASTModel", "ASTConfig", floats(1, 256, 64, name="input_values", batch=0),
        patch_size=16, max_length=256, num_mel_bins=64, **_sizes(320, 4, 5)),
    of("clip", "CLIPModel", "CLIPConfig", together(_text(32), image(128)),
        text_config=_words(256, 2, 4) | {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0},
        vision_config={**_sizes(384, 2, 6), "image_size": 128, "patch_size": 16}, projection_dim=128),
)  # fmt: skip
"""Those that the newer exporter writes."""


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    if len(sys.argv) < 2:
        sys.exit("name the folder that the models are written to")
    for kind, architectures in {"script": SCRIPTED, "dynamo": TRACED}.items():
        written(Path(sys.argv[1]), architectures, kind)
