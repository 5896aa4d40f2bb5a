# One image for every role: controller, poller, sandbox, queue and the kubectl plugin.
# Docker (with BuildKit), Podman and Buildah build it: make image.

# Any image with python3 >= 3.11, its venv module and CA certificates; both stages stand on the same one, because the
# environment made in the first links to its Python. The default has every pinned package as a wheel, on amd64 and
# arm64, and gets security fixes until October 2029.
ARG PYTHON_IMAGE=docker.io/library/python:3.13-slim-bookworm

FROM ${PYTHON_IMAGE} AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PYTHONDONTWRITEBYTECODE=1
WORKDIR /build
# /opt/sume-operator goes into the image and has no pip of its own; the tools stay behind.
RUN python3 -m venv --without-pip /opt/sume-operator && python3 -m venv tools

# Wheels only, so no compiler is ever needed; what does not have its hash in the lock is refused. The two secrets are
# optional: a pip.conf that names a mirror, and the CA that it needs. Neither leaves a trace in the image.
COPY deploy/image/requirements.lock deploy/image/build.lock ./
RUN --mount=type=secret,id=pip.conf,target=/etc/pip.conf --mount=type=secret,id=pip-ca.pem,target=/etc/pip-ca.pem \
    tools/bin/pip install --quiet --only-binary :all: --require-hashes -r build.lock \
    && tools/bin/pip --python /opt/sume-operator/bin/python install --quiet \
        --only-binary :all: --no-compile --require-hashes -r requirements.lock

# kubernetes.aio is the whole client a second time, for asyncio: half of all bytes here, and imported by nobody.
# Bytecode is made once, here: the root file system is read-only later, and nobody touches a source file.
RUN rm -r /opt/sume-operator/lib/python3*/site-packages/kubernetes/aio \
    && /opt/sume-operator/bin/python -m compileall -q -j 0 --invalidation-mode unchecked-hash /opt/sume-operator/lib

# The project apart from its dependencies: a layer of its own, so that a new version is a small download.
COPY pyproject.toml README.md LICENSE ./
COPY operator operator
RUN tools/bin/pip wheel --quiet --no-deps --no-build-isolation --no-index --wheel-dir wheels . \
    && tools/bin/pip --python /opt/sume-operator/bin/python install --quiet \
        --no-warn-script-location --no-deps --no-index --no-compile --root /project wheels/*.whl \
    && /opt/sume-operator/bin/python -m compileall -q --invalidation-mode unchecked-hash -s /project /project

FROM ${PYTHON_IMAGE}
COPY --from=build /opt/sume-operator /opt/sume-operator
COPY --from=build /project /
ENV PATH=/opt/sume-operator/bin:${PATH}

# What the labels below say. In front of a RUN, because there every builder looks whether they changed: Buildah 1.28
# would take a LABEL made of them from its cache.
ARG VERSION=""
ARG REVISION=""
ARG SOURCE=""
# No pip at run time. And the standard library's bytecode, which official Python images lack, for just the modules that
# the roles use; it shows at build time, too, that every role can be imported.
RUN if python3 -c 'import pip' 2>/dev/null; then python3 -m pip uninstall --quiet --yes --root-user-action ignore pip; fi \
    && /opt/sume-operator/bin/python -c 'import encodings.idna, sume_operator.cli, sume_operator.logs, sume_sandbox.command, sume_operator.runtime.controller, sume_operator.runtime.polling'
ENV PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1

# By number, so that Kubernetes can see that it is not root. Nobody owns a file here: the root may be read-only.
USER 65532:65532
WORKDIR /
EXPOSE 8080 8081
ENTRYPOINT ["sume-operator"]

LABEL org.opencontainers.image.title="sume-operator" \
    org.opencontainers.image.description="Kubernetes operator for AI video renders at Sume" \
    org.opencontainers.image.licenses="Apache-2.0" \
    org.opencontainers.image.version="${VERSION}" \
    org.opencontainers.image.revision="${REVISION}" \
    org.opencontainers.image.source="${SOURCE}"
