"""The zoo's names as cases of a test, and small settings at which each model has all the nodes of a layer."""

from rlflow import zoo

ZOO = zoo.names()

_ENCODER = {"layers": 1, "hidden": 16, "heads": 2, "intermediate": 24}
_IMAGES = {"image": 32, "classes": 10}
SMALL: dict[str, dict[str, object]] = {
    "bert": {**_ENCODER, "sequence": 8, "vocabulary": 20, "positions": 16},
    "dalle": {**_ENCODER, "layers": 3, "text": 3, "grid": 3, "text_vocabulary": 20, "image_vocabulary": 14},
    "gpt2": {**_ENCODER, "sequence": 8, "vocabulary": 20, "positions": 16},
    "inception_v3": {**_IMAGES, "width": 2, "image": 75},
    "mobilenet_v2": {**_IMAGES, "width": 1},
    "nasnet_a": {**_IMAGES, "width": 4, "cells": 1, "image": 35},
    "nasrnn": {"steps": 2, "hidden": 12},
    "resnet18": {**_IMAGES, "width": 4},
    "resnet50": {**_IMAGES, "width": 4},
    "resnext50": {**_IMAGES, "width": 4, "groups": 4},
    "squeezenet1_1": {**_IMAGES, "width": 4},
    "t5_decoder": {**_ENCODER, "sequence": 6, "memory": 5, "vocabulary": 20, "positions": 16, "buckets": 8},
    "transformer_transducer": {
        "audio_layers": 1,
        "label_layers": 1,
        "hidden": 16,
        "heads": 2,
        "intermediate": 24,
        "frames": 5,
        "labels": 4,
        "vocabulary": 20,
    },
    "vgg19": {**_IMAGES, "width": 2, "hidden": 24},
    "vit": {**_ENCODER, "patch": 8, "image": 24, "classes": 10},
}
"""Small enough to be built in tenths of a second; a model that is not here is small by default."""
