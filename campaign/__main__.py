"""``python -m campaign``; see :mod:`campaign.runner`."""

import sys

from campaign.runner import main

sys.exit(main())
