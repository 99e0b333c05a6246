"""`manage.py systemd_unit`: prints a unit that runs Team Memory as a service, with this machine's paths in it."""

import getpass
import os
import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from memory.management.home import PROJECT, data_home

UNIT = """\
# Made by manage.py systemd_unit. To install:
#   {python} {manage} systemd_unit | sudo tee /etc/systemd/system/team-memory.service
#   sudo systemctl daemon-reload && sudo systemctl enable --now team-memory
[Unit]
Description=Team Memory
After=network-online.target
Wants=network-online.target

[Service]
Type=simple
User={user}
WorkingDirectory={project}
Environment=TEAM_MEMORY_DATA={data}
Environment=TEAM_MEMORY_PUBLIC_URL={url}
# Secrets and whatever else is set go here, readable by root alone; the file need not exist.
EnvironmentFile=-/etc/team-memory.env
ExecStart={python} {manage} start --host {host} --port {port}
# It stops its own processes in order; the kill is for what did not end.
KillMode=mixed
TimeoutStopSec=45
Restart=always
RestartSec=3
NoNewPrivileges=yes
ProtectSystem=full
PrivateTmp=no

[Install]
WantedBy=multi-user.target
"""


class Command(BaseCommand):
    help = "Print a systemd unit for this installation."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on (127.0.0.1)")
        parser.add_argument("--port", type=int, default=8000, help="port to listen on (8000)")
        parser.add_argument("--user", default=getpass.getuser(), help="the user it runs as (you)")
        parser.add_argument("--url", default="http://127.0.0.1:8000", help="the address that people use")

    def handle(self, *args: Any, **options: Any) -> None:
        data = data_home(os.environ, None)[0]
        values = {name: options[name] for name in ("host", "port", "user", "url")}
        python, manage = sys.executable, PROJECT / "manage.py"
        self.stdout.write(UNIT.format(python=python, manage=manage, project=PROJECT, data=data, **values), ending="")
