#!/bin/sh
# Run once by the PostgreSQL image, when its volume is empty. Make the SQL beside it first:
#   uv run manage.py setup_roles > deploy/roles.sql
set -eu
psql -v ON_ERROR_STOP=1 -U "${POSTGRES_USER:-postgres}" -d postgres \
  -v migrator_password="$MIGRATOR_PASSWORD" -v runtime_password="$RUNTIME_PASSWORD" \
  -v backup_password="$BACKUP_PASSWORD" -v broker_password="$BROKER_PASSWORD" \
  -f /deploy/roles.sql
