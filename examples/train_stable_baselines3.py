"""Train with Stable-Baselines3: PPO on seeking, with our environments as any library's."""

import gymnasium
from stable_baselines3 import PPO

import scrubjay  # noqa: F401 (registers the environments)

env = gymnasium.make("scrubjay/Seek-v0", scene="FloorPlan401", size=56, goals=("Tomato",))
print(f"observations: {', '.join(env.observation_space.spaces)}; {env.action_space.n} actions")

# Far too few steps to learn anything; give it a few million.
model = PPO("MultiInputPolicy", env, n_steps=64, batch_size=32, n_epochs=1, device="cpu", seed=0)
model.learn(total_timesteps=128)
model.save("seeker")

model = PPO.load("seeker", device="cpu")
observation, _ = env.reset(seed=0)
rewards = []
for _ in range(30):
    action, _ = model.predict(observation)
    observation, reward, terminated, truncated, info = env.step(action)
    rewards.append(reward)
print(f"mean reward of {len(rewards)} steps: {sum(rewards) / len(rewards):.3f}; the policy is in seeker.zip")
