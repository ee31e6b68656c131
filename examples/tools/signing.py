# /// script
# requires-python = ">=3.9"
# dependencies = ["pyjwt>=2.8"]
#
# [tool.hostler]
# secrets = ["SIGNING_KEY"]
# effects = "pure"
# ///
"""Sign claims as JSON Web Tokens, and check them.

The key is the secret SIGNING_KEY, at least 32 bytes. The issuer is a setting:

    [tool.signing.config]
    issuer = "https://example.org"
    lifetime = 3600                 # seconds
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any, Optional

import hostler
import jwt

_ALGORITHM = "HS256"


def sign(subject: str, claims: Optional[dict[str, Any]] = None, lifetime: Optional[timedelta] = None) -> str:
    """Make a signed token.

    Args:
        subject: Whom the token is about.
        claims: What else it says.
        lifetime: How long it is good for, in seconds or such as `PT15M`; by default as configured.
    """
    now = datetime.now(timezone.utc)
    if lifetime is None:
        lifetime = timedelta(seconds=hostler.config.get("lifetime", 3600))
    body = {**(claims or {}), "sub": subject, "iss": _issuer(), "iat": now, "exp": now + lifetime}
    return jwt.encode(body, hostler.secret("SIGNING_KEY"), algorithm=_ALGORITHM)


def verify(token: str) -> dict[str, Any]:
    """Check a token and tell what it says.

    Args:
        token: What `sign` made.

    Returns:
        `valid`, and either the `claims` or the `reason` it is not.
    """
    try:
        claims = jwt.decode(token, hostler.secret("SIGNING_KEY"), algorithms=[_ALGORITHM], issuer=_issuer())
    except jwt.InvalidTokenError as error:
        return {"valid": False, "reason": str(error)}
    return {"valid": True, "claims": claims}


def _issuer() -> str:
    return hostler.config.get("issuer", "hostler")
