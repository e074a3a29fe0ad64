import Runtime

/// What `change-relay` can be told.
enum Settings {
    static let all: [Setting] = [.databaseURL, .kafkaBrokers, .kafkaProperties]
}
