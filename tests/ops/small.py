"""A small system under the real supervisor: PostgreSQL, granian with two workers, and a program that only sleeps.

`python small.py HOME PORT` prints what the supervisor says, then "up".
"""

import os
import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from memory.management.child import tied_to_parent
from memory.management.home import Home, Refused
from memory.management.postgres import Embedded
from memory.management.processes import Program, Stopped, Supervisor, stoppable

tied_to_parent()  # as memory/wsgi.py does


def application(environ, start_response):
    """The web server's whole answer."""
    start_response("200 OK", [])
    return [str(os.getpid()).encode()]


def main(home: Path, port: str) -> None:
    """Run until told to stop."""
    say = lambda line: print(line, flush=True)  # noqa: E731
    env = os.environ | {"PYTHONPATH": str(Path(__file__).parent)}
    web = f"-m granian --interface wsgi --port {port} --workers 2 --blocking-threads 4 small:application".split()
    # A worker whose own child would outlive it, and that does not care for SIGTERM.
    stubborn = (
        "import signal, subprocess as s, time; signal.signal(15, 1); s.Popen(['sleep', '1000']); time.sleep(1000)"
    )
    with stoppable():
        Home(home).prepare()
        if Home(home).hold("start") is None:
            raise Refused("runs already")
        supervisor = Supervisor(Home(home), embedded=Embedded(home, settings={"fsync": "off"}), env=env, say=say)
        try:
            supervisor.start_database()
            worker = Program("worker", [sys.executable, "-c", stubborn], end_by=signal.SIGINT)
            supervisor.start([Program("web", [sys.executable, *web]), worker])
            say("up")
            supervisor.watch()
        except Stopped:
            say("stopping")
        finally:
            supervisor.stop()
        say("stopped")


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]), sys.argv[2])
    except Refused as why:
        sys.exit(str(why))
