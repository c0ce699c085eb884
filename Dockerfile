FROM python:3.11-slim

ENV PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_NO_CACHE_DIR=1 \
    SCHED_HOME=/var/lib/minutehand

RUN useradd --uid 10001 --create-home minutehand \
    && install -d -o minutehand -g minutehand /var/lib/minutehand

WORKDIR /app
COPY requirements.lock ./
RUN pip install --require-hashes -r requirements.lock
COPY . .
# Editable: our top-level names (models, tasks, cli) stay in /app, out of site-packages.
RUN pip install --no-deps --no-build-isolation -e client -e .

USER minutehand
VOLUME /var/lib/minutehand
ENTRYPOINT ["minutehand"]
CMD ["--help"]
