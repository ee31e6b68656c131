"""A store in a real PostgreSQL server, for several machines: each has a state folder of its own here."""

import json
import os
import signal
import subprocess
import threading
import time
import unittest
from pathlib import Path

import journal_storm
from harness import HOSTLER, PATIENCE, children, environment, write_tool
from server import Proxy, Server, programs
from test_journal import TOOL, Journal
from test_shared import until
from wire import request

server = None


def setUpModule():
    global server
    if programs() is None:
        raise unittest.SkipTest("PostgreSQL is not installed")
    server = Server()
    unittest.addModuleCleanup(server.remove)


class Postgres(Journal):
    def setUp(self):
        super().setUp()
        server.sql("DROP SCHEMA IF EXISTS hostler CASCADE")
        self.url = server.url
        self.more = ""

    def settings(self, text):
        config = self.folder / "config/hostler"
        config.mkdir(parents=True, exist_ok=True)
        # In one step: a hostler that reads an empty file meanwhile would take the store of this machine.
        written = config / f"{threading.get_ident()}.tmp"
        written.write_text(f'[journal]\nstore = "{self.url}"\n{text}')
        written.replace(config / "hostler.toml")

    def env(self, **variables):
        machine = "machine-" + variables.pop("machine", "a")
        self.settings(self.more)
        (self.folder / machine).mkdir(exist_ok=True)
        return environment(XDG_STATE_HOME=str(self.folder / machine), XDG_CONFIG_HOME=str(self.folder / "config"),
                           XDG_RUNTIME_DIR=str(self.folder / machine), **{"USER": "me", **variables})

    def rows(self, where="true"):
        if server.sql("SELECT to_regclass('hostler.tool_calls') IS NOT NULL") == [["f"]]:
            return []
        rows = server.sql(f"SELECT row_to_json(c) FROM (SELECT * FROM hostler.tool_calls WHERE {where} ORDER BY number) c")
        return [json.loads(row[0]) for row in rows]

    def short_leases(self):
        server.sql("ALTER TABLE hostler.settings DROP CONSTRAINT three_heartbeats; UPDATE hostler.settings SET lease_seconds = 3")

    def spools(self, machine):
        """The locks of spools on a machine: one for each process, and for each that is gone and was not recovered."""
        return list((self.folder / f"machine-{machine}/hostler/journal/spool").glob("*/*.lock"))

    def run_on(self, machine, *words, **variables):
        return subprocess.run([HOSTLER, *words], cwd=self.folder, env=self.env(machine=machine, **variables), stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=120)


class Together(Postgres):
    def test_calls_are_rows_with_what_specification_003_names(self):
        wire = self.wire()
        self.assertEqual(wire.value(1, "once_note", path=self.path("a"), text="a\0b \U0001f600"), "a\0b \U0001f600")
        wire.send(request(2, "tools/call", name="once_fail", arguments={"number": 3},
                          _meta={"hostler/tags": ["prompt:10", "block:2", "tool_call:5", "x\0y"]}))
        wire.answer(2)
        good, bad = until(lambda: len(found := self.rows("state <> 'running'")) == 2 and found)
        self.assertEqual((good["state"], good["tool_name"], good["request"], good["response"]), ("complete", "once.note", None, None))
        self.assertEqual((bad["state"], bad["code"], bad["prompt_id"], bad["block_id"], bad["api_tool_call_id"]),
                         ("error", "TOOL_ERROR", "10", "2", "5"))
        self.assertEqual((bad["request"], bad["tags"]), ('{"number":3}', ["prompt:10", "block:2", "tool_call:5", "x\ufffdy"]))
        self.assertRegex(bad["origin"], "^me@.+")
        listed = json.loads(self.run_on("b", "calls", "list", "--json").stdout)
        self.assertEqual([call["call_id"] for call in listed], [bad["id"], good["id"]], "another machine reads them")
        self.assertEqual(json.loads(self.run_on("b", "calls", "show", bad["id"][:8], "--json").stdout)["error"]["code"], "TOOL_ERROR")
        listed = json.loads(self.run_on("b", "calls", "list", "--json", "--tool", "once.note").stdout)
        self.assertEqual([call["call_id"] for call in listed], [good["id"]])

    def test_one_call_for_a_key_on_all_machines(self):
        ends = []

        def ask(number):
            done = self.run_on("ab"[number % 2], "call", "once.note", f"path={self.path('a')}", "seconds:=0.3", "--key", "k", "--json")
            ends.append(json.loads(done.stdout))

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual([end["result"] for end in ends], ["ran"] * 6)
        self.assertEqual(self.effects("a"), ["ran"])
        other = self.run_on("b", "call", "once.note", "path=other", "--key", "k", "--json")
        self.assertEqual(json.loads(other.stdout)["error"]["code"], "INVALID_PARAMS")
        self.assertEqual(self.run_on("a", "call", "once.fail", "number:=1", "x:=1", "--key", "f", "--json").returncode, 2)
        self.assertEqual(server.sql("SELECT count(*) FROM hostler.keys WHERE key = 'f'"), [["0"]], "a call that was not made gives it back")

    def test_a_background_call_is_waited_for_and_ended_from_another_machine(self):
        a, b = self.open(machine="a"), self.open(machine="b")
        begun = self.begin(a, "once.note", path=self.path("a"), seconds=2)
        self.assertEqual(self.row(begun)["background"], True)
        self.assertEqual(self.end(b, begun)["result"], "ran")
        endless = self.begin(a, "once.note", id=2, path=self.path("b"), seconds=600)
        until(lambda: self.effects("b"))
        self.assertTrue(b.value("calls.cancel", {"call": endless}, id=3))
        self.assertEqual(self.end(b, endless, id=4)["error"]["code"], "CANCELLED")

    def test_the_end_of_another_machines_call_is_said(self):
        a, b = self.open(machine="a"), self.open(machine="b")
        begun = self.begin(a, "once.note", path=self.path("a"), seconds=600)
        b.send(json.dumps({"jsonrpc": "2.0", "id": 9, "method": "calls.wait", "params": {"call": begun}}))
        until(lambda: server.sql("SELECT count(*) FROM pg_stat_activity WHERE query = 'LISTEN hostler_ended'") == [["1"]])
        time.sleep(0.5)  # what it reads at first
        began = time.monotonic()
        server.sql(f"UPDATE hostler.tool_calls SET state = 'complete', response = '\"said\"' WHERE id = '{begun}'")
        self.assertEqual(b.next()["result"]["result"], "said")
        self.assertLess(time.monotonic() - began, 5, "without a word it would look every ten seconds")
        until(lambda: server.sql("SELECT count(*) FROM pg_stat_activity WHERE query = 'LISTEN hostler_ended'") == [["0"]])

    def test_calls_of_a_machine_that_is_gone_go_on_elsewhere_or_are_unknown(self):
        write_tool(self.folder / "tools", "also", TOOL.replace("{effects}", "once"), header="")
        a = self.open(machine="a")
        once = self.begin(a, "once.note", path=self.path("once"), seconds=600)
        pure = self.begin(a, "pure.note", id=2, path=self.path("pure"), seconds=0.5, text="again")
        begun = self.begin(a, "also.note", id=3, path=self.path("begun"), seconds=600)
        until(lambda: self.effects("once") and self.effects("pure") and self.effects("begun"))
        self.kill(a)
        # As if that it began had not come to the database any more: it is in that machine's spool.
        server.sql(f"UPDATE hostler.tool_calls SET state = 'created', started_at = NULL, pid = NULL WHERE id = '{begun}'")
        self.short_leases()
        b = self.open(machine="b")
        until(lambda: self.row(once)["state"] == "failed")
        self.assertEqual(self.end(b, once, id=5)["error"]["code"], "OUTCOME_UNKNOWN")
        self.assertEqual(self.end(b, pure, id=6)["result"], "again")
        self.assertEqual(self.end(b, begun, id=8)["error"]["code"], "OUTCOME_UNKNOWN")
        self.assertEqual([len(self.effects(name)) for name in ("once", "begun")], [1, 1])
        self.row(pure, "complete")
        left = self.spools("a")
        self.open(machine="a")
        until(lambda: left and not any(path.exists() for path in left))
        self.assertEqual([self.row(pure)["state"], self.row(begun)["code"]], ["complete", "OUTCOME_UNKNOWN"])
        self.assertEqual(self.row(once)["code"], "OUTCOME_UNKNOWN", "what is decided stays")

    def test_a_machine_that_was_paused_does_not_begin_a_call_whose_key_another_has(self):
        self.run_on("b", "calls")  # makes the tables
        self.run_on("b", "call", "once.note", f"path={self.path('first')}", "--key", "first")
        self.short_leases()
        command = ["call", "--standalone", "once.note", f"path={self.path('a')}", "--key", "k", "--json"]
        paused = subprocess.Popen([HOSTLER, *command], cwd=self.folder, env=self.env(HOSTLER_STOP_AT="key.claimed"),
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(paused.kill)
        supervisor, = until(lambda: children(paused.pid))
        until(lambda: Path(f"/proc/{supervisor}/stat").read_text().rsplit(")")[-1].split()[0] == "T")
        done = self.run_on("b", *command)
        self.assertEqual((json.loads(done.stdout)["result"], self.effects("a")), ("ran", ["ran"]), "its lease is over")
        os.kill(supervisor, signal.SIGCONT)
        out, _ = paused.communicate(timeout=PATIENCE)
        self.assertEqual((json.loads(out)["error"]["code"], self.effects("a")), ("RESOURCE_EXHAUSTED", ["ran"]))
        again = self.run_on("a", *command)
        self.assertEqual((json.loads(again.stdout)["result"], self.effects("a")), ("ran", ["ran"]), "it is the other's call")

    def test_what_a_machine_says_after_its_lease_changes_nothing(self):
        a = self.open(machine="a")
        ended = self.begin(a, "once.note", path=self.path("ended"), seconds=1)
        until(lambda: self.effects("ended"))
        server.stop()
        try:
            self.assertEqual(self.end(a, ended)["result"], "ran")
            self.kill(a)
        finally:
            server.start()
        self.assertIn(self.row(ended)["state"], ("created", "running"), "its end is in the spool of that machine")
        self.short_leases()
        self.open(machine="b")
        until(lambda: self.row(ended)["state"] == "failed")
        left = self.spools("a")
        self.open(machine="a")
        until(lambda: left and not any(path.exists() for path in left))
        self.assertEqual(self.row(ended)["code"], "OUTCOME_UNKNOWN")

    def test_a_call_that_was_accepted_waits_for_the_server(self):
        proxy = Proxy(server, "SET boot_id", at="SET boot_id")
        self.addCleanup(proxy.remove)
        direct, self.url = self.url, proxy.url
        hostler = self.open()
        self.end(hostler, self.begin(hostler, "pure.note", path=self.path("b")))
        proxy.armed.set()
        begun = self.begin(hostler, "once.note", id=5, path=self.path("a"))
        self.assertEqual(self.end(hostler, begun, id=6)["result"], "ran")
        self.assertTrue(proxy.lost.is_set())
        self.assertEqual(self.effects("a"), ["ran"])
        self.url = direct

    def test_a_key_stays_with_the_call_that_another_machine_has_by_now(self):
        (self.folder / "hostler.toml").write_text('tools = ["tools"]\n[tool.once]\nmax_workers = 1\n')
        hostler = self.open()
        self.begin(hostler, "once.note", id=1, path=self.path("a"), seconds=600)
        until(lambda: self.effects("a"))
        waits = self.begin(hostler, "once.note", id=2, path=self.path("b"), key="k")
        until(lambda: self.row(waits)["boot_id"])
        server.sql(f"UPDATE hostler.tool_calls SET spool = 'another' WHERE id = '{waits}'")
        self.assertTrue(hostler.value("calls.cancel", {"call": waits}, id=3))
        self.assertEqual(hostler.value("calls.wait", {"call": waits}, id=4)["error"]["code"], "CANCELLED")
        ended = self.begin(hostler, "pure.fail", id=5, number=1)
        self.end(hostler, ended, id=6)
        self.assertEqual(server.sql("SELECT call_id FROM hostler.keys WHERE key = 'k'"), [[waits]])
        server.sql(f"UPDATE hostler.tool_calls SET spool = (SELECT spool FROM hostler.tool_calls WHERE id = '{ended}') WHERE id = '{waits}'")

    def test_calls_of_other_people_are_left_to_them(self):
        bob, alice = self.open(machine="a", USER="bob"), self.open(machine="d", USER="alice")
        his = self.begin(bob, "pure.note", path=self.path("his"), seconds=1)
        hers = self.begin(alice, "pure.note", path=self.path("hers"), seconds=1)
        until(lambda: self.effects("his") and self.effects("hers"))
        until(lambda: [self.row(call)["state"] for call in (his, hers)] == ["running"] * 2)
        before = self.row(his)
        for gone in (bob, alice):
            self.kill(gone)
        self.short_leases()
        other = self.open(machine="b", USER="alice")
        self.assertEqual(self.end(other, hers, id=4)["result"], "ran")
        after = self.row(his)
        self.assertEqual((after["spool"], after["state"], self.effects("his")), (before["spool"], "running", ["ran"]))


class Storm(unittest.TestCase):
    def test_nothing_is_lost_or_made_twice_while_hostlers_and_the_server_are_killed(self):
        server.sql("DROP SCHEMA IF EXISTS hostler CASCADE")
        told = journal_storm.storm(12, seed=1, server=server)
        self.assertEqual(told.faults(), [], str(told))
        self.assertGreater(told.servers, 0)


class Queue(Postgres):
    """003-R6.1: a caller's own transaction starts a call at its commit."""

    def setUp(self):
        super().setUp()
        self.more = 'queue = ["once", "pure.note"]\n'
        (self.folder / "home").mkdir()
        (self.folder / "home/hostler.toml").write_text(f'tools = ["{self.folder}/tools"]\n')

    def open(self, **variables):
        hostler = super().open(HOME=str(self.folder / "home"), **variables)
        until(lambda: server.sql("SELECT to_regclass('hostler.tool_calls') IS NOT NULL") == [["t"]])
        return hostler

    def enqueued(self, tool, arguments, more=""):
        return f"hostler.enqueue('{tool}', '{json.dumps(arguments)}'{more})"

    def test_a_call_begins_at_the_commit_and_never_after_a_rollback(self):
        a = self.open()
        wanted = self.enqueued("once.note", {"path": self.path("a")}, ", ARRAY['prompt:7', 'block:8', 'tool_call:9']")
        server.sql(f"BEGIN; SELECT {self.enqueued('once.note', {'path': self.path('never')})}; ROLLBACK")
        call = server.sql(f"BEGIN; SELECT {wanted}; COMMIT")[0][0]
        self.assertEqual(self.end(a, call)["result"], "ran")
        row = self.row(call, "complete")
        self.assertEqual((row["prompt_id"], row["block_id"], row["api_tool_call_id"], row["effects"], row["max_retries"]),
                         ("7", "8", "9", "once", 0))
        self.assertRegex(row["origin"], "^me@.+", "it is kept as long as the person who took it says")
        self.assertEqual((self.effects("a"), self.effects("never")), (["ran"], []))
        failed = server.sql(f"SELECT {self.enqueued('once.fail', {'number': 1})}")[0][0]
        self.assertEqual(self.end(a, failed)["error"]["code"], "TOOL_ERROR")
        unknown = server.sql(f"SELECT {self.enqueued('once.nothing', {})}")[0][0]
        self.assertEqual(self.end(a, unknown)["error"]["code"], "TOOL_NOT_FOUND")
        with self.assertRaisesRegex(RuntimeError, "are an object"):
            server.sql("SELECT hostler.enqueue('once.note', '[]')")

    @unittest.skipUnless(os.getuid() == 0, "only root can give a folder away")
    def test_files_of_another_user_are_not_run(self):
        a, other = self.open(), self.folder / "other"
        other.mkdir()
        (other / "hostler.toml").write_text(f'tools = ["{self.folder}/tools"]\n')
        os.chown(other, 12345, 12345)
        call = server.sql(f"SELECT {self.enqueued('once.note', {'path': self.path('a')}, f', folder => %r' % str(other))}")[0][0]
        self.assertEqual(self.end(a, call)["error"]["code"], "PERMISSION_DENIED")
        self.assertEqual(self.effects("a"), [])
        os.chown(other, 0, 0)
        call = server.sql(f"SELECT {self.enqueued('once.note', {'path': self.path('a')}, f', folder => %r' % str(other))}")[0][0]
        self.assertEqual(self.end(a, call, id=7)["result"], "ran")

    def test_each_call_is_taken_by_one_machine_and_only_where_it_is_wanted(self):
        a, _b = self.open(machine="a"), self.open(machine="b")
        other = server.sql(f"SELECT {self.enqueued('pure.fail', {'number': 1})}")[0][0]
        calls = server.sql(f"SELECT {self.enqueued('once.note', {'path': self.path('all')})} FROM generate_series(1, 100)")
        for number, (call,) in enumerate(calls):
            self.assertEqual(self.end(a, call, id=1000 + number)["result"], "ran")
        self.assertEqual(len(self.effects("all")), 100)
        self.assertEqual(self.row(other)["state"], "created", "nobody takes calls of that tool")
        self.assertTrue(a.value("calls.cancel", {"call": other}, id=5))

    def test_a_call_that_another_machine_has_by_now_is_not_begun(self):
        a, invalid = self.open(), self.folder / "invalid"
        invalid.mkdir()
        (invalid / "hostler.toml").write_text("no TOML")
        taken, kept = (server.sql(f"SELECT {self.enqueued('once.note', {'path': self.path(name)}, f', folder => %r' % str(invalid))}")[0][0]
                       for name in ("taken", "kept"))
        until(lambda: all(self.row(call)["spool"] for call in (taken, kept)))
        server.sql(f"UPDATE hostler.tool_calls SET spool = 'another' WHERE id = '{taken}'")
        (invalid / "hostler.toml").write_text(f'tools = ["{self.folder}/tools"]\n')
        self.assertEqual(self.end(a, kept)["result"], "ran")
        self.assertEqual((self.row(taken)["state"], self.effects("taken")), ("created", []))

    def test_what_was_enqueued_while_nobody_listened_is_made(self):
        self.run_on("c", "call", "once.note", f"path={self.path('a')}", "--key", "k")  # makes the tables
        call = server.sql(f"SELECT {self.enqueued('pure.note', {'path': self.path('b')})}")[0][0]
        ended = server.sql(f"SELECT {self.enqueued('pure.note', {'path': self.path('c')})}")[0][0]
        server.sql(f"UPDATE hostler.tool_calls SET cancelled = 'the caller' WHERE id = '{ended}'")
        a = self.open()
        self.assertEqual(self.end(a, call)["result"], "ran")
        self.assertEqual(self.end(a, ended, id=5)["error"]["code"], "CANCELLED")
        server.stop()
        server.start()
        again = server.sql(f"SELECT {self.enqueued('pure.note', {'path': self.path('d')})}")[0][0]
        self.assertEqual(self.end(a, again, id=6)["result"], "ran", "it listens again")
        self.assertEqual(self.effects("c"), [])


class Lost(Postgres):
    def test_calls_that_were_taken_without_an_answer_go_on(self):
        self.more = 'queue = ["*"]\n'
        self.run_on("c", "calls", "list")
        self.run_on("c", "call", "once.note", f"path={self.path('b')}", "--key", "k")  # makes the tables
        proxy = Proxy(server, "FOR UPDATE SKIP LOCKED")
        self.addCleanup(proxy.remove)
        direct, self.url = self.url, proxy.url
        hostler = self.open()
        self.end(hostler, self.begin(hostler, "pure.note", path=self.path("c")))
        proxy.armed.set()
        call = server.sql(f"""SELECT hostler.enqueue('once.note', '{json.dumps({"path": self.path("a")})}', folder => '{self.folder}')""")[0][0]
        self.assertTrue(proxy.lost.wait(30))
        self.assertEqual(self.row(call)["state"], "created")
        self.assertEqual(self.end(hostler, call, id=7)["result"], "ran")
        self.assertEqual(self.effects("a"), ["ran"])
        self.url = direct

    def test_what_was_brought_without_an_answer_is_not_brought_twice(self):
        self.run_on("c", "call", "once.note", f"path={self.path('b')}", "--key", "k")  # makes the tables
        proxy = Proxy(server, "noted\n")
        self.addCleanup(proxy.remove)
        direct, self.url = self.url, proxy.url
        hostler = self.open()
        self.row(self.begin(hostler, "pure.note", path=self.path("c")), "complete")
        proxy.armed.set()
        begun = self.begin(hostler, "pure.note", id=5, path=self.path("a"), seconds=600)
        self.assertTrue(proxy.lost.wait(30))
        after = self.begin(hostler, "once.note", id=6, path=self.path("c"))
        self.row(after, "complete")
        until(lambda: self.row(begun)["output_stream"])
        self.assertEqual((self.row(begun)["state"], self.row(begun)["output_stream"]), ("running", "noted\n"))
        self.url = direct

    def test_an_unknown_outcome_holds_its_key(self):
        a = self.open(machine="a")
        once = self.begin(a, "once.note", path=self.path("a"), seconds=600, key="u")
        until(lambda: self.effects("a"))
        self.kill(a)
        # As if that it began had not come to the database any more.
        server.sql(f"UPDATE hostler.tool_calls SET state = 'created', started_at = NULL, pid = NULL, attempt = 0 WHERE id = '{once}'")
        self.short_leases()
        b = self.open(machine="b")
        until(lambda: self.row(once)["state"] == "failed")
        again = self.begin(b, "once.note", id=2, path=self.path("a"), seconds=600, key="u")
        self.assertEqual((again, self.end(b, again, id=3)["error"]["code"]), (once, "OUTCOME_UNKNOWN"))
        self.assertEqual(self.effects("a"), ["ran"])

    def test_keys_are_a_persons_own(self):
        for person in ("alice", "bob"):
            done = self.run_on("a", "call", "once.note", f"path={self.path(person)}", f"text={person}", "--key", "daily", "--json",
                               **{"USER": person, "LOGNAME": person})
            self.assertEqual(json.loads(done.stdout)["result"], person)

    def test_what_others_enqueue_wrongly_is_refused_or_read(self):
        self.run_on("c", "call", "once.note", f"path={self.path('b')}", "--key", "k")
        for more in ("ARRAY[NULL, 'x', 'prompt:7']", "ARRAY[['a'], ['b']]"):
            server.sql(f"SELECT hostler.enqueue('pure.note', '{{}}', {more})")
        for seconds in ("1e17", "-1", "'NaN'", "'infinity'"):
            with self.assertRaises(RuntimeError, msg=seconds):
                server.sql(f"SELECT hostler.enqueue('pure.note', '{{}}', timeout_seconds => {seconds})")
        server.sql("UPDATE hostler.tool_calls SET tags = ARRAY[NULL, 'y'], timeout_seconds = 1e17 WHERE tags IS NOT NULL")
        listed = self.run_on("b", "calls", "list", "--json")
        self.assertEqual(len(json.loads(listed.stdout)), 3, listed.stderr)
        self.more = 'queue = ["*"]\n'
        a = self.open()
        until(lambda: not self.rows("state = 'created'"))
        self.assertEqual(self.end(a, self.begin(a, "pure.note", path=self.path("d")))["result"], "ran", "one odd row holds nothing up")

    def test_a_database_without_every_character_is_refused(self):
        server.sql("DROP DATABASE IF EXISTS latin")
        server.sql("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0")
        self.url = server.url.replace("/postgres?", "/latin?")
        told = json.loads(self.run_on("a", "call", "once.note", f"path={self.path('a')}", "--key", "k", "--json").stdout)["error"]
        self.assertEqual((told["code"], self.effects("a")), ("RESOURCE_EXHAUSTED", []))
        self.assertIn("LATIN1", told["message"])


class Tls(Postgres):
    def setUp(self):
        super().setUp()
        self.server = Server(has_tls=True)
        self.addCleanup(self.server.remove)
        self.url = f"postgres://hostler@localhost:{self.server.port}/postgres"

    def keyed(self, name, **variables):
        done = self.run_on("a", "call", "once.note", f"path={self.path(name)}", "--key", name, "--json", **variables)
        return json.loads(done.stdout)

    def test_the_servers_certificate_is_checked(self):
        told = self.keyed("a")["error"]
        self.assertEqual((told["code"], self.effects("a")), ("RESOURCE_EXHAUSTED", []))
        self.assertIn("UnknownIssuer", told["message"])
        trusted = {"SSL_CERT_FILE": str(self.server.folder / "ca.pem")}
        self.assertEqual(self.keyed("b", **trusted)["result"], "ran")
        self.url = self.url.replace("localhost", "127.0.0.1")
        told = self.keyed("c", **trusted)["error"]
        self.assertEqual((told["code"], self.effects("c")), ("RESOURCE_EXHAUSTED", []), "the certificate is another host's")

    def test_the_connection_is_encrypted(self):
        control = self.open(SSL_CERT_FILE=str(self.server.folder / "ca.pem"))
        self.end(control, self.begin(control, "once.note", path=self.path("a")))
        said = self.server.sql("SELECT DISTINCT s.ssl FROM pg_stat_ssl s JOIN pg_stat_activity USING (pid) WHERE application_name = 'hostler'")
        self.assertEqual(said, [["t"]])


class Away(Postgres):
    def test_a_server_that_is_away_costs_the_foreground_nothing_and_refuses_what_others_rely_on(self):
        wire, control = self.wire(), self.open(machine="b")
        wire.value(1, "once_note", path=self.path("a"))
        begun = self.begin(control, "pure.note", path=self.path("b"))
        self.end(control, begun)
        until(lambda: len(self.rows()) == 2)
        server.stop()
        try:
            began = time.monotonic()
            for number in range(2, 12):
                self.assertEqual(wire.value(number, "once_note", path=self.path("a")), "ran")
            self.assertLess(time.monotonic() - began, 4, "nothing waits for it")
            keyed = self.run_on("c", "call", "once.note", f"path={self.path('keyed')}", "--key", "k", "--json")
            self.assertEqual(json.loads(keyed.stdout)["error"]["code"], "RESOURCE_EXHAUSTED")
            refused = control.ask("calls.start", {"tool": "once.note", "arguments": {"path": self.path("c")}, "background": True}, id=50)
            self.assertEqual(refused.data["code"], "RESOURCE_EXHAUSTED", refused)
            self.assertEqual([self.effects("keyed"), self.effects("c")], [[], []])
            listed = self.run_on("c", "calls")
            self.assertNotEqual(listed.returncode, 0)
            self.assertIn("cannot be read", listed.stderr)
        finally:
            server.start()
        until(lambda: len(self.rows("tool_name = 'once.note' AND state = 'complete'")) == 11)
        again = self.begin(control, "once.note", id=60, path=self.path("d"))
        self.assertEqual(self.end(control, again, id=61)["result"], "ran")
        self.assertEqual(self.effects("c"), [], "what was refused is not made later")

    def test_a_server_that_does_not_answer_holds_up_what_relies_on_it_and_nothing_else(self):
        wire, control = self.wire(), self.open(machine="b")
        wire.value(1, "once_note", path=self.path("a"))
        self.end(control, self.begin(control, "pure.note", path=self.path("b"), key="before"))
        server.signal(signal.SIGSTOP)
        try:
            began = time.monotonic()
            for number in range(2, 12):
                self.assertEqual(wire.value(number, "once_note", path=self.path("a")), "ran")
            self.assertLess(time.monotonic() - began, 4)
            refused = control.ask("calls.start", {"tool": "once.note", "arguments": {"path": self.path("c")}, "background": True, "key": "k"}, id=50)
            self.assertEqual(refused.data["code"], "RESOURCE_EXHAUSTED", refused)
            self.assertLess(time.monotonic() - began, 40)
        finally:
            server.signal(signal.SIGCONT)
        again = until(lambda: (answer := control.ask("calls.start", {
            "tool": "once.note", "arguments": {"path": self.path("c")}, "background": True, "key": "k"}, id=60)) and
            getattr(answer, "result", None))
        ended = self.end(control, again["call"], id=61)
        self.assertEqual(ended["result"], "ran", ended)
        self.assertEqual(self.effects("c"), ["ran"])
        until(lambda: len(self.rows("tool_name = 'once.note' AND state = 'complete'")) == 12)

    def test_what_a_person_may_not_do_is_said(self):
        server.sql("DROP ROLE IF EXISTS stranger; CREATE ROLE stranger LOGIN")
        self.url = server.url.replace("hostler@", "stranger@")
        wire = self.wire()
        self.assertEqual(wire.value(1, "once_note", path=self.path("a")), "ran")
        keyed = self.run_on("b", "call", "once.note", f"path={self.path('b')}", "--key", "k", "--json")
        told = json.loads(keyed.stdout)["error"]
        self.assertEqual((told["code"], self.effects("b")), ("RESOURCE_EXHAUSTED", []))
        self.assertIn("permission denied", told["message"])

    def test_tables_of_a_later_hostler_are_left_alone(self):
        self.run_on("a", "call", "once.note", f"path={self.path('a')}", "--key", "k")
        server.sql("UPDATE hostler.settings SET version = 99")
        for words in (["calls"], ["call", "once.note", f"path={self.path('b')}", "--key", "l"]):
            told = self.run_on("a", *words)
            self.assertNotEqual(told.returncode, 0)
            self.assertIn("later hostler", told.stderr)

    def test_an_address_that_is_none_is_said_without_its_password(self):
        for url in ("mysql://me:hunter2@host/db", "postgres://me:hunter2@:x/db"):
            self.url = url
            told = self.run_on("a", "list")
            self.assertEqual(told.returncode, 2, told)
            self.assertIn("PostgreSQL", told.stderr)
            self.assertNotIn("hunter2", told.stderr)
        self.url = "postgres://me:hunter2@127.0.0.1:1/db"
        told = self.run_on("a", "calls")
        self.assertIn("the database db on 127.0.0.1", told.stderr)
        self.assertNotIn("hunter2", told.stderr + told.stdout)


if __name__ == "__main__":
    unittest.main()
