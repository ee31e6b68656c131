"""The trace context in the environment of what a tool starts."""

from harness import ShimTest

TOOL = """
    import ctypes, multiprocessing, os, subprocess

    NAMES = ("TRACEPARENT", "TRACESTATE")

    def seen():
        return [os.environ.get(name) for name in NAMES]

    def child(how):
        show = "echo ${TRACEPARENT-none} ${TRACESTATE-none}"
        if how == "run":
            return subprocess.check_output(["/bin/sh", "-c", show], text=True).split()
        if how == "copy":
            return subprocess.check_output(["/bin/sh", "-c", show], text=True, env=dict(os.environ)).split()
        if how == "system":
            os.system(show + " > out")
        elif how == "spawn":
            os.waitpid(os.posix_spawn("/bin/sh", ["sh", "-c", show + " > out"], os.environ), 0)
        elif how == "fork":
            pid = os.fork()
            if pid == 0:
                os.execv("/bin/sh", ["sh", "-c", show + " > out"])
            os.waitpid(pid, 0)
        else:  # behind Python's back
            ctypes.CDLL(None).system((show + " > out").encode())
        with open("out") as file:
            return file.read().split()

    def size():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
"""


def span(number):
    return "00-%032x-%016x-01" % (number * 0x9E3779B97F4A7C15F39CC0605CEDC835 % 2**128, number)


class Environment(ShimTest):
    def traced(self, function, number, kwargs=None, state=None):
        call = {"id": "c", "deadline_ms": 1000, "trace": number and span(number), "tags": []}
        if state:
            call["tracestate"] = state
        answer = self.tool.call(function, kwargs, call=call)
        self.assertIn("result", answer, answer)
        return answer["result"]

    def setUp(self):
        super().setUp()
        self.tool = self.worker(TOOL)

    def test_every_program_that_python_starts_has_that_of_the_call(self):
        self.assertEqual(self.traced("seen", None), [None, None])
        number = 0
        for how in ("run", "copy", "system", "spawn", "fork"):
            for state in ("a=1", None, "b=2", "b=2"):
                number += 1
                with self.subTest(how=how, state=state):
                    self.assertEqual(self.traced("seen", number, state=state), [span(number), state])
                    self.assertEqual(self.traced("child", number, {"how": how}, state), [span(number), state or "none"])
            self.assertEqual(self.traced("child", None, {"how": how}), ["none", "none"])

    def test_no_program_has_that_of_another_call(self):
        self.assertEqual(self.traced("child", 1, {"how": "run"}, "a=1"), [span(1), "a=1"])
        self.assertEqual(self.traced("child", 2, {"how": "C"}), ["none", "none"])
        self.assertEqual(self.traced("seen", None), [None, None])

    def test_traced_calls_leave_nothing_behind(self):
        for number in range(1, 2001):
            self.traced("seen", number)
        before = self.traced("size", 2001)
        for number in range(2002, 12002):
            self.traced("seen", number)
        self.assertLess(self.traced("size", 12002) - before, 500_000, "100 bytes a call would be 1 MB")
