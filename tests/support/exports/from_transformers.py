"""Architectures of the transformers package, a few layers of a few channels of each."""

from typing import Any

import torch
import transformers
from torch import nn

from support.exports.architecture import Architecture, Positional
from support.exports.inputs import WORDS, Example, floats, image, together, tokens

_LAYERS = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
_TEXT = {**_LAYERS, "vocab_size": WORDS, "max_position_embeddings": 64}
_ENDS = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
_GPT = {"vocab_size": WORDS, "n_positions": 64, "n_embd": 32, "n_layer": 2, "n_head": 4}
_GROUPED = {**_TEXT, "num_key_value_heads": 2}
_PAIR = {
    "vocab_size": WORDS,
    "d_model": 32,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64,
    "max_position_embeddings": 64,
    "decoder_start_token_id": 1,
    **_ENDS,
}
_T5 = {"vocab_size": WORDS, "d_model": 32, "d_kv": 8, "d_ff": 64, "num_heads": 4, "decoder_start_token_id": 0}
_VISION = {**_LAYERS, "image_size": 32, "patch_size": 8}
_WINDOWS = {"image_size": 32, "patch_size": 2, "embed_dim": 16, "depths": [2, 2], "num_heads": [2, 4], "window_size": 4}
_STAGES = {"hidden_sizes": [8, 16, 16, 32], "depths": [1, 1, 1, 1]}
_HEADED_STAGES = {**_STAGES, "num_attention_heads": [1, 2, 2, 4]}
_WAVES = {
    **_LAYERS,
    "conv_dim": (16, 16),
    "conv_stride": (5, 4),
    "conv_kernel": (10, 4),
    "num_feat_extract_layers": 2,
    "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 4,
    "vocab_size": 32,
}
_SERIES = {"num_input_channels": 3, "context_length": 32, "patch_length": 4, "patch_stride": 4, "prediction_length": 8}

_WORDS = tokens()
_IDS = tokens("input_ids")
_SENTENCES = tokens("input_ids", "attention_mask", "token_type_ids")
_TWO_SIDES = tokens("input_ids", "attention_mask", "decoder_input_ids")
_IMAGE, _LARGE_IMAGE = image(), image(64)
_WAVE = floats(1, 800, name="input_values", batch=0, samples=1)
_FRAMES = floats(1, 4, 3, 32, 32, name="pixel_values", batch=0)
_PAST = floats(2, 32, 3, name="past_values", batch=0)


Part = tuple[str, dict[str, Any]]
"""A configuration inside another one: its class and its sizes."""


def of(name: str, model: str, config: str, example: Example, **sizes: Any) -> Architecture:
    """A class of the package with a configuration of these sizes."""
    draw, axes = example

    def make() -> nn.Module:
        settings = getattr(transformers, config)(**{key: _made(value) for key, value in sizes.items()})
        keeps = {"use_cache": False} if hasattr(settings, "use_cache") else {}
        kind = getattr(transformers, model)
        try:
            made = kind._from_config(settings, attn_implementation="eager")
        except ValueError:  # of one implementation only
            made = kind(settings)
        return Positional(made, tuple(axes), **keeps)

    return Architecture(name, make, draw, axes)


def _made(value: Any) -> Any:
    """The configuration that a part stands for."""
    match value:
        case (str() as kind, dict() as sizes):
            return getattr(transformers, kind)(**sizes)
    return value


def _backbone(*stages: str) -> Part:
    return "ResNetConfig", {"embedding_size": 8, **_STAGES, "out_features": list(stages)}


_DECODERS = (
    "Llama", "Mistral", "Qwen2", "Qwen3", "Gemma", "Gemma2", "Phi3", "StableLm", "Starcoder2", "Olmo", "Cohere",
)  # fmt: skip
_ENCODERS = {
    "Roberta": "RobertaForMaskedLM",
    "Albert": "AlbertModel",
    "Electra": "ElectraForTokenClassification",
    "MPNet": "MPNetModel",
    "ConvBert": "ConvBertModel",
    "RoFormer": "RoFormerModel",
    "Nystromformer": "NystromformerModel",
    "LayoutLM": "LayoutLMModel",
}
_RELATIVE = {"relative_attention": True, "pos_att_type": ["c2p", "p2c"]}
_SPECIAL = {"Gemma": {"head_dim": 8}, "Gemma2": {"head_dim": 8}, "Qwen3": {"head_dim": 8}, "Phi3": {"pad_token_id": 0}}

LANGUAGE = (
    of("bert", "BertForQuestionAnswering", "BertConfig", _SENTENCES, **_TEXT),
    of(
        "distilbert", "DistilBertForSequenceClassification", "DistilBertConfig", _WORDS,
        vocab_size=WORDS, dim=32, n_layers=2, n_heads=4, hidden_dim=64, max_position_embeddings=64,
    ),
    *(of(kind.lower(), model, f"{kind}Config", _WORDS, **_TEXT) for kind, model in _ENCODERS.items()),
    of("deberta", "DebertaModel", "DebertaConfig", _WORDS, **_RELATIVE, **_TEXT),
    of("deberta_v2", "DebertaV2Model", "DebertaV2Config", _WORDS, **_RELATIVE, **_TEXT),
    of("mobilebert", "MobileBertModel", "MobileBertConfig", _WORDS, **_TEXT, embedding_size=32,
        intra_bottleneck_size=16, true_hidden_size=16),
    of("squeezebert", "SqueezeBertModel", "SqueezeBertConfig", _WORDS, **_TEXT, embedding_size=32),
    of("modernbert", "ModernBertModel", "ModernBertConfig", _WORDS, **_TEXT, **_ENDS, cls_token_id=1, sep_token_id=2),
    of("xlnet", "XLNetModel", "XLNetConfig", _WORDS, vocab_size=WORDS, d_model=32, n_layer=2, n_head=4, d_inner=64),
    of("funnel", "FunnelBaseModel", "FunnelConfig", _WORDS, vocab_size=WORDS, d_model=32, n_head=4, d_head=8,
        d_inner=64, block_sizes=[1, 1]),
    of("longformer", "LongformerModel", "LongformerConfig", tokens(length=16), attention_window=[4, 4], **_TEXT),
    of("fnet", "FNetModel", "FNetConfig", _IDS, vocab_size=WORDS, hidden_size=32, num_hidden_layers=2,
        intermediate_size=64),
    of("gpt2", "GPT2LMHeadModel", "GPT2Config", _WORDS, **_GPT),
    of("gpt_neo", "GPTNeoModel", "GPTNeoConfig", _WORDS, vocab_size=WORDS, hidden_size=32, num_layers=2, num_heads=4,
        attention_types=[[["global", "local"], 1]], max_position_embeddings=64, window_size=4),
    of("gpt_neox", "GPTNeoXModel", "GPTNeoXConfig", _WORDS, **_TEXT),
    of("gptj", "GPTJModel", "GPTJConfig", _WORDS, **_GPT, rotary_dim=4),
    of("opt", "OPTForCausalLM", "OPTConfig", _WORDS, vocab_size=WORDS, hidden_size=32, num_hidden_layers=2,
        num_attention_heads=4, ffn_dim=64, max_position_embeddings=64, word_embed_proj_dim=32),
    of("bloom", "BloomModel", "BloomConfig", _WORDS, vocab_size=WORDS, hidden_size=32, n_layer=2, n_head=4),
    of("phi", "PhiForCausalLM", "PhiConfig", _WORDS, **_TEXT),
    of("falcon", "FalconForCausalLM", "FalconConfig", _WORDS, **_TEXT),
    *(
        of(kind.lower(), f"{kind}ForCausalLM", f"{kind}Config", _WORDS, **_GROUPED, **_SPECIAL.get(kind, {}))
        for kind in _DECODERS
    ),
    of("mamba", "MambaModel", "MambaConfig", _IDS, vocab_size=WORDS, hidden_size=32, num_hidden_layers=2,
        state_size=4, time_step_rank=4),
    of("rwkv", "RwkvModel", "RwkvConfig", _IDS, vocab_size=WORDS, hidden_size=32, num_hidden_layers=2,
        attention_hidden_size=32, intermediate_size=64, context_length=64),
    *(
        of(kind.lower(), f"{kind}Model", f"{kind}Config", _TWO_SIDES, **_PAIR)
        for kind in ("Bart", "Marian", "Pegasus")
    ),
    of("t5_encoder", "T5EncoderModel", "T5Config", _WORDS, **_T5, num_layers=2),
    of("t5", "T5ForConditionalGeneration", "T5Config", _TWO_SIDES, **_T5, num_layers=1),
)  # fmt: skip

SOUND = (
    of("wav2vec2", "Wav2Vec2ForCTC", "Wav2Vec2Config", _WAVE, **_WAVES),
    of("hubert", "HubertModel", "HubertConfig", _WAVE, **_WAVES),
    of("sew", "SEWModel", "SEWConfig", _WAVE, squeeze_factor=2, **_WAVES),
    of("wav2vec2_conformer", "Wav2Vec2ConformerModel", "Wav2Vec2ConformerConfig", _WAVE,
        position_embeddings_type="relative", **_WAVES),
    of("whisper", "WhisperModel", "WhisperConfig",
        together(floats(2, 16, 40, name="input_features", batch=0), tokens("decoder_input_ids")),
        **{k: v for k, v in _PAIR.items() if k != "max_position_embeddings"}, num_mel_bins=16,
        max_source_positions=20, max_target_positions=20),
    of("audio_spectrogram_transformer", "ASTModel", "ASTConfig", floats(1, 64, 32, name="input_values", batch=0),
        **_LAYERS, patch_size=16, max_length=64, num_mel_bins=32),
    of("hifigan", "SpeechT5HifiGan", "SpeechT5HifiGanConfig", floats(10, 8, name="spectrogram"), model_in_dim=8,
        upsample_initial_channel=16, upsample_rates=[2, 2], upsample_kernel_sizes=[4, 4],
        resblock_kernel_sizes=[3], resblock_dilation_sizes=[[1, 3]]),
)  # fmt: skip

VISION = (
    *(
        of(name, model, config, _IMAGE, **_VISION)
        for name, model, config in (
            ("clip_vision", "CLIPVisionModel", "CLIPVisionConfig"),
            ("siglip_vision", "SiglipVisionModel", "SiglipVisionConfig"),
            ("vit", "ViTForImageClassification", "ViTConfig"),
            ("deit", "DeiTForImageClassificationWithTeacher", "DeiTConfig"),
            ("dinov2", "Dinov2Model", "Dinov2Config"),
            ("vit_mae", "ViTMAEModel", "ViTMAEConfig"),
        )
    ),
    of("beit", "BeitModel", "BeitConfig", _IMAGE, use_relative_position_bias=True, **_VISION),
    of("vit_det", "VitDetModel", "VitDetConfig", _IMAGE, window_block_indices=[0], window_size=2,
        use_relative_position_embeddings=True, **_VISION),
    of("swin", "SwinForImageClassification", "SwinConfig", _IMAGE, **_WINDOWS),
    of("swinv2", "Swinv2Model", "Swinv2Config", _IMAGE, **_WINDOWS),
    of("convnext", "ConvNextForImageClassification", "ConvNextConfig", _IMAGE, **_STAGES),
    of("convnextv2", "ConvNextV2Model", "ConvNextV2Config", _IMAGE, **_STAGES),
    of("poolformer", "PoolFormerModel", "PoolFormerConfig", _LARGE_IMAGE, **_STAGES),
    of("regnet", "RegNetForImageClassification", "RegNetConfig", _IMAGE, embedding_size=8, **_STAGES,
        groups_width=8, layer_type="y"),
    of("resnet", "ResNetForImageClassification", "ResNetConfig", image(is_open=True), embedding_size=8, **_STAGES,
        layer_type="bottleneck"),
    of("bit", "BitForImageClassification", "BitConfig", _LARGE_IMAGE, embedding_size=8, **_STAGES, num_groups=4),
    of("levit", "LevitForImageClassification", "LevitConfig", _LARGE_IMAGE, image_size=64,
        hidden_sizes=[16, 32, 48], num_attention_heads=[2, 4, 6], depths=[1, 1, 1], key_dim=[8, 8, 8]),
    of("mobilevit", "MobileViTForImageClassification", "MobileViTConfig", _LARGE_IMAGE, hidden_sizes=[16, 24, 32],
        neck_hidden_sizes=[8, 8, 16, 16, 24, 32, 64], num_attention_heads=2, image_size=64),
    of("mobilenet_v1", "MobileNetV1ForImageClassification", "MobileNetV1Config", _IMAGE, depth_multiplier=0.25,
        image_size=32, tf_padding=True),
    of("mobilenet_v2", "MobileNetV2ForSemanticSegmentation", "MobileNetV2Config", _LARGE_IMAGE,
        depth_multiplier=0.25, image_size=64),
    of("efficientnet", "EfficientNetForImageClassification", "EfficientNetConfig", _IMAGE, width_coefficient=0.25,
        depth_coefficient=0.3, image_size=32, hidden_dim=320),
    of("focalnet", "FocalNetForImageClassification", "FocalNetConfig", _IMAGE, image_size=32, patch_size=2,
        embed_dim=16, depths=[1, 1], focal_levels=[1, 1], focal_windows=[3, 3], hidden_sizes=[16, 32]),
    of("pvt", "PvtForImageClassification", "PvtConfig", _LARGE_IMAGE, image_size=64, **_HEADED_STAGES),
    of("segformer", "SegformerForSemanticSegmentation", "SegformerConfig", _LARGE_IMAGE, **_HEADED_STAGES,
        decoder_hidden_size=16),
    of("glpn", "GLPNForDepthEstimation", "GLPNConfig", _LARGE_IMAGE, **_HEADED_STAGES, decoder_hidden_size=16),
    of("dpt", "DPTForDepthEstimation", "DPTConfig", _IMAGE, **_VISION | {"num_hidden_layers": 4},
        backbone_out_indices=[0, 1, 2, 3], neck_hidden_sizes=[8, 16, 16, 32], fusion_hidden_size=16),
    of("yolos", "YolosForObjectDetection", "YolosConfig", _IMAGE, **_VISION | {"image_size": [32, 32]},
        num_detection_tokens=5),
    of("detr", "DetrForObjectDetection", "DetrConfig", _LARGE_IMAGE, use_timm_backbone=False,
        use_pretrained_backbone=False, backbone=None, backbone_config=_backbone("stage4"), num_queries=5,
        **{k: v for k, v in _PAIR.items() if k.startswith(("d_", "encoder", "decoder_l", "decoder_a", "decoder_f"))}),
    of("upernet", "UperNetForSemanticSegmentation", "UperNetConfig", _LARGE_IMAGE, hidden_size=16,
        backbone_config=_backbone("stage1", "stage2", "stage3", "stage4"), pool_scales=[1, 2],
        auxiliary_in_channels=16, auxiliary_channels=8),
    of("videomae", "VideoMAEModel", "VideoMAEConfig", _FRAMES, num_frames=4, tubelet_size=2, **_VISION),
    of("timesformer", "TimesformerModel", "TimesformerConfig", _FRAMES, num_frames=4, **_VISION),
)  # fmt: skip

OTHERS = (
    of("clip", "CLIPModel", "CLIPConfig",
        together(_WORDS, ((lambda: {"pixel_values": torch.randn(1, 3, 32, 32)}), {"pixel_values": {0: "images"}})),
        text_config=_TEXT | _ENDS, vision_config=_VISION, projection_dim=16),
    of("patchtst", "PatchTSTForPrediction", "PatchTSTConfig", _PAST, **_SERIES, d_model=16, num_attention_heads=2,
        num_hidden_layers=2, ffn_dim=32),
    of("patchtsmixer", "PatchTSMixerForPrediction", "PatchTSMixerConfig", _PAST, **_SERIES, d_model=16, num_layers=2),
    of("perceiver", "PerceiverModel", "PerceiverConfig", floats(1, 10, 16, name="inputs", batch=0), d_latents=32,
        d_model=16, num_latents=4, num_self_attends_per_block=1, num_self_attention_heads=4,
        num_cross_attention_heads=4),
)  # fmt: skip

ARCHITECTURES = (*LANGUAGE, *SOUND, *VISION, *OTHERS)
