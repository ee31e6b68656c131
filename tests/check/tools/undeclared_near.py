# /// script
# dependencies = []
# [tool.hostler]
# secrets = ["API_KEY"]
# ///
import os

import hostler


def well() -> int:
    """Count."""
    return len(hostler.secret("APIKEY") + hostler.secret("OTHER") + os.environ["API_KEY"])
