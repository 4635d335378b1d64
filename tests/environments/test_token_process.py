"""The real process over match tokens: what it says of rewrites is what happens when they are carried out."""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from support.price_models import predicted
from support.prices import AsAWhole, drawn_prices
from support.square_graphs import graph_of, source
from support.strategies import graphs
from support.walks import REWRITER
from support.zoo_names import SMALL

from rlflow import zoo
from rlflow.cost.analytic import AnalyticCost
from rlflow.cost.base import CostModel
from rlflow.environments.token_process import Situation, TokenProcess
from rlflow.errors import InputError
from rlflow.ir.graph import Graph
from rlflow.onnx_io import from_onnx
from rlflow.representation.token_rollouts import TokenEpisode, TokenState, TokenStep
from rlflow.rules.matching.rewriter import Rewriter
