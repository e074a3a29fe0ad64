// KafkaTests
