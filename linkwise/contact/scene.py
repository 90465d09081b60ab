"""From a mechanism to its touches: which shapes may meet, with how many points, of which material."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from linkwise.algorithms.kinematics import Placed
from linkwise.contact.geometry.pairs import contacts_of, slots
from linkwise.contact.touching import Touch
from linkwise.mechanism.mechanism import Mechanism

if TYPE_CHECKING:
    from linkwise.algorithms.catalogue import Trees
    from linkwise.mechanism.tree import Tree
