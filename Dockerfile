# The operator. The image holds the library too, so that it can also run small workers (examples/digits does).
#
# All stages stand on the same base, so the virtual environment of the first one finds its Python in the last one;
# never copy it onto another base: python3 is at /usr/local/bin in Python's own images and at /usr/bin in Debian's.
FROM docker.io/library/python:3.11-slim-bookworm AS dependencies

# pip stays out of the image: it lives in an environment of its own and installs into the other one.
RUN python3 -m venv /build && python3 -m venv --without-pip /app
COPY requirements/build.txt requirements/operator.txt /requirements/
RUN /build/bin/pip install --no-cache-dir --require-hashes --requirement /requirements/build.txt \
 && /build/bin/pip --python /app/bin/python install --no-cache-dir --require-hashes --only-binary :all: \
      --requirement /requirements/operator.txt


FROM dependencies AS project

WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY operator operator
# Into a folder of its own, so that a change of the code changes a small layer only.
RUN /build/bin/pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir /wheels . \
 && /build/bin/pip --python /app/bin/python install --no-cache-dir --no-index --no-deps --prefix /project /wheels/*.whl


FROM docker.io/library/python:3.11-slim-bookworm

LABEL org.opencontainers.image.title="spottrain operator" \
      org.opencontainers.image.description="GPU training on preemptible Kubernetes nodes, as one object" \
      org.opencontainers.image.licenses="Apache-2.0"
# A name for the user: libraries (torch among them) ask for it and fail where there is none.
RUN echo 'spottrain:x:65532:65532::/tmp:/usr/sbin/nologin' >> /etc/passwd \
 && echo 'spottrain:x:65532:' >> /etc/group
COPY --from=dependencies /app /app
COPY --from=project /project /app
# The root file system is read-only where this runs: byte code was compiled above, and none is written later.
ENV PATH=/app/bin:$PATH \
    HOME=/tmp \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
USER 65532:65532
ENTRYPOINT ["spottrain-operator"]
