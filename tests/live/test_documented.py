"""The example of the sequencing service, run as its page has it: the command, then the program."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import textwrap
from pathlib import Path

from quire.live.runs.fleet import free_addresses
from tests.kit.patience import PATIENCE_S

PAGE = Path(__file__).parents[2] / "docs" / "sequencer.md"
PROGRAM = """
import asyncio
import quire

async def main():
{example}

asyncio.run(main())
"""


def test_the_example_of_the_sequencing_service_runs_as_it_stands() -> None:
    text = PAGE.read_text()
    [address] = free_addresses(1)
    command = re.findall(r"```sh\n(quire serve .*?)\s+#", text)[0].replace("127.0.0.1:7400", address)
    examples = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(examples) == 1
    program = PROGRAM.format(example=textwrap.indent(examples[0].replace("127.0.0.1:7400", address), "    "))
    quire = str(Path(sys.executable).with_name("quire"))
    with subprocess.Popen([quire, *shlex.split(command)[1:]], stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stderr is not None
            assert "serves at" in server.stderr.readline()
            done = subprocess.run(
                [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, timeout=PATIENCE_S, check=False
            )
        finally:
            server.terminate()
    assert (done.returncode, done.stderr) == (0, "")
    joined, message = done.stdout.splitlines()
    assert re.fullmatch(r"Membership\(group='tea', number=1, change='join', who=\d+, members=\(\d+,\)\)", joined)
    assert re.fullmatch(r"GroupMessage\(group='tea', number=2, origin=\d+, payload=b'who is in\?'\)", message)
