"""An encoder of your own in place of the paper's.

To train with it, put the class into a module: `scrubjay train demo --encoder python:my_module:PatchEncoder`.
"""

import torch
from torch import nn

import scrubjay
from scrubjay.agent.config import SMALL
from scrubjay.agent.encoder import Encoded


class PatchEncoder(nn.Module):
    """Patches of 16 pixels, embedded; images (N, 112, 112, 3) uint8 to an SIR (N, 32, 7, 7)."""

    def __init__(self, config):
        super().__init__()
        self.config = config
        patch = config.image_size // 7
        self.embed = nn.Conv2d(3, config.sir_channels, patch, stride=patch)
        self.mix = nn.Sequential(nn.GELU(), nn.Conv2d(config.sir_channels, config.sir_channels, 3, padding=1))

    def forward(self, image):
        sir = self.embed(image.permute(0, 3, 1, 2) / 127.5 - 1)
        sir = sir + self.mix(sir)
        return Encoded(image, sir, pooled=sir.mean((-2, -1)), skips=())  # No skips: no visual dynamics replay.


torch.manual_seed(0)
agent = scrubjay.Agent(SMALL, PatchEncoder(SMALL))
count = {
    name: sum(p.numel() for p in part.parameters()) for name, part in (("encoder", agent.encoder), ("agent", agent))
}
print(f"{count['encoder']:,} of the agent's {count['agent']:,} parameters are the encoder's")

record = scrubjay.play(agent, agent, "FloorPlan401", "Cup", size=112, limits=(10, 1, 5, 10, 20))
print(f"untrained, it played {len(record.actions)} steps")

scrubjay.save_agent(agent, "my_agent")
again = scrubjay.load_agent("my_agent", encoder=PatchEncoder(SMALL))
print(
    f"saved and loaded: {all(torch.equal(a, b) for a, b in zip(agent.parameters(), again.parameters(), strict=True))}"
)
