# An image for Spark's executors on Kubernetes: what kernels need, and nothing of Quorisk, which comes from the driver.
#
#     docker build -f scripts/executor.Dockerfile -t quorisk-executor .
#
# Spark and Python have to be the driver's: the same versions as in constraints.txt, and Python's same minor version.
FROM apache/spark:4.3.0-scala2.13-java17-python3-ubuntu

USER root
COPY constraints.txt /tmp/constraints.txt
RUN apt-get update \
    && apt-get install --yes --no-install-recommends software-properties-common \
    && add-apt-repository --yes ppa:deadsnakes/ppa \
    && apt-get install --yes --no-install-recommends python3.11 python3.11-venv \
    && python3.11 -m venv /opt/quorisk \
    && /opt/quorisk/bin/pip install --no-cache-dir numpy numba pyarrow -c /tmp/constraints.txt \
    && rm -rf /var/lib/apt/lists/* /tmp/constraints.txt

ENV PYSPARK_PYTHON=/opt/quorisk/bin/python \
    QUORISK_CACHE_DIR=/tmp/quorisk-cache
USER spark
