# Two images: `server` (the default) for daemons, the API and workers of Celery tasks, and
# `worker-data` for workers that import data.
# docs/how-to/deploy/compose.md shows how to pin it by its digest.
ARG PYTHON_IMAGE=python:3.11-slim
FROM ${PYTHON_IMAGE} AS python

# What needs no compiler and no package index later: an environment, and the wheels of this source.
FROM python AS build-data
# A mirror of the package index, such as --build-arg PIP_INDEX_URL=…; pip's own by default.
ARG PIP_INDEX_URL
WORKDIR /src
RUN python -m venv /opt/minutebook
COPY requirements/server.lock requirements/
RUN /opt/minutebook/bin/pip install --no-cache-dir --require-hashes -r requirements/server.lock
COPY . .
RUN /opt/minutebook/bin/pip wheel --no-cache-dir --no-deps --no-build-isolation -w /wheels ./release/client .
RUN /opt/minutebook/bin/pip install --no-cache-dir --no-deps --no-index /wheels/*.whl
RUN /opt/minutebook/bin/pip uninstall -y setuptools pip

FROM python AS build
ARG PIP_INDEX_URL
WORKDIR /src
RUN python -m venv /opt/minutebook
COPY requirements/base.lock requirements/
RUN /opt/minutebook/bin/pip install --no-cache-dir --require-hashes -r requirements/base.lock
COPY --from=build-data /wheels /wheels
RUN /opt/minutebook/bin/pip install --no-cache-dir --no-deps --no-index /wheels/*.whl
RUN /opt/minutebook/bin/pip uninstall -y setuptools pip

FROM python AS runtime
ENV PATH=/opt/minutebook/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    SCHED_HOME=/var/lib/minutebook
RUN useradd --uid 10001 --no-create-home minutebook \
    && install -d -o minutebook -g minutebook -m 700 /var/lib/minutebook
WORKDIR /var/lib/minutebook
USER 10001:10001
VOLUME /var/lib/minutebook
ENTRYPOINT ["minutebook"]
CMD ["--help"]

FROM runtime AS worker-data
COPY --from=build-data /opt/minutebook /opt/minutebook

FROM runtime AS server
COPY --from=build /opt/minutebook /opt/minutebook
