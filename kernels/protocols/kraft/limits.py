"""What the model of Kafka in KRaft mode leaves out."""

LIMITS = (
    "The controllers' own quorum neither fails nor forks.",
    "A lossy shutdown takes all of a broker's log, which is right for records just written, but too much for old ones.",
    "Unless first_record_commits_alone is on, a leader that is the whole ISR does not commit its log's first record at "
    "once: min_isr 1 loses more than is counted, and with one replica and one record a loss of 0 says nothing.",
    "Racks are not in the model: brokers fail one after the other.",
    "There is one partition and no load; producers' retries, transactions and consumers' offsets are not in the model.",
)
