/// A row of Acme's books: minutes that an employee worked on a task.
struct AcmeRow: Codable, Sendable {
    /// The row's number, assigned when it is saved; 0 for a new row.
    var number = 0
    var employee: String
    /// The day, such as `2026-03-30`.
    var day: String
    var task: Int
    var note: String
    var minutes: Int
    var isApproved = false
}

/// A task that employees work on.
struct AcmeTask: Codable, Sendable {
    var number: Int
    var name: String
}

/// A call of Acme's interface.
enum AcmeCall: Sendable {
    case tasks
    case rows(employee: String)
    case save(AcmeRow)
    case remove(row: Int, employee: String)
}

/// Acme's response to a call, with an HTTP status.
struct AcmeResponse: Sendable {
    var status = 200
    /// Acme's error message.
    var text = ""
    /// Seconds to wait before a retry.
    var retryAfter: Int?
    var rows: [AcmeRow] = []
    var tasks: [AcmeTask] = []
}

/// The call was not sent. After any other error, Acme may have processed it.
struct AcmeUnreachable: Error {}
