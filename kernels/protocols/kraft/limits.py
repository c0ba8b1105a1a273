"""What the model of Kafka in KRaft mode leaves out."""

LIMITS = (
    "The controllers' own quorum neither fails nor forks.",
    "A lossy shutdown takes all of a broker's log: right for records just written, too much for old ones.",
    "Racks are not in the model: brokers fail one after another.",
    "There is one partition and no load; producers' retries, transactions and consumers' offsets are not in the model.",
)
