"""The wall clock jumps, as when a virtual machine goes on or a clock is set: no limit is measured by it."""

import shutil
import struct
import subprocess
import time
import unittest

from harness import META, config_file, environment, scratch, write_tool
from wire import Wire, call

# The clock of one process: what it reads is moved by the seconds in a file.
CLOCK = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
static volatile long *moved;
__attribute__((constructor)) static void begin(void) {
  moved = mmap(0, sizeof *moved, PROT_READ, MAP_SHARED, open(getenv("MOVED"), O_RDONLY), 0);
}
int clock_gettime(clockid_t clock, struct timespec *now) {
  int failed = syscall(SYS_clock_gettime, clock, now);
  if (!failed && moved && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += *moved;
  return failed;
}
"""
TOOL = "import time\n\ndef version() -> int:\n    return %d\n\ndef wait(seconds: float) -> float:\n    time.sleep(seconds)\n    return seconds\n"
YEAR = 365 * 24 * 3600


@unittest.skipUnless(shutil.which("cc"), "no C compiler")
class Clock(unittest.TestCase):
    def test_it_jumps_while_calls_run(self):
        folder = scratch(self)
        (folder / "clock.c").write_text(CLOCK)
        subprocess.run(["cc", "-shared", "-fPIC", "-o", folder / "clock.so", folder / "clock.c"], check=True)
        moved = folder / "moved"
        moved.write_bytes(struct.pack("l", 0))

        def jump(years):
            with moved.open("r+b") as file:
                file.write(struct.pack("l", years * YEAR))

        write_tool(folder / "tools", "a", TOOL % 0)
        config = config_file(folder, '[tool.a]\ntimeout = "1s"\n')
        env = environment(LD_PRELOAD=folder / "clock.so", MOVED=moved)
        with Wire(folder / "tools", env=env, arguments=("--standalone", "--config", str(config)), cwd=folder) as wire:
            wire.open()
            self.assertEqual(wire.value(1, "a_version"), 0)
            for number, years in enumerate((10, -20, 0), 2):
                wire.send(call(10 * number, "a_wait", seconds=60))
                wire.send(call(10 * number + 1, "a_version"))
                jump(years)
                began = time.monotonic()
                outcome = wire.answer(10 * number)["result"]["_meta"][META]
                self.assertEqual(outcome["error"]["code"], "TOOL_TIMEOUT")
                self.assertLess(time.monotonic() - began, 5)
                self.assertEqual(wire.answer(10 * number + 1)["result"]["structuredContent"]["result"], number - 2)
                write_tool(folder / "tools", "a", TOOL % (number - 1))
                self.assertEqual(wire.value(10 * number + 2, "a_version"), number - 1)


if __name__ == "__main__":
    unittest.main()
