# An image for Spark's executors: Java, Spark and what kernels need, and nothing of Quorisk, which comes from the driver.
#
#     docker build -f scripts/executor.Dockerfile -t quorisk-executor .
#
# Spark and Python have to be the driver's: Spark is of the version in constraints.txt, Python is Debian 12's, 3.11.
FROM debian:bookworm

COPY constraints.txt /tmp/constraints.txt
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates openjdk-17-jre-headless procps python3.11-venv tini \
    && python3.11 -m venv /opt/quorisk \
    && /opt/quorisk/bin/pip install --no-cache-dir pyspark numpy numba pyarrow scipy -c /tmp/constraints.txt \
    && ln -s quorisk/lib/python3.11/site-packages/pyspark /opt/spark \
    && useradd --create-home --uid 185 spark \
    && rm -rf /var/lib/apt/lists/* /tmp/constraints.txt
COPY --chmod=755 scripts/executor.sh /opt/executor.sh

ENV SPARK_HOME=/opt/spark \
    PYSPARK_PYTHON=/opt/quorisk/bin/python \
    QUORISK_CACHE_DIR=/tmp/quorisk-cache
WORKDIR /home/spark
USER spark
ENTRYPOINT ["/usr/bin/tini", "--", "/opt/executor.sh"]
