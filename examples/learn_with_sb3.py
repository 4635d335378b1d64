"""MaskablePPO of sb3-contrib, as it is, learns to rewrite a small graph: pip install 'rlflow[learn]'.

A choice is a class of matches; which there are is what `action_masks` of the environment tells. The last line compares
the policy with the proven optimum, which is the environment's reward threshold.
"""

import gymnasium
from gymnasium.wrappers import TransformReward
from sb3_contrib import MaskablePPO

env = gymnasium.make("rlflow.environments:rlflow/TinyTranspose-v0", max_choices=12, max_steps=8)
scaled = TransformReward(env, lambda percent: percent / 100)
agent = MaskablePPO("MultiInputPolicy", scaled, n_steps=128, batch_size=64, learning_rate=1e-3, seed=0)
agent.learn(2048)

observation, info = env.reset(seed=0)
saved, ended = 0.0, False
while not ended:
    action, _ = agent.predict(observation, action_masks=info["action_mask"], deterministic=True)
    observation, reward, terminated, truncated, info = env.step(action)
    saved, ended = saved + reward, terminated or truncated

print(f"MaskablePPO saves {saved:.2f} % of the price; the proven optimum saves {env.spec.reward_threshold} %")
