import Essentials

/// The progress of a schema file's steps.
struct MigrationSteps {
    let file: String
    private(set) var done: Int64 = 0
    /// Approximate, from the database's statistics.
    private(set) var total: Int64 = 0
    private(set) var count = 0
    private(set) var longest = Duration.zero

    init(file: String) { self.file = file }

    mutating func add(done: Int64, total: Int64, took: Duration) {
        self.done = done
        self.total = max(total, done)
        count += 1
        longest = max(longest, took)
    }

    var text: String {
        let share = total == 0 ? 100 : done * 100 / total
        return "\(file): \(done) of about \(total) (\(share) %), \(count) steps, "
            + "the longest \(longest.milliseconds) ms"
    }
}
