"""What the model of Kafka in KRaft mode leaves out."""

LIMITS = (
    "The controllers' own quorum neither fails nor forks.",
    "A lossy shutdown takes all of a broker's log, as a disk that dies does; a machine that stops loses what was not "
    "flushed, and all of that.",
    "All brokers, or those of a zone, may lose power at one instant; everything else takes them one by one.",
    "A broker that crashes is fenced at once, not after a session time-out, and unfenced as it registers, not once it "
    "has loaded its logs.",
    "There is one partition and no load; producers' retries, transactions and consumers' offsets are not in the model.",
)
