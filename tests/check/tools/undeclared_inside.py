# /// script
# dependencies = ["httpx"]
# ///
import httpx


def well(url: str) -> str:
    """Fetch."""
    from bs4 import BeautifulSoup
    return str(BeautifulSoup(httpx.get(url).text))
