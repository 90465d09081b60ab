"""A task of lw.gym learned by proximal policy optimisation, on a GPU or the processor. Extras: gym, torch (cuda).

python examples/learning/ppo.py quadruped --device cuda --envs 4096 --minutes 4
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

import linkwise as lw


class Agent(torch.nn.Module):
    """Mean and spread of actions, and value of observations, which are scaled by what was seen so far."""

    def __init__(self, seen: int, actions: int) -> None:
        super().__init__()

        def network(out: int) -> torch.nn.Module:
            sizes = [seen, 256, 128, 64]
            layers = [m for a, b in itertools.pairwise(sizes) for m in (torch.nn.Linear(a, b), torch.nn.ELU())]
            return torch.nn.Sequential(*layers, torch.nn.Linear(sizes[-1], out))

        self.mean, self.value = network(actions), network(1)
        self.spread = torch.nn.Parameter(torch.full((actions,), -0.7))
        with torch.no_grad():
            self.mean[-1].weight *= 0.01
        self.register_buffer("count", torch.tensor(1e-4))
        self.register_buffer("middle", torch.zeros(seen))
        self.register_buffer("variance", torch.ones(seen))

    def look(self, seen: torch.Tensor) -> None:
        """Take observations into account for scaling."""
        count, middle, variance = len(seen), seen.mean(0), seen.var(0, unbiased=False)
        total, step = self.count + count, middle - self.middle
        spread = self.variance * self.count + variance * count + step**2 * self.count * count / total
        self.middle += step * count / total
        self.variance.copy_(spread / total)
        self.count.copy_(total)

    def scaled(self, seen: torch.Tensor) -> torch.Tensor:
        """Observations of about unit size."""
        return ((seen - self.middle) / (self.variance + 1e-5).sqrt()).clamp(-8.0, 8.0)

    def policy(self, seen: torch.Tensor) -> torch.distributions.Normal:
        """Distribution of actions."""
        return torch.distributions.Normal(self.mean(self.scaled(seen)), self.spread.exp())

    def worth(self, seen: torch.Tensor) -> torch.Tensor:
        """Value of observations."""
        return self.value(self.scaled(seen)).squeeze(-1)


def as_tensor(array: Any) -> torch.Tensor:
    """Without a copy, also on a GPU."""
    return torch.from_dlpack(array)


def collect(env: Any, agent: Agent, seen: torch.Tensor, steps: int, gamma: float) -> tuple[torch.Tensor, list[Any]]:
    """Some steps of all environments; an episode that was cut off goes on in its value."""
    rows = []
    with torch.no_grad():
        for _ in range(steps):
            agent.look(seen)
            chance = agent.policy(seen)
            action = chance.sample()
            likely = chance.log_prob(action).sum(-1)
            found, reward, terminated, truncated, info = env.step(action.clamp(-1.0, 1.0))
            cut = as_tensor(truncated & ~terminated)
            worth = as_tensor(reward) + gamma * cut * agent.worth(as_tensor(info["final_obs"]))
            over = as_tensor(terminated | truncated)
            rows.append((seen, action, likely, as_tensor(reward), worth, over, agent.worth(seen)))
            seen = as_tensor(found)
    return seen, rows


def advantages(rows: list[Any], last: torch.Tensor, gamma: float, trace: float) -> torch.Tensor:
    """Generalized advantage estimation."""
    found, gain, following = [], torch.zeros_like(last), last
    for *_, worth, over, value in reversed(rows):
        gain = worth + gamma * following * ~over - value + gamma * trace * gain * ~over
        following = value
        found.append(gain)
    return torch.stack(found[::-1])


def learn(env: Any, agent: Agent, seconds: float, most: int, steps: int = 24) -> list[dict[str, float]]:
    """Learn for a while; what was reached on the way."""
    gamma, trace, clip, parts, rate = 0.99, 0.95, 0.2, 4, 1e-3
    optimizer = torch.optim.Adam(agent.parameters(), lr=rate)
    seen, total, begin, curve = as_tensor(env.reset(seed=1)[0]), 0, time.perf_counter(), []
    while time.perf_counter() - begin < seconds and total < most:
        seen, rows = collect(env, agent, seen, steps, gamma)
        with torch.no_grad():
            gain = advantages(rows, agent.worth(seen), gamma, trace).flatten()
        old, action, likely, rewards, _, _, value = (torch.stack(x).flatten(0, 1) for x in zip(*rows, strict=True))
        aim, gain = gain + value, (gain - gain.mean()) / (gain.std() + 1e-8)
        with torch.no_grad():
            before = agent.policy(old)
        for _ in range(5):
            for part in torch.randperm(len(old), device=old.device).chunk(parts):
                chance = agent.policy(old[part])
                ratio = (chance.log_prob(action[part]).sum(-1) - likely[part]).exp()
                won = torch.minimum(ratio * gain[part], ratio.clamp(1 - clip, 1 + clip) * gain[part])
                missed = (agent.worth(old[part]) - aim[part]).square()
                loss = -won.mean() + 0.5 * missed.mean() - 2e-3 * chance.entropy().sum(-1).mean()
                optimizer.zero_grad()
                loss.backward()
                torch.nn.utils.clip_grad_norm_(agent.parameters(), 1.0)
                optimizer.step()
            with torch.no_grad():  # steps of the policy of about the same size, whatever the rewards are
                moved = torch.distributions.kl_divergence(before, agent.policy(old)).sum(-1).mean().item()
        rate = min(max(rate / 1.5 if moved > 0.02 else rate * 1.5 if moved < 0.005 else rate, 1e-5), 1e-2)
        optimizer.param_groups[0]["lr"] = rate
        total += len(old)
        reward = float(rewards.mean())
        curve.append({"seconds": time.perf_counter() - begin, "steps": total, "reward": reward})
        if len(curve) % 20 == 1:
            print(
                f"{curve[-1]['seconds']:6.1f} s {total / 1e6:8.2f} M steps, reward of a step {reward:.3f}", flush=True
            )
    return curve


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("task")
    words.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    words.add_argument("--envs", type=int, default=1024)
    words.add_argument("--minutes", type=float, default=2.0)
    words.add_argument("--steps", type=float, default=1e12)
    words.add_argument("--out", type=Path)
    chosen = words.parse_args()
    torch.manual_seed(0)
    env = lw.gym.task(chosen.task, chosen.envs, device=chosen.device, autoreset_mode="same_step")
    agent = Agent(env.single_observation_space.shape[0], env.single_action_space.shape[0]).to(chosen.device)
    curve = learn(env, agent, 60 * chosen.minutes, int(chosen.steps))
    print(f"{curve[-1]['steps'] / 1e6:.1f} M steps in {curve[-1]['seconds']:.0f} s: {curve[-1]['reward']:.3f} a step")
    if chosen.out:
        chosen.out.mkdir(parents=True, exist_ok=True)
        (chosen.out / f"{chosen.task}.json").write_text(json.dumps(curve))
        numbers = {name: x.detach().cpu().numpy() for name, x in agent.state_dict().items() if "value" not in name}
        np.savez(chosen.out / f"{chosen.task}.npz", **numbers)


if __name__ == "__main__":
    main()
