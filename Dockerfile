# Team Memory: one image for web, worker and beat; see compose.yaml. The embedded PostgreSQL runs in it too.
FROM python:3.11-slim-bookworm

ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 UV_LINK_MODE=copy PATH="/app/.venv/bin:$PATH"
WORKDIR /app

# The packages first: they change less often than the program.
COPY .ci/production.lock ./
RUN pip install --no-cache-dir "uv>=0.8,<1" \
    && uv venv --quiet \
    && uv pip install --quiet --no-cache --require-hashes -r production.lock

COPY manage.py pyproject.toml README.md LICENSE ./
# An extra, at the versions of the list above where that names them: docker compose build --build-arg EXTRA=saml
ARG EXTRA=""
RUN if [ -n "$EXTRA" ]; then \
        uv pip install --quiet --no-cache --constraint production.lock -r pyproject.toml --extra "$EXTRA"; \
    fi
COPY memory memory
COPY cache_admin cache_admin
COPY dream dream
COPY templates templates
COPY static static

RUN useradd --system --uid 10001 --home-dir /data team-memory \
    && install -d -o team-memory -g team-memory -m 700 /data
USER 10001
ENV TEAM_MEMORY_DATA=/data
VOLUME /data
EXPOSE 8000
# Ten seconds more than a worker may take to end.
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=15s --timeout=5s --start-period=60s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/readyz', timeout=4)"]
CMD ["python", "manage.py", "start", "--host", "0.0.0.0"]
