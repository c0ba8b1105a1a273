"""What the model of Kafka in KRaft mode leaves out."""

LIMITS = (
    "The controllers' own quorum neither fails nor forks.",
    "A lossy shutdown takes all of a broker's log, which is right for records just written, but too much for old ones.",
    "Racks are not in the model: brokers fail one after the other.",
    "There is one partition and no load; producers' retries, transactions and consumers' offsets are not in the model.",
)
