"""Let a person into a team, or give a member another role."""

import json
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from memory.tenants import keys
from memory.tenants.access import command_actor
from memory.tenants.models import Role, Tenant
from memory.tenants.people import InvalidMember, add_member, tenant_by_slug
from memory.tenants.rls import tenant_scope


class Command(BaseCommand):
    help = "Add a person to a team, or give a member another role. Prints a login link, once; safe to run again."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", help="the team's short name in addresses, e.g. acme")
        parser.add_argument("email", help="the person's e-mail address")
        parser.add_argument("--role", choices=Role.values, help="what they may do (member; who is in it keeps theirs)")
        parser.add_argument("--json", action="store_true", help="print one JSON object")
        parser.add_argument("--new-link", action="store_true", help="make another login link")

    def handle(self, *args: Any, **options: Any) -> None:
        pk = tenant_by_slug(options["slug"])
        if pk is None:
            raise CommandError(f"There is no team {options['slug']!r}. manage.py create_tenant makes one.")
        with tenant_scope(pk):
            tenant = Tenant.objects.get(pk=pk)
            by = command_actor(tenant, "manage.py add_member")
            try:
                added = add_member(tenant, options["email"], role=options["role"], by=by)
            except InvalidMember as why:
                raise CommandError(str(why)) from why
            link = keys.make_login_link(added.member, by=by) if added.is_new or options["new_link"] else None
        answer = {
            "tenant": tenant.slug,
            "member_id": added.member.public_id,
            "handle": added.member.handle,
            "role": added.member.role,
            "former_role": added.former_role,
            "login_url": link,
        }
        if options["json"]:
            self.stdout.write(json.dumps(answer))
            return
        member = added.member
        was = f", was {added.former_role}" if added.former_role not in (None, member.role) else ""
        self.stdout.write(f"{member.handle} ({member.public_id}) in {tenant.slug}: {member.role}{was}")
        self.stdout.write(f"Login link, once: {link or 'unchanged; --new-link makes one'}")
