"""Takes screenshots of a report to look at, wide and narrow, light and dark, and prints it.

Usage: ``python tools/look_at_report.py REPORT.html FOLDER``, in an environment with the group
``integrations``. The pictures and the PDF go to the folder and are named after the report.
"""

import base64
import sys
from pathlib import Path

from look_at_docs import WIDTHS, start

A4 = {"paperWidth": 8.27, "paperHeight": 11.69, "preferCSSPageSize": True}


def main() -> None:
    """Takes all pictures and prints their paths."""
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    report, folder = Path(sys.argv[1]).absolute(), Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    with start() as browser:
        for width in WIDTHS:
            metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
            browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
            for theme in ("light", "dark"):
                features = [{"name": "prefers-color-scheme", "value": theme}]
                browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
                browser.get(report.as_uri())
                whole = {"captureBeyondViewport": True}
                drawn = browser.execute_cdp_cmd("Page.captureScreenshot", whole)
                write(folder / f"{report.stem}-{width}-{theme}.png", drawn)
        write(folder / f"{report.stem}.pdf", browser.execute_cdp_cmd("Page.printToPDF", A4))


def write(path: Path, answer: dict[str, str]) -> None:
    """Writes what the browser has drawn."""
    path.write_bytes(base64.b64decode(answer["data"]))
    print(path)


if __name__ == "__main__":
    main()
