"""What happens in place of running a server while tools are made. A module called `uvicorn` replaces the real one."""

import os

from harness import ShimTest

UVICORN = """
    def run(app, **_):
        raise AssertionError("it has been run")
    class Server:
        def __init__(self, app): self.app = app
        def run(self): raise AssertionError("it has been run")
        async def serve(self): raise AssertionError("it has been served")
"""
# A coroutine with a tool, in something that it holds open.
SERVE = ("import asyncio, threading, uvicorn\nheld, ended = [], []\nasync def serve(name='x'):\n    state = {'open': True, 'name': name}\n"
         "    loop = asyncio.get_running_loop()\n"
         "    async def look(): return [state['open'], state['name'], asyncio.get_running_loop() is loop]\n    held.append(look)\n"
         "    try:\n        await uvicorn.Server(None).serve()\n    finally:\n        state['open'] = False\n        open('ended', 'w').close()\n")
LINE = 6  # of `look`


class Runs(ShimTest):
    def looking(self, main="", name="main"):
        """A worker with the coroutine and this program, and the symbol of its tool."""
        self.file(UVICORN, "uvicorn.py")
        worker = self.worker(SERVE + main)
        way = "tool.py/%s>" % name if main else ""
        return worker, "made:%sserve:%d:look" % (way, LINE)

    def ended(self):
        return os.path.exists(os.path.join(self.folder, "ended"))

    def test_a_coroutine_waits_where_it_would_serve(self):
        for main in ("", "def main():\n    asyncio.run(serve())\n", "from asyncio import run\ndef main():\n    run(serve())\n",
                     "async def main():\n    await serve()\n", "def main():\n    asyncio.run(asyncio.sleep(0))\n    asyncio.run(serve())\n",
                     "def main():\n    try:\n        asyncio.run(serve())\n    except Exception:\n        raise SystemExit(1)\n"):
            with self.subTest(main):
                worker, tool = self.looking(main)
                for _ in range(2):
                    self.assertEqual(worker.call(tool).get("result"), [True, "x", True])
                self.assertFalse(self.ended())
                worker.end()
                self.assertTrue(self.ended(), "what it had opened is closed when the worker ends")
                os.remove(os.path.join(self.folder, "ended"))

    def test_several_calls_at_once_share_it(self):
        self.file(UVICORN, "uvicorn.py")
        worker = self.worker(SERVE + "def main():\n    asyncio.run(serve())\n", concurrency=3)
        for _ in range(3):
            worker.begin("made:tool.py/main>serve:%d:look" % LINE)
        self.assertEqual([worker.read()["result"] for _ in range(3)], [[True, "x", True]] * 3)

    def test_a_function_ends_where_it_would_run_a_server(self):
        self.file(UVICORN, "uvicorn.py")
        for run in ("uvicorn.run(None)", "uvicorn.Server(None).run()"):
            with self.subTest(run):
                worker = self.worker("import uvicorn\ndef main():\n    server = []\n    def look(): return 1\n    server.append(look)\n"
                                     "    %s\n    raise AssertionError\n" % run)
                self.assertEqual(worker.call("made:main:4:look").get("result"), 1, "what it has is kept")

    def test_a_loop_of_the_file_ends_there(self):
        for main in ("def main():\n    asyncio.run(asyncio.sleep(0))\n    asyncio.new_event_loop().run_until_complete(serve())\n",
                     "async def main():\n    await asyncio.to_thread(lambda: asyncio.run(serve()))\n"):
            with self.subTest(main):
                worker, tool = self.looking(main)
                self.assertEqual(worker.call(tool).get("result"), [False, "x", False], "what it had opened is closed then")

    def test_threads_and_tools_have_loops_of_their_own(self):
        own = "    async def own(): return threading.current_thread().name\n"
        worker, tool = self.looking(
            "def apart(f):\n    found = []\n    thread = threading.Thread(target=lambda: found.append(asyncio.run(f())), name='apart')\n"
            "    thread.start()\n    thread.join()\n    return found[0]\nasync def main():\n" + own +
            "    at_first = await asyncio.to_thread(lambda: apart(own))\n    async def inner(): return 'inner'\n"
            "    also = await asyncio.to_thread(lambda: asyncio.run(inner()))\n    await serve(at_first + also)\n"
            "def later():\n    async def own(): return 'own'\n    return asyncio.run(own())\n")
        self.assertEqual(worker.call(tool).get("result"), [True, "apartinner", True])
        self.assertEqual(worker.call("later").get("result"), "own")

    def test_a_coroutine_that_fails_while_it_waits_is_reported(self):
        worker, tool = self.looking("gate, tasks = [], []\nasync def later():\n    await gate[0].wait()\n    raise ValueError('the pool is gone')\n"
                                    "async def main():\n    tasks.append(asyncio.current_task())\n    gate.append(asyncio.Event())\n    await asyncio.gather(serve(), later())\n"
                                    "async def open_gate():\n    gate[0].set()\n    await asyncio.wait(tasks)\n")
        self.assertEqual(worker.call(tool).get("result"), [True, "x", True])
        worker.call("open_gate")
        self.assertIn("ValueError: the pool is gone", worker.printed("stderr"))
