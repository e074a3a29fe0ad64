/// Minutes that an employee worked on a task, as Acme's books keep them.
struct AcmeRow: Sendable {
    /// 0: a new row, which is given its number when it is saved.
    var number = 0
    var employee: String
    /// Such as `2026-03-30`.
    var day: String
    var task: Int
    var note: String
    var minutes: Int
    var isApproved = false
}

/// Something that can be worked on.
struct AcmeTask: Sendable {
    var number: Int
    var name: String
}

/// What can be asked of Acme.
enum AcmeCall: Sendable {
    case tasks
    case rows(employee: String)
    case save(AcmeRow)
    case remove(row: Int, employee: String)
}

/// What Acme says, with the statuses of HTTP.
struct AcmeAnswer: Sendable {
    var status = 200
    /// What is wrong, in Acme's words.
    var text = ""
    /// Seconds after which to try again.
    var retryAfter: Int?
    var rows: [AcmeRow] = []
    var tasks: [AcmeTask] = []
}

/// The call was not sent. Any other error leaves open whether Acme did what it was asked.
struct AcmeNotReached: Error {}
