# One member: docker build -t conclave . && docker run -p 2379:2379 conclave
# Flags go behind the image's name, or come as ETCD_... or CONCLAVE_... variables. Three members: docker-compose.yml.
FROM debian:bookworm-slim AS build
WORKDIR /src
COPY scripts/install-deps scripts/packages.txt scripts/
RUN scripts/install-deps --build
# Each folder by its name: what else changes does not compile the server again.
COPY CMakeLists.txt CMakePresets.json ./
COPY cmake cmake
COPY api api
COPY base base
COPY server server
RUN cmake --preset release -DCONCLAVE_SERVER_ONLY=ON -DCONCLAVE_TESTS=OFF \
 && cmake --build build --target conclave
COPY docker/runtime-packages docker/
RUN install -D --strip build/bin/conclave /out/conclave \
 && docker/runtime-packages build/bin/conclave > /out/packages

FROM debian:bookworm-slim
COPY --from=build /out/packages /tmp/packages
RUN apt-get update -qq \
 && xargs apt-get install -y -qq --no-install-recommends < /tmp/packages \
 && rm -rf /tmp/packages /var/lib/apt/lists/* /var/cache/apt /var/log/* \
 && useradd --system --uid 2379 --user-group --no-create-home --home-dir /var/lib/conclave conclave \
 && install -d -o conclave -g conclave -m 700 /var/lib/conclave
COPY docker/healthcheck /usr/local/bin/conclave-healthcheck
COPY --from=build /out/conclave /usr/local/bin/conclave
# etcd's names, so that a flag and a CONCLAVE_... variable win over them, and the same variable replaces them.
ENV ETCD_DATA_DIR=/var/lib/conclave \
    ETCD_LISTEN_CLIENT_URLS=http://0.0.0.0:2379 \
    ETCD_ADVERTISE_CLIENT_URLS=http://localhost:2379 \
    ETCD_LISTEN_PEER_URLS=http://0.0.0.0:2380
USER conclave
VOLUME /var/lib/conclave
EXPOSE 2379 2380
HEALTHCHECK --interval=5s --timeout=8s --start-period=10s --retries=3 CMD ["conclave-healthcheck"]
ENTRYPOINT ["conclave"]
