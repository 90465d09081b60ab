"""All kinds of trials, by name. A new kind is a file in ``campaign/trials`` and a line here."""

from __future__ import annotations

from campaign.trial import Trial
from campaign.trials.bounds import Bounds
from campaign.trials.calls import Calls
from campaign.trials.captures import Captures
from campaign.trials.collections import Collections
from campaign.trials.contacts import Contacts
from campaign.trials.device import Device
from campaign.trials.edges import Edges
from campaign.trials.exports import Exports
from campaign.trials.files import Files
from campaign.trials.forks import Forks
from campaign.trials.frames import Frames
from campaign.trials.interrupts import Interrupts
from campaign.trials.memory import Memory
from campaign.trials.sanitizers import Sanitizers
from campaign.trials.states import States
from campaign.trials.switches import Switches
from campaign.trials.xacro import Xacro

KINDS: dict[str, Trial] = {
    trial.name: trial
    for trial in (
        Calls(),
        Bounds(),
        Sanitizers(),
        Interrupts(),
        Forks(),
        Collections(),
        Captures(),
        Files(),
        Xacro(),
        Frames(),
        Switches(),
        Exports(),
        States(),
        Edges(),
        Contacts(),
        Memory(),
        Device(),
    )
}
