"""Rollouts as a Minari dataset, of an agent that takes what saves most: pip install 'rlflow[learn,minari]'.

Minari keeps datasets in ~/.minari, or in MINARI_DATASETS_PATH. It can write tables of choices, and no graphs.
"""

import gymnasium
from minari import DataCollector

from rlflow.environments.class_observations import CHOICE_FEATURES

SAVING = CHOICE_FEATURES.index("saving_percent")
env = DataCollector(gymnasium.make("rlflow/TinyTranspose-v0", max_choices=12, max_steps=8))
for episode in range(4):
    observation, info = env.reset(seed=episode)
    ended = False
    while not ended:
        saving = observation["choices"][:, SAVING]
        action = int(saving.argmax()) if saving.max() > 0 else env.unwrapped.terminate
        observation, _, terminated, truncated, info = env.step(action)
        ended = terminated or truncated

dataset = env.create_dataset("rlflow/tiny-transpose/greedy-v0", algorithm_name="greedy")
first = next(dataset.iterate_episodes())
print(f"{dataset.total_episodes} episodes of {len(first)} steps; the first saves {first.rewards.sum():.2f} %")
print(f"made again by {dataset.recover_environment()}")
